"""Timestamps and durations: how they are made, added, compared, and what their parts are."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

from seamark.cel import values
from seamark.cel.errors import EvaluationError
from seamark.cel.types import Overload, overload
from seamark.cel.values import Duration, Timestamp

_SECOND = 10**9
_offset = re.compile(r"([+-]?)(\d\d):(\d\d)", re.ASCII)


def _zone(name: str) -> tzinfo:
    if match := _offset.fullmatch(name):
        offset = timedelta(hours=int(match[2]), minutes=int(match[3]))
        return timezone(-offset if match[1] == "-" else offset)
    try:
        return UTC if name in ("", "UTC") else ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise EvaluationError(f"unknown time zone {name}") from None


_PARTS: dict[str, Callable[[datetime], int]] = {
    "getFullYear": lambda moment: moment.year,
    "getMonth": lambda moment: moment.month - 1,
    "getDayOfYear": lambda moment: moment.timetuple().tm_yday - 1,
    "getDayOfMonth": lambda moment: moment.day - 1,
    "getDate": lambda moment: moment.day,
    "getDayOfWeek": lambda moment: moment.isoweekday() % 7,
    "getHours": lambda moment: moment.hour,
    "getMinutes": lambda moment: moment.minute,
    "getSeconds": lambda moment: moment.second,
}
_UNITS = {"getHours": 3600 * _SECOND, "getMinutes": 60 * _SECOND, "getSeconds": _SECOND, "getMilliseconds": 10**6}


def _part(read: Callable[[datetime], int]) -> Callable[..., int]:
    def part(moment: Timestamp, zone: str = "") -> int:
        try:
            return read(moment.at(_zone(zone)))
        except OverflowError:
            raise EvaluationError("timestamp overflow") from None

    return part


def _milliseconds(moment: Timestamp, zone: str = "") -> int:
    _zone(zone)
    return moment.nanoseconds % _SECOND // 10**6


def _whole(unit: int) -> Callable[[Duration], int]:
    def whole(length: Duration) -> int:
        count = abs(length.nanoseconds) // unit
        return -count if length.nanoseconds < 0 else count

    return whole


def _parts() -> list[Overload]:
    found: list[Overload] = []
    for name, run in [*((name, _part(read)) for name, read in _PARTS.items()), ("getMilliseconds", _milliseconds)]:
        found.append(overload(f"timestamp.{name}() -> int", run))
        found.append(overload(f"timestamp.{name}(string) -> int", run))
    found += [overload(f"duration.{name}() -> int", _whole(unit)) for name, unit in _UNITS.items()]
    return found


def _same(value: Any) -> Any:
    return value


FUNCTIONS = [
    overload("timestamp(timestamp) -> timestamp", _same),
    overload("timestamp(string) -> timestamp", values.parse_timestamp),
    overload("timestamp(int) -> timestamp", lambda seconds: values.timestamp(seconds * _SECOND)),
    overload("duration(duration) -> duration", _same),
    overload("duration(string) -> duration", values.parse_duration),
    overload("duration(int) -> duration", values.duration),
    overload("int(timestamp) -> int", lambda moment: moment.nanoseconds // _SECOND),
    overload("int(duration) -> int", lambda length: length.nanoseconds),
    overload("string(timestamp) -> string", str),
    overload("string(duration) -> string", str),
    overload("_+_(timestamp, duration) -> timestamp", lambda a, b: values.timestamp(a.nanoseconds + b.nanoseconds)),
    overload("_+_(duration, timestamp) -> timestamp", lambda a, b: values.timestamp(a.nanoseconds + b.nanoseconds)),
    overload("_+_(duration, duration) -> duration", lambda a, b: values.duration(a.nanoseconds + b.nanoseconds)),
    overload("_-_(timestamp, timestamp) -> duration", lambda a, b: values.duration(a.nanoseconds - b.nanoseconds)),
    overload("_-_(timestamp, duration) -> timestamp", lambda a, b: values.timestamp(a.nanoseconds - b.nanoseconds)),
    overload("_-_(duration, duration) -> duration", lambda a, b: values.duration(a.nanoseconds - b.nanoseconds)),
    *_parts(),
]
