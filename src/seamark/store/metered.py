"""A wrapper around a store that measures its use for ``/metrics``, and knows whether it works, for ``/readyz``."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Sequence

from seamark.clock import SYSTEM_CLOCK, Clock
from seamark.metrics import Registry
from seamark.store.protocol import Batch, Mismatch, Page, Store, StoreError, Unavailable, Write
from seamark.store.wrapping import Wrapper

log = logging.getLogger(__name__)

CHECK_SECONDS = 1.0  # between two checks of a store that is away
SLOW_SECONDS = 2.0  # a commit takes milliseconds, so a user who waits for this long wants to know why
SLOW_PAUSE = 60.0  # between two lines about it
BATCH_BUCKETS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)


class MeteredStore(Wrapper):
    """Counts commits by outcome, their latency, and the size of each watch batch.

    ``trouble`` is what the last failed call said about a store that is away.  Only :meth:`mend` clears it, so a
    successful call costs nothing, and a store without callers is found to work again, too.
    """

    def __init__(self, store: Store, metrics: Registry, *, clock: Clock = SYSTEM_CLOCK) -> None:
        super().__init__(store)
        self._clock = clock
        self.trouble: str | None = None
        self._troubled = asyncio.Event()
        self._slow_next = 0.0  # when slow commits may be told again
        name, about, labels = "seamark_store_commits_total", "Transactions by what became of them.", ("result",)
        self._done = metrics.counter(name, about, "committed", labels=labels)
        self._lost = metrics.counter(name, about, "mismatch", labels=labels)
        self._failed = metrics.counter(name, about, "failed", labels=labels)
        self._seconds = metrics.histogram("seamark_store_commit_seconds", "Time until a commit is durable.")
        self._batches = metrics.histogram(
            "seamark_store_batch_changes", "Changes delivered together.", buckets=BATCH_BUCKETS
        )

    async def commit(self, writes: Sequence[Write]) -> int:
        began = time.perf_counter()
        try:
            revision = await self.store.commit(writes)
        except Mismatch:
            self._lost.add()
            raise
        except StoreError as error:
            self._failed.add()
            self._note(error)
            raise
        self._done.add()
        seconds = time.perf_counter() - began
        self._seconds.observe(seconds)
        if seconds > SLOW_SECONDS:
            self._tell_slow(seconds)
        return revision

    def _tell_slow(self, seconds: float) -> None:
        now = self._clock.monotonic()
        if now >= self._slow_next:
            self._slow_next = now + SLOW_PAUSE
            log.warning("the store is slow: a write took %.1f seconds to become durable", seconds)

    async def read(self, start: str, end: str, *, revision: int = 0, limit: int = 0) -> Page:
        try:
            return await self.store.read(start, end, revision=revision, limit=limit)
        except Unavailable as error:
            self._note(error)
            raise

    async def revision(self) -> int:
        try:
            return await self.store.revision()
        except Unavailable as error:
            self._note(error)
            raise

    async def watch(self, prefix: str, since: int) -> AsyncIterator[Batch]:
        async for batch in self.store.watch(prefix, since):
            self._batches.observe(len(batch.changes))
            yield batch

    # --- health ------------------------------------------------------------------------------------

    def _note(self, error: StoreError) -> None:
        if isinstance(error, Unavailable):
            if self.trouble is None:
                log.warning("the store is away: %s", error)
            self.trouble = str(error)
            self._troubled.set()

    async def mend(self) -> None:
        """Whenever the store is away, check until it works again; runs until cancelled."""
        while True:
            await self._troubled.wait()
            with contextlib.suppress(StoreError):
                await self.store.check()
                log.warning("the store works again")
                self.trouble = None
                self._troubled.clear()
                continue
            await self._clock.sleep(CHECK_SECONDS)
