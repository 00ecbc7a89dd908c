"""What the contract does not say about a relayed store: the other process ends, and the board is never behind."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Sequence

import pytest

from seamark.channel import Channel
from seamark.store.opening import open_store
from seamark.store.protocol import Compacted, Future, Mismatch, StoreError, Unavailable, Uncertain, Write
from seamark.store.relayed import AnnouncedStore, Board, RelayedStore, StoreCalls
from seamark.store.relayed.messages import decode_error, encode, refusal
from seamark.store.wrapping import Wrapper


class Held(Wrapper):
    """A store whose commits wait until they may go on."""

    def __init__(self) -> None:
        super().__init__(open_store("memory:"))
        self.asked, self.go_on = asyncio.Event(), asyncio.Event()
        self.held = 0

    async def commit(self, writes: Sequence[Write]) -> int:
        self.asked.set()
        self.held += 1
        try:
            await self.go_on.wait()
        finally:
            self.held -= 1
        return await self.store.commit(writes)


Ends = tuple[RelayedStore, Held, Channel]


@pytest.fixture
async def ends() -> AsyncIterator[Ends]:
    board = Board()
    behind = Held()
    announced = AnnouncedStore(behind, board)
    await announced.open()
    ours, theirs = socket.socketpair()
    asking, answering = await Channel.over(ours, {}), await Channel.over(theirs, {"store": StoreCalls(announced)})
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
    writing = asyncio.ensure_future(store.commit([Write("/a", b"1")]))
    await behind.asked.wait()
    await answering.close()
    with pytest.raises(Uncertain):
        await writing
    with pytest.raises(Unavailable):
        await waiting
    for call in (lambda: store.commit([Write("/a", b"1")]), lambda: store.read("/", "0"), store.revision, store.check):
        with pytest.raises(Unavailable):
            await call()


async def test_closing_waits_for_the_writes_under_way(ends: Ends) -> None:
    store, behind, _ = ends
    writing = asyncio.ensure_future(store.commit([Write("/a", b"1")]))
    await behind.asked.wait()
    closing = asyncio.create_task(store.close())
    await asyncio.sleep(0)
    assert not closing.done()
    behind.go_on.set()
    assert await writing == store.latest()
    await closing


async def test_commits_of_one_turn_go_together_and_each_has_its_own_outcome(
    ends: Ends, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, behind, _ = ends
    behind.go_on.set()
    asked: list[bytes] = []
    ask = store._channel.ask

    async def count(topic: str, body: bytes) -> bytes:
        asked.append(body)
        return await ask(topic, body)

    monkeypatch.setattr(store._channel, "ask", count)
    keys = ("/a", "/b", "/a", "/c")
    first, second, third, last = await asyncio.gather(
        *(store.commit([Write(key, b"1", 0)]) for key in keys), return_exceptions=True
    )
    assert isinstance(first, int)
    assert isinstance(third, Mismatch)
    assert (second, third.found, last) == (first + 1, first, first + 2)
    assert store.latest() == last
    assert len(asked) == 1


async def test_commits_whose_asker_is_gone_are_waited_for_no_longer(ends: Ends) -> None:
    store, behind, answering = ends
    writing = [store.commit([Write(key, b"1", 0)]) for key in ("/a", "/b")]
    while behind.held < 2:
        await asyncio.sleep(0)
    await answering.close()
    for outcome in await asyncio.gather(*writing, return_exceptions=True):
        assert isinstance(outcome, Uncertain)
    while behind.held:
        await asyncio.sleep(0)


async def test_a_commit_that_the_store_refuses_at_once_has_its_outcome_too(ends: Ends) -> None:
    store, behind, _ = ends
    behind.go_on.set()
    await behind.store.close()
    with pytest.raises(Unavailable, match="not open"):
        await store.commit([Write("/a", b"1")])


async def test_the_board_has_a_revision_before_anything_of_it_gets_out(ends: Ends) -> None:
    store, behind, _ = ends
    announced = AnnouncedStore(behind, store._board)
    behind.go_on.set()
    watch = announced.watch("/", store.latest())
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
    arrived = decode_error(encode(refusal(error)))
    assert (type(arrived), str(arrived)) == (arrives, str(error))
