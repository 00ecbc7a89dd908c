"""Decides which occurrences are written as Events: counts repetitions, combines similar ones, drops spam.

These are client-go's rules, without I/O:

- a repeated event raises the ``count`` of the first Event instead of creating another
- from the tenth different message with the same object, type and reason on, they are combined into one Event, unless
  ten minutes pass without one
- each object may have 25 Events at once and one more every five minutes; beyond that, occurrences are only counted
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

import msgspec

from seamark.access.ratelimit import TokenBucket
from seamark.clock import Clock
from seamark.kinds.resource import Resource
from seamark.kinds.values.metadata import dns_subdomain
from seamark.rules.objects.metadata import Metadata

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

    @classmethod
    def of(cls, resource: Resource, metadata: Metadata) -> Reference:
        """A reference to the object of that resource with this metadata."""
        return cls(
            kind=resource.kind,
            name=metadata.name,
            namespace=metadata.namespace,
            uid=metadata.uid,
            api_version=resource.api_version,
            resource_version=metadata.resource_version,
        )

    @property
    def identity(self) -> Hashable:
        """Identifies the object, without its resourceVersion and field path."""
        return (self.kind, self.namespace, self.name, self.uid, self.api_version)


class Occurrence(msgspec.Struct, frozen=True):
    """One thing that happened to an object; ``at`` is in seconds since the epoch."""

    about: Reference
    type: str
    reason: str
    message: str
    at: float


class _Similar(msgspec.Struct):
    messages: set[str]
    last: float


class _Told(msgspec.Struct):
    name: str
    first: float
    count: int


class Telling(msgspec.Struct, frozen=True):
    """The Event to write for an occurrence; a ``count`` above 1 means that an Event of this name was written before."""

    occurrence: Occurrence
    message: str
    count: int
    told: _Told

    @property
    def name(self) -> str:
        return self.told.name

    @property
    def first(self) -> float:
        return self.told.first


class _Recent(Generic[V]):
    """A dictionary of the ``size`` most recently used entries."""

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
    """Remembers the Events of one source."""

    def __init__(self, *, clock: Clock, remembered: int = REMEMBERED) -> None:
        self._clock = clock
        self._last_stamp = 0
        self._similar: _Recent[_Similar] = _Recent(remembered)
        self._told: _Recent[_Told] = _Recent(remembered)
        self._buckets: _Recent[TokenBucket] = _Recent(remembered)

    def consider(self, occurrence: Occurrence) -> Telling | None:
        """The Event to write for this occurrence; None if it is spam."""
        key, message = self._combine(occurrence)
        told = self._told.get(key)
        if told is None:
            told = _Told(self._name(occurrence), occurrence.at, 0)
            self._told.put(key, told)
        told.count += 1
        if self._is_spam(occurrence):
            return None
        return Telling(occurrence, message, told.count, told)

    def rename(self, telling: Telling) -> None:
        """Choose another name, because another source told of this object at the same time."""
        telling.told.name = self._name(telling.occurrence)

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
        """A unique name: the object's name and the time, increased if the previous name has the same time."""
        self._last_stamp = max(int(occurrence.at * 1e9), self._last_stamp + 1)
        name = f"{occurrence.about.name}.{self._last_stamp:x}"
        return f"event.{self._last_stamp:x}" if dns_subdomain(name) else name

    def _is_spam(self, occurrence: Occurrence) -> bool:
        bucket = self._buckets.get(occurrence.about.identity)
        if bucket is None:
            bucket = TokenBucket(rate=REFILL, burst=BURST, clock=self._clock)
            self._buckets.put(occurrence.about.identity, bucket)
        return not bucket.take()
