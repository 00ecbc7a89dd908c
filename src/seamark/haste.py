"""Rules that may take long: on the event loop they are given up soon, and then evaluated in a thread.

The thread shares the interpreter with the event loop, which goes on every few milliseconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")

# Whether rules are evaluated on the event loop, so that they may cost only a little.
hurried: ContextVar[bool] = ContextVar("hurried", default=False)


# How many more steps they may take there; about a hundred are a microsecond.
_left: ContextVar[list[int] | None] = ContextVar("left", default=None)
STEPS_AT_ONCE = 1_000_000


class Costly(Exception):
    """The rules cost more than they may on the event loop."""


def at_once(judge: Callable[[], T]) -> T:
    """What rules say, if they do not take long; raises :class:`Costly` if they do."""
    before, left = hurried.set(True), _left.set([STEPS_AT_ONCE])
    try:
        return judge()
    finally:
        hurried.reset(before)
        _left.reset(left)


def spend(steps: int) -> None:
    """Called before work of about so many steps; raises :class:`Costly` if it has to be done in a thread."""
    left = _left.get()
    if left is not None:
        left[0] -= steps
        if left[0] <= 0:
            raise Costly


class Patience:
    """Evaluates rules in a thread, one object's at a time: the event loop gets half of the time at least."""

    def __init__(self) -> None:
        self._one = asyncio.Lock()

    async def hear(self, judge: Callable[[], T]) -> T:
        async with self._one:
            return await asyncio.to_thread(judge)
