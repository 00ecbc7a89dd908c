"""The time noted in what is written."""

from worlds import pod, service

from seamark.rules.changes import TriggerTimes

WEB = service()


def at(day):
    return f"2026-02-{day:02d}T00:00:00Z"


def test_the_first_write_is_for_the_service():
    times = TriggerTimes()
    times.put("a", pod("a", since=at(1)))
    assert times.earliest(WEB) == "2026-01-01T00:00:00Z"


def test_later_ones_are_for_the_earliest_change():
    times = TriggerTimes()
    times.written(WEB)
    times.put("a", pod("a", since=at(3)))
    times.put("b", pod("b", since=at(2)))
    assert times.earliest(WEB) == at(2)
    assert times.earliest(WEB) == at(2)  # asking does not take it away: the write may have failed
    times.written(WEB)
    assert times.earliest(WEB) == ""


def test_only_changes_count():
    times = TriggerTimes()
    times.put("a", pod("a", since=at(2)))
    times.written(WEB)
    times.put("a", pod("a", since=at(2), ready=False))
    times.put("b", None)
    times.put("c", pod("c", ready=None))
    assert times.earliest(WEB) == ""
    times.put("a", None)
    times.written(WEB)
    times.put("a", pod("a", since=at(1)))  # another Pod of the same name
    assert times.earliest(WEB) == at(1)
