"""Annotations: what is understood, what is complained about."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark.nodes.simulated.pods.orders import NO_ORDERS, Orders, duration, parse


def orders(**annotations):
    return parse({f"seamark.dev/{key.replace('_', '-')}": value for key, value in annotations.items()})


def test_every_order_there_is():
    parsed, complaints = orders(
        start_after="3s",
        ready_after="250ms",
        ready="never",
        flap="5s",
        fail_after="1m30s",
        exit_code="3",
        complete_after="0s",
        stop_after="1h",
    )
    assert complaints == ()
    assert parsed == Orders(
        start_after=3.0,
        ready_after=0.25,
        never_ready=True,
        flap=5.0,
        fail_after=90.0,
        exit_code=3,
        complete_after=0.0,
        stop_after=3600.0,
    )


def test_what_is_not_ours_is_nobodys_business():
    assert parse({"example.com/start-after": "soon", "note": "x"}) == (NO_ORDERS, ())


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        (
            "start-after",
            "soon",
            "annotation seamark.dev/start-after: 'soon' is not a duration such as 3s, 1m30s or 250ms",
        ),
        ("start-after", "-3s", "'-3s' is not a duration"),
        ("start-after", "3", "'3' is not a duration"),
        ("start-after", "", "'' is not a duration"),
        ("ready-after", "99999h", "'99999h' is not a duration"),
        ("flap", "0s", "'0s' is not a duration"),
        ("ready", "false", "annotation seamark.dev/ready: 'false' is not \"never\""),
        ("exit-code", "0", "'0' is not a number from 1 to 255"),
        ("exit-code", "²", "'²' is not a number from 1 to 255"),
        ("redy-after", "3s", "unknown annotation seamark.dev/redy-after: known are start-after, ready-after, "),
    ],
)
def test_a_bad_one_is_as_if_it_were_not_there(key, value, said):
    parsed, (complaint,) = parse({f"seamark.dev/{key}": value, "seamark.dev/stop-after": "2s"})
    assert parsed == Orders(stop_after=2.0)
    assert said in complaint


@given(st.text())
def test_any_text_is_a_duration_or_is_refused(text):
    try:
        seconds = duration(text)
    except ValueError:
        return
    assert seconds >= 0


@given(st.integers(0, 100), st.integers(0, 59), st.integers(0, 59), st.integers(0, 999))
def test_durations_add_up(hours, minutes, seconds, milliseconds):
    text = f"{hours}h{minutes}m{seconds}s{milliseconds}ms"
    assert duration(text) == pytest.approx(hours * 3600 + minutes * 60 + seconds + milliseconds / 1000)
