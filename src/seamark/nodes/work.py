"""Keys to be looked at, now or later, by as many hands as there is work for.

A key is never in two hands at once; added while it is being looked at, it is looked at once more.  A key whose handling
fails comes again, later each time.  There is one timer for all keys that wait for their time, and no task while there
is nothing to do.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
from collections import deque
from collections.abc import Awaitable, Callable

from seamark.access.clock import Cancellable, Clock
from seamark.errors import ApiError

log = logging.getLogger(__name__)

Key = str

FIRST_RETRY = 0.05
LAST_RETRY = 30.0
TURN = 100  # keys that needed no waiting before everybody else gets a turn


class Work:
    """One kind of work.  Keys may be added before ``run``; they are looked at once it runs."""

    def __init__(self, name: str, handle: Callable[[Key], Awaitable[None]], *, clock: Clock, workers: int) -> None:
        self.name = name
        self._handle = handle
        self._clock = clock
        self._workers = workers
        self._group: asyncio.TaskGroup | None = None
        self._hands = 0
        self._ready: deque[Key] = deque()
        self._waiting: set[Key] = set()
        self._running: set[Key] = set()
        self._again: set[Key] = set()
        self._due: dict[Key, float] = {}
        self._heap: list[tuple[float, Key]] = []
        self._timer: tuple[float, Cancellable] | None = None
        self._failures: dict[Key, int] = {}
        self._quiet: asyncio.Event | None = None  # only for those who wait for it

    @property
    def idle(self) -> bool:
        """Nothing is to be done now; something may come by itself later."""
        return not (self._waiting or self._running)

    async def done(self) -> None:
        """Return once it is idle."""
        while not self.idle:
            if self._quiet is None:
                self._quiet = asyncio.Event()
            self._quiet.clear()
            await self._quiet.wait()

    def add(self, key: Key) -> None:
        """Look at the key as soon as possible."""
        if key in self._waiting:
            return
        if key in self._running:
            self._again.add(key)
            return
        self._due.pop(key, None)
        self._waiting.add(key)
        self._ready.append(key)
        if self._hands < self._workers:
            self._hire()

    def add_at(self, key: Key, when: float) -> None:
        """Look at the key at that time, or earlier if somebody asks for that."""
        if when <= self._clock.now():
            self.add(key)
            return
        if key in self._waiting or self._due.get(key, when + 1) <= when:
            return
        self._due[key] = when
        heapq.heappush(self._heap, (when, key))
        self._arm()

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            try:
                for _ in range(min(self._workers, len(self._ready))):
                    self._hire()
                self._arm()
                await asyncio.Event().wait()
            finally:
                # From now on the group takes nobody in: what rings or is added meanwhile waits for the next run.
                self._group = None
                if self._timer is not None:
                    self._timer[1].cancel()
                    self._timer = None

    def _hire(self) -> None:
        if self._group is not None:
            self._hands += 1
            self._group.create_task(self._work(), name=self.name)

    async def _work(self) -> None:
        try:
            done = 0
            while self._ready:
                key = self._ready.popleft()
                self._waiting.discard(key)
                self._running.add(key)
                try:
                    await self._do(key)
                finally:
                    self._running.discard(key)
                if key in self._again:
                    self._again.discard(key)
                    self.add(key)
                done += 1
                if done % TURN == 0:
                    await asyncio.sleep(0)
        finally:
            self._hands -= 1
            if self._quiet is not None and self.idle:
                self._quiet.set()

    async def _do(self, key: Key) -> None:
        try:
            await self._handle(key)
        except Exception as error:
            failures = self._failures[key] = self._failures.get(key, 0) + 1
            delay = min(LAST_RETRY, FIRST_RETRY * 2.0 ** min(failures - 1, 32))
            if isinstance(error, ApiError):
                log.warning("%s: %s failed (attempt %d): %s", self.name, key, failures, error)
                delay = max(delay, float(error.retry_after or 0))
            else:
                log.error("%s: %s failed (attempt %d)", self.name, key, failures, exc_info=error)
            self.add_at(key, self._clock.now() + delay)
        else:
            if self._failures:
                self._failures.pop(key, None)

    # --- time --------------------------------------------------------------------------------------

    def _arm(self) -> None:
        """Have the timer ring when the first key is due."""
        while self._heap and self._due.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)  # looked at since, or moved forward
        if not self._heap or self._group is None:
            return
        when = self._heap[0][0]
        if self._timer is not None:
            if self._timer[0] <= when:
                return
            self._timer[1].cancel()
        self._timer = (when, self._clock.call_later(max(0.0, when - self._clock.now()), self._ring))

    def _ring(self) -> None:
        self._timer = None
        now = self._clock.now()
        while self._heap and self._heap[0][0] <= now:
            when, key = heapq.heappop(self._heap)
            if self._due.get(key) == when:
                del self._due[key]
                self.add(key)
        self._arm()
