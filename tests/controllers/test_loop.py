"""The queue and the loop, in virtual time."""

import asyncio
import contextlib
import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from virtual_time import VirtualClock, settle

from seamark import errors
from seamark.metrics import Registry
from seamark.runtime.loop import Again, Expected, Loop, Queue, Retry


class Recorder:
    """A controller that notes what it is given, and does what it is told."""

    name = "recorder"

    def __init__(self):
        self.seen = []
        self.running = []
        self.overlaps = 0
        self.behave = None

    async def reconcile(self, key):
        self.seen.append(key)
        if key in self.running:
            self.overlaps += 1
        self.running.append(key)
        try:
            if self.behave is not None:
                await self.behave(key)
        finally:
            self.running.remove(key)


@contextlib.asynccontextmanager
async def running(controller, **options):
    clock = VirtualClock()
    loop = Loop(controller, clock=clock, **options)
    task = asyncio.create_task(loop.run())
    await settle()
    try:
        yield loop, clock
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def test_many_additions_before_its_turn_are_one():
    controller = Recorder()
    async with running(controller) as (loop, _):
        for _ in range(5):
            loop.add("a")
        loop.add("b")
        await settle()
        assert controller.seen == ["a", "b"]
        assert loop.idle


async def test_a_key_added_while_it_is_handled_is_handled_once_more_and_never_twice_at_once():
    controller, gate = Recorder(), asyncio.Event()

    async def wait(key):
        await gate.wait()

    controller.behave = wait
    async with running(controller, workers=3) as (loop, _):
        loop.add("a")
        await settle()
        loop.add("a")
        loop.add("a")
        await settle()
        assert controller.seen == ["a"]
        gate.set()
        await settle()
        assert controller.seen == ["a", "a"]
        assert controller.overlaps == 0


async def test_workers_are_bounded():
    controller, gate, most = Recorder(), asyncio.Event(), 0

    async def wait(key):
        nonlocal most
        most = max(most, len(controller.running))
        await gate.wait()

    controller.behave = wait
    async with running(controller, workers=2) as (loop, _):
        for key in "abcdef":
            loop.add(key)
        await settle()
        assert len(controller.running) == 2
        gate.set()
        await settle()
        assert sorted(controller.seen) == list("abcdef")
        assert most == 2


async def test_a_failing_key_comes_again_later_each_time_and_delays_only_itself():
    controller = Recorder()
    times = []

    async def fail(key):
        if key == "bad":
            times.append(clock.now())
            raise Expected("no luck")

    controller.behave = fail
    async with running(controller, retry=Retry(base=1.0, cap=8.0)) as (loop, clock):
        loop.add("bad")
        loop.add("good")
        await settle()
        assert controller.seen == ["bad", "good"]
        await clock.advance(60)
        assert [b - a for a, b in itertools.pairwise(times)][:6] == [1, 2, 4, 8, 8, 8]
        controller.behave = None
        await clock.advance(8)
        assert loop.idle


async def test_success_resets_the_waiting():
    controller, failing = Recorder(), [True, True, False, True]
    times = []

    async def maybe(key):
        times.append(clock.now())
        if failing.pop(0):
            raise Expected("no luck")

    controller.behave = maybe
    async with running(controller, retry=Retry(base=1.0)) as (loop, clock):
        loop.add("a")
        await clock.advance(5)
        assert len(times) == 3
        failing[:] = [True, False]
        loop.add("a")
        await clock.advance(1.5)
        assert times[-1] - times[-2] == 1.0


async def test_an_event_brings_a_failed_key_back_at_once():
    controller = Recorder()

    async def fail(key):
        raise Expected("no luck")

    controller.behave = fail
    async with running(controller, retry=Retry(base=100.0)) as (loop, clock):
        loop.add("a")
        await settle()
        controller.behave = None
        loop.add("a")
        await settle()
        assert controller.seen == ["a", "a"]
        await clock.advance(1000)
        assert controller.seen == ["a", "a"]  # and the retry is off


async def test_a_server_that_says_when_is_obeyed():
    controller = Recorder()

    async def busy(key):
        if len(controller.seen) == 1:
            raise errors.TooManyRequests("slow down", retry_after=30)

    controller.behave = busy
    async with running(controller) as (loop, clock):
        loop.add("a")
        await clock.advance(29)
        assert controller.seen == ["a"]
        await clock.advance(2)
        assert controller.seen == ["a", "a"]


async def test_retries_of_all_keys_together_are_bounded():
    controller = Recorder()

    async def fail(key):
        raise Expected("outage")

    controller.behave = fail
    async with running(controller, retry=Retry(base=0.001, cap=0.001, rate=10, burst=5)) as (loop, clock):
        for number in range(50):
            loop.add(f"key-{number}")
        await settle(300)
        first = len(controller.seen)
        await clock.advance(10)
        assert len(controller.seen) - first <= 5 + 10 * 10 + 1


async def test_again_is_no_failure():
    controller = Recorder()

    async def later(key):
        if len(controller.seen) < 3:
            raise Again(10)

    controller.behave = later
    async with running(controller) as (loop, clock):
        loop.add("a")
        await clock.advance(9)
        assert controller.seen == ["a"]
        await clock.advance(1)
        assert len(controller.seen) == 2
        await clock.advance(10)
        assert len(controller.seen) == 3
        assert loop.idle


async def test_delayed_additions_happen_at_the_earliest_time_asked_for():
    controller = Recorder()
    async with running(controller) as (loop, clock):
        loop.add_after("a", 10)
        loop.add_after("a", 5)
        loop.add_after("a", 20)
        await clock.advance(4)
        assert controller.seen == []
        await clock.advance(1)
        assert controller.seen == ["a"]
        await clock.advance(30)
        assert controller.seen == ["a"]


async def test_a_single_change_does_not_wait_for_a_batch_and_a_burst_is_one():
    controller = Recorder()
    async with running(controller, batch=1.0) as (loop, clock):
        loop.add_batched("a")
        await settle()
        assert controller.seen == ["a"]
        for _ in range(10):
            loop.add_batched("a")
            await clock.advance(0.05)
        assert controller.seen == ["a"]
        await clock.advance(0.6)
        assert controller.seen == ["a", "a"]
        await clock.advance(5)
        loop.add_batched("a")
        await settle()
        assert controller.seen == ["a", "a", "a"]


async def test_a_change_is_handled_to_the_end_within_the_batch_period():
    controller = Recorder()
    ended = []
    async with running(controller, batch=1.0) as (loop, clock):

        async def slowly(key):
            done = asyncio.Event()
            clock.call_later(0.25, done.set)
            await done.wait()
            ended.append(clock.now())

        controller.behave = slowly
        loop.add_batched("a")
        await clock.advance(0.5)
        changed = clock.now()
        loop.add_batched("a")
        await clock.advance(0.0)
        assert len(controller.seen) == 1, "it may still gather company"
        for _ in range(20):
            await clock.advance(0.05)
        assert len(ended) == 2
        assert ended[1] - changed <= 1.0
        # The worst moment: just after a handling has begun, which therefore does not know of it.
        await clock.advance(10)
        loop.add_batched("a")
        await settle()
        changed = clock.now()
        loop.add_batched("a")
        for _ in range(30):
            await clock.advance(0.05)
        assert len(ended) == 4
        assert ended[3] - changed <= 1.0 + 1e-9


async def test_a_key_that_is_dear_to_handle_may_ask_for_longer_pauses():
    controller = Recorder()
    async with running(controller) as (loop, clock):
        for _ in range(10):
            loop.add_batched("dear", at_least=1.0)
            loop.add_batched("cheap")
            await clock.advance(0.15)
        assert controller.seen.count("dear") == 2
        assert controller.seen.count("cheap") == 10


async def test_what_is_being_handled_at_the_end_may_finish():
    controller, gate = Recorder(), asyncio.Event()
    finished = []

    async def slow(key):
        await gate.wait()
        finished.append(key)

    controller.behave = slow
    loop = Loop(controller, workers=2)
    task = asyncio.create_task(loop.run())
    loop.add("a")
    await settle()
    loop.add("b")
    loop.add("c")
    await settle()
    task.cancel()
    await settle()
    assert not task.done()
    gate.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert finished == ["a", "b"]  # c was not begun


async def test_what_does_not_finish_in_time_is_cut_off():
    controller = Recorder()

    async def forever(key):
        await asyncio.Event().wait()

    controller.behave = forever
    loop = Loop(controller, grace=0.01)
    task = asyncio.create_task(loop.run())
    loop.add("a")
    await settle()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert controller.running == []


async def test_metrics_tell_of_the_queue():
    registry, controller = Registry(), Recorder()
    async with running(controller, metrics=registry) as (loop, _):
        loop.add("a")
        await settle()
    text = registry.text()
    assert 'workqueue_adds_total{name="recorder"} 1' in text
    assert 'workqueue_depth{name="recorder"} 0' in text


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("add"), st.sampled_from("abc")),
            st.tuples(st.just("after"), st.sampled_from("abc"), st.sampled_from([0.0, 1.0, 3.0])),
            st.tuples(st.just("fail"), st.sampled_from("abc")),
            st.tuples(st.just("pass"), st.sampled_from([0.5, 2.0])),
        ),
        max_size=30,
    )
)
@settings(max_examples=100, deadline=None)
def test_whatever_happens_no_key_is_lost_or_held_twice(script):
    async def play():
        clock = VirtualClock()
        queue = Queue(retry=Retry(base=1.0, cap=4.0), clock=clock)
        asked, handled, held = {}, {}, set()

        async def work():
            while True:
                key, _ = await queue.get()
                assert key not in held
                held.add(key)
                await asyncio.sleep(0)
                handled[key] = clock.now()
                held.discard(key)
                queue.done(key)

        workers = [asyncio.create_task(work()) for _ in range(2)]
        for step in script:
            if step[0] == "add":
                queue.add(step[1])
                asked[step[1]] = clock.now()
            elif step[0] == "after":
                queue.add_after(step[1], step[2])
                asked[step[1]] = clock.now()
            elif step[0] == "fail":
                queue.add_failed(step[1])
                asked[step[1]] = clock.now()
            else:
                await clock.advance(step[1])
        await clock.advance(10)
        for task in workers:
            task.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        assert queue.idle
        assert all(handled[key] >= at for key, at in asked.items())

    asyncio.run(play())
