"""The values of expressions, as Python has them, and when two are equal.

    int, double, string, bytes, bool, null     int, float, str, bytes, bool, None
    uint                                       Uint
    list, map, objects                         list, dict
    timestamp, duration, optional, type        Timestamp, Duration, Optional, TypeValue

A library's own values (quantities, addresses) are classes that derive from :class:`Opaque`.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, ClassVar

import msgspec

from seamark.cel.errors import EvaluationError, no_such_key, no_such_overload

MOST_INT, LEAST_INT = (1 << 63) - 1, -(1 << 63)
MOST_UINT = (1 << 64) - 1
_SECOND = 10**9
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST = int((datetime(1, 1, 1, tzinfo=UTC) - _EPOCH).total_seconds()) * _SECOND
_LAST = int((datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC) - _EPOCH).total_seconds()) * _SECOND + _SECOND - 1
_UNITS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": _SECOND,
    "m": 60 * _SECOND,
    "h": 3600 * _SECOND,
}
_MOST_DIGITS = 30  # of a number in a duration; so many are too large in any case
_part = re.compile(r"(\d*)(?:\.(\d*))?(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_moment = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)", re.ASCII)


class Uint(int):
    """An unsigned number of 64 bits."""


class Opaque:
    """A value of a library; ``type_name`` is its type in expressions."""

    type_name: ClassVar[str]
    size: int = 1


class TypeValue(msgspec.Struct, frozen=True):
    """A type as a value: ``type(1) == int``."""

    name: str


class Timestamp(msgspec.Struct, frozen=True, order=True):
    """Nanoseconds since 1970, from the year 1 to the year 9999."""

    nanoseconds: int

    def at(self, zone: tzinfo) -> datetime:
        return (_EPOCH + timedelta(seconds=self.nanoseconds // _SECOND)).astimezone(zone)

    def __str__(self) -> str:
        seconds, rest = divmod(self.nanoseconds, _SECOND)
        text = (_EPOCH + timedelta(seconds=seconds)).replace(tzinfo=None).isoformat(timespec="seconds")
        return f"{text}.{rest:09d}".rstrip("0") + "Z" if rest else f"{text}Z"


class Duration(msgspec.Struct, frozen=True, order=True):
    """Nanoseconds, as many as fit into 64 bits."""

    nanoseconds: int

    def __str__(self) -> str:
        seconds, rest = divmod(abs(self.nanoseconds), _SECOND)
        fraction = f".{rest:09d}".rstrip("0") if rest else ""
        return f"{'-' if self.nanoseconds < 0 else ''}{seconds}{fraction}s"


class Optional(msgspec.Struct, frozen=True):
    """A value that may be missing: ``found`` has it, or nothing."""

    found: tuple[Any, ...] = ()

    @property
    def value(self) -> Any:
        if not self.found:
            raise EvaluationError("optional.none() dereference")
        return self.found[0]


NONE = Optional()


def some(value: Any) -> Optional:
    return Optional((value,))


# --- making values ------------------------------------------------------------------------------------


def timestamp(nanoseconds: int) -> Timestamp:
    if not _FIRST <= nanoseconds <= _LAST:
        raise EvaluationError("timestamp overflow")
    return Timestamp(nanoseconds)


def duration(nanoseconds: int) -> Duration:
    if not LEAST_INT <= nanoseconds <= MOST_INT:
        raise EvaluationError("duration overflow")
    return Duration(nanoseconds)


def unlike(found: str, wanted: str) -> EvaluationError:
    return EvaluationError(f"type conversion error from '{found}' to '{wanted}'")


def parse_timestamp(text: str) -> Timestamp:
    match = _moment.fullmatch(text)
    try:
        if match is None or match[1].startswith("0000"):
            raise ValueError
        whole = datetime.fromisoformat(f"{match[1]}T{match[2]}{match[4].replace('Z', '+00:00')}") - _EPOCH
    except (ValueError, OverflowError):
        raise unlike("string", "google.protobuf.Timestamp") from None
    fraction = int((match[3] or "0")[:9].ljust(9, "0"))
    return timestamp((whole.days * 86400 + whole.seconds) * _SECOND + fraction)


def parse_date(text: str) -> Timestamp:
    return parse_timestamp(f"{text}T00:00:00Z")


def parse_duration(text: str) -> Duration:
    sign = -1 if text.startswith("-") else 1
    rest = text[1:] if text[:1] in ("-", "+") else text
    position = total = 0
    while position < len(rest) and (match := _part.match(rest, position)) and (match[1] or match[2]):
        unit, fraction = _UNITS[match[3]], match[2] or ""
        total += int(match[1].lstrip("0")[:_MOST_DIGITS] or 0) * unit + (
            int(fraction[:18]) * unit // 10 ** len(fraction[:18]) if fraction else 0
        )
        position = match.end()
    if rest != "0" and (not rest or position < len(rest) or not LEAST_INT <= sign * total <= MOST_INT):
        raise unlike("string", "google.protobuf.Duration")
    return Duration(sign * total)


def int_of(number: int) -> int:
    """A number that fits into 64 bits."""
    if not LEAST_INT <= number <= MOST_INT:
        raise EvaluationError("integer overflow")
    return number


def uint_of(number: int) -> Uint:
    if not 0 <= number <= MOST_UINT:
        raise EvaluationError("unsigned integer overflow")
    return Uint(number)


# --- types and equality -------------------------------------------------------------------------------

_NAMES: dict[type, str] = {
    bool: "bool",
    int: "int",
    Uint: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    type(None): "null_type",
    list: "list",
    dict: "map",
    Timestamp: "google.protobuf.Timestamp",
    Duration: "google.protobuf.Duration",
    Optional: "optional_type",
    TypeValue: "type",
}
_NUMBERS = (int, float, Uint)
_ORDERED = (bool, str, bytes, Timestamp, Duration)


def name_of(value: Any) -> str:
    """The name of a value's type."""
    name = _NAMES.get(value.__class__)
    if name is None:
        name = "map" if isinstance(value, dict) else "list" if isinstance(value, list) else value.type_name
    return name


def equal(one: Any, other: Any) -> bool:
    """Whether two values of any types are equal; numbers are compared by what they count."""
    kind, other_kind = one.__class__, other.__class__
    if kind is not other_kind and not (kind in _NUMBERS and other_kind in _NUMBERS):
        return isinstance(one, dict) and isinstance(other, dict) and _equal_maps(one, other)
    if kind is list:
        return len(one) == len(other) and all(map(equal, one, other))
    if kind is dict:
        return _equal_maps(one, other)
    if kind is Optional:
        return len(one.found) == len(other.found) and all(map(equal, one.found, other.found))
    return bool(one == other)


def _equal_maps(one: dict[Any, Any], other: dict[Any, Any]) -> bool:
    return len(one) == len(other) and all(key in other and equal(value, other[key]) for key, value in one.items())


def less(one: Any, other: Any) -> bool:
    """Whether one value comes before another."""
    kind, other_kind = one.__class__, other.__class__
    if (kind in _NUMBERS and other_kind in _NUMBERS) or (kind is other_kind and kind in _ORDERED):
        return bool(one < other)
    raise no_such_overload()


def sized(value: Any) -> int:
    """How many characters, bytes, elements or entries a value has; 1 for everything else."""
    return len(value) if isinstance(value, str | bytes | list | dict) else getattr(value, "size", 1)


def weight(value: Any, known: dict[int, int] | None = None) -> int:
    """What it costs to walk through a value.

    A list that is in another twice is weighed once: ``[x, x]``, and twice that, and so on, is short to write, but it
    takes years to walk through.  ``known`` are the weights of what was weighed before, by identity.
    """
    if isinstance(value, str | bytes):
        return -(-len(value) // 10)
    if not isinstance(value, list | dict):
        return 1
    known = {} if known is None else known
    found = known.get(id(value))
    if found is None:
        items = value if isinstance(value, list) else value.values()
        found = known[id(value)] = 1 + sum(weight(item, known) for item in items)
    return found


def lookup(owner: Any, key: Any) -> Any:
    """The element of a list or the value of a map."""
    if isinstance(owner, dict):
        key = key_of(key)
        try:
            return owner[key]
        except KeyError:
            raise no_such_key(shown_key(key)) from None
    if isinstance(owner, list):
        index = key
        if index.__class__ is float and index.is_integer():
            index = int(index)
        if isinstance(index, bool) or not isinstance(index, int):
            raise EvaluationError(f"unsupported index type '{name_of(key)}' in list")
        if not 0 <= index < len(owner):
            raise EvaluationError(f"index out of bounds: {index}")
        return owner[index]
    raise no_such_overload()


def key_of(key: Any) -> Any:
    """A key such that equal numbers of all types are the same key."""
    kind = key.__class__
    if kind is str or kind is int:
        return key
    if kind is bool:
        return _TRUE if key else _FALSE
    if kind is float:
        return int(key) if math.isfinite(key) and key.is_integer() else key
    if kind is Uint:
        return int(key)
    raise EvaluationError(f"unsupported key type: {name_of(key)}")


class _Truth(msgspec.Struct, frozen=True):
    """A boolean as a key: in Python, True and 1 are the same key."""

    value: bool


_TRUE, _FALSE = _Truth(True), _Truth(False)


def plain_key(key: Any) -> Any:
    return key.value if key.__class__ is _Truth else key


def shown_key(key: Any) -> str:
    key = plain_key(key)
    return str(key).lower() if isinstance(key, bool) else str(key)
