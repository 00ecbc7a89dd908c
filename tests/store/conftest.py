"""The engines that the contract is tested with."""

from __future__ import annotations

import itertools
import socket
import uuid
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from seamark.channel import Channel
from seamark.store.protocol import Store
from seamark.store.relayed import AnnouncedStore, Board, RelayedStore, StoreCalls
from seamark.store.sqlite import SqliteStore

FOREVER = 1e6  # seconds

# Calling a place gives a store there, not yet opened; calling it again gives another one of the same state.
Place = Callable[[], Store]


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """An etcd may take as long to answer as a busy machine makes it, unless a test sets its patience."""
    from seamark.store.etcd import EtcdStore, connection

    monkeypatch.setattr(connection, "ATTEMPT_SECONDS", FOREVER)
    monkeypatch.setitem(EtcdStore.__init__.__kwdefaults__, "patience", FOREVER)


class OverChannel(RelayedStore):
    """An engine at one end of a channel, together with the store at the other end."""

    def __init__(self, behind: Store) -> None:
        self.board = Board()
        self.behind = AnnouncedStore(behind, self.board)
        self.ends: list[Channel] = []

    async def open(self) -> None:
        if not self.ends:
            ours, theirs = socket.socketpair()
            self.ends = [
                await Channel.over(ours, {}),
                await Channel.over(theirs, {"store": StoreCalls(self.behind)}),
            ]
            super().__init__(self.ends[0], self.board)
        await super().open()
        await self.behind.open()

    async def close(self) -> None:
        if self.ends:
            await super().close()
            await self.behind.close()
            for end in self.ends:
                await end.close()


@pytest.fixture(params=["sqlite", "etcd", "relayed"])
def new_place(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Place]:
    """Makes empty places for stores; the tests run once per engine."""
    numbers = itertools.count()

    def file() -> Place:
        path = tmp_path / f"store-{next(numbers)}.db"
        return lambda: SqliteStore(path, durable=False, history_seconds=None)

    def prefix() -> Place:
        from seamark.store.etcd import EtcdStore

        addresses = request.getfixturevalue("etcd").addresses
        name = f"/{request.node.name}/{uuid.uuid4()}"
        return lambda: EtcdStore(addresses, prefix=name)

    def relayed() -> Place:
        behind = file()
        return lambda: OverChannel(behind())

    return {"sqlite": file, "etcd": prefix, "relayed": relayed}[request.param]


@pytest.fixture
async def store(new_place: Callable[[], Place]) -> AsyncIterator[Store]:
    store = new_place()()
    await store.open()
    yield store
    await store.close()
