"""Objects seen through their shape: which fields they have, and in which they differ.

Each shape is compiled once into the walkers below.  What server-side apply owns as a whole (scalars, atomic lists, maps
and structs) has no walker: it is a leaf.  ``whole`` and ``compare`` run on every write, so they build the trees of
:mod:`seamark.api.fields.fieldsets` directly and compare equal parts without looking into them.
"""

from __future__ import annotations

from copy import copy
from typing import Any

from seamark.api.fields.fieldsets import LEAF, SELF, Fields, field_step, key_step, value_step
from seamark.errors import Object
from seamark.kinds.language.decode import conform
from seamark.kinds.language.shape import ANYTHING, Field, ListOf, MapOf, Shape, Type

_ABSENT: Any = object()


class _Open(dict[str, tuple[str, "Walker | None"]]):
    """The fields of a struct that keeps those it does not know: the types of these are deduced."""

    _gone: frozenset[str] = frozenset()

    def __contains__(self, name: object) -> bool:
        return name not in self._gone

    def __missing__(self, name: str) -> tuple[str, Walker | None]:
        return field_step(name), DEDUCED

    def get(self, name: str, default: Any = None) -> Any:
        return default if name in self._gone else self[name]

    def __delitem__(self, name: str) -> None:
        self.pop(name, None)
        self._gone |= {name}


class Struct:
    """A struct that is owned field by field; ``fields`` gives each one's step and walker (None for a leaf)."""

    __slots__ = ("_fields", "_shape", "_zero")

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._fields: dict[str, tuple[str, Walker | None]] | None = None
        self._zero: Object | None = None

    @property
    def fields(self) -> dict[str, tuple[str, Walker | None]]:
        # Compiled on first use, because shapes refer to each other in circles, and most are never needed.
        if self._fields is None:
            known = {name: (field_step(name), _walker(f.type)) for name, f in self._shape.fields.items()}
            self._fields = _Open(known) if self._shape.open else known
        return self._fields

    @property
    def zero(self) -> Object:
        """An object without any fields set, to compare a new object with.  Must not be edited."""
        if self._zero is None:
            self._zero = conform({}, self._shape)[0]
        return self._zero

    def less(self, *paths: tuple[str, ...]) -> Struct:
        """The same struct without these fields."""
        out = Struct(self._shape)
        out._fields = copy(self.fields)
        for name, *rest in paths:
            if name not in out._fields:
                continue
            step, walker = out._fields[name]
            if not rest:
                del out._fields[name]
            elif isinstance(walker, Struct):
                out._fields[name] = step, walker.less(tuple(rest))
        return out

    def only(self, *paths: tuple[str, ...]) -> Struct:
        """The same struct with these fields only; ``*`` stands for any element of a list."""
        out = Struct(self._shape)
        out._fields = {}
        for name in {path[0] for path in paths}:
            step, walker = self.fields[name]
            below = [path[1:] for path in paths if path[0] == name]
            if () not in below and isinstance(walker, Struct):
                walker = walker.only(*below)
            elif () not in below and isinstance(walker, Listing) and isinstance(walker.of, Struct):
                walker = Listing(walker.of.only(*(path[1:] for path in below)), walker.keys)
            out._fields[name] = step, walker
        return out

    def declares(self, name: str) -> bool:
        return name in self._shape.fields

    def whole(self, value: Object | None) -> Fields:
        """The set of this value and everything in it."""
        if not value:
            return LEAF
        fields = self._fields or self.fields
        out = {SELF: LEAF}
        for name in value:
            if name in fields:
                step, walker = fields[name]
                out[step] = LEAF if walker is None else walker.whole(value[name])
        return out if len(out) > 1 else LEAF

    def compare(self, old: Object, new: Object, changed: Fields, removed: Fields) -> None:
        """Adds to ``changed`` what is new or different in ``new``, and to ``removed`` what it no longer has."""
        fields = self._fields or self.fields
        for name, item in new.items():
            before = old.get(name, _ABSENT)
            if before is item or before == item:
                continue
            known = fields.get(name)
            if known is None:
                continue
            step, walker = known
            if before is _ABSENT:
                changed[step] = LEAF if walker is None else walker.whole(item)
            else:
                _compare_at(step, walker, before, item, changed, removed)
        for name, before in old.items():
            if name not in new and name in fields:
                step, walker = fields[name]
                removed[step] = LEAF if walker is None else walker.whole(before)


class Map:
    """A map that is owned key by key."""

    __slots__ = ("of",)

    def __init__(self, of: Walker | None) -> None:
        self.of = of

    def whole(self, value: Object | None) -> Fields:
        if not value:
            return LEAF
        out = {SELF: LEAF}
        of = self.of
        for key, item in value.items():
            out[field_step(key)] = LEAF if of is None else of.whole(item)
        return out

    def compare(self, old: Object, new: Object, changed: Fields, removed: Fields) -> None:
        of = self.of
        for key, item in new.items():
            before = old.get(key, _ABSENT)
            if before is _ABSENT:
                changed[field_step(key)] = LEAF if of is None else of.whole(item)
            elif before != item:
                _compare_at(field_step(key), of, before, item, changed, removed)
        for key, before in old.items():
            if key not in new:
                removed[field_step(key)] = LEAF if of is None else of.whole(before)


class Deduced(Map):
    """What no schema describes: a map is owned key by key, anything else as a whole."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(self)

    def whole(self, value: Any) -> Fields:
        return super().whole(value) if value.__class__ is dict else LEAF


DEDUCED = Deduced()


def fitting(walker: Walker | None, *values: Any) -> Walker | None:
    """The walker for these values: None where a type is deduced and one of them is no map."""
    return None if walker is DEDUCED and any(value.__class__ is not dict for value in values) else walker


class Listing:
    """A list that is owned element by element: found by their ``keys``, or, without keys, by their values (a set).

    Kubernetes does not forbid two elements with the same key everywhere (environment variables, conditions).  Such
    twins are owned together, as one leaf.
    """

    __slots__ = ("keys", "of")

    def __init__(self, of: Walker | None, keys: tuple[tuple[str, Any], ...]) -> None:
        self.of = of
        self.keys = keys  # names and defaults, sorted by name

    def step(self, item: Any) -> str:
        """The step to an element.  A key that is absent and has no default is left out of it."""
        if not self.keys or item.__class__ is not dict:
            return value_step(item)
        found = {}
        for name, default in self.keys:
            value = item.get(name, default)
            if value is not None:
                found[name] = value
        return key_step(found)

    def grouped(self, items: list[Any]) -> dict[str, list[Any]]:
        """Elements by step; almost always one each."""
        groups: dict[str, list[Any]] = {}
        for item in items:
            step = self.step(item)
            if step in groups:
                groups[step].append(item)
            else:
                groups[step] = [item]
        return groups

    def _whole_group(self, items: list[Any]) -> Fields:
        return LEAF if self.of is None or len(items) > 1 else self.of.whole(items[0])

    def whole(self, value: list[Any] | None) -> Fields:
        if not value:
            return LEAF
        out = {SELF: LEAF}
        of, step_to = self.of, self.step
        for item in value:
            step = step_to(item)
            out[step] = LEAF if of is None or step in out else of.whole(item)
        return out

    def compare(self, old: list[Any], new: list[Any], changed: Fields, removed: Fields) -> None:
        before, after = self.grouped(old), self.grouped(new)
        for step, items in after.items():
            previous = before.get(step)
            if previous is None:
                changed[step] = self._whole_group(items)
            elif previous == items:
                continue
            elif len(previous) == len(items) == 1:
                _compare_at(step, self.of, previous[0], items[0], changed, removed)
            else:
                changed[step] = self._whole_group(items)
                if len(previous) == 1 or len(items) == 1:
                    removed[step] = self._whole_group(previous)
        for step, previous in before.items():
            if step not in after:
                removed[step] = self._whole_group(previous)


Walker = Struct | Map | Listing


def _compare_at(step: str, walker: Walker | None, old: Any, new: Any, changed: Fields, removed: Fields) -> None:
    """Compares two different values of one field."""
    if walker is DEDUCED and not old.__class__ is new.__class__ is dict:
        changed[step] = walker.whole(new)
        return
    if walker is None or not (old or new):
        changed[step] = LEAF
        return
    changed_below: Fields = {}
    removed_below: Fields = {}
    if isinstance(walker, Listing):
        walker.compare(old or [], new or [], changed_below, removed_below)
    else:
        walker.compare(old or {}, new or {}, changed_below, removed_below)
    if changed_below:
        changed[step] = changed_below
    if removed_below:
        removed[step] = removed_below


# --- compilation ------------------------------------------------------------------------------------


def struct(shape: Shape) -> Struct:
    """The walker of a shape, even of one that is atomic as a part of another."""
    return shape.form(Struct)


def _walker(type_: Type) -> Walker | None:
    if isinstance(type_, Shape):
        return None if type_.atomic else struct(type_)
    if isinstance(type_, MapOf):
        return None if type_.atomic else Map(_walker(type_.of))
    if isinstance(type_, ListOf) and type_.type != "atomic":
        return Listing(_walker(type_.of), key_defaults(type_))
    return DEDUCED if type_ is ANYTHING else None


def key_defaults(list_: ListOf) -> tuple[tuple[str, Any], ...]:
    if list_.type == "set" or not isinstance(list_.of, Shape):
        return ()
    fields: dict[str, Field] = list_.of.fields
    return tuple((key, fields[key].default if key in fields else None) for key in sorted(list_.keys))
