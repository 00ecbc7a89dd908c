"""Compaction: the window of time or revisions for which history is kept, and the loop that removes older history."""

from __future__ import annotations

import logging
from collections import deque

from seamark.clock import SYSTEM_CLOCK, Clock
from seamark.store.protocol import Store, StoreError

logger = logging.getLogger(__name__)

SAMPLES_PER_WINDOW = 10  # history is kept for the window and at most a tenth longer
LONGEST_PAUSE = 30.0


class Window:
    """Decides which history may be compacted.

    Revisions of the last ``seconds`` are kept, but at most ``revisions`` of them.  None means no limit.
    """

    def __init__(self, *, seconds: float | None, revisions: int | None = None) -> None:
        self._seconds = seconds
        self._revisions = revisions
        self._samples: deque[tuple[float, int]] = deque()

    @property
    def pause(self) -> float:
        """How many seconds to wait between two calls of :meth:`oldest`."""
        return LONGEST_PAUSE if self._seconds is None else min(self._seconds / SAMPLES_PER_WINDOW, LONGEST_PAUSE)

    def oldest(self, *, now: float, revision: int) -> int:
        """The oldest revision that must be kept; ``revision`` is the current one."""
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
    clock: Clock = SYSTEM_CLOCK,
) -> None:
    """Compact ``store`` as its history leaves the window, until cancelled."""
    compacted = 0
    while True:
        try:
            oldest = window.oldest(now=clock.monotonic(), revision=await store.revision())
            if oldest > compacted:
                await store.compact(oldest)
                compacted = oldest
        except StoreError as error:  # history kept too long does no harm; the next round tries again
            logger.warning("history is not compacted for now: %s", error)
        await clock.sleep(window.pause)
