"""The CPU cost of one Pod's change for the discovery controllers, in namespaces and Services of different sizes.

Everything runs in this process: changes are passed to the controllers as an informer would, and writes are encoded,
answered at once and passed back through the handlers.  So the measured CPU time is the controllers' own work.  The
baseline scans: every Service for every Pod, every Pod for every Service, and plans everything anew.

Run: ``python -m bench.controllers [--pods 500 5000 50000] [--flips 300]``, or with ``--kubeconfig FILE`` against a
running cluster (see ``bench.rig.live_controllers``).
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from seamark.access.cluster import Change
from seamark.access.informer import Informer, key_of
from seamark.access.informers import Informers
from seamark.access.kubeconfig import KubeconfigError
from seamark.clock import SystemClock
from seamark.controllers.discovery.endpoints_controller import EndpointsController
from seamark.controllers.discovery.endpointslices_controller import EndpointSlicesController
from seamark.controllers.discovery.members import Members
from seamark.errors import ApiError
from seamark.kinds.resource import ENDPOINT_SLICES, ENDPOINTS, NODES, PODS, SERVICES, Resource
from seamark.rules.endpoints import EndpointsState
from seamark.rules.membership import selects
from seamark.rules.objects.endpoints import Endpoints
from seamark.rules.objects.endpointslice import EndpointSlice
from seamark.rules.objects.node import Node
from seamark.rules.objects.pod import Pod
from seamark.rules.objects.service import Service
from seamark.rules.slices.state import SlicesState
from seamark.runtime.following import Following
from seamark.runtime.manager import Manager

NAMESPACE = "bench"


class Feed(Informer[Any]):
    """An informer without a server: the benchmark tells it the changes."""

    def __init__(self, resource: Resource, view: type[Any]) -> None:
        super().__init__(None, resource, as_=view)  # type: ignore[arg-type]  # it is never run
        self.last_version = "0"
        self.synced.set()

    def put(self, obj: Any) -> None:
        self._apply(Change("MODIFIED", obj, obj.metadata.resource_version or self.last_version))

    def drop(self, key: str) -> None:
        self._apply(Change("DELETED", self.by_key(key), self.last_version))


class Seconds(SystemClock):
    """A clock that the benchmark moves, so that timers never fire by themselves."""

    def __init__(self) -> None:
        self.passed = 0.0

    def monotonic(self) -> float:
        return self.passed

    def call_later(self, delay: float, call: Callable[[], None]) -> Seconds:
        return self

    def cancel(self) -> None:
        """There is nothing to cancel."""


class Sink:
    """A cluster that accepts every write at once and passes it to the informers."""

    def __init__(self, feeds: dict[Resource, Feed]) -> None:
        self.writes = 0
        self.bytes = 0
        self._feeds = feeds
        self._version = 0

    async def create(self, resource: Resource, object: Any, *, as_: type[Any] = dict, **_: Any) -> Any:
        name = object.metadata.generate_name or object.metadata.name
        return msgspec.convert(self._store(resource, object, name=name), as_)

    async def update(self, resource: Resource, object: Any, *, as_: type[Any] = dict, **_: Any) -> Any:
        return msgspec.convert(self._store(resource, object, name=""), as_)

    async def delete(self, resource: Resource, name: str, *, namespace: str, **_: Any) -> None:
        self.writes += 1
        self._feeds[resource].drop(key_of(namespace, name))

    def _store(self, resource: Resource, object: Any, *, name: str) -> dict[str, Any]:
        self.writes += 1
        self._version += 1
        encoded = msgspec.json.encode(object)
        self.bytes += len(encoded)
        answer: dict[str, Any] = msgspec.json.decode(encoded)
        meta = answer["metadata"]
        if name:
            meta["name"] = f"{name}{self._version}" if resource is ENDPOINT_SLICES else name
            meta["uid"] = f"uid-{self._version}"
        meta["resourceVersion"] = str(self._version)
        meta["generation"] = meta.get("generation", 0) + 1
        view: type[Any] = EndpointSlice if resource is ENDPOINT_SLICES else Endpoints
        self._feeds[resource].put(msgspec.json.decode(msgspec.json.encode(answer), type=view))
        return answer


class Bench:
    """The controllers over feeds, and the changes to measure."""

    def __init__(self, which: Iterable[str]) -> None:
        self.services, self.pods, self.nodes = Feed(SERVICES, Service), Feed(PODS, Pod), Feed(NODES, Node)
        feeds = {ENDPOINTS: Feed(ENDPOINTS, Endpoints), ENDPOINT_SLICES: Feed(ENDPOINT_SLICES, EndpointSlice)}
        self.sink: Any = Sink(feeds)
        self.members = Members(services=self.services, pods=self.pods, nodes=self.nodes)
        self.controllers: list[Any] = []
        self.clock = Seconds()
        manager = Manager(Informers(self.sink), clock=self.clock)
        if "endpoints" in which:
            self.controllers.append(
                EndpointsController(manager, self.sink, members=self.members, endpoints=feeds[ENDPOINTS])
            )
        if "endpointslices" in which:
            slices = feeds[ENDPOINT_SLICES]
            self.controllers.append(
                EndpointSlicesController(manager, self.sink, members=self.members, nodes=self.nodes, slices=slices)
            )
        self.feeds = feeds
        Following(self.members, *self.controllers).connect()
        for zone in "abc":
            self.nodes.put(node(zone))

    async def settle(self) -> None:
        """Handle all waiting keys directly, without the controllers' workers."""
        for controller in self.controllers:
            while (key := controller.queue.take()) is not None:
                await controller.reconcile(key)
                controller.queue.done(key)


def node(zone: str) -> Node:
    raw = {
        "metadata": {"name": f"node-{zone}", "labels": {"topology.kubernetes.io/zone": f"zone-{zone}"}},
        "status": {"allocatable": {"cpu": "4"}, "conditions": [{"type": "Ready", "status": "True"}]},
    }
    return msgspec.convert(raw, Node)


def service(number: int) -> Service:
    raw = {
        "metadata": {"name": f"svc-{number}", "namespace": NAMESPACE, "uid": f"svc-{number}", "resourceVersion": "1"},
        "spec": {
            "selector": {"app": f"app-{number}", "env": "prod"},
            "ports": [{"name": "http", "port": 80, "targetPort": "http", "protocol": "TCP"}],
            "clusterIP": "10.96.0.1",
            "ipFamilies": ["IPv4"],
        },
    }
    return msgspec.convert(raw, Service)


def pod(number: int, app: int, *, ready: bool) -> Pod:
    raw = {
        "metadata": {
            "name": f"pod-{number}",
            "namespace": NAMESPACE,
            "uid": f"pod-{number}",
            "labels": {"app": f"app-{app}", "env": "prod", "tier": f"tier-{number % 3}", "hash": f"h{app}"},
        },
        "spec": {
            "nodeName": f"node-{'abc'[number % 3]}",
            "containers": [{"ports": [{"name": "http", "containerPort": 8080}]}],
        },
        "status": {
            "phase": "Running",
            "podIPs": [{"ip": f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"}],
            "conditions": [{"type": "Ready", "status": str(ready), "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        },
    }
    return msgspec.convert(raw, Pod)


async def filled(pods: int, services: int, which: Iterable[str]) -> Bench:
    bench = Bench(which)
    for number in range(services):
        bench.services.put(service(number))
    for number in range(pods):
        bench.pods.put(pod(number, number % services, ready=True))
    await bench.settle()
    gc.collect()
    gc.freeze()
    return bench


async def flip_cost(bench: Bench, *, pods: int, services: int, flips: int) -> float:
    """Median CPU microseconds from a change of a Pod's readiness to the answered writes."""
    chance = random.Random(1)
    costs = []
    for _ in range(flips):
        number = chance.randrange(pods)
        for ready in (False, True):
            changed = pod(number, number % services, ready=ready)
            bench.clock.passed += 10
            began = time.process_time_ns()
            bench.pods.put(changed)
            await bench.settle()
            costs.append((time.process_time_ns() - began) / 1000)
    return statistics.median(costs)


def scan_cost(bench: Bench, *, pods: int, services: int, flips: int) -> float:
    """The same by scanning everything."""
    chance = random.Random(1)
    nodes = {each.metadata.name: each for each in bench.nodes.objects()}
    costs = []
    for _ in range(flips):
        number = chance.randrange(pods)
        changed = pod(number, number % services, ready=False)
        began = time.process_time_ns()
        for web in [each for each in bench.services.objects() if selects(each, changed)]:
            chosen = [each for each in bench.pods.objects() if selects(web, each)]
            chosen = [each for each in chosen if each.metadata.name != changed.metadata.name] + [changed]
            slices = [
                each
                for each in bench.feeds[ENDPOINT_SLICES].objects()
                if each.metadata.labels["kubernetes.io/service-name"] == web.metadata.name
            ]
            current = bench.feeds[ENDPOINTS].get(web.metadata.name, NAMESPACE)
            endpoints, packed = EndpointsState(web), SlicesState(web)
            for each in slices:
                packed.observe(each)
            for each in chosen:
                endpoints.put(each.metadata.name, each)
                packed.put(each.metadata.name, each, nodes.get(each.spec.node_name))
            for written in endpoints.plan(current).update:
                msgspec.json.encode(written)
            for rewritten in packed.plan().changes.update:
                msgspec.json.encode(rewritten)
        costs.append((time.process_time_ns() - began) / 1000)
    return statistics.median(costs)


async def by_namespace(sizes: list[int], flips: int) -> None:
    print("One readiness flip, Services of 10 Pods, all in one namespace: median CPU µs")
    print(f"  {'Pods':>7}  {'Services':>8}  {'seamark':>9}  {'scanning':>10}  {'ratio':>7}")
    ours = []
    for pods in sizes:
        services = max(1, pods // 10)
        bench = await filled(pods, services, ("endpoints", "endpointslices"))
        cost = await flip_cost(bench, pods=pods, services=services, flips=flips)
        scan = scan_cost(bench, pods=pods, services=services, flips=max(3, flips * 100 // pods))
        ours.append(cost)
        print(f"  {pods:>7}  {services:>8}  {cost:>9.0f}  {scan:>10.0f}  {scan / cost:>6.1f}x")
        gc.unfreeze()
    print(f"  largest to smallest: {ours[-1] / ours[0]:.2f}x (2x is the goal)\n")


async def by_service(flips: int) -> None:
    print("One readiness flip in one Service of many Pods: median CPU µs")
    print(f"  {'Pods':>7}  {'slices':>9}  {'Endpoints':>9}")
    for pods in (10, 100, 1000, 5000):
        costs = []
        for which in ("endpointslices", "endpoints"):
            bench = await filled(pods, 1, (which,))
            costs.append(await flip_cost(bench, pods=pods, services=1, flips=flips))
            gc.unfreeze()
        print(f"  {pods:>7}  {costs[0]:>9.0f}  {costs[1]:>9.0f}")
    print("  (an Endpoints object is written whole, up to its thousand addresses)\n")


async def rollout(pods: int) -> None:
    bench = await filled(pods, 1, ("endpoints", "endpointslices"))
    written, size = bench.sink.writes, bench.sink.bytes
    began = time.process_time()
    for number in range(pods):
        bench.clock.passed += 0.1
        bench.pods.put(pod(pods + number, 0, ready=True))
        bench.pods.drop(key_of(NAMESPACE, f"pod-{number}"))
        if number % 10 == 9:
            await bench.settle()
    bench.clock.passed += 10
    bench.pods.put(pod(pods, 0, ready=False))
    await bench.settle()
    spent = time.process_time() - began
    print(f"Rollout of {pods} Pods in one Service, ten a second: {spent * 1000:.0f} ms CPU, ", end="")
    print(f"{bench.sink.writes - written} writes, {(bench.sink.bytes - size) / 1e6:.1f} MB\n")
    gc.unfreeze()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pods", type=int, nargs="+", default=[500, 5000, 50000])
    parser.add_argument("--flips", type=int, default=300)
    parser.add_argument("--kubeconfig", metavar="FILE", help="measure a running cluster instead, the first --pods Pods")
    options = parser.parse_args()
    if options.kubeconfig:
        from bench.rig.live_controllers import live

        try:
            asyncio.run(live(options.kubeconfig, pods=options.pods[0], flips=options.flips))
        except (KubeconfigError, ApiError) as error:
            sys.exit(f"bench controllers: {error}")
        return

    async def run() -> None:
        await by_namespace(options.pods, options.flips)
        await by_service(options.flips)
        await rollout(1000)

    asyncio.run(run())


if __name__ == "__main__":
    main()
