"""How a process that runs for days treats its memory: it looks for garbage seldom, and gives back what was freed."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from functools import cache
from typing import Any


def settle() -> None:
    """Call it once everything is loaded.

    Few of our objects are cyclic, and what is loaded by now stays; looking at it again and again took a fourteenth of
    the time of a write.
    """
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)
    if _give_back not in gc.callbacks:
        gc.callbacks.append(_give_back)
    gc.enable()
    if (trim := _trim()) is not None:
        trim(0)  # what the start has freed: with 15,000 Pods 7 % of all memory


class _GivingBack:
    """After a collection of more than the newest objects, return freed memory to the kernel.

    The C library keeps the pages between those in use: under changes they are a fifth of all memory.  Python calls
    this after so much work, so an idle process does nothing.  It takes milliseconds, in a process of a gigabyte a
    hundred of them, so it is done again only after ``REST`` times as long.
    """

    REST = 200

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._not_before = 0.0

    def __call__(self, phase: str, info: dict[str, int]) -> None:
        began = self._now()
        if phase == "stop" and info["generation"] > 0 and began >= self._not_before and (trim := _trim()) is not None:
            trim(0)
            self._not_before = began + self.REST * (self._now() - began)


_give_back = _GivingBack()


@cache
def _trim() -> Callable[[int], Any] | None:
    """``malloc_trim`` of the GNU C library; None where there is another one."""
    import ctypes

    return getattr(ctypes.CDLL(None), "malloc_trim", None)
