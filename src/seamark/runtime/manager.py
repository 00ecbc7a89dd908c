"""The manager: starts the controllers of a process, runs them until cancelled, and stops them in order.

    informers list ──▶ handlers are called ──▶ everything is listed ──▶ controllers handle keys

A controller starts only when everything it watches has been listed.  Otherwise it could delete objects because their
owner has not been listed yet.  An error that is not limited to one key stops all controllers of the manager and is
raised; to start again, build a new manager.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from seamark.access.cluster import Cluster
from seamark.access.events import EventRecorder
from seamark.access.informers import Informers
from seamark.clock import SYSTEM_CLOCK, Clock
from seamark.metrics import Registry
from seamark.runtime.controller import Controller
from seamark.runtime.following import Derived, Following
from seamark.runtime.supervisor import note_name

log = logging.getLogger(__name__)


class Manager:
    """Runs all controllers that share one set of informers.

    ``ready`` is set once all controllers have started.  On stopping, keys that are being handled have ``grace`` seconds
    to finish.
    """

    def __init__(
        self,
        informers: Informers,
        *,
        clock: Clock = SYSTEM_CLOCK,
        metrics: Registry | None = None,
        grace: float = 5.0,
    ) -> None:
        self.informers = informers
        self.clock = clock
        self.metrics = metrics or Registry()
        self.ready = asyncio.Event()
        self.controllers: list[Controller] = []
        self.recorders: list[EventRecorder] = []
        self._followings: list[Following] = []
        self._starts: list[tuple[str, Callable[[asyncio.TaskGroup], Coroutine[Any, Any, None]]]] = []
        self._beside: list[tuple[str, Callable[[], Coroutine[Any, Any, None]]]] = []
        self._grace = grace

    def add(self, *states: Derived, first: Callable[[], Awaitable[None]] | None = None) -> None:
        """Run these controllers and the states that they share; a rebuild of one rebuilds all of them.

        ``first`` is awaited before their handlers are called.
        """
        controllers = [state for state in states if isinstance(state, Controller)]
        following = Following(*states, clock=self.clock, metrics=self.metrics)

        async def start(group: asyncio.TaskGroup) -> None:
            if first is not None:
                await first()
            following.connect()
            await following.synced()
            for controller in controllers:
                controller.workers.start(group)

        self.controllers += controllers
        self._followings.append(following)
        self._starts.append((states[0].name, start))

    def beside(self, name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run this beside the controllers."""
        self._beside.append((name, work))

    def recorder(self, cluster: Cluster, component: str) -> EventRecorder:
        """A recorder of Events, stopped with the controllers."""
        recorder = EventRecorder(cluster, component=component, clock=self.clock)
        self.recorders.append(recorder)
        return recorder

    # --- running -----------------------------------------------------------------------------------

    async def run(self) -> None:
        """Run until cancelled, including the informers that are not running yet."""
        if self.informers.running:
            await self.work()
            return
        async with asyncio.TaskGroup() as group:
            informing = group.create_task(self.informers.run(), name="informers")
            informing.add_done_callback(note_name)
            try:
                await self.work()
            finally:
                informing.cancel()  # they run until the last key is handled

    async def work(self) -> None:
        """Run until cancelled, with informers that another task runs."""
        try:
            async with asyncio.TaskGroup() as group:
                for name, work in self._beside:
                    group.create_task(work(), name=name).add_done_callback(note_name)
                try:
                    async with asyncio.TaskGroup() as starting:
                        for name, start in self._starts:
                            starting.create_task(start(group), name=name).add_done_callback(note_name)
                    self.ready.set()
                    log.info("controllers at work: %s", ", ".join(each.name for each in self.controllers))
                    await asyncio.Event().wait()
                finally:
                    async with asyncio.TaskGroup() as stopping:
                        for controller in self.controllers:
                            stopping.create_task(controller.workers.stop(self._grace))
        finally:
            self.ready.clear()
            for following in self._followings:
                following.close()
            for recorder in self.recorders:
                await recorder.stop()

    @property
    def idle(self) -> bool:
        """Whether everything is listed and no key waits or is being handled."""
        return self.ready.is_set() and all(controller.queue.idle for controller in self.controllers)

    async def quiet(self) -> None:
        """Return once no key waits or is being handled."""
        while not self.idle:
            await self.ready.wait()
            for controller in self.controllers:
                await controller.workers.quiet()
