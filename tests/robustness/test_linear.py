"""The search for an order, in cases that can be judged by eye and against trying every order."""

from __future__ import annotations

import itertools

import pytest
from history import NEVER
from hypothesis import given
from hypothesis import strategies as st
from linear import State, Step, after, stuck

CREATED = Step(1, 2, "write", 5, needs="absent")


@pytest.mark.parametrize(
    ("steps", "possible"),
    [
        pytest.param([], True, id="nothing happened"),
        pytest.param([CREATED, Step(3, 4, "read", 5)], True, id="a write is read"),
        pytest.param([CREATED, Step(3, 4, "read", 0)], False, id="a write is lost"),
        pytest.param([CREATED, Step(1, 4, "read", 0)], True, id="a read that began before the write ended"),
        pytest.param([Step(1, 2, "read", 5), Step(3, 4, "write", 5)], False, id="a read before the write"),
        pytest.param(
            [CREATED, Step(3, 4, "write", 6), Step(5, 6, "read", 5)],
            False,
            id="an old version is read",
        ),
        pytest.param(
            [CREATED, Step(3, 8, "write", 6), Step(4, 5, "read", 6), Step(6, 7, "read", 5)],
            False,
            id="a write that was seen is not unseen again",
        ),
        pytest.param([CREATED, Step(3, 4, "write", 6, needs="absent")], False, id="created twice"),
        pytest.param(
            [CREATED, Step(2, NEVER, "delete", optional=True), Step(3, 4, "write", 6, needs="absent")],
            True,
            id="created twice, and a delete without an answer",
        ),
        pytest.param(
            [CREATED, Step(5, NEVER, "delete", optional=True), Step(3, 4, "write", 6, needs="absent")],
            False,
            id="created twice, and a delete that came too late",
        ),
        pytest.param(
            [CREATED, Step(3, 6, "write", 6, 5, "present"), Step(3, 6, "write", 7, 5, "present")],
            False,
            id="two updates of one version",
        ),
        pytest.param(
            [CREATED, Step(3, 4, "write", 6, 5, "present"), Step(5, 6, "refused", 0, 5, "changed")],
            True,
            id="the second update of one version is refused",
        ),
        pytest.param([CREATED, Step(3, 4, "refused", 0, 5, "changed")], False, id="refused without a reason"),
        pytest.param([CREATED, Step(3, 4, "write", 4)], False, id="versions go back"),
        pytest.param(
            [Step(1, NEVER, "write", 0, needs="absent", optional=True), Step(3, 4, "refused", needs="present")],
            True,
            id="a create without an answer is in the way",
        ),
    ],
)
def test_an_order_is_found_where_there_is_one(steps: list[Step], possible: bool) -> None:
    assert (stuck(steps) is None) == possible


@st.composite
def any_steps(draw: st.DrawFn) -> list[Step]:
    """Up to six steps on one key, mostly wrong; each write with a version of its own."""
    steps = []
    for number in range(draw(st.integers(1, 6))):
        begin = draw(st.integers(0, 8))
        end = begin + draw(st.integers(1, 6))
        version = draw(st.integers(0, 3))
        expected = draw(st.sampled_from((0, 0, 1, 2)))
        optional = draw(st.booleans())
        match draw(st.sampled_from(("write", "delete", "read", "refused"))):
            case "write":
                known = 0 if optional else number + 1
                needs = draw(st.sampled_from(("", "absent", "present")))
                steps.append(Step(begin, NEVER if optional else end, "write", known, expected, needs, optional))
            case "delete":
                steps.append(Step(begin, NEVER if optional else end, "delete", 0, expected, optional=optional))
            case "read":
                steps.append(Step(begin, end, "read", version))
            case "refused":
                needs = draw(st.sampled_from(("absent", "present", "changed")))
                steps.append(Step(begin, end, "refused", 0, expected, needs))
    return steps


@given(any_steps())
def test_the_search_agrees_with_trying_every_order(steps: list[Step]) -> None:
    assert (stuck(steps) is None) == any(map(explains, every_order(steps)))


def every_order(steps: list[Step]) -> itertools.chain[tuple[Step, ...]]:
    required = [step for step in steps if not step.optional]
    optional = [step for step in steps if step.optional]
    chosen = (itertools.combinations(optional, size) for size in range(len(optional) + 1))
    return itertools.chain.from_iterable(
        itertools.permutations([*required, *some]) for some in itertools.chain.from_iterable(chosen)
    )


def explains(order: tuple[Step, ...]) -> bool:
    state: State | None = State()
    for number, step in enumerate(order):
        if any(later.end < step.begin for later in order[number + 1 :]):
            return False
        state = after(step, state)
        if state is None:
            return False
    return True
