"""When values of schemas are equal, and how they are joined: lists that are sets or maps have no order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from seamark.cel.types import Type
from seamark.cel.values import equal


def equality(one: Type | None, other: Type | None) -> Callable[[Any, Any], bool]:
    """How values of these types are compared: lists that are sets or maps have no order."""
    typed = one if one is not None and _unordered(one) else other if other is not None and _unordered(other) else None
    return equal if typed is None else _alike(typed)


def _unordered(type: Type) -> bool:
    if type.list_type in ("set", "map"):
        return True
    fields = type.fields or {}
    return any(map(_unordered, type.params)) or any(_unordered(field.type) for field in fields.values())


def _alike(type: Type) -> Callable[[Any, Any], bool]:
    if not _unordered(type):
        return equal
    if type.kind == "object":
        fields = {field.name: _alike(field.type) for field in (type.fields or {}).values()}

        def same_object(one: Any, other: Any) -> bool:
            if not isinstance(one, dict) or not isinstance(other, dict) or one.keys() != other.keys():
                return equal(one, other) if not isinstance(one, dict) else False
            return all(fields.get(key, equal)(value, other[key]) for key, value in one.items())

        return same_object
    inner = _alike(type.params[-1])
    if type.kind == "map":

        def same_map(one: Any, other: Any) -> bool:
            if not isinstance(one, dict) or not isinstance(other, dict):
                return equal(one, other)
            return one.keys() == other.keys() and all(inner(value, other[key]) for key, value in one.items())

        return same_map
    if type.kind != "list":
        return equal
    keys = type.keys

    def same_list(one: Any, other: Any) -> bool:
        if not isinstance(one, list) or not isinstance(other, list):
            return equal(one, other)
        if len(one) != len(other):
            return False
        if type.list_type == "map":
            left = {identity(item, keys): item for item in one}
            right = {identity(item, keys): item for item in other}
            return left.keys() == right.keys() and all(inner(item, right[key]) for key, item in left.items())
        if type.list_type == "set":
            return {_key(item) for item in one} <= {_key(item) for item in other}
        return all(map(inner, one, other))

    return same_list


def _key(item: Any) -> Any:
    """What is the same for items that are equal, and for no others, so that they can be looked up."""
    if isinstance(item, dict):
        return frozenset((key, _key(value)) for key, value in item.items())
    if isinstance(item, list):
        return tuple(map(_key, item))
    return ("bool", item) if isinstance(item, bool) else item


def joining(type: Type) -> Callable[[list[Any]], list[Any]]:
    """What ``+`` makes of two lists put one after the other: a later item takes the place of the one like it."""
    keys = type.keys if type.list_type == "map" else ()

    def joined(items: list[Any]) -> list[Any]:
        return list({identity(item, keys) if keys else repr(item): item for item in items}.values())

    return joined


def identity(item: Any, keys: tuple[str, ...]) -> Any:
    """What tells an item of a map list from the others."""
    return tuple((key, repr(item.get(key))) for key in keys) if isinstance(item, dict) else repr(item)
