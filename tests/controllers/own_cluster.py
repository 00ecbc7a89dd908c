"""A cluster of our own: the real API server in process over a store in memory, and the controllers around it."""

import asyncio
import contextlib

from virtual_time import VirtualClock

from seamark.access.informers import Informers
from seamark.api import bootstrap
from seamark.api.server import ApiServer
from seamark.api.settings import ServiceNetwork
from seamark.controllers.housekeeping.everything import Everything
from seamark.controllers.housekeeping.garbage import GarbageCollector
from seamark.controllers.housekeeping.namespaces import NamespaceController
from seamark.controllers.housekeeping.surroundings import Surroundings, SurroundingsSettings
from seamark.errors import NotFound
from seamark.kinds.resource import EVENTS
from seamark.metrics import Registry
from seamark.runtime.loop import Loop
from seamark.store.opening import open_store
from turns import drained


class OwnCluster:
    """``cluster`` is how its users see it; time passes for the controllers only when told to."""

    def __init__(self, store):
        self.clock = VirtualClock()
        self.clock.time = 1_800_000_000.0
        self.network = ServiceNetwork()
        self.store = store
        self.api = ApiServer(store, network=self.network, tokens={}, metrics=Registry(), clock=self.clock.now)
        self.cluster = self.api.cluster("kubectl")

    async def prepare(self):
        await self.api.load()
        following = asyncio.create_task(self.api.follow())
        await bootstrap.make_namespaces(self.cluster)
        await bootstrap.make_ranges(self.cluster, self.network)
        return following

    @contextlib.asynccontextmanager
    async def controlled(self, *, authority="the CA", ending=False, through=None, **settings):
        """The surroundings at work; with ``ending`` also what brings namespaces to their end.

        ``through`` is the cluster as the informers see it, should that differ from how it is.
        """
        informers = Informers(through or self.api.cluster("controllers"))
        around = Surroundings(
            self.api.cluster,
            informers,
            SurroundingsSettings(**settings),
            authority=authority,
            now=self.clock.now,
        )
        controllers = list(around.controllers)
        if ending:
            everything = Everything(informers, self.api.kinds)
            controllers.append(GarbageCollector(self.cluster, everything))
            controllers.append(NamespaceController(self.cluster, everything))
        tasks = [asyncio.create_task(informers.run())]
        tasks += [asyncio.create_task(work) for _, work in around.running()]
        for controller in controllers:
            loop = Loop(controller, clock=self.clock)
            controller.attach(loop)
            tasks.append(asyncio.create_task(self._work(controller, loop)))
        try:
            for controller in controllers:
                await controller.synced()
            yield around
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    @staticmethod
    async def _work(controller, loop):
        await controller.synced()
        await loop.run()

    # --- looking -----------------------------------------------------------------------------------

    async def find(self, resource, name, namespace=""):
        """The object, or None."""
        try:
            return await self.cluster.get(resource, name, namespace=namespace)
        except NotFound:
            return None

    async def until(self, ask, true=bool):
        """What ``ask`` comes to once it is ``true``."""
        while not true(found := await ask()):
            await asyncio.sleep(0.005)
        return found

    async def quiet(self):
        """Let everything happen that happens by itself."""
        revision = -1
        while revision != self.api.cache.revision:
            revision = self.api.cache.revision
            await asyncio.sleep(0.06)
            await drained(self.store)

    async def reasons(self, name):
        """The reasons of all events about objects of this name."""
        events = (await self.cluster.list(EVENTS)).items
        return sorted(event["reason"] for event in events if event["involvedObject"]["name"] == name)


@contextlib.asynccontextmanager
async def own_cluster():
    store = open_store("memory:")
    await store.open()
    try:
        own = OwnCluster(store)
        following = await own.prepare()
        yield own
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
    finally:
        await store.close()
