"""A private cluster: the real API server in this process over a store in memory, and controllers."""

import asyncio
import contextlib

from own_rights import OwnRights

from seamark.access.informers import Informers
from seamark.api import bootstrap
from seamark.api.server import ApiServer
from seamark.api.settings import ServiceNetwork
from seamark.controllers.housekeeping.standalone import add_cleaning
from seamark.controllers.housekeeping.surroundings import add_surroundings
from seamark.controllers.settings import SurroundingsSettings
from seamark.errors import NotFound
from seamark.kinds.resource import EVENTS
from seamark.metrics import Registry
from seamark.runtime.manager import Manager
from seamark.store.opening import open_store
from turns import drained
from virtual_time import VirtualClock


class OwnCluster:
    """``cluster`` is how its users see it; time passes for the controllers only when told to."""

    def __init__(self, store, **more):
        self.clock = VirtualClock()
        self.network = ServiceNetwork()
        self.store = store
        self.managers = []  # those at work
        self.tasks = []  # that never end
        self.rights = OwnRights()
        more = {"authorizer": self.rights, **more}
        self.api = ApiServer(store, network=self.network, tokens={}, metrics=Registry(), clock=self.clock, **more)
        self.cluster = self.api.cluster("kubectl")

    async def prepare(self):
        await self.api.load()
        self.tasks.append(asyncio.create_task(self.api.follow()))
        await bootstrap.make_namespaces(self.cluster)
        await bootstrap.make_ranges(self.cluster, self.network)

    @contextlib.asynccontextmanager
    async def controlled(self, *, authority="the CA", ending=False, grace=0.0, through=None, **settings):
        """Run the housekeeping controllers; with ``ending`` also the one that deletes namespaces, after ``grace``.

        ``through`` is the cluster that the informers use, for tests with faults.
        """
        informers = Informers(through or self.api.cluster("controllers"))
        manager = Manager(informers, clock=self.clock)
        add_surroundings(manager, self.api.cluster, SurroundingsSettings(**settings), authority=authority)
        if ending:
            foreign = self.api.aggregation
            add_cleaning(manager, self.api.cluster, self.api.kinds, namespace_grace=grace, foreign=foreign)
        async with self.managed(manager):
            yield manager

    @contextlib.asynccontextmanager
    async def managed(self, manager):
        """The manager's controllers are at work inside the block."""
        self.managers.append(manager)
        try:
            async with managed(manager) as task:
                self.tasks.append(task)
                yield manager
                self.tasks.remove(task)
        finally:
            self.managers.remove(manager)

    # --- looking -----------------------------------------------------------------------------------

    def check(self):
        """Fail for what a test would wait for in vain: missing rights, a part that has ended, Events that wait."""
        self.rights.check()
        for task in self.tasks:
            if task.done():
                raise AssertionError(f"{task} has ended")
        writing = {recorder._writing for manager in self.managers for recorder in manager.recorders}
        assert not writing & self.clock.asleep, "an Event could not be written, and is tried again later"

    async def find(self, resource, name, namespace=""):
        """The object, or None."""
        try:
            return await self.cluster.get(resource, name, namespace=namespace)
        except NotFound:
            return None

    async def until(self, ask, true=bool):
        """What ``ask`` comes to once it is ``true``."""
        while not true(found := await ask()):
            self.check()
            await asyncio.sleep(0.005)
        return found

    async def quiet(self):
        """Let everything happen that happens without time passing."""
        quiet, revision = 0, -1
        while quiet < 2:
            self.check()
            await drained(self.store)
            told = not any(recorder._writing for manager in self.managers for recorder in manager.recorders)
            idle = told and all(manager.idle for manager in self.managers) and revision == self.api.cache.revision
            quiet, revision = quiet + 1 if idle else 0, self.api.cache.revision

    async def reasons(self, name):
        """The reasons of all events about objects of this name."""
        events = (await self.cluster.list(EVENTS)).items
        return sorted(event["reason"] for event in events if event["involvedObject"]["name"] == name)


@contextlib.asynccontextmanager
async def managed(manager):
    """The manager's controllers are at work inside the block; the task that runs them."""
    task = asyncio.create_task(manager.run())
    ready = asyncio.create_task(manager.ready.wait())
    try:
        await asyncio.wait([task, ready], return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
        yield task
    finally:
        ready.cancel()
        task.cancel()
        await asyncio.gather(task, ready, return_exceptions=True)


@contextlib.asynccontextmanager
async def own_cluster(**more):
    """``more`` is for the API server."""
    store = open_store("memory:")
    await store.open()
    try:
        own = OwnCluster(store, **more)
        await own.prepare()
        yield own
        own.check()
        for task in own.tasks:
            task.cancel()
        await asyncio.gather(*own.tasks, return_exceptions=True)
    finally:
        await store.close()
