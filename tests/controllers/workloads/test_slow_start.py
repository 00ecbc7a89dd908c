"""How many Pods of a workload are created at once."""

from __future__ import annotations

import asyncio

import pytest

from seamark.controllers.workloads.pods import AT_ONCE, slow_start
from seamark.errors import Forbidden


class Attempts:
    """Actions that end in rounds: all that are under way end together."""

    def __init__(self, fails: int = -1, error: Exception | None = None) -> None:
        self._fails, self._error = fails, error or Forbidden("exceeded quota")
        self._round = asyncio.Event()
        self.begun: list[int] = []
        self.under_way = 0

    async def do(self, item: int) -> None:
        self.begun.append(item)
        self.under_way += 1
        await self._round.wait()
        self.under_way -= 1
        if item == self._fails:
            raise self._error

    async def rounds(self, work: asyncio.Task[object]) -> list[int]:
        """How many were under way in each round, until the work is done."""
        sizes = []
        while True:
            await settled()
            if work.done():
                return sizes
            sizes.append(self.under_way)
            self._round.set()
            self._round = asyncio.Event()


async def settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_each_success_is_followed_by_four_up_to_the_limit() -> None:
    attempts = Attempts()
    work = asyncio.create_task(slow_start(range(200), attempts.do))
    sizes = await attempts.rounds(work)
    assert sizes[:4] == [1, 4, 16, AT_ONCE]
    assert max(sizes) == AT_ONCE
    assert sum(sizes) == 200
    assert (attempts.begun, work.result()) == (list(range(200)), None)


@pytest.mark.parametrize(("fails", "begun"), [(0, 1), (1, 5), (5, 21)])
async def test_the_first_failure_is_the_last_attempt(fails: int, begun: int) -> None:
    attempts = Attempts(fails)
    work = asyncio.create_task(slow_start(range(200), attempts.do))
    await attempts.rounds(work)
    assert len(attempts.begun) == begun
    assert str(work.result()) == "exceeded quota"


async def test_an_error_that_is_not_the_servers_is_raised_as_it_is() -> None:
    attempts = Attempts(1, ZeroDivisionError())
    work = asyncio.create_task(slow_start(range(200), attempts.do))
    await attempts.rounds(work)
    with pytest.raises(ZeroDivisionError):
        await work


async def test_nothing_to_do() -> None:
    assert await slow_start([], Attempts().do) is None
