"""``'%d of %s'.format([1, 'x'])``: clauses for texts, whole and broken numbers, and other bases."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from seamark.cel import values
from seamark.cel.errors import EvaluationError
from seamark.cel.library.standard import bool_text, double_text
from seamark.cel.types import overload
from seamark.cel.values import Duration, Timestamp, TypeValue, plain_key

_clause = re.compile(r"%(?:%|(?:\.(\d+))?(.)?)", re.DOTALL)
_MOST_PRECISION = 1000


def _format(text: str, given: list[Any]) -> str:
    used = 0

    def filled(match: re.Match[str]) -> str:
        nonlocal used
        if match[0] == "%%":
            return "%"
        verb = match[2]
        if verb is None:
            raise EvaluationError("unexpected end of string")
        if verb not in _CLAUSES:
            raise EvaluationError(f'could not parse formatting clause: unrecognized formatting clause "{verb}"')
        if used >= len(given):
            raise EvaluationError(f"index {used} out of range")
        value = given[used]
        used += 1
        digits = "6" if match[1] is None else match[1].lstrip("0") or "0"
        if len(digits) > len(str(_MOST_PRECISION)) or int(digits) > _MOST_PRECISION:
            raise EvaluationError(f"precision {digits} exceeds maximum allowed precision {_MOST_PRECISION}")
        try:
            return _CLAUSES[verb](value, int(digits))
        except _Unfit as error:
            raise EvaluationError(f"error during formatting: {error}") from None

    return _clause.sub(filled, text)


class _Unfit(Exception):
    """A clause cannot show a value of this type."""


def _string(value: Any, precision: int) -> str:
    match value:
        case bool():
            return bool_text(value)
        case str():
            return value
        case bytes():
            return value.decode("utf-8", "replace")
        case float():
            return {"+Inf": "Infinity", "-Inf": "-Infinity"}.get(text := double_text(value), text)
        case None:
            return "null"
        case int() | Timestamp() | Duration():
            return str(value)
        case TypeValue():
            return value.name
        case list():
            return "[" + ", ".join(_string(item, precision) for item in value) + "]"
        case dict():
            parts = sorted(
                (_string(plain_key(key), precision), _string(item, precision)) for key, item in value.items()
            )
            return "{" + ", ".join(f"{key}: {item}" for key, item in parts) + "}"
    kinds = "strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps"
    raise _Unfit(f"string clause can only be used on {kinds}, was given {values.name_of(value)}")


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _decimal(value: Any, precision: int) -> str:
    if _is_whole(value):
        return str(int(value))
    if isinstance(value, float) and not math.isfinite(value):
        return _string(value, precision)
    raise _Unfit(f"decimal clause can only be used on integers, was given {values.name_of(value)}")


def _number(value: Any, clause: str) -> float:
    if isinstance(value, float):
        return value
    if _is_whole(value):
        return float(value)
    raise _Unfit(f"{clause} clause can only be used on doubles, was given {values.name_of(value)}")


def _fixed(value: Any, precision: int) -> str:
    number = _number(value, "fixed-point")
    return f"{number:.{precision}f}" if math.isfinite(number) else _string(number, precision)


def _scientific(value: Any, precision: int) -> str:
    number = _number(value, "scientific")
    return f"{number:.{precision}e}" if math.isfinite(number) else _string(number, precision)


def _binary(value: Any, precision: int) -> str:
    if isinstance(value, bool):
        return "1" if value else "0"
    if _is_whole(value):
        return format(int(value), "b")
    raise _Unfit(f"only integers and bools can be formatted as binary, was given {values.name_of(value)}")


def _octal(value: Any, precision: int) -> str:
    if _is_whole(value):
        return format(int(value), "o")
    raise _Unfit(f"octal clause can only be used on integers, was given {values.name_of(value)}")


def _hex(value: Any, precision: int) -> str:
    if _is_whole(value):
        return format(int(value), "x")
    if isinstance(value, str):
        return value.encode().hex()
    if isinstance(value, bytes):
        return value.hex()
    raise _Unfit(f"only integers, byte buffers, and strings can be formatted as hex, was given {values.name_of(value)}")


_CLAUSES: dict[str, Callable[[Any, int], str]] = {
    "s": _string,
    "d": _decimal,
    "f": _fixed,
    "e": _scientific,
    "b": _binary,
    "o": _octal,
    "x": _hex,
    "X": lambda value, precision: _hex(value, precision).upper(),
}

FUNCTIONS = [overload("string.format(list<dyn>) -> string", _format)]
