"""What can be said about a probe, and when."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark.rules.container_probes import Standing, judge


class Timing(msgspec.Struct):
    initial_delay_seconds: int = 0
    period_seconds: int = 10
    failure_threshold: int = 3


@pytest.mark.parametrize(
    ("timing", "elapsed", "expected"),
    [
        (Timing(900), 60.0, Standing.NOT_ASKED),
        (Timing(0, 30), 2.0, Standing.NOT_ASKED),
        (Timing(), 9.9, Standing.NOT_ASKED),
        (Timing(), 10.0, Standing.UNDECIDED),
        (Timing(), 29.9, Standing.UNDECIDED),
        (Timing(), 30.0, Standing.FAILING),
        (Timing(5, 10, 1), 15.0, Standing.FAILING),
        (Timing(), None, Standing.UNKNOWN),
    ],
)
def test_before_an_answer_is_known(timing, elapsed, expected):
    assert judge(timing, passed=False, elapsed=elapsed, said_to_fail=False).standing is expected


def test_what_an_event_says_and_what_passes():
    assert judge(Timing(900), passed=False, elapsed=1.0, said_to_fail=True).standing is Standing.FAILING
    assert judge(Timing(), passed=True, elapsed=1e6, said_to_fail=True).standing is Standing.PASSING


def test_a_probe_that_waits_for_another():
    waiting = judge(Timing(), passed=False, elapsed=45.0, said_to_fail=False, after=Timing(0, 10, 30))
    assert waiting.standing is Standing.NOT_ASKED
    assert judge(Timing(), passed=False, elapsed=330.0, said_to_fail=False, after=Timing(0, 10, 30)).standing is (
        Standing.FAILING
    )


@given(st.integers(0, 3600), st.integers(0, 600), st.integers(0, 20), st.floats(0, 1e6))
def test_it_fails_by_the_clock_only_when_every_question_has_been_asked(delay, period, threshold, elapsed):
    judged = judge(Timing(delay, period, threshold), passed=False, elapsed=elapsed, said_to_fail=False)
    enough = delay + max(1, period) * max(1, threshold)
    assert (judged.standing is Standing.FAILING) == (elapsed >= enough)
