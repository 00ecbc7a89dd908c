"""Bugs put into a store or a server on purpose, to show that the suite finds them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import msgspec
from in_process import Lagging, Servers

from seamark.access.cluster import Change, Cluster
from seamark.api.state.cache import PORTS_PREFIX
from seamark.api.state.entries import prefix_of
from seamark.errors import Object
from seamark.kinds.resource import CONFIGMAPS, IP_ADDRESSES, Resource
from seamark.store.protocol import Write

RARELY = 0.05


class LosesWrites(Lagging):
    """Acknowledges a write now and then that it puts where no reader looks."""

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


class Telling:
    """A server whose watches tell each change so many times; all else is as it was."""

    def __init__(self, cluster: Cluster, times: Callable[[], int]) -> None:
        self._cluster, self._times = cluster, times

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)

    async def watch(self, resource: Resource, **options: Any) -> AsyncIterator[Change[Object]]:
        async for change in self._cluster.watch(resource, **options):
            for _ in range(1 if change.type == "BOOKMARK" else self._times()):
                yield change


def skip_events(site: Servers) -> None:
    """Let every server forget now and then to tell a watcher of a change."""
    site.clusters = [Telling(each, lambda: 0 if site.chance.random() < RARELY else 1) for each in site.clusters]


def repeat_events(site: Servers) -> None:
    """Let every server tell a watcher now and then of a change twice."""
    site.clusters = [Telling(each, lambda: 2 if site.chance.random() < RARELY else 1) for each in site.clusters]
