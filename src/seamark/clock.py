"""The time and timers: components ask a :class:`Clock`, so that tests can set the time."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Protocol


class Cancellable(Protocol):
    def cancel(self) -> object: ...


class Clock(Protocol):
    """The two kinds of time, named as in the standard library, and two ways to wait."""

    def time(self) -> float:
        """Seconds since the epoch: for times that are written to objects or read from them."""
        ...

    def monotonic(self) -> float:
        """Seconds since some fixed moment, never decreasing: for durations."""
        ...

    def call_later(self, delay: float, call: Callable[[], None]) -> Cancellable:
        """Have the event loop call ``call`` after ``delay`` seconds."""
        ...

    async def sleep(self, seconds: float) -> None: ...


def doubling(first: float, longest: float, doubled: int) -> float:
    """A delay of ``first`` seconds, doubled so many times, but not longer than ``longest``."""
    # 2.0 ** 1024 overflows; long before that the longest delay is reached.
    return min(longest, first * 2.0 ** min(doubled, 64))


def in_event_loop() -> bool:
    """Whether an event loop runs this code; if asyncio was never imported, none can."""
    asyncio = sys.modules.get("asyncio")
    try:
        return asyncio is not None and asyncio.get_running_loop() is not None
    except RuntimeError:
        return False


class SystemClock:
    """The clocks of the machine and of the event loop."""

    # Requests ask for the time more than once: no call of Python's own between.
    monotonic = staticmethod(time.monotonic)
    time = staticmethod(time.time)

    def call_later(self, delay: float, call: Callable[[], None]) -> Cancellable:
        import asyncio

        return asyncio.get_running_loop().call_later(delay, call)

    async def sleep(self, seconds: float) -> None:
        if in_event_loop():
            import asyncio

            await asyncio.sleep(seconds)
        else:
            time.sleep(seconds)  # noqa: ASYNC251  # there is no event loop that it could stop


SYSTEM_CLOCK = SystemClock()
