"""What the contract does not say about a relayed store: the other process ends, and the board is never behind."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator

import pytest

from seamark.channel import Channel
from seamark.store.opening import open_store
from seamark.store.protocol import Compacted, Future, Mismatch, StoreError, Unavailable, Uncertain, Write
from seamark.store.relayed import AnnouncedStore, Board, RelayedStore, StoreCalls
from seamark.store.relayed.messages import decode_error, encode_error


class Held(AnnouncedStore):
    """A store whose commits wait until they may go on."""

    def __init__(self, board: Board) -> None:
        super().__init__(open_store("memory:"), board)
        self.asked, self.go_on = asyncio.Event(), asyncio.Event()

    async def commit(self, writes):  # type: ignore[no-untyped-def]
        self.asked.set()
        await self.go_on.wait()
        return await super().commit(writes)


Ends = tuple[RelayedStore, Held, Channel]


@pytest.fixture
async def ends() -> AsyncIterator[Ends]:
    board = Board()
    behind = Held(board)
    await behind.open()
    ours, theirs = socket.socketpair()
    asking, answering = await Channel.over(ours, {}), await Channel.over(theirs, {"store": StoreCalls(behind)})
    store = RelayedStore(asking, board)
    await store.open()
    yield store, behind, answering
    behind.go_on.set()
    await store.close()
    await answering.close()
    await asking.close()
    await behind.close()


async def test_when_the_other_process_ends_a_write_is_uncertain_and_the_rest_unavailable(ends: Ends) -> None:
    store, behind, answering = ends
    watch = store.watch("/", store.latest())
    waiting = asyncio.ensure_future(anext(watch))
    writing = asyncio.create_task(store.commit([Write("/a", b"1")]))
    await behind.asked.wait()
    await answering.close()
    with pytest.raises(Uncertain):
        await writing
    with pytest.raises(Unavailable):
        await waiting
    for call in (store.commit([Write("/a", b"1")]), store.read("/", "0"), store.revision(), store.check()):
        with pytest.raises(Unavailable):
            await call


async def test_closing_waits_for_the_writes_under_way(ends: Ends) -> None:
    store, behind, _ = ends
    writing = asyncio.create_task(store.commit([Write("/a", b"1")]))
    await behind.asked.wait()
    closing = asyncio.create_task(store.close())
    await asyncio.sleep(0)
    assert not closing.done()
    behind.go_on.set()
    assert await writing == store.latest()
    await closing


async def test_the_board_has_a_revision_before_anything_of_it_gets_out(ends: Ends) -> None:
    store, behind, _ = ends
    behind.go_on.set()
    watch = behind.watch("/", store.latest())
    revision = await behind.store.commit([Write("/a", b"1")])  # not announced by the commit
    assert store.latest() < revision
    assert (await anext(watch)).revision == revision == store.latest()
    revision = await behind.store.commit([Write("/a", b"2")])
    assert (await store.read("/a", "")).revision == revision == store.latest()


class Peculiar(Unavailable):
    """An error of one engine."""


@pytest.mark.parametrize(
    ("error", "arrives"),
    [
        (Mismatch("/a", 3), Mismatch),
        (Compacted(3, 5), Compacted),
        (Future(7, 5), Future),
        (Uncertain("lost"), Uncertain),
        (Peculiar("away"), Unavailable),
        (StoreError("broken"), StoreError),
        (ValueError("bad key"), ValueError),
    ],
)
def test_errors_arrive_as_the_protocols(error: StoreError | ValueError, arrives: type[Exception]) -> None:
    arrived = decode_error(encode_error(error))
    assert (type(arrived), str(arrived)) == (arrives, str(error))
