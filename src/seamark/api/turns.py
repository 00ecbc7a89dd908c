"""Writers of one object take turns, so that the second begins with the first one's result instead of a conflict.

This only saves retries within one process.  What keeps writes safe is the store's compare-and-set.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable
from types import TracebackType
from typing import TypeVar

from seamark.kinds.admission import Notes

T = TypeVar("T")

Lines = dict[tuple[str, ...], deque[asyncio.Future[None]]]


class Turns:
    """Waiting lines by key; a key that is held without waiters costs one dictionary entry."""

    def __init__(self) -> None:
        self._lines: Lines = {}

    def take(self, *key: str) -> Turn:
        return Turn(self._lines, key)


class Turn:
    """``async with``: only one task at a time is inside with this key.

    A task that has to wait for something else may :meth:`leave` meanwhile, and :meth:`enter` again.
    """

    __slots__ = ("_held", "_key", "_lines")

    def __init__(self, lines: Lines, key: tuple[str, ...]) -> None:
        self._lines, self._key, self._held = lines, key, False

    async def __aenter__(self) -> Turn:
        await self.enter()
        return self

    async def enter(self) -> None:
        line = self._lines.get(self._key)
        if line is None:
            self._lines[self._key] = deque()
            self._held = True
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        line.append(future)
        try:
            await future
        except asyncio.CancelledError:
            # If the turn was given just as this waiter was cancelled, it is passed on.  Otherwise the cancelled future
            # stays in the line, unless ``_next`` has taken it out already, which passes it over.
            if not future.cancelled():
                self._next()
            raise
        self._held = True

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.leave()

    def leave(self) -> None:
        """Let the next one in."""
        if self._held:
            self._held = False
            self._next()

    def _next(self) -> None:
        line = self._lines[self._key]
        while line:
            future = line.popleft()
            if not future.done():
                future.set_result(None)
                return
        del self._lines[self._key]


async def aside(notes: Notes | None, later: Awaitable[T], *held: Turn) -> T:
    """Wait for an outsider's answer.  Meanwhile others use the seat, and write the same object."""
    seats = notes.seats if notes is not None else None
    if seats is not None:
        seats.leave()
    for turn in held:
        turn.leave()
    try:
        return await later
    finally:
        if seats is not None:
            seats.enter()
        for turn in held:
            await turn.enter()
