"""Cron expressions: what they mean, when they are due, and what is wrong with others."""

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seamark.kinds.batch import schedule

ZURICH = ZoneInfo("Europe/Zurich")


def due(text, start, count=3, zone="UTC"):
    """The next times after a local one, as local times."""
    place = ZoneInfo(zone)
    at = datetime.fromisoformat(start).replace(tzinfo=place).timestamp()
    found = []
    for _ in range(count):
        at = schedule.parse(text).after(at, place)
        if at is None:
            return found
        found.append(datetime.fromtimestamp(at, place).strftime("%Y-%m-%d %H:%M"))
    return found


@pytest.mark.parametrize(
    ("text", "start", "expected"),
    [
        ("* * * * *", "2026-01-01 00:00:30", ["2026-01-01 00:01", "2026-01-01 00:02", "2026-01-01 00:03"]),
        ("*/20 8-10/2 * * *", "2026-01-01 08:30", ["2026-01-01 08:40", "2026-01-01 10:00", "2026-01-01 10:20"]),
        ("5/25 0 * * *", "2026-01-01 00:00", ["2026-01-01 00:05", "2026-01-01 00:30", "2026-01-01 00:55"]),
        ("0 0 31 * *", "2026-01-31 00:00", ["2026-03-31 00:00", "2026-05-31 00:00", "2026-07-31 00:00"]),
        ("0 0 29 feb *", "2026-01-01 00:00", ["2028-02-29 00:00", "2032-02-29 00:00", "2036-02-29 00:00"]),
        ("0 12 * * MON-fri", "2026-01-02 12:00", ["2026-01-05 12:00", "2026-01-06 12:00", "2026-01-07 12:00"]),
        ("0 0 13 * fri", "2026-01-01 00:00", ["2026-01-02 00:00", "2026-01-09 00:00", "2026-01-13 00:00"]),
        ("0 0 */10 * mon", "2026-01-01 00:00", ["2026-01-05 00:00", "2026-01-11 00:00", "2026-01-12 00:00"]),
        ("0 0 ? * 1", "2026-01-01 00:00", ["2026-01-05 00:00", "2026-01-12 00:00", "2026-01-19 00:00"]),
        ("0 0 1,15 1,7 *", "2026-01-01 00:00", ["2026-01-15 00:00", "2026-07-01 00:00", "2026-07-15 00:00"]),
        ("@yearly", "2026-01-01 00:00", ["2027-01-01 00:00", "2028-01-01 00:00", "2029-01-01 00:00"]),
        ("@weekly", "2026-01-01 00:00", ["2026-01-04 00:00", "2026-01-11 00:00", "2026-01-18 00:00"]),
        ("@hourly", "2026-01-01 22:59:59", ["2026-01-01 23:00", "2026-01-02 00:00", "2026-01-02 01:00"]),
        ("@every 1h30m", "2026-01-01 00:00", ["2026-01-01 01:30", "2026-01-01 03:00", "2026-01-01 04:30"]),
        ("0 0 30 2 *", "2026-01-01 00:00", []),
        (", * * * *", "2026-01-01 00:00", []),
    ],
)
def test_due(text, start, expected):
    assert due(text, start) == expected


def test_a_time_that_is_skipped_in_spring_is_skipped():
    assert due("30 2 * * *", "2026-03-28 12:00", zone="Europe/Zurich") == [
        "2026-03-30 02:30",
        "2026-03-31 02:30",
        "2026-04-01 02:30",
    ]


def test_a_time_that_comes_twice_in_autumn_is_due_twice():
    assert due("30 2 * * *", "2026-10-24 12:00", zone="Europe/Zurich") == [
        "2026-10-25 02:30",
        "2026-10-25 02:30",
        "2026-10-26 02:30",
    ]


def test_a_day_that_begins_at_one_oclock():
    assert due("0 0 * * *", "2026-09-05 12:00", zone="America/Santiago", count=2) == [
        "2026-09-07 00:00",
        "2026-09-08 00:00",
    ]
    assert due("0 * * * *", "2026-09-05 22:30", zone="America/Santiago", count=2) == [
        "2026-09-05 23:00",
        "2026-09-06 01:00",
    ]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("every day", "expected exactly 5 fields, found 2: [every day]"),
        ("60 * * * *", "end of range (60) above maximum (59): 60"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("* * * * 7", "end of range (7) above maximum (6): 7"),
        ("5-3 * * * *", "beginning of range (5) beyond end of range (3): 5-3"),
        ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
        ("*/2/3 * * * *", "too many slashes: */2/3"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("x * * * *", 'failed to parse int from x: strconv.Atoi: parsing "x": invalid syntax'),
        ("* * * foo *", 'failed to parse int from foo: strconv.Atoi: parsing "foo": invalid syntax'),
        ("@sometimes", "unrecognized descriptor: @sometimes"),
        ("@every often", 'failed to parse duration @every often: time: invalid duration "often"'),
    ],
)
def test_refused(text, says):
    with pytest.raises(schedule.ScheduleError) as refused:
        schedule.parse(text)
    assert str(refused.value) == says


fields = st.tuples(
    st.sampled_from(["*", "0", "*/7", "5,40"]),
    st.sampled_from(["*", "2", "0-3", "23", "*/5"]),
    st.sampled_from(["*", "1", "28-31", "*/10"]),
    st.sampled_from(["*", "3", "oct-dec"]),
    st.sampled_from(["*", "sun", "1-5"]),
)


@settings(max_examples=60)
@given(fields, st.integers(1_760_000_000, 1_800_000_000), st.sampled_from(["UTC", "Europe/Zurich", "America/Santiago"]))
def test_the_next_time_is_the_first_minute_that_fits(parts, start, zone):
    """Against a walk through every minute of the following days."""
    found, place = schedule.parse(" ".join(parts)), ZoneInfo(zone)

    def fits(moment):
        local = datetime.fromtimestamp(moment, place)
        by_day, by_weekday = local.day in found.days, local.isoweekday() % 7 in found.weekdays
        day = by_day and by_weekday if "*" in (parts[2], parts[4]) else by_day or by_weekday
        return local.minute in found.minutes and local.hour in found.hours and local.month in found.months and day

    first = start // 60 * 60 + 60
    walked = next((m for m in range(first, first + 4 * 86400, 60) if fits(m)), None)
    answer = found.after(start, place)
    if walked is not None:
        assert answer == walked
    else:
        assert answer is None or answer > first + 4 * 86400 - 60


def test_zones_are_used_as_they_are():
    noon = datetime(2026, 1, 1, 12, tzinfo=ZURICH)
    following = schedule.parse("0 12 * * *").after(noon.timestamp(), ZURICH)
    assert datetime.fromtimestamp(following, ZURICH) == noon + timedelta(days=1)
