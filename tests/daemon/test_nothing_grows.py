"""Objects come and go, and a daemon remembers nothing of them: no table of any part has more entries afterwards."""

from __future__ import annotations

import asyncio
import functools
import types
from collections import Counter, deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from seamark.access import correlation
from seamark.access.kubeconfig import load
from seamark.access.remote import RemoteCluster
from seamark.api.state import collection
from seamark.api.write import repeats, twins
from seamark.config import settled
from seamark.daemon import EVERYTHING, Daemon
from seamark.kinds.resource import (
    AUTOSCALERS,
    CLUSTER_ROLE_BINDINGS,
    CONFIGMAPS,
    CRON_JOBS,
    DAEMON_SETS,
    DEFINITIONS,
    DEPLOYMENTS,
    ENDPOINT_SLICES,
    EVENTS,
    FLOW_SCHEMAS,
    INGRESSES,
    JOBS,
    LEASES,
    LIMIT_RANGES,
    NAMESPACES,
    NETWORK_POLICIES,
    PERSISTENT_VOLUME_CLAIMS,
    POD_DISRUPTION_BUDGETS,
    PODS,
    PRIORITY_CLASSES,
    RESOURCE_QUOTAS,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    STATEFUL_SETS,
    Resource,
)
from seamark.runtime import queue

ROUNDS = 5
# Keys that are due later are forgotten when their time comes, and when a key was handled last after a time.
FOR_A_WHILE = ("Queue._due", "Queue._heap", "Queue._started", "Queue._took")
Object = dict[str, Any]
CONTAINERS = (dict, list, set, deque)


# --- counting ---------------------------------------------------------------------------------------


def attributes(thing: object) -> Iterator[tuple[str, object]]:
    yield from getattr(thing, "__dict__", {}).items()
    for each in type(thing).__mro__:
        slots = each.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if hasattr(thing, name):
                yield name, getattr(thing, name)
    for name in getattr(type(thing), "__struct_fields__", ()):
        yield name, getattr(thing, name)


def parts(thing: object, name: str) -> Iterator[tuple[str, object]]:
    """What an object holds, each with a name that is the same in the next round."""
    match thing:
        case dict():
            yield from ((f"{name}[]", value) for value in thing.values())
        case list() | tuple() | set() | deque():
            yield from ((f"{name}[]", value) for value in thing)
        case types.MethodType():
            yield name, thing.__self__
        case types.FunctionType():
            for variable, cell in zip(thing.__code__.co_freevars, thing.__closure__ or (), strict=True):
                yield f"{thing.__qualname__}.{variable}", cell.cell_contents
        case functools.partial():
            yield from ((name, value) for value in (thing.func, thing.args, thing.keywords))
        case types.CoroutineType():
            if thing.cr_frame is not None:
                for variable, value in thing.cr_frame.f_locals.items():
                    yield f"{thing.__qualname__}.{variable}", value
            yield name, thing.cr_await
        case asyncio.Task():
            yield name, thing.get_coro()
        case _ if str(type(thing).__module__).startswith(("seamark.", "sortedcontainers")):
            for attribute, value in attributes(thing):
                yield f"{type(thing).__qualname__}.{attribute}", value


def entries(*roots: object) -> Counter[str]:
    """How many entries all tables have that can be reached from here, by the class and the attribute they are in."""
    counted: Counter[str] = Counter()
    seen: dict[int, object] = {}
    line: list[tuple[str, object]] = [("", root) for root in roots]
    while line:
        name, thing = line.pop()
        if id(thing) in seen:
            continue
        seen[id(thing)] = thing
        if isinstance(thing, CONTAINERS):
            counted[name] += len(thing)
        line += parts(thing, name)
    return counted


async def test_the_count_sees_what_closures_and_waiting_coroutines_keep() -> None:
    known = {"a": 1}

    async def follow() -> None:
        mine = [1, 2]
        await asyncio.Event().wait()
        mine.clear()

    following = asyncio.create_task(follow())
    await asyncio.sleep(0)
    found = entries(following, lambda: known)
    following.cancel()
    assert sorted(found.values()) == [1, 2]


# --- coming and going -------------------------------------------------------------------------------


def workload(name: str, **more: Any) -> Object:
    container = {"name": "c", "image": "example/web:1", "resources": {"requests": {"cpu": "1m"}}}
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 0},
    }
    return {"selector": {"matchLabels": {"app": name}}, "template": template, **more}


def definition(plural: str) -> Object:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": plural, "singular": plural, "kind": plural.title()}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    return {"metadata": {"name": f"{plural}.example.com"}, "spec": spec}


def crowd(name: str) -> Iterator[tuple[Resource, Object]]:
    """Objects of many kinds, all of one name."""
    pod = workload(name)["template"]["spec"]
    job = {"template": {"spec": {**pod, "restartPolicy": "Never"}}}
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}
    backend = {"service": {"name": name, "port": {"number": 80}}}
    hard = {"pods": "50", "configmaps": "50"}
    for resource, fields in (
        (SERVICES, {"spec": {"selector": {"app": name}, "ports": [{"port": 80, "name": "http"}], "type": "NodePort"}}),
        (DEPLOYMENTS, {"spec": workload(name, replicas=2)}),
        (STATEFUL_SETS, {"spec": workload(f"{name}-s", replicas=1, serviceName=name)}),
        (DAEMON_SETS, {"spec": workload(f"{name}-d")}),
        (JOBS, {"spec": job}),
        (CRON_JOBS, {"spec": {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": job}}}),
        (CONFIGMAPS, {"data": {"a": "b"}}),
        (SECRETS, {"data": {}}),
        (SERVICE_ACCOUNTS, {}),
        (LEASES, {"spec": {"holderIdentity": name}}),
        (PERSISTENT_VOLUME_CLAIMS, {"spec": claim}),
        (POD_DISRUPTION_BUDGETS, {"spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": name}}}}),
        (AUTOSCALERS, {"spec": {"scaleTargetRef": deployment, "maxReplicas": 2}}),
        (RESOURCE_QUOTAS, {"spec": {"hard": hard}}),
        (LIMIT_RANGES, {"spec": {"limits": [{"type": "Pod", "max": {"cpu": "8"}}]}}),
        (ROLES, {"rules": [rule]}),
        (ROLE_BINDINGS, {"roleRef": role, "subjects": [{"kind": "ServiceAccount", "name": name}]}),
        (INGRESSES, {"spec": {"defaultBackend": backend}}),
        (NETWORK_POLICIES, {"spec": {"podSelector": {}}}),
    ):
        yield resource, {"metadata": {"name": name}, **fields}


def lone(name: str) -> Iterator[tuple[Resource, Object]]:
    """Objects in no namespace."""
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
    user = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name}
    yield PRIORITY_CLASSES, {"metadata": {"name": name}, "value": 7}
    yield CLUSTER_ROLE_BINDINGS, {"metadata": {"name": name}, "roleRef": role, "subjects": [user]}
    yield FLOW_SCHEMAS, {"metadata": {"name": name}, "spec": {"priorityLevelConfiguration": {"name": "exempt"}}}
    yield DEFINITIONS, definition(name)


class Coming:
    """A client that makes objects, waits until the controllers have done their part, and deletes them."""

    def __init__(self, daemon: Daemon, cluster: RemoteCluster) -> None:
        self.daemon = daemon
        self.cluster = cluster

    def left(self, name: str) -> list[str]:
        """The objects that are of this name, or name it."""
        spelled = f'"{name}'.encode()
        collections = list(self.daemon.api.cache.collections)
        return [key for each in collections for key, entry in each.entries.items() if spelled in entry.tail]

    async def go(self, name: str) -> None:
        await self.cluster.create(NAMESPACES, {"metadata": {"name": name}})
        for resource, obj in lone(name):
            await self.cluster.create(resource, obj)
        await self.use(definition(name))
        for place in ("default", name):
            for resource, obj in crowd(name):
                await self.cluster.create(resource, obj, namespace=place)
            watch = self.cluster.watch(CONFIGMAPS, namespace=place, since="0")
            await anext(watch)
            await watch.aclose()
        for place in ("default", name):
            while not self.works(place, name):
                await asyncio.sleep(0.01)
        for resource, _ in crowd(name):
            await self.cluster.delete(resource, name, namespace="default", propagation="Background")
        for resource, obj in lone(name):
            await self.cluster.delete(resource, obj["metadata"]["name"])
        await self.cluster.delete(NAMESPACES, name)
        while self.left(name):
            await asyncio.sleep(0.01)

    async def use(self, definition: Object) -> None:
        """An instance of a new kind comes and goes."""
        names = definition["spec"]["names"]
        kind = Resource("example.com", "v1", names["plural"], names["kind"])
        while self.daemon.api.kinds.by_plural(kind.group, kind.version, kind.plural) is None:
            await asyncio.sleep(0.01)
        instance = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "one"}}
        await self.cluster.create(kind, instance, namespace="default")
        await self.cluster.delete(kind, "one", namespace="default")

    def works(self, namespace: str, name: str) -> bool:
        """Whether every workload has its Pods, and the Service its endpoints."""
        collections = self.daemon.api.cache
        slices = collections.of(ENDPOINT_SLICES).of_namespace(namespace)
        ready = any(name.encode() in each.tail and b'"ready":true' in each.tail for each in slices)
        return ready and collections.of(PODS).count(namespace) >= 5

    def entries(self) -> Counter[str]:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        return entries(self.daemon, *tasks)


async def test_what_came_and_went_leaves_no_entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # What is kept for a while, up to a number, is kept up to a small one here.
    monkeypatch.setattr(collection, "RECENT_EVENTS", 1)
    monkeypatch.setattr(queue, "SWEEP", 1)
    monkeypatch.setattr(twins, "MOST", 1)
    monkeypatch.setattr(repeats, "MOST", 1)
    monkeypatch.setitem(correlation.Correlator.__init__.__kwdefaults__, "remembered", 1)
    said = {
        "data_dir": str(tmp_path),
        "ephemeral": True,
        "dns_port": 0,
        "api": {"port": 0},
        "nodes": {"count": 1, "complete_after": 0.0},
        "surroundings": {"keep_events_seconds": 0.2},
    }
    daemon = Daemon(settled(said), EVERYTHING)
    async with daemon.running(), RemoteCluster(load(daemon.kubeconfig_path), agent="test") as cluster:
        while not all(part.up for part in daemon.supervisor.parts.values()) or daemon.api.cache.of(EVENTS).entries:
            await asyncio.sleep(0.01)
        coming = Coming(daemon, cluster)
        for number in range(2):
            await coming.go(f"early{number}")
        before = coming.entries()
        for number in range(ROUNDS):
            await coming.go(f"late{number}")
        after = coming.entries()
        grown = {name: (before[name], count) for name, count in after.items() if count - before[name] >= ROUNDS}
        assert {name: counts for name, counts in grown.items() if name not in FOR_A_WHILE} == {}
