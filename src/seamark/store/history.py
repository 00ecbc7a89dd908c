"""How long history is kept: a window of time, of revisions, or both, and the loop that forgets what leaves it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable

from seamark.store.protocol import Store, StoreError

logger = logging.getLogger(__name__)

SAMPLES_PER_WINDOW = 10  # history is kept for the window and at most a tenth longer
LONGEST_PAUSE = 30.0


class Window:
    """Which history may be forgotten.

    What happened within the last ``seconds`` stays; but never more than ``revisions`` of them, if that is given.
    """

    def __init__(self, *, seconds: float | None, revisions: int | None = None) -> None:
        self._seconds = seconds
        self._revisions = revisions
        self._samples: deque[tuple[float, int]] = deque()

    @property
    def pause(self) -> float:
        """How long to wait between two looks."""
        return LONGEST_PAUSE if self._seconds is None else min(self._seconds / SAMPLES_PER_WINDOW, LONGEST_PAUSE)

    def oldest(self, *, now: float, revision: int) -> int:
        """The revision from which on history must be kept, given that ``revision`` is the current one."""
        oldest = 0
        if self._seconds is not None:
            self._samples.append((now, revision))
            while len(self._samples) > 1 and self._samples[1][0] <= now - self._seconds:
                self._samples.popleft()
            taken, then = self._samples[0]
            if taken <= now - self._seconds:
                oldest = then
        if self._revisions is not None:
            oldest = max(oldest, revision - self._revisions)
        return oldest


async def keep(
    store: Store,
    window: Window,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
) -> None:
    """Compact ``store`` as its history leaves the window, until cancelled."""
    compacted = 0
    while True:
        try:
            oldest = window.oldest(now=clock(), revision=await store.revision())
            if oldest > compacted:
                await store.compact(oldest)
                compacted = oldest
        except StoreError as error:  # it can wait: history kept too long harms nobody
            logger.warning("history is not compacted for now: %s", error)
        await sleep(window.pause)
