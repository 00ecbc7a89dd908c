"""Timestamps and durations."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark.kinds.values import times


def test_writing_and_reading() -> None:
    assert times.text(0) == "1970-01-01T00:00:00Z"
    assert times.text(1577934245.9) == "2020-01-02T03:04:05Z"
    assert times.micro_text(1577934245.000006) == "2020-01-02T03:04:05.000006Z"
    assert times.parse("2020-01-02T03:04:05.5Z") == 1577934245.5
    assert times.parse("2020-01-02T05:04:05+02:00") == 1577934245


@given(st.integers(min_value=-62135596800, max_value=253402300799))
def test_a_timestamp_survives_the_round_trip(seconds: int) -> None:
    assert times.parse(times.canonical(times.text(seconds)) or "0001-01-01T00:00:00Z") == seconds


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", 'as "2006-01-02T15:04:05Z07:00": cannot parse "" as "2006"'),
        ("2020-1-02T03:04:05Z", 'as "2006-01-02T15:04:05Z07:00": cannot parse "1-02T03:04:05Z" as "01"'),
        ("2020-01-02 03:04:05Z", 'as "2006-01-02T15:04:05Z07:00": cannot parse " 03:04:05Z" as "T"'),
        ("2020-01-02T03:04:05", 'as "2006-01-02T15:04:05Z07:00": cannot parse "" as "Z07:00"'),
        ("2020-01-02T03:04:05Zx", ': extra text: "x"'),
        ("2020-13-02T03:04:05Z", ": month out of range"),
        ("2020-02-30T03:04:05Z", ": day out of range"),
        ("2020-02-03T24:04:05Z", ": hour out of range"),
        ("2020-02-03T23:60:05Z", ": minute out of range"),
        ("2020-02-03T23:00:60Z", ": second out of range"),
    ],
)
def test_errors_are_gos(text: str, sentence: str) -> None:
    with pytest.raises(times.TimeError) as caught:
        times.canonical(text)
    assert str(caught.value).replace(f'parsing time "{text}" ', f'parsing time "{text}"') == (
        f'parsing time "{text}"{sentence}'
    )


@pytest.mark.parametrize("text", ["2020-01-02T03:04:05Z", "2020-01-02T03:04:05.5Z", "2020-01-02T03:04:05.0000060Z"])
def test_micro_times_have_six_digits(text: str) -> None:
    with pytest.raises(times.TimeError, match=r'cannot parse ".*" as ".000000"'):
        times.canonical_micro(text)


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-2, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (5.9, "5s"),
        (119, "119s"),
        (120, "2m"),
        (190, "3m10s"),
        (599, "9m59s"),
        (600, "10m"),
        (3 * 3600 - 1, "179m"),
        (3 * 3600, "3h"),
        (7 * 3600 + 120, "7h2m"),
        (8 * 3600, "8h"),
        (48 * 3600 - 1, "47h"),
        (51 * 3600, "2d3h"),
        (3 * 86400, "3d"),
        (8 * 86400, "8d"),
        (730 * 86400 - 1, "729d"),
        (731 * 86400, "2y1d"),
        (8 * 365 * 86400, "8y"),
    ],
)
def test_durations_for_humans(seconds: float, shown: str) -> None:
    assert times.duration(seconds) == shown


def test_ages() -> None:
    assert times.age(1577934250, "2020-01-02T03:04:05Z") == "5s"
    assert times.age(1577934250, None) == "<unknown>"
