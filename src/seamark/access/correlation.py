"""Which events are worth telling, and how: counting repetitions, combining similar ones, stopping spam.

client-go's rules, without I/O:

- the same event again is not a new Event but a higher ``count`` of the first
- from the tenth different message of one kind about one object within ten minutes on, they are combined into one Event
- about one object 25 may be told at once, and one more every five minutes; beyond that they are only counted
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

import msgspec

from seamark.access.ratelimit import TokenBucket
from seamark.kinds.values.metadata import dns_subdomain

V = TypeVar("V")

REMEMBERED = 4096
SIMILAR = 10
INTERVAL = 600.0
BURST = 25
REFILL = 1 / 300
COMBINED = "(combined from similar events): "


class Reference(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """The object an event is about."""

    kind: str
    name: str
    namespace: str = ""
    uid: str = ""
    api_version: str = ""
    resource_version: str = ""
    field_path: str = ""

    @property
    def identity(self) -> Hashable:
        """The object, whatever its version and whichever part of it is meant."""
        return (self.kind, self.namespace, self.name, self.uid, self.api_version)


class Occurrence(msgspec.Struct, frozen=True):
    """Something happened; ``at`` is in seconds since the epoch."""

    about: Reference
    type: str
    reason: str
    message: str
    at: float


class Telling(msgspec.Struct, frozen=True):
    """How to tell it: as an Event of this name, with this count; above 1 it was told before."""

    occurrence: Occurrence
    name: str
    message: str
    count: int
    first: float


class _Similar(msgspec.Struct):
    messages: set[str]
    last: float


class _Told(msgspec.Struct):
    name: str
    first: float
    count: int


class _Recent(Generic[V]):
    """The most recently used few thousand of something."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._items: OrderedDict[Hashable, V] = OrderedDict()

    def get(self, key: Hashable) -> V | None:
        found = self._items.get(key)
        if found is not None:
            self._items.move_to_end(key)
        return found

    def put(self, key: Hashable, value: V) -> None:
        self._items[key] = value
        self._items.move_to_end(key)
        if len(self._items) > self._size:
            self._items.popitem(last=False)


class Correlator:
    """Remembers what was told; all events it is given are of one source."""

    def __init__(self, *, clock: Callable[[], float], remembered: int = REMEMBERED) -> None:
        self._clock = clock
        self._last_stamp = 0
        self._similar: _Recent[_Similar] = _Recent(remembered)
        self._told: _Recent[_Told] = _Recent(remembered)
        self._buckets: _Recent[TokenBucket] = _Recent(remembered)

    def consider(self, occurrence: Occurrence) -> Telling | None:
        """How to tell this; None for not at all."""
        key, message = self._combine(occurrence)
        told = self._told.get(key)
        if told is None:
            told = _Told(self._name(occurrence), occurrence.at, 0)
            self._told.put(key, told)
        told.count += 1
        if self._is_spam(occurrence):
            return None
        return Telling(occurrence, told.name, message, told.count, told.first)

    def _combine(self, occurrence: Occurrence) -> tuple[Hashable, str]:
        kind = (occurrence.about.identity, occurrence.type, occurrence.reason)
        similar = self._similar.get(kind)
        if similar is None or occurrence.at - similar.last > INTERVAL:
            similar = _Similar(set(), occurrence.at)
            self._similar.put(kind, similar)
        similar.messages.add(occurrence.message)
        similar.last = occurrence.at
        if len(similar.messages) < SIMILAR:
            return (kind, occurrence.about.field_path, occurrence.message), occurrence.message
        similar.messages.pop()
        return kind, COMBINED + occurrence.message

    def _name(self, occurrence: Occurrence) -> str:
        """A name nobody used: the object's and the time, which is pushed on if two would be the same."""
        self._last_stamp = max(int(occurrence.at * 1e9), self._last_stamp + 1)
        name = f"{occurrence.about.name}.{self._last_stamp:x}"
        return f"event.{self._last_stamp:x}" if dns_subdomain(name) else name

    def _is_spam(self, occurrence: Occurrence) -> bool:
        bucket = self._buckets.get(occurrence.about.identity)
        if bucket is None:
            bucket = TokenBucket(rate=REFILL, burst=BURST, clock=self._clock)
            self._buckets.put(occurrence.about.identity, bucket)
        return not bucket.take()
