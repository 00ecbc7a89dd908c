"""The cost of a Pod from its creation to Ready on simulated nodes, compared with bare creates in the same run.

Everything is in this process over a store in memory: the API server's whole write path, the informers, the scheduler
and the kubelets.  A Pod takes three writes (create, bind, status), and the simulation reads each of them, so the ratio
to bare creates can hardly be less than three.  ``waiting`` measures Pods that existed before any node did, which is the
nodes' own speed.  ``again`` starts a second simulation over all Pods: it must find nothing to write.

Run: ``python -m bench.nodes [--pods 1000 10000] [--nodes 10]``
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import uvloop

from seamark.access.cluster import Cluster, Receipt
from seamark.access.informers import Informers
from seamark.api import bootstrap
from seamark.api.server import ApiServer
from seamark.api.settings import ServiceNetwork
from seamark.cli.running import memory
from seamark.errors import Object
from seamark.kinds.resource import PODS
from seamark.metrics import Registry
from seamark.nodes.simulated.settings import NodeSettings
from seamark.nodes.simulated.simulation import Simulation
from seamark.rules.objects.pod import Pod
from seamark.runtime.manager import Manager
from seamark.store.opening import open_store

IN_FLIGHT = 64


@asynccontextmanager
async def api_server() -> AsyncIterator[ApiServer]:
    store = open_store("memory:")
    await store.open()
    api = ApiServer(store, network=ServiceNetwork(), tokens={}, metrics=Registry())
    await api.load()
    following = asyncio.create_task(api.follow())
    try:
        await bootstrap.make_namespaces(api.cluster("bench"))
        yield api
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        await store.close()


@asynccontextmanager
async def simulated(api: ApiServer, settings: NodeSettings) -> AsyncIterator[tuple[Simulation, Manager]]:
    manager = Manager(Informers(api.cluster("informers")))
    simulation = Simulation(manager, api.cluster("nodes"), settings)
    running = asyncio.create_task(manager.run())
    try:
        await simulation.ready.wait()
        yield simulation, manager
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def pod(number: int) -> Object:
    resources = {"requests": {"cpu": "10m", "memory": "16Mi"}}
    return {
        "metadata": {"name": f"web-{number:06d}", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "web", "image": "example/web:1", "resources": resources}]},
    }


async def create(cluster: Cluster, number: int) -> None:
    await cluster.create(PODS, pod(number), namespace="default", as_=Receipt)


async def all_of(count: int, do: Callable[[int], Awaitable[object]]) -> None:
    numbers = iter(range(count))

    async def hand() -> None:
        for number in numbers:
            await do(number)

    await asyncio.gather(*(hand() for _ in range(IN_FLIGHT)))


class Stopwatch:
    def __init__(self) -> None:
        self.wall, self.cpu = time.perf_counter(), time.process_time()

    def stop(self) -> tuple[float, float]:
        return time.perf_counter() - self.wall, time.process_time() - self.cpu


class Ready:
    """Waits until a number of Pods exist or are Ready, by counting changes instead of listing all Pods."""

    def __init__(self, simulation: Simulation) -> None:
        self._pods = simulation.pods
        self._ready: set[str] = set()
        self._changed = asyncio.Event()
        simulation.pods.on_change(self._note)

    def _note(self, key: str, old: Pod | None, new: Pod | None) -> None:
        condition = None if new is None else new.condition("Ready")
        if condition is not None and condition.status == "True":
            self._ready.add(key)
        else:
            self._ready.discard(key)
        self._changed.set()

    async def wait_for(self, count: int) -> None:
        while len(self._ready) != count or len(self._pods) != count:
            self._changed.clear()
            await self._changed.wait()


async def measure(count: int, nodes: int) -> None:
    async with api_server() as api:
        cluster: Cluster = api.cluster("bench")
        watch = Stopwatch()
        await all_of(count, lambda number: create(cluster, number))
        bare = watch.stop()
        report(f"{count} bare creates", count, bare, bare)
        settings = NodeSettings(count=nodes, pods=max(1000, 2 * count // nodes), cpu="1k", memory="1Ti")
        watch = Stopwatch()
        async with simulated(api, settings) as (simulation, manager):
            await Ready(simulation).wait_for(count)
            report(f"{count} waiting Pods made Ready", count, watch.stop(), bare)

    async with api_server() as api:
        cluster = api.cluster("bench")
        async with simulated(api, settings) as (simulation, manager):
            ready = Ready(simulation)
            watch = Stopwatch()
            await all_of(count, lambda number: create(cluster, number))
            await ready.wait_for(count)
            report(f"{count} Pods created and Ready", count, watch.stop(), bare)
        before = api.cache.revision
        watch = Stopwatch()
        async with simulated(api, settings) as (simulation, manager):
            await Ready(simulation).wait_for(count)
            await manager.quiet()
            again = watch.stop()
            # The nodes' first heartbeats are the only writes.
            writes = api.cache.revision - before - nodes
            report(f"{count} again, {writes} writes", count, again, bare)
            ready = Ready(simulation)
            watch = Stopwatch()
            await all_of(count, lambda number: cluster.delete(PODS, f"web-{number:06d}", namespace="default"))
            await ready.wait_for(0)
            report(f"{count} Pods deleted and gone", count, watch.stop(), bare)


def report(what: str, count: int, took: tuple[float, float], bare: tuple[float, float]) -> None:
    wall, cpu = took
    print(
        f"{what:34} {count / wall:8.0f}/s {cpu / count * 1e6:8.0f} µs CPU each"
        f"   {wall / bare[0]:5.2f} × the time and {cpu / bare[1]:5.2f} × the CPU of bare creates",
        flush=True,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pods", type=int, nargs="+", default=[1000, 10000])
    parser.add_argument("--nodes", type=int, default=10)
    options = parser.parse_args()
    memory.settle()  # as `seamark up` does
    for count in options.pods:
        uvloop.run(measure(count, options.nodes))
    return 0


if __name__ == "__main__":
    main()
