"""A cache of complete replies by the bytes of their query, until a fact they depend on changes.

The key is the whole query without its two octets of id: the name as spelled, type, flags and EDNS.  So a repeated query
needs no parsing.  A change of the zone drops exactly the replies that depend on it.  Replies do not expire, because
they stay right until then.

A reply is kept when its query comes for the second time.  Queries that come once (a flood of random names, a resolver
that varies upper and lower case) therefore take no memory and push nothing out.

Negative replies contain the zone's serial, which changes with every change of the zone.  They are kept apart, and the
serial in them is updated when they are used.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from seamark.dns.zone.state import SERIAL, ClusterZone, Fact
from seamark.metrics import Value

# Longer than a header, a question and ordinary EDNS together; longer queries are not cached.
_LONGEST_KEY = 400
_LONGEST_KEPT = 64 * 1024


class Ready:
    """The reply to one query, without the id.  With several addresses there are forms with different first addresses.

    ``hits`` selects the form and feeds the metrics: adding one to it is all that the hot path does.
    """

    __slots__ = ("counted", "facts", "forms", "hits", "serial", "serial_at", "series", "size", "spread")

    def __init__(self, forms: Sequence[bytes], facts: frozenset[Fact], series: Value) -> None:
        self.forms = list(forms)
        self.spread = len(forms)
        self.facts = facts
        self.series = series
        self.hits = 0
        self.counted = 0
        self.size = sum(map(len, forms))
        self.serial = 0
        self.serial_at = 0

    def settle(self) -> None:
        """Add the hits since the last call to their metric."""
        self.series.add(self.hits - self.counted)
        self.counted = self.hits


class ReadyAnswers:
    """The replies of one transport, limited in number and bytes; the oldest are dropped first."""

    def __init__(self, zone: ClusterZone, *, entries: int, octets: int) -> None:
        self.plain: dict[bytes, Ready] = {}  # read directly by the hot path
        self._dated: dict[bytes, Ready] = {}
        self._zone = zone
        self._entries = entries
        self._octets = octets
        self._held = 0
        self._by_fact: dict[Fact, set[bytes]] = {}
        self._asked_once: set[int] = set()

    def __len__(self) -> int:
        return len(self.plain) + len(self._dated)

    def negative(self, key: bytes) -> bytes | None:
        """The kept negative reply with the current serial, or None."""
        entry = self._dated.get(key)
        if entry is None:
            return None
        entry.hits += 1
        serial = self._zone.serial
        form = entry.forms[0]
        if entry.serial != serial:
            at = entry.serial_at
            form = entry.forms[0] = form[:at] + serial.to_bytes(4, "big") + form[at + 4 :]
            entry.serial = serial
        return form

    def wants(self, key: bytes) -> bool:
        """Whether the reply to this query should be kept: the same query came before, recently."""
        if len(key) > _LONGEST_KEY:
            return False
        mark = hash(key)
        if mark in self._asked_once:
            self._asked_once.discard(mark)
            return True
        if len(self._asked_once) >= self._entries:
            self._asked_once.clear()
        self._asked_once.add(mark)
        return False

    def keep(
        self,
        key: bytes,
        forms: Sequence[bytes],
        facts: Iterable[Fact],
        series: Value,
        *,
        serial_at: int | None = None,
    ) -> None:
        """Keep a reply in all its forms; ``serial_at`` is the offset of the serial in a negative reply."""
        entry = Ready(forms, frozenset(facts) - {SERIAL}, series)
        if entry.size > _LONGEST_KEPT:
            return
        self._drop(key)
        if serial_at is None:
            shelf = self.plain
        else:
            shelf = self._dated
            entry.serial, entry.serial_at = self._zone.serial, serial_at
        shelf[key] = entry
        self._held += entry.size + len(key)
        for fact in entry.facts:
            self._by_fact.setdefault(fact, set()).add(key)
        if len(shelf) > self._entries:
            self._shrink(shelf)
        while self._held > self._octets:
            self._shrink(max(self.plain, self._dated, key=len))

    def forget(self, touched: Iterable[Fact]) -> None:
        """Drop every reply that depends on one of these facts."""
        for fact in touched:
            keys = self._by_fact.get(fact)
            if keys:
                for key in list(keys):
                    self._drop(key)

    def clear(self) -> None:
        for key in [*self.plain, *self._dated]:
            self._drop(key)

    def settle(self) -> None:
        """Add the hits of all replies to the metrics."""
        for shelf in (self.plain, self._dated):
            for entry in shelf.values():
                entry.settle()

    def _shrink(self, shelf: dict[bytes, Ready]) -> None:
        """Drop the oldest eighth at once: finding a dict's first key takes longer with each key removed before it."""
        for key in list(islice(shelf, max(1, len(shelf) // 8))):
            self._drop(key)

    def _drop(self, key: bytes) -> None:
        entry = self.plain.pop(key, None) or self._dated.pop(key, None)
        if entry is None:
            return
        entry.settle()
        self._held -= entry.size + len(key)
        for fact in entry.facts:
            keys = self._by_fact[fact]
            keys.discard(key)
            if not keys:
                del self._by_fact[fact]
