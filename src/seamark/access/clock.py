"""Time, so that tests can hold it in their hands: what it is now, and something to be done later."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Protocol


class Cancellable(Protocol):
    def cancel(self) -> object: ...


class Clock(Protocol):
    def now(self) -> float:
        """Seconds, since whenever whoever asks for a clock says."""
        ...

    def call_later(self, delay: float, call: Callable[[], None]) -> Cancellable: ...


class _LoopClock:
    """What is to be done later, the event loop does."""

    def call_later(self, delay: float, call: Callable[[], None]) -> Cancellable:
        return asyncio.get_running_loop().call_later(delay, call)


class SteadyClock(_LoopClock):
    """For durations: it never goes back."""

    def now(self) -> float:
        return time.monotonic()


class WallClock(_LoopClock):
    """For moments that are written down: seconds since the epoch."""

    def now(self) -> float:
        return time.time()
