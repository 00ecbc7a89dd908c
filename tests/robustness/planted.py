"""Bugs put into a store or a cache on purpose, to show that the suite finds them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec
from in_process import Lagging, Servers

from seamark.api.state.cache import PORTS_PREFIX, Watcher
from seamark.api.state.entries import Entry, prefix_of
from seamark.kinds.resource import CONFIGMAPS, IP_ADDRESSES
from seamark.store.protocol import Write

RARELY = 0.05
Everybody = Callable[[Entry], Iterator[Watcher]]


class LosesWrites(Lagging):
    """Acknowledges a write now and then that it puts where nobody reads."""

    async def commit(self, writes: Sequence[Write]) -> int:
        if len(writes) == 1 and writes[0].key.startswith(prefix_of(CONFIGMAPS)) and self.chance.random() < RARELY:
            writes = [msgspec.structs.replace(writes[0], key="/lost" + writes[0].key, expect=None)]
        return await self.store.commit(writes)


class ReadsStale(Lagging):
    """Says that no other server writes, so that its server reads its memory without asking how old it is."""

    shared = False


class AllocatesTwice(Lagging):
    """Takes an address or a node port without a look whether another Service holds it."""

    async def commit(self, writes: Sequence[Write]) -> int:
        reserved = (PORTS_PREFIX, prefix_of(IP_ADDRESSES))
        return await self.store.commit(
            [msgspec.structs.replace(w, expect=None) if w.key.startswith(reserved) else w for w in writes]
        )


def skip_events(site: Servers) -> None:
    """Let every cache forget now and then to tell a watcher of a change."""
    _tell(site, lambda: 0 if site.chance.random() < RARELY else 1)


def repeat_events(site: Servers) -> None:
    """Let every cache tell a watcher now and then of a change twice."""
    _tell(site, lambda: 2 if site.chance.random() < RARELY else 1)


def _tell(site: Servers, times: Callable[[], int]) -> None:
    """Let every cache offer each change so many times to each watcher."""
    for server in site.servers:
        collection = server.cache.of(CONFIGMAPS)

        def interested(entry: Entry, everybody: Everybody = collection.interested) -> Iterator[Watcher]:
            for watcher in everybody(entry):
                yield from [watcher] * times()

        collection.interested = interested  # type: ignore[method-assign]
