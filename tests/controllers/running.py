"""The discovery controllers at work on a cluster in memory, in virtual time."""

import asyncio
import contextlib

from seamark.access.informers import Informers
from seamark.controllers.discovery.discovery import add_discovery
from seamark.metrics import Registry
from seamark.runtime.manager import Manager
from virtual_time import VirtualClock

# Not the probes: they ask real machines.
DISCOVERY = ("endpoints", "endpointslices", "endpointslicemirroring")


class TickingClock(VirtualClock):
    """Passes by a microsecond whenever it is read, so that no two events have the same time and so the same name."""

    def time(self):
        self.now += 1e-6
        return self.now


class Running:
    def __init__(self, cluster, seen_through, *, which, settings):
        self.cluster = cluster
        self.clock = TickingClock(1000.0)
        self.metrics = Registry()
        informers = Informers(seen_through, clock=self.clock, random=lambda: 0.0)
        self.manager = Manager(informers, clock=self.clock, metrics=self.metrics)
        add_discovery(self.manager, lambda _: seen_through, which=which, settings=settings)
        self._task = asyncio.create_task(self.manager.run())

    async def settle(self, quiet=2.5, limit=100.0):
        """Until nothing was written for so many seconds."""
        passed, before = 0.0, None
        while before != self.cluster.written() and passed < limit:
            before = self.cluster.written()
            await self.clock.advance(quiet)
            passed += quiet

    async def stop(self):
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task


@contextlib.asynccontextmanager
async def running(cluster, *, through=None, which=DISCOVERY, settings=None):
    """``through`` is how the controllers see the cluster, should that differ from how it is."""
    controllers = Running(cluster, through or cluster, which=which, settings=settings)
    try:
        yield controllers
    finally:
        await controllers.stop()


@contextlib.asynccontextmanager
async def settled(cluster, **more):
    """The same, once they have written what there is to be written."""
    async with running(cluster, **more) as controllers:
        await controllers.settle()
        yield controllers
