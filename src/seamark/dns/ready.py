"""Answers kept as bytes under the bytes of their question, until a fact they rest on changes.

The key is the whole query without its two octets of identity: name with its spelling, type, flags and EDNS, so that a
repeated question needs no parsing at all.  What a change touched is dropped at once and nothing else is; there is no
time after which an answer would be looked at again, because none can be wrong.

An answer is kept when it is asked for a second time.  What is asked once (a flood of random names, a resolver that
spells every question another way) costs no memory and pushes nothing out that is asked often.

Negative answers carry the zone's serial, which moves with every change anywhere.  They are kept apart and have it
brought up to date when they are used.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from seamark.dns.zone.state import SERIAL, ClusterZone, Fact
from seamark.metrics import Value

# A query that is longer than a name, a question and ordinary EDNS can be is not worth remembering.
_LONGEST_KEY = 400
_LONGEST_KEPT = 64 * 1024


class Ready:
    """One question's answer without the identity; with several addresses, one form per address that comes first.

    ``hits`` chooses the form and is what the metrics are made from: the hot path adds one and does nothing else.
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
        """Hand the hits since the last time to the series they belong to."""
        self.series.add(self.hits - self.counted)
        self.counted = self.hits


class ReadyAnswers:
    """The answers of one transport, bounded in number and bytes; the oldest go first."""

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
        """A kept negative answer, with today's serial."""
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
        """Whether the answer to this question should be kept: it has been asked before, lately."""
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
        """Remember an answer in all its forms; ``serial_at`` says where in it the serial stands."""
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
        """Drop every answer that rests on one of these facts."""
        for fact in touched:
            keys = self._by_fact.get(fact)
            if keys:
                for key in list(keys):
                    self._drop(key)

    def clear(self) -> None:
        for key in [*self.plain, *self._dated]:
            self._drop(key)

    def settle(self) -> None:
        """Bring the series up to date with the hits."""
        for shelf in (self.plain, self._dated):
            for entry in shelf.values():
                entry.settle()

    def _shrink(self, shelf: dict[bytes, Ready]) -> None:
        """Drop the oldest eighth at once: a dict emptied from its front entry by entry is searched longer each time."""
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
