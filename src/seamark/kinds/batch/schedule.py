"""Cron expressions as CronJobs use them, after robfig/cron: five fields, names, ranges, steps, and ``@daily`` etc.

Libraries for Python differ from it in what they accept and in what they do when clocks change.  Here time is walked
as it passes: a local time that is skipped in spring is skipped, and one that comes twice in autumn is due twice.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, tzinfo

import msgspec

from seamark.remembering import remembered

_MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_MONTHS = {
    name: place
    for place, name in enumerate(
        ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"), start=1
    )
}
_DAYS = {name: place for place, name in enumerate(("sun", "mon", "tue", "wed", "thu", "fri", "sat"))}
_YEARS = 5  # an expression that is never due within so many years is never due
_HOUR, _DAY = timedelta(hours=1), timedelta(days=1)

_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_GO_DURATION = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h))+|[+-]?0", re.ASCII)
_GO_PART = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)", re.ASCII)


class ScheduleError(ValueError):
    """The expression is not valid; the message is robfig/cron's."""


class _Bounds(msgspec.Struct, frozen=True):
    low: int
    high: int
    names: Mapping[str, int] = {}


_FIELDS = (_Bounds(0, 59), _Bounds(0, 23), _Bounds(1, 31), _Bounds(1, 12, _MONTHS), _Bounds(0, 6, _DAYS))


class Schedule(msgspec.Struct, frozen=True):
    """When a CronJob is due.  ``any_*`` says that a field was a star, which matters to how days are chosen."""

    minutes: frozenset[int] = frozenset()
    hours: frozenset[int] = frozenset()
    days: frozenset[int] = frozenset()
    months: frozenset[int] = frozenset()
    weekdays: frozenset[int] = frozenset()
    any_day: bool = False
    any_weekday: bool = False
    every: float = 0.0  # seconds between two times, instead of all the above

    def after(self, moment: float, zone: tzinfo = UTC) -> float | None:
        """The first time after this one, both in seconds since the epoch; None if there is none."""
        if self.every:
            return float(int(moment)) + self.every
        if not (self.minutes and self.hours and self.months):
            return None  # a list without an entry is allowed; looking through years of minutes would take seconds
        start = datetime.fromtimestamp(int(moment) // 60 * 60 + 60, UTC)
        at = start
        while at.year <= start.year + _YEARS:
            local = at.astimezone(zone)
            if local.month not in self.months:
                at = _midnight(local, (local.replace(day=1, fold=0) + 32 * _DAY).replace(day=1), zone)
            elif not self._chooses(local):
                at = _midnight(local, local.replace(fold=0) + _DAY, zone)
            elif local.hour not in self.hours:
                at += _HOUR - timedelta(minutes=local.minute)
            elif local.minute not in self.minutes:
                at += timedelta(minutes=1)
            else:
                return at.timestamp()
        return None

    def _chooses(self, local: datetime) -> bool:
        """Whether the day is chosen: by both fields if one of them is a star, by either if none is."""
        by_day, by_weekday = local.day in self.days, local.isoweekday() % 7 in self.weekdays
        return by_day and by_weekday if self.any_day or self.any_weekday else by_day or by_weekday


def _midnight(now: datetime, day: datetime, zone: tzinfo) -> datetime:
    """When that local day begins; later than ``now`` even where the clock is put back over midnight."""
    found = day.replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=zone).astimezone(UTC)
    return max(found, now.astimezone(UTC) + timedelta(minutes=1))


@remembered(1024)
def parse(text: str) -> Schedule:
    """The schedule; raises :class:`ScheduleError`.  A time zone is not taken here: CronJobs have a field for it."""
    if text.startswith("@"):
        if text.startswith("@every "):
            return Schedule(every=_every(text.removeprefix("@every ")))
        if text not in _MACROS:
            raise ScheduleError(f"unrecognized descriptor: {text}")
        text = _MACROS[text]
    fields = text.split()
    if len(fields) != len(_FIELDS):
        raise ScheduleError(f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]")
    sets = [_field(field, bounds) for field, bounds in zip(fields, _FIELDS, strict=True)]
    (minutes, _), (hours, _), (days, any_day), (months, _), (weekdays, any_weekday) = sets
    return Schedule(minutes, hours, days, months, weekdays, any_day, any_weekday)


def _field(text: str, bounds: _Bounds) -> tuple[frozenset[int], bool]:
    """The numbers that a field stands for, and whether it is a star."""
    numbers: set[int] = set()
    star = False
    for part in text.split(","):
        if part:
            chosen, every = _range(part, bounds)
            numbers |= set(chosen)
            star |= every
    return frozenset(numbers), star


def _range(text: str, bounds: _Bounds) -> tuple[range, bool]:
    span, *steps = text.split("/")
    ends = span.split("-")
    star = ends[0] in ("*", "?")
    if star:
        low, high = bounds.low, bounds.high
    else:
        low = _number(ends[0], bounds.names)
        if len(ends) > 2:
            raise ScheduleError(f"too many hyphens: {text}")
        high = _number(ends[1], bounds.names) if len(ends) == 2 else low
    if len(steps) > 1:
        raise ScheduleError(f"too many slashes: {text}")
    step = 1
    if steps:
        step = _number(steps[0], {})
        if len(ends) == 1:
            high = bounds.high
        star = star and step <= 1
    if low < bounds.low:
        raise ScheduleError(f"beginning of range ({low}) below minimum ({bounds.low}): {text}")
    if high > bounds.high:
        raise ScheduleError(f"end of range ({high}) above maximum ({bounds.high}): {text}")
    if low > high:
        raise ScheduleError(f"beginning of range ({low}) beyond end of range ({high}): {text}")
    if step == 0:
        raise ScheduleError(f"step of range should be a positive number: {text}")
    return range(low, high + 1, step), star


def _number(text: str, names: Mapping[str, int]) -> int:
    named = names.get(text.lower())
    if named is not None:
        return named
    if not re.fullmatch(r"[+-]?\d+", text, re.ASCII):
        raise ScheduleError(f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": invalid syntax')
    if len(text) > 18:
        raise ScheduleError(f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": value out of range')
    number = int(text)
    if number < 0:
        raise ScheduleError(f"negative number ({number}) not allowed: {text}")
    return number


def _every(text: str) -> float:
    """The seconds of ``@every 1h30m``: whole ones, and at least one."""
    if not _GO_DURATION.fullmatch(text):
        quoted = f'time: invalid duration "{text}"'
        raise ScheduleError(f"failed to parse duration @every {text}: {quoted}")
    seconds = sum(float(number) * _UNITS[unit] for number, unit in _GO_PART.findall(text))
    return max(1.0, float(int(-seconds if text.startswith("-") else seconds)))
