"""Values that may be missing; ``or`` and ``orValue`` are in the compiler, since they may leave a side out."""

from __future__ import annotations

from typing import Any

from seamark.cel.types import overload
from seamark.cel.values import NONE, Duration, Optional, some


def _non_zero(value: Any) -> Optional:
    zero = value is None or (isinstance(value, bool | int | float | str | bytes | list | dict) and not value)
    return NONE if zero or value == Duration(0) else some(value)


def _unwrapped(items: list[Optional]) -> list[Any]:
    return [value for item in items for value in item.found]


def _first(items: list[Any]) -> Optional:
    return some(items[0]) if items else NONE


def _last(items: list[Any]) -> Optional:
    return some(items[-1]) if items else NONE


def _itself(*given: Any) -> Any:
    raise AssertionError("the compiler carries this out itself")


FUNCTIONS = [
    overload("optional.of(A) -> optional<A>", some, name="optional.of"),
    overload("optional.none() -> optional<A>", lambda: NONE, name="optional.none"),
    overload("optional.ofNonZeroValue(A) -> optional<A>", _non_zero, name="optional.ofNonZeroValue"),
    overload("optional<A>.hasValue() -> bool", lambda value: bool(value.found)),
    overload("optional<A>.value() -> A", lambda value: value.value),
    overload("optional<A>.or(optional<A>) -> optional<A>", _itself),
    overload("optional<A>.orValue(A) -> A", _itself),
    overload("list<optional<A>>.unwrapOpt() -> list<A>", _unwrapped),
    overload("optional.unwrap(list<optional<A>>) -> list<A>", _unwrapped, name="optional.unwrap"),
    overload("list<A>.first() -> optional<A>", _first),
    overload("list<A>.last() -> optional<A>", _last),
]
