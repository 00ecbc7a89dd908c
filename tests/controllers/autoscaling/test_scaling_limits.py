"""How far and how fast the number of replicas may change."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark.controllers.autoscaling.autoscaler import AutoscalerSpec, Behaviour, Direction, Policy
from seamark.controllers.autoscaling.limits import Memory, Step, limit

NOW = 1000.0
UP = Direction((Policy("Pods", 4, 15), Policy("Percent", 100, 15)), stabilization_window_seconds=0)
DOWN = Direction((Policy("Percent", 100, 15),))


def spec(behaviour=None, least=1, most=100):
    return AutoscalerSpec(min_replicas=least, max_replicas=most, behavior=behaviour)


def limited(spec, current, asked, *, recommended=(), changes=()):
    memory = Memory([Step(NOW - ago, n) for ago, n in recommended], [Step(NOW - ago, n) for ago, n in changes])
    found = limit(spec, memory, current, asked, NOW)
    assert memory.recommended[-1] == Step(NOW, asked)
    return found.replicas, found.held[0], found.limited, found.limit[0]


@pytest.mark.parametrize(
    ("current", "asked", "recommended", "expected"),
    [
        (3, 5, (), (5, "ReadyForNewScale", False, "DesiredWithinRange")),
        (3, 50, (), (6, "ReadyForNewScale", True, "ScaleUpLimit")),
        (1, 50, (), (4, "ReadyForNewScale", True, "ScaleUpLimit")),
        (60, 300, (), (100, "ReadyForNewScale", True, "TooManyReplicas")),
        (3, 0, (), (1, "ReadyForNewScale", True, "TooFewReplicas")),
        (8, 2, ((299, 6),), (6, "ScaleDownStabilized", False, "DesiredWithinRange")),
        (8, 2, ((301, 6),), (2, "ReadyForNewScale", False, "DesiredWithinRange")),
    ],
)
def test_without_a_behaviour(current, asked, recommended, expected):
    assert limited(spec(), current, asked, recommended=recommended) == expected


@pytest.mark.parametrize(
    ("up", "down", "current", "asked", "recommended", "changes", "expected"),
    [
        (UP, DOWN, 3, 50, (), (), (7, "ReadyForNewScale", True, "ScaleUpLimit")),
        (UP, DOWN, 10, 50, (), (), (20, "ReadyForNewScale", True, "ScaleUpLimit")),
        (UP, DOWN, 10, 50, (), ((10, 4),), (12, "ReadyForNewScale", True, "ScaleUpLimit")),
        (UP, DOWN, 10, 50, (), ((20, 4),), (20, "ReadyForNewScale", True, "ScaleUpLimit")),
        (UP, DOWN, 10, 2, ((200, 9),), (), (9, "ScaleDownStabilized", False, "DesiredWithinRange")),
        (UP, DOWN, 10, 2, (), (), (2, "ReadyForNewScale", False, "DesiredWithinRange")),
        (UP, DOWN, 10, 0, (), (), (1, "ReadyForNewScale", True, "TooFewReplicas")),
        (UP, Direction((Policy("Pods", 1, 60),)), 10, 2, (), (), (9, "ReadyForNewScale", True, "ScaleDownLimit")),
        (
            UP,
            Direction((Policy("Pods", 1, 60),)),
            9,
            2,
            (),
            ((30, -1),),
            (9, "ReadyForNewScale", True, "ScaleDownLimit"),
        ),
        (UP, Direction(DOWN.policies, "Disabled"), 10, 2, (), (), (10, "ReadyForNewScale", True, "ScaleDownLimit")),
        (Direction(UP.policies, "Disabled"), DOWN, 3, 9, (), (), (3, "ReadyForNewScale", True, "ScaleUpLimit")),
        (Direction(UP.policies, "Min"), DOWN, 3, 50, (), (), (6, "ReadyForNewScale", True, "ScaleUpLimit")),
        (
            Direction(UP.policies, "Max", 60),
            DOWN,
            3,
            7,
            ((30, 4),),
            (),
            (4, "ScaleUpStabilized", False, "DesiredWithinRange"),
        ),
        (UP, DOWN, 60, 300, (), (), (100, "ReadyForNewScale", True, "TooManyReplicas")),
    ],
)
def test_with_a_behaviour(up, down, current, asked, recommended, changes, expected):
    given_spec = spec(Behaviour(up, down))
    assert limited(given_spec, current, asked, recommended=recommended, changes=changes) == expected


@given(
    behaviour=st.sampled_from([None, Behaviour(UP, DOWN), Behaviour(Direction(UP.policies, "Min", 60), DOWN)]),
    current=st.integers(2, 20),
    asked=st.integers(0, 40),
    history=st.lists(st.tuples(st.integers(0, 400), st.integers(0, 40)), max_size=5),
)
def test_the_number_stays_between_minimum_and_maximum(behaviour, current, asked, history):
    replicas, *_ = limited(spec(behaviour, 2, 20), current, asked, recommended=history)
    assert 2 <= replicas <= 20
    if asked >= current:
        assert replicas >= current
