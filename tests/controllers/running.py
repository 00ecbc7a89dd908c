"""The discovery controllers at work on a cluster in memory, in virtual time."""

import asyncio
import contextlib

from virtual_time import VirtualClock

from seamark.access.informers import Informers
from seamark.controllers.discovery.discovery import ALL, Discovery
from seamark.metrics import Registry


class Running:
    def __init__(self, cluster, seen_through, *, which, settings):
        self.cluster = cluster
        self.clock = VirtualClock()
        self.metrics = Registry()
        informers = Informers(seen_through, clock=self.clock.now, sleep=self.clock.sleep, random=lambda: 0.0)
        self.discovery = Discovery(
            seen_through, informers, which=which, settings=settings, clock=self.clock, metrics=self.metrics
        )
        self._tasks = [asyncio.create_task(informers.run()), asyncio.create_task(self.discovery.run())]

    async def settle(self, quiet=2.5, limit=100.0):
        """Until nothing was written for so many seconds."""
        passed, before = 0.0, None
        while before != self.cluster.written() and passed < limit:
            before = self.cluster.written()
            await self.clock.advance(quiet)
            passed += quiet

    async def stop(self):
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task


@contextlib.asynccontextmanager
async def running(cluster, *, through=None, which=ALL, settings=None):
    """``through`` is how the controllers see the cluster, should that differ from how it is."""
    controllers = Running(cluster, through or cluster, which=which, settings=settings)
    try:
        yield controllers
    finally:
        await controllers.stop()
