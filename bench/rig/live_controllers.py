"""The delay from a Pod's readiness to its Service's slices, in a running cluster.

Part of ``python -m bench.controllers --kubeconfig FILE``.  The Pods are created in a separate namespace and never run:
their status is written here, so the cluster should have no kubelets (``seamark up``, a bare control plane).
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Sequence
from typing import Any

from seamark import errors
from seamark.access.cluster import Cluster
from seamark.access.kubeconfig import load
from seamark.access.remote import RemoteCluster
from seamark.kinds.resource import ENDPOINT_SLICES, NAMESPACES, NODES, PODS, SERVICES
from seamark.rules.objects.endpointslice import EndpointSlice

NODE = "bench-node"
AT_ONCE = 32


class Watcher:
    """Watches the slices of one namespace, and notes when each Pod's readiness last changed in them."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self.shown: dict[str, tuple[bool, float]] = {}
        self.events = 0
        self._news = asyncio.Event()

    async def run(self) -> None:
        listing = await self._cluster.list(ENDPOINT_SLICES, namespace=self._namespace, as_=EndpointSlice)
        stream = self._cluster.watch(
            ENDPOINT_SLICES, since=listing.version, namespace=self._namespace, as_=EndpointSlice
        )
        async for change in stream:
            if change.type == "BOOKMARK":
                continue
            self.events += 1
            now = time.perf_counter()
            for endpoint in change.object.endpoints or ():
                assert endpoint.target_ref is not None
                name = endpoint.target_ref.name
                if self.shown.get(name, (None,))[0] != endpoint.ready:
                    self.shown[name] = (endpoint.ready, now)
            self._news.set()

    async def until(self, names: Sequence[str], ready: bool) -> None:
        """Return once the slices show all these Pods with this readiness."""
        while not all(self.shown.get(name, (None,))[0] is ready for name in names):
            self._news.clear()
            await self._news.wait()


def _pod(name: str, number: int) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "bench"}},
        "spec": {"nodeName": NODE, "containers": [{"name": "c", "image": "example/app:1"}]},
        "status": {"phase": "Running", "podIPs": [{"ip": f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"}]},
    }


async def _report(cluster: Cluster, namespace: str, name: str, *, ready: bool, more: dict[str, Any]) -> None:
    condition = {"type": "Ready", "status": str(ready)}
    status = {**more, "conditions": [condition]}
    await cluster.patch(PODS, name, {"status": status}, namespace=namespace, subresource="status")


async def _together(work: Sequence[Any]) -> None:
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(doing: Any) -> None:
        async with gate:
            await doing

    await asyncio.gather(*(one(each) for each in work))


async def _prepare(cluster: Cluster, namespace: str, pods: int) -> list[str]:
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": NODE, "labels": {"topology.kubernetes.io/zone": "bench"}},
    }
    for resource, obj in (
        (NODES, node),
        (NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}),
    ):
        try:
            await cluster.create(resource, obj)
        except errors.AlreadyExists:
            print(f"  ({resource.plural} {obj['metadata']['name']} is there already)")  # type: ignore[index]  # a dict of ours
    web = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "bench"},
        "spec": {"selector": {"app": "bench"}, "ports": [{"port": 80}]},
    }
    await cluster.create(SERVICES, web, namespace=namespace)
    names = [f"pod-{number}" for number in range(pods)]
    await _together([cluster.create(PODS, _pod(n, i), namespace=namespace) for i, n in enumerate(names)])
    return names


async def live(kubeconfig: str, *, pods: int, flips: int) -> None:
    namespace = f"bench-{int(time.time())}"
    async with RemoteCluster(load(kubeconfig)) as cluster, RemoteCluster(load(kubeconfig)) as other:
        names = await _prepare(cluster, namespace, pods)
        watcher = Watcher(other, namespace)
        watching = asyncio.create_task(watcher.run())
        try:
            await _measure(cluster, watcher, namespace, names, flips)
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
            await cluster.delete(NAMESPACES, namespace)
            await cluster.delete(NODES, NODE)


async def _measure(cluster: Cluster, watcher: Watcher, namespace: str, names: list[str], flips: int) -> None:
    began = time.perf_counter()
    addresses = {name: _pod(name, number)["status"] for number, name in enumerate(names)}
    await _together([_report(cluster, namespace, n, ready=True, more=addresses[n]) for n in names])
    written = time.perf_counter()
    await watcher.until(names, True)
    done = time.perf_counter()
    print(f"One Service in a running cluster, {len(names)} Pods becoming ready, {AT_ONCE} at a time:")
    print(
        f"  all reported after {written - began:.2f} s, all shown {done - written:.3f} s later, {watcher.events} events"
    )
    waits = []
    for number in range(flips):
        name = names[number * 7 % len(names)]
        for ready in (False, True):
            began = time.perf_counter()
            await _report(cluster, namespace, name, ready=ready, more={})
            await watcher.until([name], ready)
            waits.append((watcher.shown[name][1] - began) * 1000)
    waits.sort()
    print(f"One readiness flip, from the request to the event: median {statistics.median(waits):.1f} ms, ", end="")
    print(f"p99 {waits[len(waits) * 99 // 100]:.1f} ms")
