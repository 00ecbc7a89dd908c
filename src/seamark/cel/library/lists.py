"""Lists: sums and extremes, order, positions, parts, and copies that are flat, distinct, sorted or reversed."""

from __future__ import annotations

from collections.abc import Callable
from functools import cmp_to_key
from itertools import pairwise
from typing import Any

from seamark.cel import values
from seamark.cel.errors import EvaluationError
from seamark.cel.types import Overload, overload
from seamark.cel.values import Duration, Uint, equal, less

_ORDERED = ("int", "uint", "double", "bool", "string", "bytes", "duration", "timestamp")


def _compare(one: Any, other: Any) -> int:
    return -1 if less(one, other) else 1 if less(other, one) else 0


def _is_sorted(items: list[Any]) -> bool:
    return all(not less(after, before) for before, after in pairwise(items))


def _lowest(items: list[Any]) -> Any:
    return _extreme(items, "min", -1)


def _highest(items: list[Any]) -> Any:
    return _extreme(items, "max", 1)


def _extreme(items: list[Any], word: str, sign: int) -> Any:
    if not items:
        raise EvaluationError(f"{word} called on empty list")
    found = items[0]
    for item in items[1:]:
        if _compare(item, found) == sign:
            found = item
    return found


def _sum_of_ints(items: list[int]) -> int:
    total = 0
    for item in items:
        total = values.int_of(total + item)
    return total


def _sum_of_uints(items: list[int]) -> Uint:
    return values.uint_of(sum(int(item) for item in items))


def _sum_of_doubles(items: list[float]) -> float:
    return float(sum(items))


def _sum_of_durations(items: list[Duration]) -> Duration:
    return values.duration(sum(item.nanoseconds for item in items))


def _position(items: list[Any], wanted: Any) -> int:
    return next((index for index, item in enumerate(items) if equal(item, wanted)), -1)


def _last_position(items: list[Any], wanted: Any) -> int:
    return next((index for index in range(len(items) - 1, -1, -1) if equal(items[index], wanted)), -1)


def _slice(items: list[Any], start: int, end: int) -> list[Any]:
    if start < 0 or end < 0:
        raise EvaluationError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise EvaluationError(f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    if end > len(items):
        raise EvaluationError(f"cannot slice({start}, {end}), list is length {len(items)}")
    return items[start:end]


def _flatten(items: list[Any], depth: int = 1) -> list[Any]:
    if depth < 0:
        raise EvaluationError("level must be non-negative")
    out: list[Any] = []
    for item in items:
        if isinstance(item, list) and depth > 0:
            out.extend(_flatten(item, depth - 1))
        else:
            out.append(item)
    return out


def _distinct(items: list[Any]) -> list[Any]:
    out: list[Any] = []
    for item in items:
        if not any(equal(item, found) for found in out):
            out.append(item)
    return out


def _sorted(items: list[Any]) -> list[Any]:
    kinds = {item.__class__ for item in items}
    if len(kinds) > 1:
        raise EvaluationError("list elements must have the same type")
    return sorted(items, key=cmp_to_key(_compare))


def _range(count: int) -> list[int]:
    return list(range(max(count, 0)))


def _typed() -> list[Overload]:
    sums: dict[str, Callable[..., Any]] = {
        "int": _sum_of_ints,
        "uint": _sum_of_uints,
        "double": _sum_of_doubles,
        "duration": _sum_of_durations,
    }
    found = [overload(f"list<{kind}>.sum() -> {kind}", run) for kind, run in sums.items()]
    for kind in _ORDERED:
        found.append(overload(f"list<{kind}>.isSorted() -> bool", _is_sorted))
        found.append(overload(f"list<{kind}>.min() -> {kind}", _lowest))
        found.append(overload(f"list<{kind}>.max() -> {kind}", _highest))
        found.append(overload(f"list<{kind}>.sort() -> list<{kind}>", _sorted))
    return found


FUNCTIONS = [
    *_typed(),
    overload("list<A>.indexOf(A) -> int", _position),
    overload("list<A>.lastIndexOf(A) -> int", _last_position),
    overload("list<A>.slice(int, int) -> list<A>", _slice),
    overload("list<list<A>>.flatten() -> list<A>", _flatten),
    overload("list<dyn>.flatten(int) -> list<dyn>", _flatten),
    overload("list<A>.distinct() -> list<A>", _distinct),
    overload("list<A>.reverse() -> list<A>", lambda items: items[::-1]),
    overload("lists.range(int) -> list<int>", _range, name="lists.range"),
]
