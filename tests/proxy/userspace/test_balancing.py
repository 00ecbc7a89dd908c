"""Which backend a connection gets."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark.proxy.userspace.balancing import Balancer
from seamark.rules.routing.model import Backend, Choice
from virtual_time import VirtualClock

ONE, TWO, THREE = ("10.0.0.1", 80), ("10.0.0.2", 80), ("10.0.0.3", 80)


def choice(*targets):
    return Choice(tuple(Backend(*each) for each in targets))


def test_each_gets_the_same_share():
    balancer = Balancer()
    got = Counter(balancer.pick(choice(ONE, TWO, THREE), "c") for _ in range(300))
    assert got == {ONE: 100, TWO: 100, THREE: 100}


@pytest.mark.parametrize(("tried", "left"), [([ONE], {TWO}), ([ONE, TWO], {None}), ([], {ONE, TWO})])
def test_those_tried_are_passed_over(tried, left):
    balancer = Balancer()
    assert {balancer.pick(choice(ONE, TWO), "c", tried=tried) for _ in range(10)} == left


def test_a_client_keeps_its_backend_while_it_comes_back_in_time():
    clock = VirtualClock()
    balancer = Balancer(clock=clock)
    first = balancer.pick(choice(ONE, TWO, THREE), "c", affinity=10)
    for _ in range(5):
        clock.now += 9
        assert balancer.pick(choice(ONE, TWO, THREE), "c", affinity=10) == first
    clock.now += 10
    assert balancer.pick(choice(ONE, TWO, THREE), "c", affinity=10) != first


def test_a_client_whose_backend_is_gone_keeps_its_new_one():
    balancer = Balancer(clock=VirtualClock())
    assert balancer.pick(choice(ONE), "c", affinity=10) == ONE
    assert balancer.pick(choice(TWO), "c", affinity=10) == TWO
    assert {balancer.pick(choice(ONE, TWO, THREE), "c", affinity=10) for _ in range(9)} == {TWO}


def test_a_backend_that_did_not_answer_is_not_kept():
    balancer = Balancer(clock=VirtualClock())
    first = balancer.pick(choice(ONE, TWO), "c", affinity=10)
    second = balancer.pick(choice(ONE, TWO), "c", affinity=10, tried=[first])
    assert second not in (first, None)
    assert balancer.pick(choice(ONE, TWO), "c", affinity=10) == second


def test_without_affinity_nothing_is_remembered():
    balancer = Balancer(clock=VirtualClock())
    balancer.pick(choice(ONE, TWO), "c", affinity=10)
    balancer.pick(choice(ONE, TWO), "c")
    assert len(balancer) == 0


@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.floats(0, 5)), max_size=60))
def test_the_table_is_bounded_and_holds_no_one_who_was_away_too_long(visits):
    clock = VirtualClock(0.0)
    balancer = Balancer(clock=clock, most=4)
    seen = {}
    for client, pause in visits:
        clock.now += pause
        got = balancer.pick(choice(ONE, TWO, THREE), client, affinity=6)
        recent = [each for each, (_, at) in seen.items() if at > clock.now - 6 and each != client]
        if client in seen and seen[client][1] > clock.now - 6 and len(recent) < 3:
            assert got == seen[client][0]
        seen[client] = got, clock.now
        assert len(balancer) <= 4
