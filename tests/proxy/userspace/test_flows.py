"""How many UDP flows there are, and when one ends."""

from hypothesis import given
from hypothesis import strategies as st

from seamark.proxy.userspace.flows import FlowTable
from virtual_time import VirtualClock


def test_a_flow_ends_by_silence_later_if_it_was_answered():
    clock = VirtualClock()
    flows = FlowTable(10, clock=clock)
    flows.add("asked", "A")
    flows.add("answered", "B")
    flows.answered("answered")
    clock.now += 30
    assert flows.expired() == ["A"]
    clock.now += 89
    assert flows.heard("answered") == "B"
    clock.now += 119
    assert flows.expired() == []
    clock.now += 1
    assert flows.expired() == ["B"]
    assert len(flows) == 0
    assert flows.heard("answered") is None


def test_a_flood_displaces_itself_not_those_that_are_answered():
    flows = FlowTable(3, clock=VirtualClock())
    flows.add("talk", "T")
    flows.answered("talk")
    displaced = [flows.add(number, number) for number in range(1000)]
    assert displaced[:3] == [None, None, 0]
    assert len(flows) == 3
    assert flows.heard("talk") == "T"


def test_if_all_are_answered_the_longest_silent_goes():
    flows = FlowTable(2, clock=VirtualClock())
    for key in "ab":
        flows.add(key, key)
        flows.answered(key)
    flows.heard("a")
    assert flows.add("c", "c") == "b"


def test_a_removed_flow_is_gone():
    flows = FlowTable(2, clock=VirtualClock())
    flows.add("a", "A")
    assert flows.remove("a") == "A"
    assert flows.remove("a") is None
    flows.answered("a")
    assert list(flows) == []


_STEPS = st.lists(
    st.tuples(st.sampled_from(["heard", "answered", "remove", "pass"]), st.integers(0, 9)), min_size=1, max_size=80
)


@given(_STEPS)
def test_a_flow_is_in_the_table_until_it_was_silent_displaced_or_removed(steps):
    clock = VirtualClock(0.0)
    flows = FlowTable(5, clock=clock)
    alive = set()
    for step, key in steps:
        if step == "pass":
            clock.now += key * 5
            alive -= set(flows.expired())
        elif step == "heard":
            assert (flows.heard(key) is not None) == (key in alive)
            if key not in alive:
                alive = alive - {flows.add(key, key)} | {key}
        else:
            getattr(flows, step)(key)
            alive -= {key} if step == "remove" else set()
        assert set(flows) == alive
        assert len(flows) <= 5
