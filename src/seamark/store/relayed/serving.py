"""The process that has the store open: it announces every revision, and answers the calls of the others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence

from seamark.channel import Handler, Refused
from seamark.store.protocol import Batch, Page, Store, StoreError, Write
from seamark.store.relayed import messages
from seamark.store.relayed.board import Board
from seamark.store.wrapping import Wrapper


class AnnouncedStore(Wrapper):
    """A store that several processes use.  A revision is on the ``board`` before anything of it gets out of here."""

    def __init__(self, store: Store, board: Board) -> None:
        super().__init__(store)
        self.shared = True
        self._board = board

    async def open(self) -> None:
        await self.store.open()
        await self.revision()

    async def commit(self, writes: Sequence[Write]) -> int:
        return self._board.advance(await self.store.commit(writes))

    async def outcomes(self, transactions: Sequence[Sequence[Write]]) -> list[int | messages.Refusal]:
        """Commit each of them by itself, all at the same time."""
        # No task for each: the engine is given them all, and only then is the first one waited for.
        under_way = [self._begin(writes) for writes in transactions]
        try:
            return [await self._outcome(each) for each in under_way]
        finally:
            for each in under_way:  # if the asker is gone, it does not wait for the others either
                each.cancel()

    def _begin(self, writes: Sequence[Write]) -> asyncio.Future[int]:
        try:
            return asyncio.ensure_future(self.store.commit(writes))
        except (StoreError, ValueError) as error:
            refused: asyncio.Future[int] = asyncio.get_running_loop().create_future()
            refused.set_exception(error)
            return refused

    async def _outcome(self, commit: asyncio.Future[int]) -> int | messages.Refusal:
        try:
            return self._board.advance(await commit)
        except (StoreError, ValueError) as error:
            return messages.refusal(error)

    async def read(self, start: str, end: str, *, revision: int = 0, limit: int = 0) -> Page:
        page = await self.store.read(start, end, revision=revision, limit=limit)
        self._board.advance(page.revision)
        return page

    def latest(self) -> int:
        return self._board.revision

    async def revision(self) -> int:
        return self._board.advance(await self.store.revision())

    async def watch(self, prefix: str, since: int) -> AsyncIterator[Batch]:
        async for batch in self.store.watch(prefix, since):
            self._board.advance(batch.revision)
            yield batch


class StoreCalls(Handler):
    """Answers what :class:`~seamark.store.relayed.engine.RelayedStore` asks: a handler of a channel."""

    def __init__(self, store: AnnouncedStore) -> None:
        self._store = store

    async def answer(self, body: bytes) -> bytes:
        try:
            return messages.encode(await self._call(body))
        except (StoreError, ValueError) as error:
            raise Refused(messages.encode(messages.refusal(error))) from error

    async def _call(self, body: bytes) -> list[int | messages.Refusal] | Page | None:
        match messages.decode_call(body):
            case messages.Commits(transactions):
                return await self._store.outcomes(transactions)
            case messages.Read(start, end, revision, limit):
                return await self._store.read(start, end, revision=revision, limit=limit)
            case messages.Compact(revision):
                await self._store.compact(revision)
            case messages.Check():
                await self._store.check()
        return None

    async def series(self, body: bytes) -> AsyncGenerator[bytes, None]:
        asked = messages.decode_watch(body)
        try:
            async for batch in self._store.watch(asked.prefix, asked.since):
                yield messages.encode(batch)
        except StoreError as error:
            raise Refused(messages.encode(messages.refusal(error))) from error
