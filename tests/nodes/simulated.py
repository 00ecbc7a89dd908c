"""Simulated nodes over a real API server in this process, in virtual time: nothing happens until time is let pass."""

import asyncio
import contextlib
import heapq
import itertools
import random

from seamark.api import bootstrap
from seamark.api.server import ApiServer
from seamark.api.settings import ServiceNetwork
from seamark.errors import ServiceUnavailable
from seamark.kinds.resource import EVENTS, LEASES, NODES, PODS
from seamark.metrics import Registry
from seamark.nodes.simulated.settings import NodeSettings
from seamark.nodes.simulated.simulation import Simulation
from seamark.store.opening import open_store

BEGINNING = 1_800_000_000.0


class VirtualClock:
    def __init__(self):
        self.time = BEGINNING
        self._heap = []
        self._count = itertools.count()

    def now(self):
        return self.time

    def call_later(self, delay, call):
        timer = _Timer(call)
        heapq.heappush(self._heap, (self.time + delay, next(self._count), timer))
        return timer

    async def sleep(self, seconds):
        woken = asyncio.get_running_loop().create_future()
        self.call_later(seconds, lambda: woken.done() or woken.set_result(None))
        await woken

    def next_due(self):
        while self._heap and self._heap[0][2].call is None:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def ring(self):
        """The next thing that is due happens now."""
        due, _, timer = heapq.heappop(self._heap)
        self.time = max(self.time, due)
        timer.call()


class _Timer:
    def __init__(self, call):
        self.call = call

    def cancel(self):
        self.call = None


class Flaky:
    """A cluster whose writes fail now and then: before they are made, or after, when only the answer is lost."""

    def __init__(self, cluster, chance, share):
        self._cluster = cluster
        self._chance = chance
        self.share = share

    def __getattr__(self, name):
        return getattr(self._cluster, name)

    async def _maybe(self, resource, write):
        # Events are left out: their writer waits in its own way, which nobody here would wait for.
        fate = self._chance.random() if resource != EVENTS else 1.0
        if fate < self.share / 2:
            write.close()
            raise ServiceUnavailable("the server is away")
        answer = await write
        if fate < self.share:
            raise ServiceUnavailable("the answer was lost")
        return answer

    async def create(self, resource, *args, **more):
        return await self._maybe(resource, self._cluster.create(resource, *args, **more))

    async def patch(self, resource, *args, **more):
        return await self._maybe(resource, self._cluster.patch(resource, *args, **more))

    async def delete(self, resource, *args, **more):
        return await self._maybe(resource, self._cluster.delete(resource, *args, **more))


class World:
    """A cluster in virtual time, and the simulation that runs on it just now."""

    def __init__(self, api, clock):
        self.api = api
        self.clock = clock
        self.cluster = api.cluster("test")
        self.simulation = None
        self._task = None

    # --- the simulation ----------------------------------------------------------------------------

    async def start(self, *, faults=0.0, seed=0, **settings):
        """Start the simulation, or start it anew; returns when its nodes are ready.

        Then this share of its writes begins to fail.
        """
        await self.end()
        chosen = NodeSettings(**{"count": 3, "stop_after": 0.1, **settings})
        chance = random.Random(0)
        self.flaky = Flaky(self.api.cluster("nodes"), random.Random(seed), 0.0)
        self.simulation = Simulation(
            self.flaky,
            settings=chosen,
            clock=self.clock,
            sleep=self.clock.sleep,
            random=chance.random,
        )
        self._task = asyncio.create_task(self.simulation.run())
        ready = asyncio.create_task(self.simulation.ready.wait())
        await asyncio.wait([self._task, ready], return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
        if self._task.done():
            self._task.result()
        await self.settle()
        self.flaky.share = faults
        return self.simulation

    async def end(self):
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self.simulation = self._task = None

    async def settle(self):
        """Until everything has happened that can happen without time passing."""
        quiet = 0
        while quiet < 2:
            await asyncio.sleep(0.001)
            quiet = quiet + 1 if await self._quiet() else 0

    async def _quiet(self):
        simulation = self.simulation
        if simulation is None or self._task.done():
            if self._task is not None:
                self._task.result()
            return True
        if not all(work.idle for work in simulation.works):
            return False
        for recorder in simulation.recorders:
            await recorder.written()
        for resource, informer in ((PODS, simulation.pods), (NODES, simulation.nodes)):
            there = {(o["metadata"].get("namespace", ""), o["metadata"]["name"]): o for o in await self.all(resource)}
            known = {(o.metadata.namespace, o.metadata.name): o for o in informer.objects()}
            if {k: o["metadata"]["resourceVersion"] for k, o in there.items()} != {
                k: o.metadata.resource_version for k, o in known.items()
            }:
                return False
        return all(work.idle for work in simulation.works)

    async def pass_(self, seconds):
        """Let so much time pass, and everything happen in order."""
        until = self.clock.time + seconds
        await self.settle()
        while (due := self.clock.next_due()) is not None and due <= until:
            self.clock.ring()
            await self.settle()
        self.clock.time = until
        await self.settle()

    # --- the cluster -------------------------------------------------------------------------------

    async def all(self, resource, namespace=""):
        return list((await self.cluster.list(resource, namespace=namespace)).items)

    async def pod(self, name, namespace="default"):
        return await self.cluster.get(PODS, name, namespace=namespace)

    async def make(self, name, annotations=None, *, labels=None, namespace="default", settled=True, **spec):
        spec.setdefault("containers", [{"name": "main", "image": "example/app:1"}])
        if annotations:
            annotations = {f"seamark.dev/{key}": value for key, value in annotations.items()}
        made = await self.cluster.create(
            PODS,
            {"metadata": {"name": name, "annotations": annotations or {}, "labels": labels or {}}, "spec": spec},
            namespace=namespace,
        )
        if settled:
            await self.settle()
        return made

    async def remove(self, name, namespace="default", **options):
        await self.cluster.delete(PODS, name, namespace=namespace, **options)
        await self.settle()

    async def annotate(self, name, **annotations):
        wanted = {f"seamark.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
        await self.cluster.patch(PODS, name, {"metadata": {"annotations": wanted}}, namespace="default")
        await self.settle()

    async def events(self, reason=""):
        await self.settle()
        return [e for e in await self.all(EVENTS) if not reason or e["reason"] == reason]

    async def leases(self):
        return {o["metadata"]["name"]: o for o in await self.all(LEASES, "kube-node-lease")}

    @property
    def revision(self):
        return self.api.cache.revision


def conditions(obj):
    return {c["type"]: c for c in obj["status"].get("conditions") or ()}


def ready(obj):
    return conditions(obj).get("Ready", {}).get("status")


def shown(pod):
    """Phase and readiness: ``Running True``."""
    return f"{pod['status']['phase']} {ready(pod)}"


@contextlib.asynccontextmanager
async def world():
    store = open_store("memory:")
    await store.open()
    clock = VirtualClock()
    api = ApiServer(
        store,
        network=ServiceNetwork(),
        tokens={},
        metrics=Registry(),
        clock=clock.now,
        chance=random.Random(0),
    )
    await api.load()
    following = asyncio.create_task(api.follow())
    made = World(api, clock)
    try:
        await bootstrap.make_namespaces(made.cluster)
        yield made
    finally:
        await made.end()
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        await store.close()
