"""The workers of one controller: they take keys from its queue and handle them.

There are as many workers as keys to handle, up to a limit.  An idle controller has no tasks.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from seamark.errors import ApiError, Conflict
from seamark.runtime.queue import Key, Queue

log = logging.getLogger(__name__)

# A key that conflicts this many times in a row is logged.
MANY_CONFLICTS = 5

# After this many keys handled without waiting for anything, a worker lets other tasks run.
TURN = 100


class Again(Exception):
    """Raised to have the key handled again ``after`` so many seconds, although nothing is wrong."""

    def __init__(self, after: float, why: str = "") -> None:
        super().__init__(why or f"again in {after:g} s")
        self.after = after


class Expected(Exception):
    """Base of the errors that a controller expects: logged in one line, without a traceback."""


class Workers:
    """Up to ``limit`` tasks that call ``handle`` with each key of a queue."""

    def __init__(self, name: str, queue: Queue, handle: Callable[[Key], Awaitable[None]], *, limit: int) -> None:
        self._name = name
        self._queue = queue
        self._handle = handle
        self._limit = limit
        self._group: asyncio.TaskGroup | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._quiet: asyncio.Event | None = None  # created when a task first waits for it
        queue.wake = self._hire

    def start(self, group: asyncio.TaskGroup) -> None:
        """Start handling keys, in tasks of this group."""
        self._group = group
        for _ in range(min(self._limit, len(self._queue))):
            self._hire()

    async def stop(self, grace: float) -> None:
        """Take no more keys, and give those that are being handled ``grace`` seconds to finish."""
        self._group = None
        self._queue.close()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=grace)

    async def quiet(self) -> None:
        """Return once no key waits or is being handled."""
        while not self._queue.idle:
            if self._quiet is None:
                self._quiet = asyncio.Event()
            self._quiet.clear()
            await self._quiet.wait()

    def _hire(self) -> None:
        if self._group is not None and len(self._tasks) < self._limit:
            self._tasks.add(self._group.create_task(self._work(), name=self._name))

    async def _work(self) -> None:
        try:
            handled = 0
            while self._group is not None and (key := self._queue.take()) is not None:
                await self._attempt(key)
                handled += 1
                if handled % TURN == 0:
                    await asyncio.sleep(0)
        finally:
            task = asyncio.current_task()
            assert task is not None
            self._tasks.discard(task)
            if self._quiet is not None and self._queue.idle:
                self._quiet.set()

    async def _attempt(self, key: Key) -> None:
        try:
            await self._handle(key)
        except Again as again:
            self._queue.again(key, again.after)
        except Exception as error:
            self._complain(key, error)
            retry_after = error.retry_after if isinstance(error, ApiError) else None
            self._queue.failed(key, at_least=float(retry_after or 0))
        else:
            self._queue.done(key)

    def _complain(self, key: Key, error: Exception) -> None:
        attempt = self._queue.failures(key) + 1
        if isinstance(error, ApiError | Expected):
            # Informers are always a little behind, so occasional conflicts are normal.
            outrun = isinstance(error, Conflict) and attempt < MANY_CONFLICTS
            level = logging.DEBUG if outrun else logging.WARNING
            log.log(level, "%s: %s failed (attempt %d): %s", self._name, key, attempt, error)
        else:
            log.error("%s: %s failed (attempt %d)", self._name, key, attempt, exc_info=error)
