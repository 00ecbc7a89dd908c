"""Work of many clients, or of very many steps: each client has its turn, so that none keeps the others waiting."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable

# Seconds of such work after which the event loop looks at all connections again.
TURN = 0.002


# Steps of a task, of a few microseconds each, after which others have their turn.
STEPS = 500


class Steps:
    """Work of one task that may have very many steps."""

    def __init__(self) -> None:
        self._taken = 0

    async def take(self, count: int) -> None:
        """Called with each so many steps."""
        self._taken += count
        if self._taken >= STEPS:
            self._taken = 0
            await asyncio.sleep(0)


class Turns:
    """Work of many connections: each has its turn, and all only a short time in one turn of the event loop."""

    def __init__(self, *, now: Callable[[], float] = time.perf_counter) -> None:
        self._now = now
        self._ready: deque[Callable[[], None]] = deque()
        self._next: asyncio.Handle | None = None

    def add(self, work: Callable[[], None]) -> None:
        """Have a short piece of work done."""
        self._ready.append(work)
        if self._next is None:
            self._next = asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        until = self._now() + TURN
        try:
            for _ in range(len(self._ready)):  # who comes back has its next piece in the next turn
                self._ready.popleft()()
                if self._now() >= until:
                    break
        finally:
            self._next = asyncio.get_running_loop().call_soon(self._turn) if self._ready else None
