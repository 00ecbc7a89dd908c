"""Keys to be looked at: once at a time, once more, later, and again after a failure."""

import asyncio
import contextlib
import logging

import pytest
from simulated import VirtualClock

from seamark.errors import ServiceUnavailable
from seamark.nodes.work import Work


class Bench:
    """Work whose handling the test lets finish."""

    def __init__(self, workers=3):
        self.clock = VirtualClock()
        self.handled = []
        self.open = {}
        self.fail = {}
        self.later = {}
        self.work = Work("test", self._handle, clock=self.clock, workers=workers)

    async def _handle(self, key):
        self.handled.append(key)
        if key in self.open:
            await self.open[key].wait()
        if when := self.later.pop(key, None):
            self.work.add_at(key, when)
        if error := self.fail.get(key):
            raise error

    async def settle(self):
        for _ in range(30):
            await asyncio.sleep(0)

    async def pass_(self, seconds):
        until = self.clock.time + seconds
        await self.settle()
        while (due := self.clock.next_due()) is not None and due <= until:
            self.clock.ring()
            await self.settle()
        self.clock.time = until
        await self.settle()


@contextlib.asynccontextmanager
async def at_work(bench):
    task = asyncio.create_task(bench.work.run())
    await bench.settle()
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_keys_added_before_and_after_are_each_looked_at_once():
    bench = Bench()
    for key in ("a", "b", "a"):
        bench.work.add(key)
    assert not bench.work.idle
    async with at_work(bench):
        assert sorted(bench.handled) == ["a", "b"]
        bench.work.add("c")
        await bench.settle()
        assert bench.handled[2:] == ["c"]
        await bench.work.done()
        assert bench.work.idle


async def test_a_key_is_never_in_two_hands_and_is_looked_at_once_more():
    bench = Bench()
    bench.open["a"] = asyncio.Event()
    async with at_work(bench):
        bench.work.add("a")
        await bench.settle()
        bench.work.add("a")
        bench.work.add("a")
        bench.work.add("b")
        await bench.settle()
        assert bench.handled == ["a", "b"]
        bench.open["a"].set()
        await bench.work.done()
        assert bench.handled == ["a", "b", "a"]


async def test_no_more_hands_than_allowed():
    bench = Bench(workers=2)
    bench.open = {key: asyncio.Event() for key in "abcd"}
    async with at_work(bench):
        for key in "abcd":
            bench.work.add(key)
        await bench.settle()
        assert bench.handled == ["a", "b"]
        bench.open["a"].set()
        await bench.settle()
        assert bench.handled == ["a", "b", "c"]
        for event in bench.open.values():
            event.set()


async def test_later_and_earlier():
    bench = Bench()
    async with at_work(bench):
        now = bench.clock.now()
        bench.work.add_at("a", now + 10)
        bench.work.add_at("a", now + 20)
        bench.work.add_at("b", now + 5)
        bench.work.add_at("b", now + 2)
        bench.work.add_at("c", now + 30)
        bench.work.add_at("d", now)
        assert not bench.work.idle
        await bench.pass_(2)
        assert bench.handled == ["d", "b"]
        await bench.pass_(8)
        assert bench.handled == ["d", "b", "a"]
        bench.work.add("c")
        await bench.pass_(100)
        assert bench.handled == ["d", "b", "a", "c"], "what was looked at meanwhile does not come again"


async def test_times_set_before_it_runs_are_kept():
    bench = Bench()
    bench.work.add_at("a", bench.clock.now() + 5)
    await bench.pass_(1)
    async with at_work(bench):
        await bench.pass_(3)
        assert bench.handled == []
        await bench.pass_(1)
        assert bench.handled == ["a"]


async def test_asking_for_a_later_look_while_being_looked_at():
    bench = Bench()
    async with at_work(bench):
        bench.later["a"] = bench.clock.now() + 3
        bench.work.add("a")
        await bench.pass_(2.9)
        assert bench.handled == ["a"]
        await bench.pass_(0.1)
        assert bench.handled == ["a", "a"]


async def test_what_fails_comes_again_later_each_time(caplog):
    bench = Bench()
    async with at_work(bench):
        bench.fail["a"] = ServiceUnavailable("not now")
        bench.work.add("a")
        bench.work.add("b")
        await bench.pass_(0.04)
        assert bench.handled == ["a", "b"]
        await bench.pass_(0.36)
        assert bench.handled == ["a", "b", "a", "a", "a"], "after 0.05, 0.1 and 0.2 seconds"
        bench.fail["a"] = ServiceUnavailable("not now", retry_after=60)
        await bench.pass_(50)
        before = len(bench.handled)
        del bench.fail["a"]
        await bench.pass_(60)
        assert len(bench.handled) == before + 1
    assert "test: a failed (attempt 1): not now" in caplog.text


async def test_a_mistake_of_ours_is_told_with_its_place(caplog):
    bench = Bench()
    bench.fail["a"] = KeyError("oops")
    async with at_work(bench):
        bench.work.add("a")
        await bench.settle()
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert record.exc_info is not None


@pytest.mark.parametrize("how_many", [1, 500])
async def test_work_that_needs_no_waiting_does_not_keep_others_from_theirs(how_many):
    bench = Bench(workers=1)
    others = 0

    async def other():
        nonlocal others
        while True:
            await asyncio.sleep(0)
            others += 1

    for n in range(how_many):
        bench.work.add(str(n))
    task = asyncio.create_task(other())
    async with at_work(bench):
        await bench.work.done()
    task.cancel()
    assert len(bench.handled) == how_many
    assert others >= how_many // 100
