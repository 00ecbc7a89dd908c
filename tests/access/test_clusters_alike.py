"""In process and over HTTPS, a cluster is the same to its caller: every probe has the same outcome over both.

A probe does something to a cluster and returns what came of it, an error included.  It runs once over each, in a
namespace of its own; then both outcomes are compared, apart from what no two runs share (uids, versions, times).
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Literal

import msgspec
import pytest

from seamark import errors
from seamark.access import kubeconfig
from seamark.access.cluster import Cluster, Receipt
from seamark.access.remote import RemoteCluster
from seamark.config import settled
from seamark.daemon import Daemon
from seamark.kinds.resource import (
    CONFIGMAPS,
    DEPLOYMENTS,
    ENDPOINT_SLICES,
    EVENTS,
    LEASES,
    NAMESPACES,
    NEW_EVENTS,
    NODES,
    PODS,
    SECRETS,
    SERVICES,
    Resource,
)

WIDGETS = Resource("example.com", "v1", "widgets", "Widget")
TOKEN_REVIEWS = Resource("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", namespaced=False)
ACCESS_REVIEWS = Resource(
    "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", namespaced=False
)
BINDINGS = Resource("", "v1", "bindings", "Binding")
ELSEWHERE = "other"  # a namespace that is there, but not the probe's own

Probe = Callable[[Cluster, str], Awaitable[Any]]
PROBES: dict[str, Probe] = {}


def probe(function: Probe) -> Probe:
    PROBES[function.__name__] = function
    return function


async def tried(awaitable: Awaitable[Any]) -> Any:
    """The result, or the error as all that a caller can see of it."""
    try:
        return await awaitable
    except errors.ApiError as error:
        return {
            "error": type(error).__name__,
            "code": error.code,
            "reason": error.reason,
            "message": error.message,
            "details": error.details or {},
            "causes": [msgspec.to_builtins(cause) for cause in error.causes],
            "retry_after": error.retry_after,
        }


def config_map(name: str, **more: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, **more}


def applied(name: str, value: str, **meta: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **meta}, "data": {"a": value}}


def pod(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}


def service(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], **spec}}


def deployment(name: str) -> dict[str, Any]:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    return {"metadata": {"name": name}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}}


OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "11111111-2222-4333-8444-555555555555"}


# --- objects that the caller's type cannot hold -----------------------------------------------------


class Named(msgspec.Struct):
    name: str


class Numbers(msgspec.Struct):
    """A ConfigMap, if all its data are the text of numbers with one digit."""

    metadata: Named
    data: dict[str, Literal["1", "2"]] = {}


@probe
async def objects_that_the_type_cannot_hold(cluster: Cluster, ns: str) -> Any:
    begin = (await cluster.list(CONFIGMAPS, namespace=ns)).version
    for name, value in (("a", "1"), ("b", "one"), ("c", "2")):
        await cluster.create(
            CONFIGMAPS,
            {**config_map(name, data={"n": value}), "metadata": {"name": name, "labels": {"x": name}}},
            namespace=ns,
        )
    listing = await cluster.list(CONFIGMAPS, namespace=ns, as_=Numbers)
    changes: list[Any] = []
    stream = cluster.watch(CONFIGMAPS, since=begin, namespace=ns, as_=Numbers)
    async for change in stream:
        if change.type != "BOOKMARK":
            changes.append((change.type, change.object, change.unreadable and change.unreadable.reason))
        if len(changes) == 3:
            break
    await stream.aclose()  # type: ignore[attr-defined]  # an async generator, which has it
    assert [each.metadata.name for each in listing.items] == ["a", "c"]
    assert [each.metadata.labels for each in listing.unreadable] == [{"x": "b"}]
    return [
        await tried(cluster.get(CONFIGMAPS, "a", namespace=ns, as_=Numbers)),
        [(each.metadata.name, each.metadata.namespace, each.reason) for each in listing.unreadable],
        changes,
    ]


# --- where things are -------------------------------------------------------------------------------


@probe
async def unknown_resources(cluster: Cluster, ns: str) -> Any:
    return [
        await tried(cluster.get(WIDGETS, "w", namespace=ns)),
        await tried(cluster.list(WIDGETS, namespace=ns)),
        await tried(cluster.create(WIDGETS, {"metadata": {"name": "w"}}, namespace=ns)),
        await tried(first_changes(cluster, 1, WIDGETS, since="1", namespace=ns)),
    ]


@probe
async def unknown_subresources(cluster: Cluster, ns: str) -> Any:
    made = await cluster.create(CONFIGMAPS, config_map("c"), namespace=ns)
    await cluster.create(PODS, pod("p"), namespace=ns)
    return [
        await tried(cluster.update(CONFIGMAPS, made, namespace=ns, subresource="status")),
        await tried(cluster.patch(CONFIGMAPS, "c", {}, namespace=ns, subresource="nothing")),
        await tried(cluster.create(PODS, {}, namespace=ns, name="p", subresource="status")),
    ]


@probe
async def missing_objects(cluster: Cluster, ns: str) -> Any:
    return [
        await tried(cluster.get(CONFIGMAPS, "c", namespace=ns)),
        await tried(cluster.get(LEASES, "c", namespace=ns)),
        await tried(cluster.get(NODES, "n")),
        await tried(cluster.patch(CONFIGMAPS, "c", {"data": {}}, namespace=ns)),
        await tried(cluster.patch(PODS, "p", {"status": {}}, namespace=ns, subresource="status")),
        await tried(cluster.update(CONFIGMAPS, config_map("c"), namespace=ns)),
        await tried(cluster.update(LEASES, {"metadata": {"name": "l"}}, namespace=ns)),
        await tried(cluster.delete(CONFIGMAPS, "c", namespace=ns)),
        await tried(cluster.create(PODS, {"metadata": {"name": "p"}}, namespace=ns, name="p", subresource="eviction")),
    ]


@probe
async def namespaces_that_are_missing_or_not_the_right_ones(cluster: Cluster, ns: str) -> Any:
    stray = {**config_map("c"), "metadata": {"name": "c", "namespace": ELSEWHERE}}
    await cluster.create(CONFIGMAPS, config_map("c"), namespace=ns)
    return [
        await tried(cluster.create(CONFIGMAPS, config_map("d"), namespace="nowhere")),
        await tried(cluster.create(CONFIGMAPS, config_map("d"))),
        await tried(cluster.create(CONFIGMAPS, stray, namespace=ns)),
        await tried(cluster.update(CONFIGMAPS, stray, namespace=ns)),
        await tried(cluster.patch(CONFIGMAPS, "c", {"metadata": {"namespace": ELSEWHERE}}, namespace=ns)),
        await tried(cluster.get(CONFIGMAPS, "c")),
        await tried(cluster.delete(CONFIGMAPS, "c")),
        await tried(cluster.delete_all(CONFIGMAPS, namespace="")),
        await tried(cluster.delete_all(NAMESPACES, namespace="")),
        await tried(cluster.list(CONFIGMAPS, namespace="nowhere")),
        await tried(cluster.create(NODES, {"metadata": {"name": ns}}, namespace=ns)),
        await tried(cluster.get(NODES, ns, namespace=ns)),
        await tried(cluster.delete(NODES, ns, namespace="nowhere")),
    ]


# --- what is sent -----------------------------------------------------------------------------------


@probe
async def objects_of_another_kind(cluster: Cluster, ns: str) -> Any:
    await cluster.create(CONFIGMAPS, config_map("c"), namespace=ns)
    wrong = [
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "c"}},
        {"apiVersion": "v2", "kind": "ConfigMap", "metadata": {"name": "c"}},
        {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "c"}},
        {"apiVersion": 1, "metadata": {"name": "c"}},
        {"apiVersion": "a/b/c", "metadata": {"name": "c"}},
        {"metadata": {"name": "c"}, "data": {"a": 1}},
        {"metadata": {"name": "c"}, "data": []},
    ]
    found = [await tried(cluster.create(CONFIGMAPS, obj, namespace=ns)) for obj in wrong]
    found += [await tried(cluster.update(CONFIGMAPS, obj, namespace=ns)) for obj in wrong]
    found += [await tried(cluster.patch(CONFIGMAPS, "c", obj, namespace=ns)) for obj in wrong]
    apply = {"type": "apply", "field_manager": "m"}
    found += [await tried(cluster.patch(CONFIGMAPS, "c", obj, namespace=ns, **apply)) for obj in wrong]
    return [*found, await tried(cluster.create(CONFIGMAPS, [1, 2], namespace=ns))]


@probe
async def objects_without_a_kind_and_with_unknown_fields(cluster: Cluster, ns: str) -> Any:
    return [
        await tried(cluster.create(CONFIGMAPS, {"metadata": {"name": "c"}, "odd": 1}, namespace=ns)),
        await tried(cluster.patch(CONFIGMAPS, "c", {"odder": 2, "data": {"a": "b"}}, namespace=ns)),
        await tried(cluster.update(CONFIGMAPS, {"metadata": {"name": "c"}, "oddest": 3}, namespace=ns)),
    ]


class Meta(msgspec.Struct):
    name: str
    namespace: str = ""


class Typed(msgspec.Struct):
    metadata: Meta
    data: dict[str, str]


class Wrong(msgspec.Struct):
    data: int


@probe
async def typed_objects(cluster: Cluster, ns: str) -> Any:
    made = await cluster.create(CONFIGMAPS, Typed(Meta("c", ns), {"a": "b"}))
    wrong = await tried(cluster.get(CONFIGMAPS, "c", namespace=ns, as_=Wrong))
    return [
        made,
        await tried(cluster.update(CONFIGMAPS, Typed(Meta("c"), {"a": "c"}), namespace=ns)),
        await tried(cluster.patch(CONFIGMAPS, "c", {"data": {"b": "d"}}, namespace=ns, as_=Typed)),
        type(await cluster.get(CONFIGMAPS, "c", namespace=ns, as_=Receipt)).__name__,
        (wrong["error"], wrong["code"]),
    ]


@probe
async def names(cluster: Cluster, ns: str) -> Any:
    await cluster.create(CONFIGMAPS, config_map("c"), namespace=ns)
    generated = await cluster.create(CONFIGMAPS, {"metadata": {"generateName": "g-"}}, namespace=ns)
    return [
        len(generated["metadata"]["name"]),
        generated["metadata"]["generateName"],
        await tried(cluster.create(CONFIGMAPS, config_map("c"), namespace=ns)),
        await tried(cluster.create(CONFIGMAPS, config_map("C!"), namespace=ns)),
        await tried(cluster.create(CONFIGMAPS, {"metadata": {}}, namespace=ns)),
        await tried(cluster.create(CONFIGMAPS, {"metadata": {"name": "c", "generateName": "c"}}, namespace=ns)),
        await tried(cluster.create(CONFIGMAPS, config_map("d"), namespace=ns, name="d")),
        await tried(cluster.update(CONFIGMAPS, {"metadata": {}}, namespace=ns)),
        await tried(cluster.patch(CONFIGMAPS, "c", {"metadata": {"name": None}}, namespace=ns)),
    ]


@probe
async def owners_named_twice(cluster: Cluster, ns: str) -> Any:
    twice = {"name": "c", "ownerReferences": [OWNER, OWNER]}
    made = await cluster.create(CONFIGMAPS, {"metadata": twice}, namespace=ns)
    return [
        made,
        await tried(cluster.update(CONFIGMAPS, {"metadata": twice, "data": {"a": "b"}}, namespace=ns)),
        await tried(cluster.patch(CONFIGMAPS, "c", {"metadata": {"ownerReferences": [OWNER, OWNER]}}, namespace=ns)),
    ]


# --- versions, uids and preconditions ---------------------------------------------------------------


@probe
async def versions(cluster: Cluster, ns: str) -> Any:
    made = await cluster.create(CONFIGMAPS, config_map("c"), namespace=ns)
    changed = await cluster.update(CONFIGMAPS, {**made, "data": {"a": "1"}}, namespace=ns)

    def at(version: str) -> dict[str, Any]:
        return {**changed, "metadata": {**changed["metadata"], "resourceVersion": version}, "data": {"b": "2"}}

    old = {"metadata": {"resourceVersion": made["metadata"]["resourceVersion"]}, "data": {"b": "2"}}
    await cluster.create(LEASES, {"metadata": {"name": "l"}}, namespace=ns)
    return [
        await tried(cluster.update(CONFIGMAPS, {**made, "data": {"a": "2"}}, namespace=ns)),
        await tried(cluster.update(CONFIGMAPS, at("x"), namespace=ns)),
        await tried(cluster.update(CONFIGMAPS, at("99999999"), namespace=ns)),
        await tried(cluster.update(CONFIGMAPS, at("0"), namespace=ns)),
        await tried(cluster.patch(CONFIGMAPS, "c", old, namespace=ns)),
        await tried(cluster.update(LEASES, {"metadata": {"name": "l"}}, namespace=ns)),
        await tried(cluster.create(CONFIGMAPS, {"metadata": {"name": "d", "resourceVersion": "1"}}, namespace=ns)),
    ]


@probe
async def uids(cluster: Cluster, ns: str) -> Any:
    await cluster.create(CONFIGMAPS, config_map("c"), namespace=ns)
    uid = OWNER["uid"]
    apply = {"type": "apply", "field_manager": "m", "force": True}
    return [
        await tried(cluster.update(CONFIGMAPS, {"metadata": {"name": "c", "uid": uid}}, namespace=ns)),
        await tried(cluster.update(SERVICES, {**service("s"), "metadata": {"name": "s", "uid": uid}}, namespace=ns)),
        await tried(cluster.patch(CONFIGMAPS, "c", {"metadata": {"uid": uid}}, namespace=ns)),
        await tried(cluster.patch(CONFIGMAPS, "c", applied("c", "1", uid=uid), namespace=ns, **apply)),
        await tried(cluster.patch(CONFIGMAPS, "gone", applied("gone", "1", uid=uid), namespace=ns, **apply)),
        await tried(cluster.get(CONFIGMAPS, "gone", namespace=ns)),
        await tried(cluster.delete(CONFIGMAPS, "c", namespace=ns, uid=uid)),
        await tried(cluster.delete(CONFIGMAPS, "c", namespace=ns, version="1")),
        await tried(cluster.delete(NAMESPACES, ns, uid=uid)),
        await tried(cluster.create(PODS, pod("p"), namespace=ns)),
        await tried(cluster.delete(PODS, "p", namespace=ns, version="1")),
    ]


@probe
async def updates_that_create(cluster: Cluster, ns: str) -> Any:
    at = {**service("s"), "metadata": {"name": "s", "resourceVersion": "7"}}
    return [
        await tried(cluster.update(SERVICES, at, namespace=ns)),
        await tried(cluster.update(SERVICES, service("t"), namespace=ns, subresource="status")),
        await tried(cluster.update(ENDPOINT_SLICES, {"metadata": {"name": "e"}}, namespace=ns)),
    ]


# --- patches and apply ------------------------------------------------------------------------------


@probe
async def patches(cluster: Cluster, ns: str) -> Any:
    await cluster.create(CONFIGMAPS, config_map("c", data={"a": "1"}), namespace=ns)
    await cluster.create(SERVICES, service("s", clusterIP="None"), namespace=ns)

    async def patched(patch: Any, type: Any = "merge", **more: Any) -> Any:
        return await tried(cluster.patch(CONFIGMAPS, "c", patch, namespace=ns, type=type, **more))

    ports = {"spec": {"ports": [{"port": 81, "name": "b"}, {"port": 80, "name": "a"}]}}
    return [
        await patched({"metadata": {"name": "d"}}),
        await patched({"metadata": {"name": "d"}}, "strategic"),
        await patched([{"op": "replace", "path": "/metadata/name", "value": "d"}], "json"),
        await patched({"kind": "Secret"}),
        await patched({"kind": None}),
        await patched(None),
        await patched([1]),
        await patched({}, "json"),
        await patched([1], "strategic"),
        await patched([{"op": "test", "path": "/data/a", "value": "2"}], "json"),
        await patched([{"op": "remove", "path": "/data/none"}], "json"),
        await patched([{"op": "add", "path": "/data/b", "value": "2"}], "json"),
        await patched({"data": {"a": None, "c": "3"}}, field_manager="x" * 129),
        await patched({"data": {"a": None, "c": "3"}}, field_manager="me"),
        await patched({"data": {"c": 3}}),
        await patched({"data": {"c": "4"}}, force=True),
        await patched({"metadata": {"managedFields": []}}),
        await tried(cluster.patch(SERVICES, "s", ports, namespace=ns, type="strategic")),
        await tried(cluster.patch(SERVICES, "s", {"spec": {"ports": []}}, namespace=ns)),
    ]


@probe
async def applies(cluster: Cluster, ns: str) -> Any:
    async def apply(name: str, config: Any, manager: str = "one", **more: Any) -> Any:
        return await tried(
            cluster.patch(CONFIGMAPS, name, config, namespace=ns, type="apply", field_manager=manager, **more)
        )

    return [
        await apply("a", applied("a", "1")),
        await apply("a", applied("a", "2"), "two"),
        await apply("a", applied("a", "2"), "two", force=True),
        await apply("a", applied("a", "2"), ""),
        await apply("a", applied("b", "2")),
        await apply("a", applied("a", "2", namespace=ELSEWHERE)),
        await apply("a", {**applied("a", "2"), "odd": 1}),
        await apply("a", {"data": {}}),
        await apply("a", applied("a", "2", managedFields=[])),
        await apply("a", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": []}),
        await apply("a", "text"),
        await apply("b", {"apiVersion": "v1", "kind": "ConfigMap"}),
        await apply("c", applied("c", "3", resourceVersion="7")),
        await tried(
            cluster.patch(
                PODS,
                "none",
                {"apiVersion": "v1", "kind": "Pod", "status": {}},
                namespace=ns,
                type="apply",
                field_manager="m",
                subresource="status",
            )
        ),
    ]


# --- subresources -----------------------------------------------------------------------------------


@probe
async def statuses(cluster: Cluster, ns: str) -> Any:
    made = await cluster.create(PODS, pod("p"), namespace=ns)
    sent = {**made, "spec": {}, "status": {"phase": "Running"}}
    return [
        await tried(cluster.update(PODS, sent, namespace=ns, subresource="status")),
        await tried(cluster.patch(PODS, "p", {"status": {"phase": "Odd"}}, namespace=ns, subresource="status")),
        await tried(cluster.patch(PODS, "p", {"status": {"phase": "Failed"}}, namespace=ns)),
        await tried(cluster.patch(PODS, "p", {"metadata": {"labels": {"a": "b"}}}, namespace=ns, subresource="status")),
    ]


@probe
async def scales(cluster: Cluster, ns: str) -> Any:
    await cluster.create(DEPLOYMENTS, deployment("d"), namespace=ns)
    scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "d"}, "spec": {"replicas": 3}}

    async def update(obj: Any) -> Any:
        return await tried(cluster.update(DEPLOYMENTS, obj, namespace=ns, subresource="scale"))

    async def patch(obj: Any, **more: Any) -> Any:
        return await tried(cluster.patch(DEPLOYMENTS, "d", obj, namespace=ns, subresource="scale", **more))

    return [
        await update(scale),
        await update({**scale, "metadata": {"name": "d", "resourceVersion": "1"}}),
        await update({**scale, "spec": {"replicas": -1}}),
        await update({**deployment("d"), "apiVersion": "apps/v1", "kind": "Deployment"}),
        await update({**scale, "metadata": {"name": "gone"}}),
        await patch({"spec": {"replicas": 4}}),
        await patch({"metadata": {"name": "e"}}),
        await patch({"spec": {"replicas": "4"}}),
        await patch({**scale, "spec": {"replicas": 5}}, type="apply", field_manager="one"),
        await patch({**scale, "spec": {"replicas": 6}}, type="apply", field_manager="two"),
        await patch({**scale, "spec": {"replicas": 6}}, type="apply", field_manager="two", force=True),
        await tried(cluster.get(DEPLOYMENTS, "d", namespace=ns)),
    ]


@probe
async def bindings(cluster: Cluster, ns: str) -> Any:
    for name in "pq":
        await cluster.create(PODS, pod(name), namespace=ns)

    async def bind(name: str, document: Any) -> Any:
        return await tried(cluster.create(PODS, document, namespace=ns, name=name, subresource="binding"))

    def binding(name: str, **target: Any) -> dict[str, Any]:
        return {"metadata": {"name": name}, "target": {"kind": "Node", "name": "n", **target}}

    return [
        await bind("p", binding("q")),
        await bind("p", binding("p", kind="Rack")),
        await bind("p", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}),
        await bind("gone", binding("gone")),
        await bind("p", binding("p")),
        await bind("p", binding("p")),
        await tried(cluster.create(BINDINGS, binding("q"), namespace=ns)),
        await tried(cluster.create(BINDINGS, binding("gone"), namespace=ns)),
        [item["spec"].get("nodeName") for item in (await cluster.list(PODS, namespace=ns)).items],
    ]


@probe
async def evictions(cluster: Cluster, ns: str) -> Any:
    for name in "pqr":
        await cluster.create(PODS, pod(name, nodeName="n"), namespace=ns)

    async def evict(name: str, **more: Any) -> Any:
        document = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}, **more}
        return await tried(cluster.create(PODS, document, namespace=ns, name="p", subresource="eviction"))

    return [
        await evict("q"),
        await evict("p", deleteOptions={"preconditions": {"uid": OWNER["uid"]}}),
        await evict("p", deleteOptions={"propagationPolicy": "Sideways"}),
        await evict("p", deleteOptions={"dryRun": ["All"]}),
        await evict("p", deleteOptions={"gracePeriodSeconds": 7}),
        await tried(cluster.get(PODS, "p", namespace=ns)),
        await tried(cluster.create(PODS, {"metadata": {"name": "q"}}, namespace=ns, name="q", subresource="eviction")),
        await tried(cluster.get(PODS, "r", namespace=ns)),
    ]


@probe
async def reviews(cluster: Cluster, ns: str) -> Any:
    asked = {"spec": {"resourceAttributes": {"verb": "delete", "resource": "pods", "namespace": ns}}}
    return [
        await tried(cluster.create(TOKEN_REVIEWS, {"spec": {"token": "x"}})),
        await tried(cluster.create(TOKEN_REVIEWS, {"spec": {}})),
        await tried(cluster.create(ACCESS_REVIEWS, asked)),
        await tried(cluster.create(ACCESS_REVIEWS, {"spec": {}})),
        await tried(cluster.create(ACCESS_REVIEWS, {**asked, "metadata": {"name": "x"}})),
        await tried(cluster.list(ACCESS_REVIEWS)),
        await tried(cluster.get(ACCESS_REVIEWS, "x")),
        await tried(cluster.delete(ACCESS_REVIEWS, "x")),
    ]


# --- deletion ---------------------------------------------------------------------------------------


@probe
async def deletions(cluster: Cluster, ns: str) -> Any:
    held = {"metadata": {"name": "h", "finalizers": ["example.com/hold"]}}
    made = await cluster.create(CONFIGMAPS, held, namespace=ns)
    for name in "ab":
        await cluster.create(PODS, pod(name, nodeName="n"), namespace=ns)
    found = [
        await tried(cluster.delete(CONFIGMAPS, "h", namespace=ns, uid=made["metadata"]["uid"])),
        await tried(cluster.get(CONFIGMAPS, "h", namespace=ns)),
        await tried(cluster.delete(CONFIGMAPS, "h", namespace=ns, propagation="Foreground")),
        await tried(cluster.create(CONFIGMAPS, config_map("h"), namespace=ns)),
        await tried(cluster.patch(CONFIGMAPS, "h", {"metadata": {"finalizers": None}}, namespace=ns)),
        await tried(cluster.get(CONFIGMAPS, "h", namespace=ns)),
        await tried(cluster.delete(PODS, "a", namespace=ns, grace_seconds=20)),
        await tried(cluster.get(PODS, "a", namespace=ns)),
        await tried(cluster.delete(PODS, "a", namespace=ns, grace_seconds=0)),
        await tried(cluster.get(PODS, "a", namespace=ns)),
        await tried(cluster.delete(PODS, "b", namespace=ns, propagation="Sideways")),  # type: ignore[arg-type]
        await tried(cluster.delete(NAMESPACES, "kube-system")),
    ]
    await cluster.delete(NAMESPACES, ns)
    return [*found, await tried(cluster.create(CONFIGMAPS, config_map("late"), namespace=ns))]


@probe
async def deletions_of_many(cluster: Cluster, ns: str) -> Any:
    async def make() -> None:
        for number in range(4):
            meta = {"name": f"c{number}", "labels": {"odd": str(number % 2)}}
            if number == 3:
                meta["finalizers"] = ["example.com/hold"]
            await cluster.create(SECRETS, {"metadata": meta}, namespace=ns)

    async def left() -> Any:
        return [item["metadata"] for item in (await cluster.list(SECRETS, namespace=ns)).items]

    async def delete(**more: Any) -> Any:
        return await tried(cluster.delete_all(SECRETS, namespace=ns, **more))

    await make()
    return [
        await delete(labels="odd in"),
        await delete(options={"propagationPolicy": "Sideways"}),
        await delete(options={"gracePeriodSeconds": "soon"}),
        await delete(options={"kind": "Secret"}),
        await delete(options={"preconditions": {"uid": OWNER["uid"]}}),
        await delete(options={"dryRun": ["All"]}),
        await left(),
        await delete(labels="odd=1", options={"orphanDependents": True}),
        await left(),
        await delete(),
        await left(),
    ]


# --- lists and watches ------------------------------------------------------------------------------


@probe
async def lists(cluster: Cluster, ns: str) -> Any:
    await cluster.create(CONFIGMAPS, {"metadata": {"name": "c", "labels": {"a": "b"}}}, namespace=ns)
    about = {"kind": "Pod", "namespace": ns, "name": "p"}
    await cluster.create(EVENTS, {"metadata": {"name": "e"}, "involvedObject": about, "reason": "R"}, namespace=ns)

    async def listed(resource: Resource, **more: Any) -> Any:
        found = await tried(cluster.list(resource, namespace=ns, **more))
        return found if isinstance(found, dict) else list(found.items)

    return [
        await listed(CONFIGMAPS, labels="a=b"),
        await listed(CONFIGMAPS, labels="a b"),
        await listed(CONFIGMAPS, labels="a in (b"),
        await listed(CONFIGMAPS, fields="metadata.name=c"),
        await listed(CONFIGMAPS, fields="data.a=c"),
        await listed(PODS, fields="spec.nothing=c"),
        await listed(CONFIGMAPS, fields="metadata.name"),
        await listed(EVENTS, fields="involvedObject.name=p"),
        await listed(NEW_EVENTS, fields="regarding.name=p"),
        await listed(NEW_EVENTS, fields="involvedObject.name=p"),
        await tried(cluster.get(NEW_EVENTS, "e", namespace=ns)),
    ]


async def first_changes(cluster: Cluster, count: int, resource: Resource, **more: Any) -> Any:
    """The first changes of a watch; bookmarks that only say how far the server is are left out."""
    seen: list[Any] = []
    stream = cluster.watch(resource, **more)
    try:
        async for change in stream:
            if change.type != "BOOKMARK":
                seen.append(
                    (change.type, change.object, change.version == change.object["metadata"]["resourceVersion"])
                )
            elif not seen:
                seen.append((change.type, change.version == more["since"]))
            if len(seen) == count:
                break
    finally:
        await stream.aclose()  # type: ignore[attr-defined]  # an async generator, which has it
    return seen


@probe
async def watches(cluster: Cluster, ns: str) -> Any:
    listing = await cluster.list(CONFIGMAPS, namespace=ns)
    await cluster.create(CONFIGMAPS, {"metadata": {"name": "c", "labels": {"a": "b"}}}, namespace=ns)
    await cluster.create(CONFIGMAPS, config_map("d"), namespace=ns)
    await cluster.patch(CONFIGMAPS, "c", {"metadata": {"labels": {"a": "c"}}}, namespace=ns)
    await cluster.delete(CONFIGMAPS, "d", namespace=ns)

    async def seen(count: int, **more: Any) -> Any:
        return await tried(first_changes(cluster, count, CONFIGMAPS, namespace=ns, **more))

    since = listing.version
    return [
        await seen(5, since=since),
        await seen(3, since=since, labels="a=b"),
        await seen(2, since=since, fields="metadata.name=d"),
        await seen(2, since=""),
        await seen(2, since="0"),
        await seen(1, since=str(int(since) + 1_000_000)),
        await seen(2, since="1"),
        await seen(1, since="x"),
        await seen(1, since="-1"),
        await seen(1, since=since, labels="a b"),
        await seen(1, since=since, fields="odd=1"),
    ]


# --- the comparison ---------------------------------------------------------------------------------

_uid = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_time = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_version = re.compile(r"\b100\d\d\d\b")  # a new cluster begins with version 100000
_address = re.compile(r"10\.96\.\d+\.\d+")


def comparable(outcome: Any, ns: str) -> Any:
    """An outcome without what differs from run to run."""
    text = msgspec.json.encode(outcome).decode().replace(ns, "NS")
    for pattern, word in ((_uid, "<uid>"), (_time, "<time>"), (_version, "<version>"), (_address, "<ip>")):
        text = pattern.sub(word, text)
    return _sorted_by_manager(msgspec.json.decode(text))


def _sorted_by_manager(value: Any) -> Any:
    """With the entries of field managers in one order: a server sorts them by the second in which each wrote."""
    if isinstance(value, list):
        return [_sorted_by_manager(each) for each in value]
    if not isinstance(value, dict):
        return value
    found = {key: _sorted_by_manager(each) for key, each in value.items()}
    if isinstance(entries := found.get("managedFields"), list):
        entries.sort(key=lambda each: (each["manager"], each["operation"], each.get("subresource", "")))
    return found


@pytest.fixture
async def both(tmp_path: Any) -> AsyncIterator[dict[str, Cluster]]:
    config = settled({"data_dir": str(tmp_path), "profile": "plain", "api": {"port": 0}})
    async with Daemon(config, []).running() as daemon:
        local = daemon.api.cluster("probe")
        await local.create(NAMESPACES, {"metadata": {"name": ELSEWHERE}})
        connection = kubeconfig.load(daemon.kubeconfig_path, environ={})
        async with RemoteCluster(connection, agent="probe") as remote:
            yield {"in-process": local, "over-https": remote}


@pytest.mark.parametrize("name", PROBES)
async def test_nobody_can_tell_the_difference(both: dict[str, Cluster], name: str) -> None:
    outcomes = []
    async with asyncio.timeout(300):
        for ns, cluster in both.items():
            await cluster.create(NAMESPACES, {"metadata": {"name": ns}})
            outcomes.append(comparable(await PROBES[name](cluster, ns), ns))
    local, remote = outcomes
    assert len(local) == len(remote)
    for here, there in zip(local, remote, strict=True):
        assert here == there
