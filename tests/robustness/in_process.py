"""Two API servers in this process over one store, each following it at its own pace: fast, and open to planted bugs."""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
from collections.abc import AsyncIterator, Sequence

from clients import NAMESPACE, NODE_PORTS, RANGE

from seamark.access.cluster import Cluster
from seamark.api import bootstrap
from seamark.api.server import ApiServer
from seamark.api.settings import ServiceNetwork
from seamark.channel import Channel
from seamark.clock import SYSTEM_CLOCK, Clock, SystemClock
from seamark.kinds.resource import NAMESPACES
from seamark.metrics import Registry
from seamark.store.protocol import Batch, Store, Unavailable, Write
from seamark.store.relayed import AnnouncedStore, Board, RelayedStore, StoreCalls
from seamark.store.wrapping import Wrapper

NETWORK = ServiceNetwork(ranges=(RANGE,), node_ports=NODE_PORTS)
LONGEST_LAG = 40  # turns of the event loop


class Late(Wrapper):
    """One server's way to a store it shares with others: it hears of changes some turns late."""

    shared = True

    def __init__(self, store: Store, chance: random.Random) -> None:
        self.store = store
        self.chance = chance

    async def watch(self, prefix: str, since: int) -> AsyncIterator[Batch]:
        async for batch in self.store.watch(prefix, since):
            for _ in range(self.chance.randrange(LONGEST_LAG)):
                await asyncio.sleep(0)
            yield batch


class Lagging(Late):
    """Now and then it cannot tell the store's revision without waiting, as if it had to ask over a network."""

    def latest(self) -> int | None:
        return self.store.latest() if self.chance.random() < 0.5 else None


class Faltering(Lagging):
    """A way to the store that breaks now and then, before a commit or after it."""

    async def commit(self, writes: Sequence[Write]) -> int:
        fate = self.chance.random()
        if fate < 0.05:
            raise Unavailable("broken before the commit")
        revision = await self.store.commit(writes)
        if fate < 0.1:
            raise Unavailable("broken after the commit")
        return revision


class JumpingClock(SystemClock):
    """The machine's clock as if it were set again and again, days ahead or back."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._offset = 0.0

    def time(self) -> float:
        if self._chance.random() < 0.1:
            self._offset = self._chance.uniform(-1e6, 1e6)
        return super().time() + self._offset


class Servers:
    """A site (see :class:`clients.Site`) of API servers in this process."""

    def __init__(self, servers: Sequence[ApiServer], chance: random.Random) -> None:
        self.clusters: Sequence[Cluster] = [server.cluster("robust") for server in servers]
        self.chance = chance

    def cluster(self) -> Cluster:
        return self.chance.choice(self.clusters)

    async def reachable(self) -> None:
        await asyncio.sleep(0)


@contextlib.asynccontextmanager
async def servers(
    store: Store, views: Sequence[Store], chance: random.Random, clock: Clock = SYSTEM_CLOCK
) -> AsyncIterator[Servers]:
    """A server for each view of the store."""
    await store.open()
    await _prepare(store)
    made = [ApiServer(view, network=NETWORK, tokens={}, metrics=Registry(), clock=clock) for view in views]
    following = []
    try:
        for server in made:
            await server.load()
            following.append(asyncio.create_task(server.follow()))
        yield Servers(made, chance)
    finally:
        for task in following:
            task.cancel()
        await asyncio.gather(*following, return_exceptions=True)
        await store.close()


@contextlib.asynccontextmanager
async def relayed(announced: AnnouncedStore, board: Board) -> AsyncIterator[RelayedStore]:
    """The store as a worker has it: the main process is asked over a socket, and how far it is, is on the board."""
    ours, theirs = socket.socketpair()
    asking, answering = await Channel.over(ours, {}), await Channel.over(theirs, {"store": StoreCalls(announced)})
    store = RelayedStore(asking, board)
    await store.open()
    try:
        yield store
    finally:
        await store.close()
        await answering.close()
        await asking.close()


async def _prepare(store: Store) -> None:
    """Make what the clients need, by a server that goes again."""
    server = ApiServer(store, network=NETWORK, tokens={}, metrics=Registry())
    await server.load()
    following = asyncio.create_task(server.follow())
    await bootstrap.make_ranges(server.cluster("bootstrap"), NETWORK)
    await server.cluster("bootstrap").create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)
