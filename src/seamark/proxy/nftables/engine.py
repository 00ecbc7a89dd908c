"""The nftables engine: keeps what it last wrote, and sends what differs as one transaction."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections import Counter
from collections.abc import Iterable

from seamark.linux.netlink import Message, NetlinkError
from seamark.proxy.engine import Unsupported, Update
from seamark.proxy.nftables import layout
from seamark.proxy.nftables.conntrack import Flows
from seamark.proxy.nftables.elements import Hairpin, Picking, Wanted, wanted
from seamark.proxy.nftables.kernel import Kernel
from seamark.proxy.nftables.ruleset import Ruleset, delete_table, difference
from seamark.rules.routing.surroundings import Surroundings

log = logging.getLogger(__name__)

_FAMILIES = tuple(layout.NUMBER.values())
_LARGE = 256  # messages; a transaction of more is sent from a thread, so that the process answers meanwhile


class NftablesEngine:
    """Writes routes into two tables of its own; other tables are left alone.

    The tables stay when the process ends.  The next one reads them, changes what differs and nothing else, so no
    packet ever finds half of the rules.
    """

    def __init__(
        self,
        *,
        masquerade_bit: int = layout.MASQUERADE_BIT,
        sockets: tuple[socket.socket, socket.socket] | None = None,
    ) -> None:
        """``sockets`` to netfilter, for rules and for flows, are given if they are those of another namespace."""
        self._bit = masquerade_bit
        self._kernel: Kernel | None = None
        self._sockets = sockets or (None, None)
        self._flows = Flows(self._sockets[1])
        self._wanted: dict[str, Wanted] = {}
        self._around: Surroundings | None = None
        self._hairpins: Counter[Hairpin] = Counter()
        self._pickings: set[Picking] = set()
        self._certain = False  # whether the kernel has what we think it has
        self._generation = 0

    @property
    def kernel(self) -> Kernel:
        assert self._kernel is not None, "start() comes first"
        return self._kernel

    @property
    def rules(self) -> int:
        return sum(len(each.own) for each in self._wanted.values()) + len(self._hairpins)

    async def start(self) -> None:
        try:
            self._kernel = Kernel(layout.TABLE, self._sockets[0])
            self._kernel.tables()
            self._flows.start()
        except (OSError, NetlinkError) as error:
            raise _unsupported(error) from error

    async def close(self) -> None:
        if self._kernel is not None:
            self._kernel.close()
            self._kernel = None
        await self._flows.close()

    async def apply(self, update: Update) -> None:
        """With nothing to change, only look whether another program has changed our tables, and repair that."""
        if update.surroundings != self._around or update.everything:
            self._certain = False
        if not update.routes and self._certain:
            self._certain = self.kernel.generation() == self._generation
            if self._certain:
                return
        before = {key: self._wanted[key] for key in update.routes if key in self._wanted}
        if update.everything:
            before = self._wanted
            self._wanted = {}
        after = {key: wanted(routes) for key, routes in update.routes.items() if routes is not None}
        for key in before.keys() - after.keys():
            self._wanted.pop(key, None)
        self._wanted.update(after)
        self._around = update.surroundings
        arrived, left, pickings = self._shared(before.values(), after.values())
        if self._certain:
            messages = difference(layout.TABLE, *self._touched(before, after, arrived, left, pickings))
            await self._send(messages)
        else:
            await self._write_everything()
        self._flows.changed(update)

    # --- one change ----------------------------------------------------------------------------------

    def _shared(
        self, before: Iterable[Wanted], after: Iterable[Wanted]
    ) -> tuple[set[Hairpin], set[Hairpin], set[Picking]]:
        """Count who needs what is shared: which hairpins come and go, and which chains are new."""
        counts: Counter[Hairpin] = Counter()
        pickings: set[Picking] = set()
        for each in after:
            counts.update(each.hairpins)
            pickings |= each.pickings
        for each in before:
            counts.subtract(each.hairpins)
        arrived, left = set(), set()
        for hairpin, change in counts.items():
            if change:
                had = self._hairpins[hairpin]
                self._hairpins[hairpin] = had + change
                if not had:
                    arrived.add(hairpin)
                elif not had + change:
                    left.add(hairpin)
                    del self._hairpins[hairpin]
        pickings -= self._pickings
        self._pickings |= pickings
        return arrived, left, pickings

    def _touched(
        self,
        before: dict[str, Wanted],
        after: dict[str, Wanted],
        arrived: set[Hairpin],
        left: set[Hairpin],
        pickings: set[Picking],
    ) -> tuple[Ruleset, Ruleset]:
        """The parts of the tables that a change touches, as they were and as they shall be."""
        old, new = _nothing(), _nothing()
        for each in before.values():
            old.add(each.own)
        for each in after.values():
            new.add(each.own)
        for picking in pickings:
            new.add(layout.picking(*picking))
        for rules, hairpins in ((old, left), (new, arrived)):
            for family, key in hairpins:
                rules.elements.setdefault((family, "hairpin"), {})[key] = b""
        return old, new

    async def _send(self, messages: list[Message]) -> None:
        self._certain = False
        if len(messages) > _LARGE:
            await asyncio.to_thread(self.kernel.carry_out, messages)
        else:
            self.kernel.carry_out(messages)
        self._certain = True
        self._generation = self.kernel.generation()

    # --- everything ----------------------------------------------------------------------------------

    async def _write_everything(self) -> None:
        """Read what is there, and change what differs; if that is refused, make the tables anew."""
        goal = self._goal()
        self._pickings = self._needed()
        there = await asyncio.to_thread(self.kernel.read)
        messages = difference(layout.TABLE, there, goal)
        if messages and there.tables:
            log.info("the tables differ: %d messages to the kernel", len(messages))
        try:
            await self._send(messages)
        except NetlinkError as error:
            if not there.tables:
                raise
            log.warning("the tables cannot be changed (%s): making them anew", error)
            removed = [delete_table(layout.TABLE, family) for family in there.tables]
            await self._send(removed + difference(layout.TABLE, Ruleset(), goal))

    def _needed(self) -> set[Picking]:
        return {picking for each in self._wanted.values() for picking in each.pickings}

    def _goal(self) -> Ruleset:
        assert self._around is not None
        goal = Ruleset()
        for family in _FAMILIES:
            goal.add(layout.skeleton(family, self._around, self._bit))
        for each in self._wanted.values():
            goal.add(each.own)
        for picking in self._needed():
            goal.add(layout.picking(*picking))
        for family, key in self._hairpins:
            goal.elements.setdefault((family, "hairpin"), {})[key] = b""
        return goal


def _nothing() -> Ruleset:
    """No change: both tables with their fixed sets."""
    return Ruleset(set(_FAMILIES), dict(layout.SETS))


def remove_tables() -> bool:
    """Remove our tables; whether there were any.  Raises ``Unsupported`` if this user may not."""
    try:
        kernel = Kernel(layout.TABLE)
        try:
            found = kernel.tables()
            kernel.carry_out([delete_table(layout.TABLE, family) for family in found])
            return bool(found)
        finally:
            kernel.close()
    except (OSError, NetlinkError) as error:
        raise _unsupported(error) from error


def _unsupported(error: OSError | NetlinkError) -> Unsupported:
    number = error.number if isinstance(error, NetlinkError) else error.errno
    if number in (errno.EPERM, errno.EACCES):
        return Unsupported(
            "nftables needs the capability CAP_NET_ADMIN: run it as root (it also proxies with --proxy-mode userspace)"
        )
    if number in (errno.EPROTONOSUPPORT, errno.EAFNOSUPPORT, errno.EINVAL, errno.EOPNOTSUPP):
        return Unsupported("this kernel has no nftables (module nf_tables): use --proxy-mode userspace")
    return Unsupported(f"nftables cannot be used: {error}")
