"""Operators, conversions, sizes, and what texts can do in every dialect."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Any

from seamark.cel import values
from seamark.cel.errors import EvaluationError
from seamark.cel.types import overload
from seamark.cel.values import TypeValue, Uint, equal, int_of, key_of, uint_of

_integer = re.compile(r"[+-]?[0-9]+", re.ASCII)
_unsigned = re.compile(r"[0-9]+", re.ASCII)
_double = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?(?i:inf|infinity|nan)", re.ASCII)
_TRUTHS = {
    **dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True),
    **dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False),
}


# --- arithmetic -----------------------------------------------------------------------------------------


def _divided(one: int, other: int) -> int:
    if other == 0:
        raise EvaluationError("division by zero")
    quotient = abs(one) // abs(other)
    return int_of(quotient if (one < 0) == (other < 0) else -quotient)


def _rest(one: int, other: int) -> int:
    if other == 0:
        raise EvaluationError("modulus by zero")
    rest = abs(one) % abs(other)
    return -rest if one < 0 else rest


def _double_divided(one: float, other: float) -> float:
    if other:
        return one / other
    if one == 0 or math.isnan(one):
        return math.nan
    return math.copysign(math.inf, one) * math.copysign(1.0, other)


def _double_times(one: float, other: float) -> float:
    return one * other


def _uint_divided(one: int, other: int) -> Uint:
    if other == 0:
        raise EvaluationError("division by zero")
    return Uint(int(one) // int(other))


def _uint_rest(one: int, other: int) -> Uint:
    if other == 0:
        raise EvaluationError("modulus by zero")
    return Uint(int(one) % int(other))


_ARITHMETIC = [
    overload("_+_(int, int) -> int", lambda a, b: int_of(a + b)),
    overload("_+_(uint, uint) -> uint", lambda a, b: uint_of(int(a) + int(b))),
    overload("_+_(double, double) -> double", lambda a, b: a + b),
    overload("_+_(string, string) -> string", lambda a, b: a + b),
    overload("_+_(bytes, bytes) -> bytes", lambda a, b: a + b),
    overload("_+_(list<A>, list<A>) -> list<A>", lambda a, b: a + b),
    overload("_-_(int, int) -> int", lambda a, b: int_of(a - b)),
    overload("_-_(uint, uint) -> uint", lambda a, b: uint_of(int(a) - int(b))),
    overload("_-_(double, double) -> double", lambda a, b: a - b),
    overload("_*_(int, int) -> int", lambda a, b: int_of(a * b)),
    overload("_*_(uint, uint) -> uint", lambda a, b: uint_of(int(a) * int(b))),
    overload("_*_(double, double) -> double", _double_times),
    overload("_/_(int, int) -> int", _divided),
    overload("_/_(uint, uint) -> uint", _uint_divided),
    overload("_/_(double, double) -> double", _double_divided),
    overload("_%_(int, int) -> int", _rest),
    overload("_%_(uint, uint) -> uint", _uint_rest),
    overload("-_(int) -> int", lambda a: int_of(-a)),
    overload("-_(double) -> double", lambda a: -a),
    overload("!_(bool) -> bool", lambda a: not a),
]


# --- comparison, and what the compiler does itself --------------------------------------------------------


def _itself(*given: Any) -> Any:
    raise AssertionError("the compiler carries this out itself")


_NUMBERS = ("int", "uint", "double")
_COMPARISON = [
    overload(f"_{operator}_({one}, {other}) -> bool", _itself)
    for operator in ("<", "<=", ">", ">=")
    for one, other in (
        *((kind, kind) for kind in ("bool", "string", "bytes", "timestamp", "duration")),
        *((one, other) for one in _NUMBERS for other in _NUMBERS),
    )
]


def _in_list(value: Any, over: list[Any]) -> bool:
    return any(equal(value, item) for item in over)


def _in_map(value: Any, over: dict[Any, Any]) -> bool:
    try:
        return key_of(value) in over
    except EvaluationError:
        return False


_LANGUAGE = [
    overload("_==_(A, A) -> bool", _itself),
    overload("_!=_(A, A) -> bool", _itself),
    overload("_&&_(bool, bool) -> bool", _itself),
    overload("_||_(bool, bool) -> bool", _itself),
    overload("_?_:_(bool, A, A) -> A", _itself),
    overload("_[_](list<A>, int) -> A", _itself),
    overload("_[_](map<A, B>, A) -> B", _itself),
    overload("_[_](optional<list<A>>, int) -> optional<A>", _itself),
    overload("_[_](optional<map<A, B>>, A) -> optional<B>", _itself),
    overload("_[?_](list<A>, int) -> optional<A>", _itself),
    overload("_[?_](map<A, B>, A) -> optional<B>", _itself),
    overload("_[?_](optional<list<A>>, int) -> optional<A>", _itself),
    overload("_[?_](optional<map<A, B>>, A) -> optional<B>", _itself),
    overload("@in(A, list<A>) -> bool", _in_list),
    overload("@in(A, map<A, B>) -> bool", _in_map),
    overload("type(A) -> type<A>", lambda value: TypeValue(values.name_of(value))),
    overload("dyn(A) -> dyn", lambda value: value),
]


# --- conversions ------------------------------------------------------------------------------------------


def _int_from_double(number: float) -> int:
    if not math.isfinite(number) or not values.LEAST_INT < number < values.MOST_INT:
        raise EvaluationError("integer overflow")
    return int(number)


def _int_from_string(text: str) -> int:
    if not _integer.fullmatch(text) or len(text) > 30 or not values.LEAST_INT <= int(text) <= values.MOST_INT:
        raise values.unlike("string", "int")
    return int(text)


def _uint_from_double(number: float) -> Uint:
    if not math.isfinite(number) or not 0 <= number < 2.0**64:
        raise EvaluationError("unsigned integer overflow")
    return Uint(int(number))


def _uint_from_string(text: str) -> Uint:
    if not _unsigned.fullmatch(text) or len(text) > 30 or int(text) > values.MOST_UINT:
        raise values.unlike("string", "uint")
    return Uint(int(text))


def _double_from_string(text: str) -> float:
    if not _double.fullmatch(text):
        raise values.unlike("string", "double")
    number = float(text)
    if math.isinf(number) and "n" not in text.lower():
        raise values.unlike("string", "double")
    return number


def _bool_from_string(text: str) -> bool:
    if text not in _TRUTHS:
        raise values.unlike("string", "bool")
    return _TRUTHS[text]


def _text_of_bytes(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from None


def double_text(number: float) -> str:
    """A number in its shortest form, with an exponent from 1e6 on and below 1e-4, as Go prints it."""
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "+Inf" if number > 0 else "-Inf"
    sign, digits, exponent = Decimal(repr(number)).as_tuple()
    text = "".join(map(str, digits)).rstrip("0") or "0"
    power = len(digits) + int(exponent) - 1 if number else 0
    mark = "-" if sign else ""
    if -4 <= power < 6:
        return mark + format(Decimal(repr(abs(number))).normalize(), "f")
    fraction = f".{text[1:]}" if len(text) > 1 else ""
    return f"{mark}{text[0]}{fraction}e{'-' if power < 0 else '+'}{abs(power):02d}"


def bool_text(value: bool) -> str:
    return "true" if value else "false"


_CONVERSIONS = [
    overload("int(int) -> int", lambda value: value),
    overload("int(uint) -> int", lambda value: int_of(int(value))),
    overload("int(double) -> int", _int_from_double),
    overload("int(string) -> int", _int_from_string),
    overload("uint(uint) -> uint", lambda value: value),
    overload("uint(int) -> uint", lambda value: uint_of(value)),
    overload("uint(double) -> uint", _uint_from_double),
    overload("uint(string) -> uint", _uint_from_string),
    overload("double(double) -> double", lambda value: value),
    overload("double(int) -> double", float),
    overload("double(uint) -> double", float),
    overload("double(string) -> double", _double_from_string),
    overload("bool(bool) -> bool", lambda value: value),
    overload("bool(string) -> bool", _bool_from_string),
    overload("bytes(bytes) -> bytes", lambda value: value),
    overload("bytes(string) -> bytes", lambda value: value.encode("utf-8", "surrogatepass")),
    overload("string(string) -> string", lambda value: value),
    overload("string(bool) -> string", bool_text),
    overload("string(int) -> string", lambda value: str(value)),
    overload("string(uint) -> string", lambda value: str(int(value))),
    overload("string(double) -> string", double_text),
    overload("string(bytes) -> string", _text_of_bytes),
]


# --- texts and sizes --------------------------------------------------------------------------------------


def _sizes() -> list[Any]:
    kinds = ("string", "bytes", "list<A>", "map<A, B>")
    return [
        overload(signature, len) for kind in kinds for signature in (f"size({kind}) -> int", f"{kind}.size() -> int")
    ]


_TEXTS = [
    *_sizes(),
    overload("string.startsWith(string) -> bool", str.startswith),
    overload("string.endsWith(string) -> bool", str.endswith),
    overload("string.contains(string) -> bool", lambda text, part: part in text),
]

FUNCTIONS = [*_LANGUAGE, *_ARITHMETIC, *_COMPARISON, *_CONVERSIONS, *_TEXTS]
