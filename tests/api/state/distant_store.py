"""A store that other servers share and that can go away: a real one behind a connection that is cut when told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from seamark.store.opening import open_store
from seamark.store.protocol import Batch, Page, Unavailable, Uncertain, Write
from seamark.store.wrapping import Wrapper


class DistantStore(Wrapper):
    """``behind`` is the store itself, as another server sees it; the attributes below say how it fails."""

    def __init__(self) -> None:
        self.behind = open_store("memory:?history=none")
        super().__init__(self.behind)
        self.shared = True
        self.calls_fail = False
        self.answers_are_lost = False
        self._watches_fail = asyncio.Event()

    def go_away(self) -> None:
        self.calls_fail = True
        self.cut_watches()

    def cut_watches(self) -> None:
        self._watches_fail.set()

    def come_back(self) -> None:
        self.calls_fail = False
        self._watches_fail.clear()

    def _call(self) -> None:
        if self.calls_fail:
            raise Unavailable("no connection")

    async def commit(self, writes: Sequence[Write]) -> int:
        self._call()
        revision = await self.behind.commit(writes)
        if self.answers_are_lost:
            raise Uncertain("the connection broke")
        return revision

    async def read(self, start: str, end: str, *, revision: int = 0, limit: int = 0) -> Page:
        self._call()
        return await self.behind.read(start, end, revision=revision, limit=limit)

    def latest(self) -> None:
        return None

    async def revision(self) -> int:
        self._call()
        return await self.behind.revision()

    async def check(self) -> None:
        self._call()

    async def compact(self, revision: int) -> None:
        self._call()
        await self.behind.compact(revision)

    async def watch(self, prefix: str, since: int) -> AsyncIterator[Batch]:
        watch = self.behind.watch(prefix, since)
        cut = asyncio.ensure_future(self._watches_fail.wait())
        try:
            while not cut.done():
                coming = asyncio.ensure_future(anext(watch, None))
                await asyncio.wait({coming, cut}, return_when=asyncio.FIRST_COMPLETED)
                if cut.done():
                    coming.cancel()
                    await asyncio.gather(coming, return_exceptions=True)
                elif (batch := await coming) is None:
                    return
                else:
                    yield batch
            raise Unavailable("the watch was cut")
        finally:
            cut.cancel()
