"""What a finding rests on: fields of objects, Events, searches, readings of a clock and lookups in DNS.

Evidence is read from the objects by its path, never written down by hand, so that reading it again gives the same:
:func:`again` does that.  A finding cannot be made without evidence, and ``-o json`` lists it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from seamark.kinds.values import times
from seamark.rules.objects.metadata import Metadata
from seamark.why.views import Event, Key

if TYPE_CHECKING:
    from seamark.why.world import World


class Object(Protocol):
    """Any view of an object."""

    @property
    def metadata(self) -> Metadata: ...


# What an entry of a list is called by, within ``[…]`` of a path.
_NAMES = ("name", "type", "condition_type", "ip", "address")


class Field(msgspec.Struct, frozen=True, tag="field"):
    """A field of an object, with its value; None for a field that is not set."""

    kind: str
    namespace: str
    name: str
    path: str
    value: Any


class Told(msgspec.Struct, frozen=True, tag="event"):
    """An Event: ``name`` is its own, ``about`` the object it is about."""

    namespace: str
    name: str
    about: str
    reason: str
    message: str
    time: str


class Search(msgspec.Struct, frozen=True, tag="search"):
    """How many objects of a kind a namespace ("": any) has, by name or by labels, and their names."""

    kind: str
    namespace: str
    count: int
    name: str = ""
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    names: tuple[str, ...] = ()


class Reading(msgspec.Struct, frozen=True, tag="clock"):
    """How many seconds had gone by at ``now`` since a moment that a field names; ``limit`` is what they are held to."""

    since: Field
    now: str
    seconds: float
    limit: float | None = None


class Asked(msgspec.Struct, frozen=True, tag="question"):
    """What the user asked for, or a lookup in DNS and its outcome."""

    what: str
    answer: str = ""


Evidence = Field | Told | Search | Reading | Asked


# --- gathering -------------------------------------------------------------------------------------


def of(obj: Object, *paths: str) -> tuple[Field, ...]:
    """Fields of an object, by their paths."""
    meta = obj.metadata
    return tuple(Field(kind_of(obj), meta.namespace, meta.name, path, read(obj, path)) for path in paths)


def each(objects: Iterable[Object], *paths: str) -> tuple[Field, ...]:
    """The same fields of several objects."""
    return tuple(field for obj in objects for field in of(obj, *paths))


def told(event: Event) -> Told:
    about = event.involved_object
    meta = event.metadata
    return Told(meta.namespace, meta.name, f"{about.kind}/{about.name}", event.reason, event.message, event.time)


def search(
    world: World, kind: str, namespace: str, *, name: str = "", labels: Mapping[str, str] | None = None
) -> Search:
    """How many objects there are, as far as they were read."""
    found = world.found(kind, namespace, name=name, labels=labels or {})
    return Search(kind, namespace, len(found), name, dict(labels or {}), tuple(sorted(found)))


def reading(obj: Object, path: str, now: float, *, limit: float | None = None) -> Reading:
    """How long ago the moment is that a field names."""
    [since] = of(obj, path)
    seconds = now - times.parse(since.value)
    return Reading(since, times.text(now), seconds, limit)


# --- reading ---------------------------------------------------------------------------------------


def kind_of(obj: Object) -> str:
    return getattr(obj, "kind", "") or type(obj).__name__


def read(obj: Any, path: str) -> Any:
    """The value at a path such as ``status.conditions[Ready].status``, in plain types; None if it is not there.

    A path that ends in ``#`` is the length of what is there.
    """
    if path.endswith("#"):
        return len(read(obj, path[:-1]) or ())
    here: Any = obj
    for step in _steps(path):
        here = _entry(here, step[1:]) if step[0] == "[" else _attribute(here, step)
        if here is None:
            return None
    return msgspec.to_builtins(here)


@lru_cache(maxsize=1024)
def _steps(path: str) -> tuple[str, ...]:
    """``a.b[c.d].e`` as ``a``, ``b``, ``[c.d``, ``e``."""
    steps: list[str] = []
    for part in path.split("["):
        inside, closed, rest = part.rpartition("]")
        if closed:
            steps.append(f"[{inside}")
        steps += filter(None, (rest if closed else part).split("."))
    return tuple(steps)


def _attribute(here: Any, name: str) -> Any:
    if isinstance(here, Mapping):
        return here.get(name)
    kind: Any = type(here)
    attribute = _attributes(kind).get(name)
    return getattr(here, attribute) if attribute is not None else None


@lru_cache(maxsize=256)
def _attributes(type: Any) -> dict[str, str]:
    if not issubclass(type, msgspec.Struct):
        return {}
    return {field.encode_name: field.name for field in msgspec.structs.fields(type)}


def _entry(here: Any, name: str) -> Any:
    if isinstance(here, Mapping):
        return here.get(name)
    if name.isdigit():
        return here[int(name)] if int(name) < len(here) else None
    return next((each for each in here if any(getattr(each, key, None) == name for key in _NAMES)), None)


# --- again -----------------------------------------------------------------------------------------


def again(world: World, evidence: Evidence) -> Evidence | None:
    """The same evidence, read once more from the world; None if what it is about is not there."""
    if isinstance(evidence, Field):
        obj = world.find(evidence.kind, evidence.namespace, evidence.name)
        return of(obj, evidence.path)[0] if obj is not None else None
    if isinstance(evidence, Told):
        key: Key = (evidence.namespace, evidence.name)
        event = next((e for e in world.seen.events or () if (e.metadata.namespace, e.metadata.name) == key), None)
        return told(event) if event is not None else None
    if isinstance(evidence, Search):
        return search(world, evidence.kind, evidence.namespace, name=evidence.name, labels=evidence.labels)
    if isinstance(evidence, Reading):
        since = evidence.since
        obj = world.find(since.kind, since.namespace, since.name)
        if obj is None or world.now is None:
            return None
        return reading(obj, since.path, world.now, limit=evidence.limit)
    return evidence
