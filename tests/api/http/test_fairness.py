"""Turns: flows are served one after the other, whatever one of them sends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark.api.http.fairness import ROOM, TURN, WAITING_PER_SEAT, CalmQueue, FairQueue, Full, Load

LONG = 2 * TURN


class Day:
    """A clock that only work moves."""

    def __init__(self) -> None:
        self.now = 1.0
        self.done: list[str] = []

    def work(self, name: str, seconds: float) -> Callable[[], str]:
        def perform() -> str:
            self.now += seconds
            self.done.append(name)
            return name

        return perform


def queue_of(day: Day, seats: int = 100) -> FairQueue[str]:
    return FairQueue(seats, now=lambda: day.now)


def submit(
    queue: FairQueue[str], flow: Hashable, work: Callable[[], str], *, began: float, seat: bool, exempt: bool = False
) -> Any:
    """As the application does it: at once, or in its turn."""
    return queue.at_once(work, began=began, seat=seat) or queue.wait(flow, work, seat=seat, exempt=exempt)


async def test_what_can_be_done_at_once_is_done_at_once() -> None:
    day = Day()
    queue = queue_of(day)
    for number in range(50):
        assert submit(queue, "ann", day.work(f"a{number}", TURN / 60), began=day.now, seat=False) == f"a{number}"
    assert queue.waiting == 0


async def test_flows_take_turns_once_time_is_short() -> None:
    day = Day()
    queue = queue_of(day)
    storm = [submit(queue, "ann", day.work(f"a{n}", LONG), began=day.now, seat=False) for n in range(6)]
    one = submit(queue, "bob", day.work("b", LONG), began=day.now, seat=False)
    await asyncio.gather(one, *(found for found in storm if not isinstance(found, str)))
    assert day.done == ["a0", "a1", "b", "a2", "a3", "a4", "a5"]


async def test_in_the_next_turn_requests_are_done_at_once_again() -> None:
    day = Day()
    queue = queue_of(day)
    assert submit(queue, "ann", day.work("a", LONG), began=day.now, seat=False) == "a"
    await asyncio.sleep(0)
    assert submit(queue, "ann", day.work("b", LONG), began=day.now, seat=False) == "b"


async def test_writes_wait_for_seats_and_reads_do_not() -> None:
    day = Day()
    queue = queue_of(day, seats=1)
    assert submit(queue, "ann", day.work("w1", 0), began=day.now, seat=True) == "w1"
    queue.enter()
    later = [submit(queue, name, day.work(name, 0), began=day.now, seat=True) for name in ("w2", "w3")]
    assert await submit(queue, "bob", day.work("r", 0), began=day.now, seat=False) == "r"
    assert day.done == ["w1", "r"]
    queue.leave()
    assert await asyncio.gather(*later) == ["w2", "w3"]


async def test_a_flow_with_too_many_waiting_is_told() -> None:
    day = Day()
    queue = queue_of(day, seats=1)
    submit(queue, "ann", day.work("a", LONG), began=day.now, seat=False)
    waiting = [submit(queue, "ann", day.work("a", LONG), began=day.now, seat=False) for _ in range(WAITING_PER_SEAT)]
    with pytest.raises(Full):
        submit(queue, "ann", day.work("a", LONG), began=day.now, seat=False)
    waiting.append(submit(queue, "bob", day.work("b", LONG), began=day.now, seat=False))
    assert await asyncio.gather(*waiting) == ["a"] * WAITING_PER_SEAT + ["b"]


async def test_what_is_exempt_needs_no_seat_and_is_never_told_to_retry() -> None:
    day = Day()
    queue = queue_of(day, seats=1)
    queue.enter()
    other = submit(queue, "bob", day.work("b", 0), began=day.now, seat=True)
    many = [
        submit(queue, "ann", day.work("a", LONG), began=day.now, seat=True, exempt=True)
        for _ in range(3 * WAITING_PER_SEAT)
    ]
    assert await asyncio.gather(*many) == ["a"] * len(many)
    assert not other.done()
    queue.leave()
    assert await other == "b"


async def test_errors_reach_the_one_who_asked() -> None:
    day = Day()
    queue = queue_of(day)

    def fail() -> str:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        submit(queue, "ann", fail, began=day.now, seat=False)
    submit(queue, "ann", day.work("a", LONG), began=day.now, seat=False)
    later = [submit(queue, "ann", work, began=day.now, seat=False) for work in (fail, day.work("b", 0))]
    with pytest.raises(ValueError, match="no"):
        await later[0]
    assert await later[1] == "b"


async def test_long_lists_wait_for_room_by_flow_and_keep_nobody_else_waiting() -> None:
    day = Day()
    queue = queue_of(day)

    def ask(flow: str, name: str, size: int) -> tuple[Load, Any]:
        load, work = Load(queue, flow, size), day.work(name, 0)
        done = queue.at_once(work, began=day.now, seat=False, load=load)
        return load, done or queue.wait(flow, work, seat=False, load=load)

    loads = [ask("ann", f"a{n}", ROOM // 2)[0] for n in range(5)]
    ask("bob", "b0", ROOM // 2)
    last = ask("bob", "b1", ROOM // 2)
    await asyncio.sleep(0)
    assert day.done == ["a0", "a1", "b0"], "bob has none under way, so that he need not wait for ann's"
    assert submit(queue, "ann", day.work("short", 0), began=day.now, seat=False) == "short"
    loads[0].release()
    await asyncio.sleep(0)
    assert day.done[4:] == [], "bob's first took the place"
    loads[1].release()
    loads[1].release()
    await asyncio.sleep(0)
    assert day.done[4:] == ["a2"]
    loads[2].release()
    await last[1]
    assert day.done[4:] == ["a2", "b1", "a3"], "now ann has none under way"
    assert (queue.waiting, queue.room.used) == (1, 3 * ROOM // 2)


async def test_a_list_larger_than_the_room_is_made_alone() -> None:
    day = Day()
    queue = queue_of(day)
    huge, other = Load(queue, "ann", 9 * ROOM), Load(queue, "bob", ROOM)
    assert queue.at_once(day.work("huge", 0), began=day.now, seat=False, load=huge) == "huge"
    assert queue.at_once(day.work("other", 0), began=day.now, seat=False, load=other) is None
    huge.release()
    assert queue.at_once(day.work("other", 0), began=day.now, seat=False, load=other) == "other"


async def test_a_list_that_fails_leaves_the_room() -> None:
    queue: FairQueue[str] = FairQueue(1)

    def fail() -> str:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        queue.at_once(fail, began=0.0, seat=False, load=Load(queue, "ann", ROOM))
    assert queue.room.used == 0


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans(), st.sampled_from([0.0, TURN / 3, TURN])), max_size=40))
def test_everything_is_done_once_and_each_flow_in_order(asked: list[tuple[str, bool, float]]) -> None:
    async def main() -> None:
        day = Day()
        queue = queue_of(day, seats=10)  # no flow is ever full
        found = [
            submit(queue, (flow, seat), day.work(f"{flow}{seat}{number}", cost), began=day.now, seat=seat)
            for number, (flow, seat, cost) in enumerate(asked)
        ]
        for waiting in found:
            if isinstance(waiting, asyncio.Future):
                await waiting
        assert len(day.done) == len(set(day.done)) == len(asked)
        for flow in {(flow, seat) for flow, seat, _ in asked}:
            own = [f"{flow[0]}{flow[1]}{n}" for n, (name, seat, _) in enumerate(asked) if (name, seat) == flow]
            assert [name for name in day.done if name in own] == own

    asyncio.run(main())


async def test_of_large_requests_those_that_are_exempt_wait_too_but_are_never_told_to_retry() -> None:
    queue: CalmQueue[str] = CalmQueue(1)
    queue.enter()
    waiting = [queue.wait("ann", lambda: "done", seat=True, exempt=True) for _ in range(100)]
    for _ in range(5):
        await asyncio.sleep(0)
    assert not any(turn.done() for turn in waiting)
    queue.leave()
    assert await waiting[0] == "done"
