"""Lists as sets: order and repetition do not matter."""

from __future__ import annotations

from typing import Any

from seamark.cel.types import overload
from seamark.cel.values import equal


def _has(items: list[Any], wanted: Any) -> bool:
    return any(equal(item, wanted) for item in items)


def _contains(items: list[Any], wanted: list[Any]) -> bool:
    return all(_has(items, item) for item in wanted)


def _intersects(one: list[Any], other: list[Any]) -> bool:
    return any(_has(one, item) for item in other)


def _equivalent(one: list[Any], other: list[Any]) -> bool:
    return _contains(one, other) and _contains(other, one)


FUNCTIONS = [
    overload(f"{name}(list<A>, list<A>) -> bool", run, name=name)
    for name, run in (
        ("sets.contains", _contains),
        ("sets.intersects", _intersects),
        ("sets.equivalent", _equivalent),
    )
]
