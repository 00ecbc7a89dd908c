"""Compaction: the window of time for which history is kept, and the loop that removes older history."""

from __future__ import annotations

import logging
from collections import deque

from seamark.clock import SYSTEM_CLOCK, Clock
from seamark.store.protocol import Store, StoreError

logger = logging.getLogger(__name__)

SAMPLES_PER_WINDOW = 10  # history is kept for the window and at most a tenth longer
LONGEST_PAUSE = 30.0


class Window:
    """Decides which history may be compacted: revisions of the last ``seconds`` are kept."""

    def __init__(self, *, seconds: float) -> None:
        self._seconds = seconds
        self._samples: deque[tuple[float, int]] = deque()

    @property
    def pause(self) -> float:
        """How many seconds to wait between two calls of :meth:`oldest`."""
        return min(self._seconds / SAMPLES_PER_WINDOW, LONGEST_PAUSE)

    def oldest(self, *, now: float, revision: int) -> int:
        """The oldest revision that must be kept; ``revision`` is the current one."""
        self._samples.append((now, revision))
        while len(self._samples) > 1 and self._samples[1][0] <= now - self._seconds:
            self._samples.popleft()
        taken, then = self._samples[0]
        return then if taken <= now - self._seconds else 0


async def keep(store: Store, window: Window, *, clock: Clock = SYSTEM_CLOCK) -> None:
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
