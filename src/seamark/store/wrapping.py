"""A store around another one, which differs from it in a few calls."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Sequence

from seamark.store.protocol import Batch, Page, Store, Write


class Wrapper:
    """Delegates every call of the ``Store`` protocol.  Wrappers derive from it, so that none lacks a new call."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.shared = store.shared

    async def open(self) -> None:
        await self.store.open()

    async def close(self) -> None:
        await self.store.close()

    def commit(self, writes: Sequence[Write]) -> Awaitable[int]:
        return self.store.commit(writes)

    async def read(self, start: str, end: str, *, revision: int = 0, limit: int = 0) -> Page:
        return await self.store.read(start, end, revision=revision, limit=limit)

    async def revision(self) -> int:
        return await self.store.revision()

    def latest(self) -> int | None:
        return self.store.latest()

    def watch(self, prefix: str, since: int) -> AsyncIterator[Batch]:
        return self.store.watch(prefix, since)

    async def check(self) -> None:
        await self.store.check()

    async def compact(self, revision: int) -> None:
        await self.store.compact(revision)
