"""Repairs the reservations of node ports: each port that a Service uses is reserved, and no other.

Services and reservations are written in one transaction, so they differ only after a store was restored or edited by
hand.  All are compared every few minutes, in small steps.  A reservation that no Service uses is removed when it has
been seen unused three times.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable, Mapping
from itertools import islice

import msgspec

from seamark.access.correlation import Reference
from seamark.access.events import EventRecorder
from seamark.api.allocation.reserve import port_reservation
from seamark.api.state.cache import PORTS_PREFIX, Cache
from seamark.clock import SYSTEM_CLOCK, Clock
from seamark.kinds.resource import SERVICES
from seamark.rules.objects.service import Service
from seamark.store.protocol import Mismatch, Store, StoreError, Write

log = logging.getLogger(__name__)

INTERVAL_SECONDS = 180.0
ROUNDS_BEFORE_FREED = 3

# Services looked at in one turn of the event loop.
STEP = 500


class Findings(msgspec.Struct, frozen=True):
    """What is wrong: ports used without reservation, by several, or outside the range; reservations without use."""

    missing: tuple[tuple[int, Service], ...] = ()
    doubled: tuple[tuple[int, Service], ...] = ()
    outside: tuple[tuple[int, Service], ...] = ()
    unused: frozenset[int] = frozenset()


def examine(users: Iterable[Service], reserved: Mapping[int, int], bounds: tuple[int, int]) -> Findings:
    """Compare what Services use with what is reserved (port → revision of the reservation)."""
    missing, doubled, outside = [], [], []
    seen: set[int] = set()
    for user in users:
        for port in user.node_ports:
            if not bounds[0] <= port <= bounds[1]:
                outside.append((port, user))
            elif port in seen:
                doubled.append((port, user))
            elif port not in reserved:
                missing.append((port, user))
            seen.add(port)
    return Findings(tuple(missing), tuple(doubled), tuple(outside), frozenset(reserved) - seen)


_decoder = msgspec.json.Decoder(Service)


class PortRepair:
    """Compares all node ports with their reservations every few minutes."""

    def __init__(
        self,
        cache: Cache,
        store: Store,
        bounds: tuple[int, int],
        recorder: EventRecorder,
        *,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._cache = cache
        self._store = store
        self._bounds = bounds
        self._recorder = recorder
        self._clock = clock
        self._unused: dict[int, tuple[int, int]] = {}  # port → revision of its reservation, how often it was unused

    async def run(self) -> None:
        """Look every few minutes, until cancelled."""
        while True:
            try:
                await self.look()
            except StoreError as error:
                log.warning("node ports could not be checked: %s", error)
            await self._clock.sleep(INTERVAL_SECONDS)

    async def look(self) -> None:
        """Look at everything once; repair what can be repaired, and record events about the rest."""
        users = [user async for user in self._users()]
        found = examine(users, dict(self._cache.ports), self._bounds)
        for port, user in found.missing:
            await self._reserve(port, user)
        for port, user in found.doubled:
            self._tell(
                user, "PortAlreadyAllocated", f"Port {port} was assigned to multiple services; please recreate service"
            )
        for port, user in found.outside:
            bounds = f"{self._bounds[0]}-{self._bounds[1]}"
            self._tell(
                user, "PortOutOfRange", f"Port {port} is not within the port range {bounds}; please recreate service"
            )
        await self._free(found.unused)

    async def _users(self) -> AsyncIterator[Service]:
        """Every Service with node ports; others may change Services between two steps."""
        entries = self._cache.of(SERVICES).entries
        after = ""
        while True:
            page = list(islice(entries.irange(after, None, (False, True)), STEP))
            for path in page:
                user = _decoder.decode(b"{" + entries[path].tail)
                if user.node_ports:
                    yield user
            if len(page) < STEP:
                return
            after = page[-1]
            await asyncio.sleep(0)

    async def _reserve(self, port: int, user: Service) -> None:
        meta = user.metadata
        entry = self._cache.of(SERVICES).entries.get(f"{meta.namespace}/{meta.name}")
        if entry is None or port not in _decoder.decode(b"{" + entry.tail).node_ports:
            return  # it has changed meanwhile
        try:
            await self._store.commit([port_reservation(port, meta.namespace, meta.name)])
        except Mismatch:
            return  # reserved meanwhile
        self._tell(user, "PortNotAllocated", f"Port {port} is not allocated; repairing")

    async def _free(self, unused: frozenset[int]) -> None:
        """Remove reservations that have been unused, and the same, for several looks."""
        looks: dict[int, tuple[int, int]] = {}
        for port in unused:
            revision = self._cache.ports.get(port)
            if revision is None:
                continue
            before = self._unused.get(port)
            count = before[1] + 1 if before is not None and before[0] == revision else 1
            if count < ROUNDS_BEFORE_FREED:
                looks[port] = (revision, count)
                continue
            try:
                await self._store.commit([Write(f"{PORTS_PREFIX}{port}", None, revision)])
            except Mismatch:
                continue  # reserved again meanwhile
            log.warning("node port %d was reserved, but no Service uses it: it is free again", port)
        self._unused = looks

    def _tell(self, user: Service, reason: str, message: str) -> None:
        self._recorder.record(Reference.of(SERVICES, user.metadata), "Warning", reason=reason, message=message)
