"""Quantities in expressions: ``quantity('500Mi').isLessThan(quantity('1Gi'))``."""

from __future__ import annotations

from decimal import Decimal
from typing import ClassVar

from seamark.cel.errors import EvaluationError
from seamark.cel.types import overload
from seamark.cel.values import LEAST_INT, MOST_INT, Opaque
from seamark.kinds.values.quantity import MOST, QuantityError, amount


class QuantityValue(Opaque):
    """An exact amount, at most as much as can be calculated with."""

    type_name: ClassVar[str] = "kubernetes.Quantity"

    def __init__(self, value: Decimal) -> None:
        self.value = max(-MOST, min(value, MOST))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, QuantityValue) and self.value == other.value

    def __hash__(self) -> int:
        return hash(self.value)


def _quantity(text: str) -> QuantityValue:
    try:
        return QuantityValue(amount(text))
    except QuantityError as error:
        raise EvaluationError(str(error)) from None


def _is_quantity(text: str) -> bool:
    try:
        amount(text)
    except QuantityError:
        return False
    return True


def _is_integer(quantity: QuantityValue) -> bool:
    return quantity.value == int(quantity.value) and LEAST_INT <= quantity.value <= MOST_INT


def _as_integer(quantity: QuantityValue) -> int:
    if not _is_integer(quantity):
        raise EvaluationError("cannot convert value to integer")
    return int(quantity.value)


def _compare(one: QuantityValue, other: QuantityValue) -> int:
    return (one.value > other.value) - (one.value < other.value)


_T = "kubernetes.Quantity"
FUNCTIONS = [
    overload("isQuantity(string) -> bool", _is_quantity),
    overload(f"quantity(string) -> {_T}", _quantity),
    overload(f"{_T}.sign() -> int", lambda a: (a.value > 0) - (a.value < 0)),
    overload(f"{_T}.isInteger() -> bool", _is_integer),
    overload(f"{_T}.asInteger() -> int", _as_integer),
    overload(f"{_T}.asApproximateFloat() -> double", lambda a: float(a.value)),
    overload(f"{_T}.add({_T}) -> {_T}", lambda a, b: QuantityValue(a.value + b.value)),
    overload(f"{_T}.add(int) -> {_T}", lambda a, b: QuantityValue(a.value + b)),
    overload(f"{_T}.sub({_T}) -> {_T}", lambda a, b: QuantityValue(a.value - b.value)),
    overload(f"{_T}.sub(int) -> {_T}", lambda a, b: QuantityValue(a.value - b)),
    overload(f"{_T}.isLessThan({_T}) -> bool", lambda a, b: a.value < b.value),
    overload(f"{_T}.isGreaterThan({_T}) -> bool", lambda a, b: a.value > b.value),
    overload(f"{_T}.compareTo({_T}) -> int", _compare),
]
