"""How a process that runs for days treats its memory: it looks for garbage seldom, and gives back what was freed."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable
from functools import cache
from typing import Any

PAUSE = 60.0  # seconds between two looks at whether there is something to give back
WORK = 2.0  # seconds of CPU time that make it worthwhile
REST = 200  # times as long as it took, it is not done again


def settle() -> None:
    """Call it once everything is loaded.

    Few of our objects are cyclic, and what is loaded by now stays; looking at it again and again took a fourteenth of
    the time of a write.
    """
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)
    gc.enable()
    if (trim := _trim()) is not None:
        trim(0)  # what the start has freed: with 15,000 Pods 7 % of all memory
        if all(thread.name != "memory" for thread in threading.enumerate()):
            threading.Thread(target=give_back, args=(trim,), name="memory", daemon=True).start()


def give_back(
    trim: Callable[[int], Any],
    *,
    sleep: Callable[[float], None] = time.sleep,
    now: Callable[[], float] = time.monotonic,
    worked: Callable[[], float] = time.process_time,
) -> None:
    """Return freed memory to the kernel each minute, unless the process was idle; runs until the process ends.

    The C library keeps the pages between those in use: under changes they are a fifth of all memory.  Giving them back
    takes milliseconds, in a process of a gigabyte a hundred of them.  It does not follow Python's own collections:
    where as many objects go as come, there are none.
    """
    pause, before = PAUSE, worked()
    while True:
        sleep(pause)
        if worked() - before >= WORK:
            began = now()
            trim(0)
            pause, before = max(PAUSE, REST * (now() - began)), worked()


@cache
def _trim() -> Callable[[int], Any] | None:
    """``malloc_trim`` of the GNU C library; None where there is another one."""
    import ctypes

    return getattr(ctypes.CDLL(None), "malloc_trim", None)
