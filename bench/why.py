"""The time and memory of ``seamark why -A``, compared with only listing the same objects.

Every list is served from pages of JSON as an API server would send them.  Three readers decode them: into plain dicts
(as most clients do: the baseline), into the views that ``why`` uses, and ``why`` itself, which then explains every
Service.  Each runs in its own process; the memory of the pages is not counted.

Run: ``python -m bench why [--services 5000] [--pods 50000] [--namespaces 50]``
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import gc
import json
import resource as limits
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec

from seamark import errors
from seamark.access.cluster import Listing
from seamark.clock import SystemClock
from seamark.kinds.resource import (
    DAEMON_SETS,
    DEPLOYMENTS,
    ENDPOINT_SLICES,
    ENDPOINTS,
    NODES,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    SERVICE_CIDRS,
    SERVICES,
    STATEFUL_SETS,
    Resource,
)
from seamark.rules.objects.network import ServiceCIDR
from seamark.rules.objects.node import Node
from seamark.why import views
from seamark.why.look import Survey, look_at_all

PAGE = 500
BROKEN = 20  # one in this many Services is broken
WORKLOADS = (DEPLOYMENTS, STATEFUL_SETS, DAEMON_SETS, REPLICA_SETS, REPLICATION_CONTROLLERS)
VIEWS: dict[Resource, type] = {
    SERVICES: views.Service,
    PODS: views.Pod,
    NODES: Node,
    ENDPOINTS: views.Endpoints,
    ENDPOINT_SLICES: views.EndpointSlice,
    SERVICE_CIDRS: ServiceCIDR,
}


# --- a cluster of pages ----------------------------------------------------------------------------


class Pages:
    """A cluster that can only be listed; it counts how often."""

    def __init__(self, pages: dict[Resource, list[bytes]]) -> None:
        self._pages = pages
        self.listed: collections.Counter[str] = collections.Counter()

    async def list(self, resource: Resource, *, as_: type = dict, **_: Any) -> Listing[Any]:
        self.listed[resource.plural] += 1
        decoder = msgspec.json.Decoder(list[as_])  # type: ignore[valid-type]  # a type known only at run time
        items: list[Any] = []
        for page in self._pages.get(resource, ()):
            items += decoder.decode(page)
        return Listing(items, "1")

    async def get(self, resource: Resource, name: str, **_: Any) -> Any:
        raise errors.NotFound(name)


def cluster(services: int, pods: int, namespaces: int = 50) -> dict[Resource, list[bytes]]:
    per_namespace = max(1, services // namespaces)
    each = max(1, pods // services)
    made: dict[Resource, list[Any]] = {SERVICES: [], PODS: [], ENDPOINTS: [], ENDPOINT_SLICES: []}
    made[NODES] = [node(number) for number in range(100)]
    made[DEPLOYMENTS] = []
    number = 0
    for position in range(services):
        namespace = f"team-{position // per_namespace}"
        broken = position % BROKEN == 0
        made[SERVICES].append(service(position, namespace, broken=broken))
        made[DEPLOYMENTS].append(deployment(position, namespace))
        mine = []
        for _ in range(each):
            mine.append(pod(number, position, namespace))
            number += 1
        made[PODS] += mine
        made[ENDPOINT_SLICES].append(endpoint_slice(position, namespace, [] if broken else mine))
        made[ENDPOINTS].append(endpoints(position, namespace, [] if broken else mine))
    return {resource: pages(objects) for resource, objects in made.items()}


def pages(objects: list[Any]) -> list[bytes]:
    return [msgspec.json.encode(objects[start : start + PAGE]) for start in range(0, len(objects), PAGE)]


def metadata(name: str, namespace: str, labels: dict[str, str]) -> dict[str, Any]:
    fields = {f"f:{key}": {} for key in ("labels", "annotations", "spec", "status", "ownerReferences")}
    managed = {
        "manager": "kube-controller-manager",
        "operation": "Update",
        "apiVersion": "v1",
        "fieldsType": "FieldsV1",
    }
    return {
        "name": name,
        "namespace": namespace,
        "uid": f"uid-{namespace}-{name}",
        "resourceVersion": "1",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "labels": labels,
        "annotations": {"example.com/config-hash": "0123456789abcdef" * 8},
        "managedFields": [{**managed, "time": "2026-01-01T00:00:00Z", "fieldsV1": fields} for _ in range(2)],
    }


def node(number: int) -> dict[str, Any]:
    ready = {"type": "Ready", "status": "True"}
    labels = {"topology.kubernetes.io/zone": f"zone-{number % 3}"}
    status = {"allocatable": {"cpu": "16"}, "conditions": [ready]}
    return {"metadata": metadata(f"node-{number}", "", labels), "status": status}


def service(position: int, namespace: str, *, broken: bool) -> dict[str, Any]:
    # Alternate between a typo and a name that resembles nothing.
    app = f"app-{position}" if not broken else f"app-{position}x" if position % (2 * BROKEN) else f"nothing-{position}"
    spec = {
        "type": "ClusterIP",
        "clusterIP": f"10.{96 + position // 65536}.{position // 256 % 256}.{position % 256}",
        "ipFamilies": ["IPv4"],
        "selector": {"app": app, "env": "prod"},
        "ports": [{"name": "http", "port": 80, "targetPort": "http", "protocol": "TCP"}],
    }
    return {"metadata": metadata(f"svc-{position}", namespace, {"app": app}), "spec": spec}


def labels_of(position: int) -> dict[str, str]:
    return {
        "app": f"app-{position}",
        "env": "prod",
        "tier": f"tier-{position % 3}",
        "pod-template-hash": f"h{position}",
    }


def address(number: int) -> str:
    return f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"


def pod(number: int, position: int, namespace: str) -> dict[str, Any]:
    container = {
        "name": "app",
        "image": "registry.example.com/team/app:1.2.3",
        "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
        "env": [{"name": f"SETTING_{i}", "value": "a value of some length"} for i in range(20)],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
        "readinessProbe": {"httpGet": {"path": "/ready", "port": "http"}, "periodSeconds": 10},
        "volumeMounts": [{"name": "token", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}],
    }
    started = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
    conditions = [
        {"type": kind, "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        for kind in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
    ]
    return {
        "metadata": {
            **metadata(f"pod-{number}", namespace, labels_of(position)),
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"rs-{position}", "uid": "u",
                                 "controller": True}],
        },
        "spec": {"nodeName": f"node-{number % 100}", "containers": [container]},
        "status": {
            "phase": "Running",
            "podIP": address(number),
            "podIPs": [{"ip": address(number)}],
            "conditions": conditions,
            "containerStatuses": [{"name": "app", "ready": True, "started": True, "restartCount": 0,
                                   "image": "registry.example.com/team/app:1.2.3", "state": started}],
        },
    }  # fmt: skip


def deployment(position: int, namespace: str) -> dict[str, Any]:
    template = {"metadata": {"labels": labels_of(position)}, "spec": {"containers": [{"name": "app"}]}}
    return {"metadata": metadata(f"app-{position}", namespace, {}), "spec": {"replicas": 1, "template": template}}


def reference(each: dict[str, Any]) -> dict[str, Any]:
    meta = each["metadata"]
    return {"kind": "Pod", "namespace": meta["namespace"], "name": meta["name"], "uid": meta["uid"]}


def endpoint_slice(position: int, namespace: str, members: list[dict[str, Any]]) -> dict[str, Any]:
    name = f"svc-{position}"
    labels = {
        "kubernetes.io/service-name": name,
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
    }
    return {
        "metadata": metadata(f"{name}-abcde", namespace, labels),
        "addressType": "IPv4",
        "endpoints": [
            {
                "addresses": [each["status"]["podIP"]],
                "conditions": {"ready": True, "serving": True, "terminating": False},
                "nodeName": each["spec"]["nodeName"],
                "targetRef": reference(each),
            }
            for each in members
        ],
        "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}] if members else [],
    }


def endpoints(position: int, namespace: str, members: list[dict[str, Any]]) -> dict[str, Any]:
    labels = {"endpoints.kubernetes.io/managed-by": "endpoint-controller"}
    addresses = [{"ip": each["status"]["podIP"], "targetRef": reference(each)} for each in members]
    subsets = (
        [{"addresses": addresses, "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}]}] if members else []
    )
    return {"metadata": metadata(f"svc-{position}", namespace, labels), "subsets": subsets}


# --- measuring -------------------------------------------------------------------------------------


async def as_dicts(pages: Pages) -> Any:
    return [(await pages.list(resource)).items for resource in VIEWS]


async def as_views(pages: Pages) -> Any:
    return [(await pages.list(resource, as_=type)).items for resource, type in VIEWS.items()]


class Standing(SystemClock):
    """A clock that stands still, also while something sleeps."""

    def time(self) -> float:
        return 1_790_000_000.0

    async def sleep(self, seconds: float) -> None: ...


async def why(pages: Pages) -> Survey:
    return await look_at_all(pages, "", clock=Standing())  # type: ignore[arg-type]  # lists


WORK = {"listed as dicts": as_dicts, "listed as views": as_views, "why -A": why}


def peak_mb() -> float:
    """This process's peak memory.  On Linux not from ``ru_maxrss``, which a child inherits from its parent."""
    status = Path("/proc/self/status")
    if status.exists():
        return next(int(line.split()[1]) / 1024 for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    return limits.getrusage(limits.RUSAGE_SELF).ru_maxrss / 1024 / (1024 if sys.platform == "darwin" else 1)


def measure(name: str, path: Path) -> dict[str, Any]:
    """Measure in this process, which does nothing else and ends afterwards."""
    index = msgspec.json.decode((path / "index").read_bytes(), type=list[tuple[Resource, int]])
    served = Pages({r: [(path / f"{r.plural}-{i}").read_bytes() for i in range(count)] for r, count in index})
    gc.collect()
    before = peak_mb()
    began = time.process_time()
    result = asyncio.run(WORK[name](served))
    spent = time.process_time() - began
    told = {"seconds": spent, "mb": peak_mb() - before}
    if isinstance(result, Survey):
        causes = collections.Counter(each.findings[0].code.value for each in result.reports)
        told |= {"lists": dict(served.listed), "found": dict(causes), "total": result.total}
    return told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--services", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=50000)
    parser.add_argument("--namespaces", type=int, default=50)
    parser.add_argument("--measure", nargs=2, metavar=("WHAT", "FILE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.measure[0], Path(options.measure[1]))))
        return
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory)
        stored = cluster(options.services, options.pods, options.namespaces)
        (path / "index").write_bytes(msgspec.json.encode([(r, len(found)) for r, found in stored.items()]))
        for resource, found in stored.items():
            for number, page in enumerate(found):
                (path / f"{resource.plural}-{number}").write_bytes(page)
        del stored
        report(options, path)


def report(options: argparse.Namespace, path: Path) -> None:
    print(f"{options.services:,} Services, {options.pods:,} Pods in {options.namespaces:,} namespaces,", end=" ")
    print(f"one Service in {BROKEN} broken")
    print(f"  {'':<16}  {'CPU s':>6}  {'times':>6}  {'MB':>6}  {'times':>6}")
    base: dict[str, Any] = {}
    for name in WORK:
        command = [sys.executable, "-m", "bench", "why", "--measure", name, str(path)]
        told = json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
        base = base or told
        print(
            f"  {name:<16}  {told['seconds']:>6.2f}  {told['seconds'] / base['seconds']:>5.2f}x"
            f"  {told['mb']:>6.0f}  {told['mb'] / base['mb']:>5.2f}x"
        )
    print(f"  lists read: {', '.join(f'{name} {count}' for name, count in told['lists'].items())}")
    print(f"  needing attention: {', '.join(f'{name} {count}' for name, count in told['found'].items())}")


if __name__ == "__main__":
    main()
