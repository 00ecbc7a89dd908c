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


class Costly(Exception):
    """The rules cost more than they may on the event loop."""


def at_once(judge: Callable[[], T]) -> T:
    """What rules say, if they do not take long; raises :class:`Costly` if they do."""
    before = hurried.set(True)
    try:
        return judge()
    finally:
        hurried.reset(before)


class Patience:
    """Evaluates rules in a thread, one object's at a time: the event loop gets half of the time at least."""

    def __init__(self) -> None:
        self._one = asyncio.Lock()

    async def hear(self, judge: Callable[[], T]) -> T:
        async with self._one:
            return await asyncio.to_thread(judge)
