"""``--sort-by``: objects in the order of a field.  Pure.

As kubectl orders them: numbers as numbers, amounts (``500m``, ``1Gi``) as amounts, other texts with the numbers in them
as numbers (``web-9`` before ``web-10``), and what lacks the field first.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, TypeVar

from seamark.cli.failure import Refusal
from seamark.cli.jsonpath import JsonPathError, evaluate, relaxed
from seamark.kinds.values import quantity

T = TypeVar("T")

_DIGITS = re.compile(r"(\d+)")


def in_order(items: Sequence[T], path: str, object_of: Callable[[T], Mapping[str, Any]]) -> list[T]:
    """The items by a field of their objects; ``Refusal`` if the path is none, or none of them has it."""
    try:
        template = relaxed(path)
        fields = [[value for found in evaluate(template, object_of(item)) for value in found] for item in items]
    except JsonPathError as error:
        raise Refusal(f"--sort-by {path}: {error}", 2) from error
    if items and not any(fields):
        raise Refusal(f'couldn\'t find any field with path "{path}" in the list of objects')

    def compared(one: int, other: int) -> int:
        return _compared(fields[one], fields[other])

    return [items[index] for index in sorted(range(len(items)), key=functools.cmp_to_key(compared))]


def _compared(one: list[Any], other: list[Any]) -> int:
    if not one or not other:
        return len(one[:1]) - len(other[:1])
    a, b = one[0], other[0]
    if _is_number(a) and _is_number(b):
        return _sign(a, b)
    first, second = _amount(a), _amount(b)
    if first is not None and second is not None:
        return _sign(first, second)
    return _sign(_natural(str(a)), _natural(str(b)))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _sign(a: Any, b: Any) -> int:
    return int(a > b) - int(a < b)


def _amount(value: Any) -> Decimal | None:
    try:
        return quantity.amount(str(value))
    except quantity.QuantityError:
        return None


def _natural(text: str) -> list[tuple[int, str, int]]:
    """Digits before letters, and by their value."""
    parts = [part for part in _DIGITS.split(text) if part]
    return [(0, "", int(part)) if part.isdecimal() else (1, part, 0) for part in parts]
