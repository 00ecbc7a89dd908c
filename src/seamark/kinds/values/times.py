"""RFC 3339 timestamps as Kubernetes writes them; durations as ``kubectl`` shows them and as people write them.

Objects contain timestamps as text; a number in this module is in seconds since the epoch.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache

from seamark.remembering import remembered

_RFC3339 = "2006-01-02T15:04:05Z07:00"
_RFC3339_MICRO = "2006-01-02T15:04:05.000000Z07:00"
_ZERO = datetime(1, 1, 1, tzinfo=UTC)

# The parts of a timestamp: Go's name of each part, and its pattern.
_PARTS = [
    ("2006", re.compile(r"\d{4}", re.ASCII)),
    ("-", re.compile("-")),
    ("01", re.compile(r"\d\d", re.ASCII)),
    ("-", re.compile("-")),
    ("02", re.compile(r"\d\d", re.ASCII)),
    ("T", re.compile("T")),
    ("15", re.compile(r"\d\d?", re.ASCII)),
    (":", re.compile(":")),
    ("04", re.compile(r"\d\d", re.ASCII)),
    (":", re.compile(":")),
    ("05", re.compile(r"\d\d", re.ASCII)),
]
_ANY_FRACTION = re.compile(r"([.,]\d+)?", re.ASCII)
_SIX_DIGITS = re.compile(r"[.,]\d{6}(?!\d)", re.ASCII)
_ZONE = re.compile(r"Z|[+-]\d\d:\d\d", re.ASCII)

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)", re.ASCII)


_LONGEST_DURATION = 100  # characters; the time to search a text grows with the square of its length


class TimeError(ValueError):
    """The text is not a timestamp; the message is Go's."""


def text(seconds: float) -> str:
    """``2026-01-02T03:04:05Z``: whole seconds, as in ``metadata.creationTimestamp``."""
    return _text(int(seconds))


@lru_cache(maxsize=16)  # many writes share a second
def _text(seconds: int) -> str:
    return text_of(datetime.fromtimestamp(seconds, UTC))


def micro_text(seconds: float) -> str:
    """``2026-01-02T03:04:05.000006Z``: with microseconds, as in Leases and Events."""
    return micro_text_of(datetime.fromtimestamp(seconds, UTC))


def text_of(moment: datetime) -> str:
    """As :func:`text`, for a datetime in UTC."""
    return moment.replace(tzinfo=None).isoformat(timespec="seconds") + "Z"


def micro_text_of(moment: datetime) -> str:
    """As :func:`micro_text`, for a datetime in UTC."""
    return moment.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


@remembered(4096)
def parse(timestamp: str) -> float:
    """Seconds since the epoch; a fraction of a second is optional.  Raises :class:`TimeError`."""
    return _read(timestamp, _RFC3339, _ANY_FRACTION).timestamp()


@remembered(4096)
def canonical(timestamp: str) -> str | None:
    """The same time in UTC and whole seconds; None for Go's zero time.  Raises :class:`TimeError`."""
    moment = _read(timestamp, _RFC3339, _ANY_FRACTION)
    return None if moment == _ZERO else text_of(moment)


@remembered(4096)
def canonical_micro(timestamp: str) -> str | None:
    """The same time in UTC with six decimals; None for Go's zero time.  Raises :class:`TimeError`."""
    moment = _read(timestamp, _RFC3339_MICRO, _SIX_DIGITS)
    return None if moment == _ZERO else micro_text_of(moment)


def _read(timestamp: str, layout: str, fraction: re.Pattern[str]) -> datetime:
    position = 0
    values: list[str] = []
    last = ".000000" if layout == _RFC3339_MICRO else "05"
    for name, pattern in [*_PARTS, (last, fraction), ("Z07:00", _ZONE)]:
        match = pattern.match(timestamp, position)
        if not match:
            raise TimeError(
                f'parsing time "{timestamp}" as "{layout}": cannot parse "{timestamp[position:]}" as "{name}"'
            )
        values.append(match[0])
        position = match.end()
    if position < len(timestamp):
        raise TimeError(f'parsing time "{timestamp}": extra text: "{timestamp[position:]}"')
    year, month, day, hour, minute, second = (int(part) for part in values[0:11:2])
    micros = int(values[11][1:7].ljust(6, "0")) if values[11] else 0
    for number, limit, word in (
        (month - 1, 12, "month"),
        (hour, 24, "hour"),
        (minute, 60, "minute"),
        (second, 60, "second"),
    ):
        if not 0 <= number < limit:
            raise TimeError(f'parsing time "{timestamp}": {word} out of range')
    try:
        moment = datetime(year, month, day, hour, minute, second, micros, tzinfo=_zone(values[12]))
        return moment.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise TimeError(f'parsing time "{timestamp}": day out of range') from error


def _zone(zone: str) -> timezone:
    if zone == "Z":
        return UTC
    offset = timedelta(hours=int(zone[1:3]), minutes=int(zone[4:6]))
    return timezone(-offset if zone[0] == "-" else offset)


def later(timestamp: str, seconds: int) -> str:
    """The time so many seconds after another one, any number that fits into 64 bits.

    As in Go, whose durations are 64-bit numbers of nanoseconds that wrap around, it is at most 292 years away.
    """
    nanoseconds = (seconds * 10**9 + (1 << 63)) % (1 << 64) - (1 << 63)
    return text(parse(timestamp) + nanoseconds // 10**9)


def age(now: float, timestamp: str | None) -> str:
    """How long ago a timestamp is, as ``kubectl get`` shows it; ``<unknown>`` without a timestamp."""
    return duration(now - parse(timestamp)) if timestamp else "<unknown>"


def parse_duration(text: str) -> float:
    """Seconds, from ``3s``, ``1m30s``, ``250ms`` or ``2d``; ``ValueError`` for anything else."""
    if not text or len(text) > _LONGEST_DURATION or _DURATION_PART.sub("", text):
        raise ValueError(f"{text!r} is not a duration such as 3s, 1m30s, 250ms or 2d")
    return sum(float(number) * _UNITS[unit] for number, unit in _DURATION_PART.findall(text))


def duration(seconds: float) -> str:
    """A duration in at most two units, coarser as it grows (``90s``, ``3m10s``, ``47h``, ``2d3h``, ``3y``)."""
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    if whole <= 0:
        return "0s"
    minutes, hours = whole // 60, whole // 3600
    days, years = hours // 24, hours // 24 // 365
    if whole < 60 * 2:
        return f"{whole}s"
    if minutes < 10:
        return _two(minutes, "m", whole % 60, "s")
    if minutes < 60 * 3:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if hours < 24 * 8:
        return _two(days, "d", hours % 24, "h")
    if days < 365 * 2:
        return f"{days}d"
    if days < 365 * 8:
        return _two(years, "y", days % 365, "d")
    return f"{years}y"


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"
