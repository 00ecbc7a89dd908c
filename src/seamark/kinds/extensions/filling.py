"""Removes from objects what their schema does not know, and fills in its defaults.

Both are compiled from a schema into nested functions, the one of a property when a value first has it: they cost what
a value has, not all that a schema knows.  A part of the schema that has nothing to do is None.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from copy import deepcopy
from typing import Any

import msgspec

from seamark.errors import ApiError, Object
from seamark.kinds.extensions.checking import At, path_text
from seamark.kinds.extensions.schemas import EMBEDDED, PRESERVE, Made, extra, items
from seamark.kinds.language import shapes
from seamark.kinds.language.decode import conform
from seamark.kinds.values.refusals import TOO_LARGE

# Paths of unknown fields, and whether they are in the metadata of an embedded object: those are told last.
Unknown = list[tuple[bool, str]]
# Returns the value without its unknown fields, whose paths it adds to the list.  The value itself is not edited.
Prune = Callable[[Any, At, Unknown], Any]
# Fills in defaults and drops nulls, in place.
Fill = Callable[[Any], None]

_MOST_DEFAULTS = 4 << 20  # bytes: more than an object can have that is stored

_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_WHOLE = frozenset({"apiVersion", "kind", "metadata"})


def pruner(schema: Object) -> Prune:
    """The function that removes unknown fields from whole instances; apiVersion, kind and metadata always stay."""
    return _object_pruner(schema, _WHOLE)


def _pruner(schema: Object) -> Prune | None:
    if schema.get(EMBEDDED):
        return _embedded_pruner(schema)
    if schema.get("properties") or extra(schema) is not None or schema.get("type") == "object":
        if schema.get(PRESERVE) and not schema.get("properties"):
            return None
        return _object_pruner(schema, frozenset())
    elements = items(schema)
    inner = None if elements is None else _pruner(elements)
    if inner is None:
        return None

    def prune_list(value: Any, at: At, unknown: Unknown) -> Any:
        if value.__class__ is not list:
            return value
        return [inner(item, (at, index), unknown) for index, item in enumerate(value)]

    return prune_list


def _object_pruner(schema: Object, always: frozenset[str]) -> Prune:
    properties, others = schema.get("properties") or {}, extra(schema)
    known = frozenset(properties) | always
    keeps = bool(schema.get(PRESERVE)) or others is not None or schema.get("additionalProperties") is True
    prunes = Made(properties, _pruner, None if others is None else _pruner(others))
    prunes.update(dict.fromkeys(always))

    def prune_object(value: Any, at: At, unknown: Unknown) -> Any:
        if value.__class__ is not dict:
            return value
        if keeps or known.issuperset(value):
            out = value.copy()
        else:
            out = {name: item for name, item in value.items() if name in known}
            unknown += [(False, path_text((at, name))) for name in value if name not in known]
        for name, item in out.items():
            if item.__class__ is dict or item.__class__ is list:
                inner = prunes[name]
                if inner is not None:
                    out[name] = inner(item, (at, name), unknown)
        return out

    return prune_object


def _embedded_pruner(schema: Object) -> Prune:
    """An object inside an object: its metadata is that of any object."""
    prune = _object_pruner(schema, _WHOLE)

    def prune_embedded(value: Any, at: At, unknown: Unknown) -> Any:
        out = prune(value, at, unknown)
        if isinstance(out, dict) and isinstance(meta := out.get("metadata"), dict):
            out["metadata"], more = conform(meta, shapes.of(_META))
            if not meta.get("creationTimestamp"):
                out["metadata"].pop("creationTimestamp", None)
            unknown += ((True, f"{path_text(at)}.metadata.{path}") for path in more)
        return out

    return prune_embedded


class _Room:
    """How many bytes of defaults may still be filled into an object."""

    def __init__(self, *, written: bool) -> None:
        self._left = _MOST_DEFAULTS
        self._written = written

    def take(self, size: int) -> bool:
        self._left -= size
        if self._left < 0 and self._written:
            raise ApiError(TOO_LARGE)
        return self._left >= 0


_room: ContextVar[_Room | None] = ContextVar("room", default=None)


def fill_in(fill: Fill, obj: Object, *, written: bool) -> None:
    """Fill in the defaults of an object that is to be written, or that was read.

    A long default in each of a hundred thousand entries takes little room until the object is encoded, and then more
    than there is.  So one that is written is refused before, as too large for the store.  One that is older than the
    defaults is shown without those for which there is no room.
    """
    before = _room.set(_Room(written=written))
    try:
        fill(obj)
    finally:
        _room.reset(before)


def _has_room(size: int) -> bool:
    room = _room.get()
    return room is None or room.take(size)


def filler(schema: Object) -> Fill | None:
    """The function that fills in the defaults of a schema and drops nulls where the schema allows none."""
    properties, others, elements = schema.get("properties") or {}, extra(schema), items(schema)
    if elements is not None and not properties:
        return _list_filler(elements)
    if not properties and others is None:
        return None
    defaults = [
        (name, inner["default"], len(name) + len(msgspec.json.encode(inner["default"])))
        for name, inner in properties.items()
        if "default" in inner
    ]
    not_null = frozenset(name for name, inner in properties.items() if not _nullable(inner))
    others_not_null = others is not None and not _nullable(others)
    fills = Made(properties, filler, None if others is None else filler(others))

    def fill_object(value: Any) -> None:
        if value.__class__ is not dict:
            return
        if None in value.values():
            for name in [name for name, item in value.items() if item is None]:
                if name in not_null or (others_not_null and name not in properties):
                    del value[name]
        for name, default, size in defaults:
            if name not in value and _has_room(size):
                value[name] = deepcopy(default)
        for name, item in value.items():
            if item.__class__ is dict or item.__class__ is list:
                fill = fills[name]
                if fill is not None:
                    fill(item)

    return fill_object


def _list_filler(elements: Object) -> Fill | None:
    fill = filler(elements)
    if fill is None:
        return None

    def fill_list(value: Any) -> None:
        if value.__class__ is list:
            for item in value:
                fill(item)

    return fill_list


def _nullable(schema: Object) -> bool:
    """Whether null may stay: if the schema says so, or says nothing of the type."""
    return bool(schema.get("nullable")) or not (schema.get("type") or "default" in schema)
