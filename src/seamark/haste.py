"""What may take long: on the event loop it is given up soon, or not begun, and then done in a thread.

The thread shares the interpreter with the event loop, which goes on every few milliseconds.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from functools import partial
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

# A request with a body of so many bytes is worked on in a thread.  Of the bodies that are shorter, those with thousands
# of empty entries, each with many mistakes to tell, take longest: 0.1 s.  Most bodies have fewer entries, but longer
# texts, so in JSON the entries are counted up to a larger size.
LARGE = 16 * 1024
LARGE_WITH_FEW_ENTRIES = 128 * 1024
FEW_ENTRIES = 2500
# So is a write to a stored object of so many bytes.  It takes less for each, because what is stored has no mistakes.
LARGE_STORED = 64 * 1024
# And so is an answer in YAML, which takes three microseconds for each byte.
LARGE_YAML = 2 * 1024

# Whether rules are evaluated on the event loop, so that they may cost only a little.
hurried: ContextVar[bool] = ContextVar("hurried", default=False)

# How many more steps they may take; about a hundred are a microsecond.
_left: ContextVar[list[int] | None] = ContextVar("left", default=None)
STEPS_AT_ONCE = 1_000_000
STEPS_AT_LENGTH = 1_000_000_000

# A busy event loop releases the interpreter's lock only for moments that are too short for a thread to take it.  So
# while the thread is at work, the event loop stands still for a moment after each pause.
PAUSE_SECONDS = 0.01
STANDSTILL_SECONDS = 0.0003
# How long a thread rests after it has kept all others from running: a write takes several turns of the event loop.
REST_SECONDS = 0.01


def is_large(body: bytes) -> bool:
    """Whether a body may take long."""
    size = len(body)
    if size < LARGE:
        return False
    if size >= LARGE_WITH_FEW_ENTRIES or body[:1] != b"{":
        return True
    return body.count(b",") + body.count(b"{") + body.count(b"[") > FEW_ENTRIES


class Costly(Exception):
    """The rules cost more than they may on the event loop, or than they may at all."""


def allowance() -> list[int]:
    """What several things that are judged :func:`at_once` may take together."""
    return [STEPS_AT_ONCE]


def at_once(judge: Callable[[], T], left: list[int] | None = None) -> T:
    """What rules say, if they do not take long; raises :class:`Costly` if they do, or nothing is ``left``."""
    before = hurried.set(True)
    try:
        return _within(allowance() if left is None else left, judge)
    finally:
        hurried.reset(before)


def at_length(judge: Callable[[], T]) -> T:
    """What rules say that may take seconds, but not minutes; raises :class:`Costly` if they do."""
    return _within([STEPS_AT_LENGTH], judge)


def _within(steps: list[int], judge: Callable[[], T]) -> T:
    left = _left.set(steps)
    try:
        return judge()
    finally:
        _left.reset(left)


def left_at_once() -> list[int] | None:
    """How many steps are left on the event loop; None if that is not where rules are judged."""
    return _left.get() if hurried.get() else None


def spend(steps: int) -> None:
    """Called before work of about so many steps; raises :class:`Costly` if they are too many."""
    left = _left.get()
    if left is not None:
        left[0] -= steps
        if left[0] <= 0:
            raise Costly


def rest(steps: int) -> None:
    """Called after work of about so many steps during which no other thread could run; as :func:`spend` otherwise."""
    spend(steps)
    if steps >= STEPS_AT_ONCE and _left.get() is not None:
        time.sleep(REST_SECONDS)


class Patience:
    """Does what takes long in a thread, one thing at a time: the event loop gets half of the time at least."""

    def __init__(self) -> None:
        self._one = asyncio.Lock()
        # One thread of its own: what was begun for a client that is gone is finished before the next is begun.
        self._thread = ThreadPoolExecutor(1, "patience")

    async def hear(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        async with self._one:
            loop = asyncio.get_running_loop()
            doing = loop.run_in_executor(self._thread, partial(work, *args, **kwargs))
            try:
                while not (await asyncio.wait([doing], timeout=PAUSE_SECONDS))[0]:
                    time.sleep(STANDSTILL_SECONDS)  # noqa: ASYNC251  # the event loop itself is to stand still
                return doing.result()
            finally:
                doing.cancel()
                del doing  # an error that it holds would otherwise hold it, and all that was worked on
