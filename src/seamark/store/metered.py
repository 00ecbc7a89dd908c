"""A wrapper around a store that measures its use for ``/metrics``."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence

from seamark.metrics import Registry
from seamark.store.protocol import Batch, Mismatch, Page, Store, StoreError, Write

BATCH_BUCKETS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)


class MeteredStore:
    """Delegates every call; counts commits by outcome, their latency, and the size of each watch batch."""

    def __init__(self, store: Store, metrics: Registry) -> None:
        self._store = store
        self.shared = store.shared
        name, about, labels = "seamark_store_commits_total", "Transactions by what became of them.", ("result",)
        self._done = metrics.counter(name, about, "committed", labels=labels)
        self._lost = metrics.counter(name, about, "mismatch", labels=labels)
        self._failed = metrics.counter(name, about, "failed", labels=labels)
        self._seconds = metrics.histogram("seamark_store_commit_seconds", "Time until a commit is durable.")
        self._batches = metrics.histogram(
            "seamark_store_batch_changes", "Changes delivered together.", buckets=BATCH_BUCKETS
        )

    async def open(self) -> None:
        await self._store.open()

    async def close(self) -> None:
        await self._store.close()

    async def commit(self, writes: Sequence[Write]) -> int:
        began = time.perf_counter()
        try:
            revision = await self._store.commit(writes)
        except Mismatch:
            self._lost.add()
            raise
        except StoreError:
            self._failed.add()
            raise
        self._done.add()
        self._seconds.observe(time.perf_counter() - began)
        return revision

    async def read(self, start: str, end: str, *, revision: int = 0, limit: int = 0) -> Page:
        return await self._store.read(start, end, revision=revision, limit=limit)

    async def revision(self) -> int:
        return await self._store.revision()

    async def watch(self, prefix: str, since: int) -> AsyncIterator[Batch]:
        async for batch in self._store.watch(prefix, since):
            self._batches.observe(len(batch.changes))
            yield batch

    async def compact(self, revision: int) -> None:
        await self._store.compact(revision)
