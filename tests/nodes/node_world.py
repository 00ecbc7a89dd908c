"""Simulated nodes over a real API server in this process, in virtual time, which passes only when the test says so."""

import asyncio
import contextlib
import random

from own_rights import OwnRights

from seamark.access.informers import Informers
from seamark.api import bootstrap
from seamark.api.server import ApiServer
from seamark.api.settings import ServiceNetwork
from seamark.errors import ServiceUnavailable
from seamark.kinds.resource import EVENTS, LEASES, NODES, PODS
from seamark.metrics import Registry
from seamark.nodes.simulated.settings import NodeSettings
from seamark.nodes.simulated.simulation import add_nodes
from seamark.runtime.manager import Manager
from seamark.store.opening import open_store
from virtual_time import VirtualClock


class Flaky:
    """A cluster whose writes fail at random: before they are executed, or after, so that only the answer is lost."""

    def __init__(self, cluster, chance, share):
        self._cluster = cluster
        self._chance = chance
        self.share = share

    def __getattr__(self, name):
        return getattr(self._cluster, name)

    async def _maybe(self, resource, write):
        # Not for Events: their recorder retries on its own clock, for which these tests do not wait.
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
    """A cluster in virtual time, and the simulation that runs on it."""

    def __init__(self, api, clock, rights):
        self.rights = rights
        self.api = api
        self.clock = clock
        self.cluster = api.cluster("test")
        self.metrics = Registry()
        self.manager = self.simulation = None
        self.schedules = True  # False: as if the scheduler ran in another process
        self._task = None

    # --- the simulation ----------------------------------------------------------------------------

    async def start(self, *, faults=0.0, seed=0, **settings):
        """Start or restart the simulation; returns when its nodes are ready.

        After that, this share of its writes fails.
        """
        await self.end()
        chosen = NodeSettings(**{"count": 3, "stop_after": 0.1, "events": 0.0, **settings})
        self.flaky = Flaky(self.api.cluster("nodes"), random.Random(seed), 0.0)
        informers = Informers(self.flaky, clock=self.clock, random=random.Random(0).random)
        self.manager = Manager(informers, clock=self.clock, metrics=self.metrics)
        self.simulation = add_nodes(self.manager, self.flaky, chosen, schedules=self.schedules)
        self._task = asyncio.create_task(self.manager.run())
        ready = asyncio.create_task((self.simulation or self.manager).ready.wait())
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
            self.rights.check()
            await asyncio.sleep(0.001)
            quiet = quiet + 1 if await self._quiet() else 0

    async def _quiet(self):
        if self._task is None:
            return True
        if self._task.done():
            self._task.result()
        if not self.manager.idle:
            return False
        for recorder in self.manager.recorders:
            await recorder.written()
        simulation = self.simulation
        if simulation is None:
            return not any(task.get_name().startswith("removal") for task in asyncio.all_tasks())
        for resource, informer in ((PODS, simulation.pods), (NODES, simulation.nodes)):
            there = {(o["metadata"].get("namespace", ""), o["metadata"]["name"]): o for o in await self.all(resource)}
            known = {(o.metadata.namespace, o.metadata.name): o for o in informer.objects()}
            if {k: o["metadata"]["resourceVersion"] for k, o in there.items()} != {
                k: o.metadata.resource_version for k, o in known.items()
            }:
                return False
        return self.manager.idle

    async def pass_(self, seconds):
        """Let so much time pass, and everything happen in order."""
        await self.clock.advance(seconds, self.settle)

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
    """A Pod's phase and readiness, such as ``Running True``."""
    return f"{pod['status']['phase']} {ready(pod)}"


@contextlib.asynccontextmanager
async def world():
    store = open_store("memory:")
    await store.open()
    clock, rights = VirtualClock(), OwnRights()
    api = ApiServer(
        store,
        network=ServiceNetwork(),
        tokens={},
        metrics=Registry(),
        clock=clock,
        chance=random.Random(0),
        authorizer=rights,
    )
    await api.load()
    following = asyncio.create_task(api.follow())
    made = World(api, clock, rights)
    try:
        await bootstrap.make_namespaces(made.cluster)
        yield made
    finally:
        await made.end()
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        await store.close()
