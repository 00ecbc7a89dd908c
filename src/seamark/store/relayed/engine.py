"""The ``Store`` protocol over a channel to the process that has the store open."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple
from weakref import WeakSet

from seamark.channel import Channel, Lost, Refused, Series
from seamark.store.protocol import Batch, Page, StoreError, Unavailable, Uncertain, Write, check_writes
from seamark.store.relayed import messages
from seamark.store.relayed.board import Board

TOPIC = "store"
GONE = "the process that has the store open is gone"


class _Commit(NamedTuple):
    """One transaction, and the future of its revision."""

    writes: Sequence[Write]
    answer: asyncio.Future[int]


class RelayedStore:
    """A store that is open in another process.  The current revision is read from ``board``, which both share."""

    shared = True

    def __init__(self, channel: Channel, board: Board) -> None:
        self._channel = channel
        self._board = board
        self._opened = False
        self._gathered: list[_Commit] = []  # the commits of this turn of the event loop, which are sent together
        self._under_way: set[asyncio.Task[None]] = set()
        self._watches: WeakSet[RelayedWatch] = WeakSet()

    async def open(self) -> None:
        if self._opened:
            raise StoreError("the store is open already")
        self._opened = True

    async def close(self) -> None:
        self._opened = False
        if self._gathered:
            self._send()
        await asyncio.gather(*self._under_way)
        for watch in list(self._watches):
            watch.end()

    def commit(self, writes: Sequence[Write]) -> asyncio.Future[int]:
        check_writes(writes)
        self._require_open()
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[int] = loop.create_future()
        if not self._gathered:
            loop.call_soon(self._send)
        self._gathered.append(_Commit(writes, answer))
        return answer

    def _send(self) -> None:
        if self._gathered:
            sending = asyncio.get_running_loop().create_task(self._commit(self._gathered))
            self._under_way.add(sending)
            sending.add_done_callback(self._under_way.discard)
            self._gathered = []

    async def _commit(self, commits: list[_Commit]) -> None:
        call = messages.encode(messages.Commits([commit.writes for commit in commits]))
        outcomes: Sequence[int | Exception]
        try:
            outcomes = messages.decode_outcomes(await self._channel.ask(TOPIC, call))
        except Lost:
            outcomes = [Uncertain(GONE) for _ in commits]
        except Exception as error:  # a defect of the other process, which has logged it
            outcomes = [Uncertain(str(error)) for _ in commits]
        for commit, outcome in zip(commits, outcomes, strict=True):
            if commit.answer.done():
                continue  # its caller waits no longer
            if isinstance(outcome, int):
                commit.answer.set_result(outcome)
            else:
                commit.answer.set_exception(outcome)

    async def read(self, start: str, end: str, *, revision: int = 0, limit: int = 0) -> Page:
        return messages.decode_page(await self._ask(messages.Read(start, end, revision, limit)))

    def latest(self) -> int:
        return self._board.revision

    async def revision(self) -> int:
        self._require_open()
        return self._board.revision

    def watch(self, prefix: str, since: int) -> AsyncIterator[Batch]:
        self._require_open()
        watch = RelayedWatch(self._channel, messages.Watch(prefix, since))
        self._watches.add(watch)
        return watch

    async def check(self) -> None:
        await self._ask(messages.Check())

    async def compact(self, revision: int) -> None:
        await self._ask(messages.Compact(revision))

    async def _ask(self, call: messages.Read | messages.Check | messages.Compact) -> bytes:
        self._require_open()
        try:
            return await self._channel.ask(TOPIC, messages.encode(call))
        except Refused as refused:
            raise messages.decode_error(refused.body) from None
        except Lost as lost:
            raise Unavailable(GONE) from lost

    def _require_open(self) -> None:
        if not self._opened:
            raise Unavailable("the store is not open")
        if self._channel.closed.is_set():
            raise Unavailable(GONE)


class RelayedWatch(AsyncIterator[Batch]):
    """One reader's position in the log, which the other process keeps.  One task at a time may read it."""

    def __init__(self, channel: Channel, asked: messages.Watch) -> None:
        self._channel = channel
        self._asked = asked
        self._series: Series | None = None
        self._ended = False

    async def __anext__(self) -> Batch:
        if self._ended:
            raise StopAsyncIteration
        try:
            if self._series is None:
                self._series = self._channel.follow(TOPIC, messages.encode(self._asked))
            return messages.decode_batch(await anext(self._series))
        except Refused as refused:
            raise messages.decode_error(refused.body) from None
        except Lost as lost:
            raise Unavailable(GONE) from lost

    def end(self) -> None:
        self._ended = True
        if self._series is not None:
            self._series.end()

    async def aclose(self) -> None:
        self.end()
