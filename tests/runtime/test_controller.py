"""A controller's queue and workers, in virtual time."""

import asyncio
import contextlib
import itertools
import logging

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seamark import errors
from seamark.access.informers import Informers
from seamark.metrics import Registry
from seamark.runtime import queue as queue_module
from seamark.runtime.controller import Again, Controller, Expected
from seamark.runtime.manager import Manager
from seamark.runtime.queue import Queue, Retry
from seamark.runtime.workers import TURN
from turns import turns as settle
from virtual_time import VirtualClock


class Recorder(Controller):
    """A controller that notes what it is given, and does what it is told."""

    def __init__(self, behave=None, *, metrics=None, **options):
        self.clock = VirtualClock(1000.0)
        super().__init__("recorder", Manager(Informers(None), clock=self.clock, metrics=metrics), **options)
        self.seen = []
        self.running = []
        self.overlaps = 0
        self.behave = behave

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

    @property
    def tasks(self):
        return [task for task in asyncio.all_tasks() if task.get_name() == "recorder"]


@contextlib.asynccontextmanager
async def working(controller, grace=0.01):
    async with asyncio.TaskGroup() as group:
        controller.workers.start(group)
        await settle()
        yield controller.queue
        await controller.workers.stop(grace)
        for task in controller.tasks:
            task.cancel()


def failing(error=None):
    async def fail(key):
        raise error or Expected("no luck")

    return fail


# --- keys --------------------------------------------------------------------------------------------


async def test_many_additions_before_its_turn_are_one():
    controller = Recorder()
    async with working(controller) as queue:
        for _ in range(5):
            queue.add("a")
        queue.add("b")
        await settle()
        assert controller.seen == ["a", "b"]
        assert queue.empty


async def test_keys_added_before_it_starts_are_handled_once_it_does():
    controller = Recorder()
    for key in ("a", "b", "a"):
        controller.queue.add(key)
    controller.queue.add_after("c", 5)
    assert not controller.queue.idle
    await controller.clock.advance(1)
    async with working(controller):
        assert controller.seen == ["a", "b"]
        await controller.clock.advance(3)
        assert controller.seen == ["a", "b"]
        await controller.clock.advance(1)
        assert controller.seen == ["a", "b", "c"]


async def test_a_key_added_while_it_is_handled_is_handled_once_more_and_never_twice_at_once():
    gate = asyncio.Event()
    controller = Recorder(lambda key: gate.wait(), workers=3)
    async with working(controller) as queue:
        queue.add("a")
        await settle()
        queue.add("a")
        queue.add("a")
        await settle()
        assert controller.seen == ["a"]
        gate.set()
        await settle()
        assert controller.seen == ["a", "a"]
        assert controller.overlaps == 0


async def test_there_are_as_many_workers_as_there_is_work_for_within_bounds():
    gate = asyncio.Event()
    controller = Recorder(lambda key: gate.wait(), workers=2)
    async with working(controller) as queue:
        assert controller.tasks == []
        queue.add("a")
        await settle()
        assert len(controller.tasks) == 1
        for key in "bcdef":
            queue.add(key)
        await settle()
        assert len(controller.tasks) == len(controller.running) == 2
        gate.set()
        await controller.workers.quiet()
        assert sorted(controller.seen) == list("abcdef")
        await settle()
        assert controller.tasks == []


async def test_keys_that_need_no_waiting_do_not_keep_others_from_their_turn():
    controller, others = Recorder(workers=1), 0

    async def other():
        nonlocal others
        while True:
            await asyncio.sleep(0)
            others += 1

    for number in range(5 * TURN):
        controller.queue.add(str(number))
    task = asyncio.create_task(other())
    async with working(controller):
        await controller.workers.quiet()
    task.cancel()
    assert len(controller.seen) == 5 * TURN
    assert others >= 5


# --- failures ----------------------------------------------------------------------------------------


async def test_a_failing_key_comes_again_later_each_time_and_delays_only_itself():
    times = []

    async def fail(key):
        if key == "bad":
            times.append(controller.clock.now)
            raise Expected("no luck")

    controller = Recorder(fail, retry=Retry(base=1.0, cap=8.0))
    async with working(controller) as queue:
        queue.add("bad")
        queue.add("good")
        await settle()
        assert controller.seen == ["bad", "good"]
        await controller.clock.advance(60)
        assert [b - a for a, b in itertools.pairwise(times)][:6] == [1, 2, 4, 8, 8, 8]
        controller.behave = None
        await controller.clock.advance(8)
        assert queue.empty


async def test_success_resets_the_waiting():
    outcomes, times = [True, True, False, True, False], []

    async def maybe(key):
        times.append(controller.clock.now)
        if outcomes.pop(0):
            raise Expected("no luck")

    controller = Recorder(maybe, retry=Retry(base=1.0))
    async with working(controller) as queue:
        queue.add("a")
        await controller.clock.advance(5)
        assert len(times) == 3
        queue.add("a")
        await controller.clock.advance(1.5)
        assert times[-1] - times[-2] == 1.0


async def test_an_event_brings_a_failed_key_back_at_once():
    controller = Recorder(failing(), retry=Retry(base=100.0))
    async with working(controller) as queue:
        queue.add("a")
        await settle()
        controller.behave = None
        queue.add("a")
        await settle()
        assert controller.seen == ["a", "a"]
        await controller.clock.advance(1000)
        assert controller.seen == ["a", "a"], "the retry is off"


async def test_a_server_that_says_when_is_obeyed():
    controller = Recorder(failing(errors.TooManyRequests("slow down", retry_after=30)))
    async with working(controller) as queue:
        queue.add("a")
        await settle()
        controller.behave = None
        await controller.clock.advance(29)
        assert controller.seen == ["a"]
        await controller.clock.advance(2)
        assert controller.seen == ["a", "a"]


async def test_retries_of_all_keys_together_are_bounded():
    controller = Recorder(failing(), retry=Retry(base=0.001, cap=0.001, rate=10, burst=5))
    async with working(controller) as queue:
        for number in range(50):
            queue.add(f"key-{number}")
        await settle(300)
        first = len(controller.seen)
        await controller.clock.advance(10)
        assert len(controller.seen) - first <= 5 + 10 * 10 + 1


async def test_complaints_are_as_loud_as_they_deserve(caplog):
    caplog.set_level(logging.DEBUG)
    told = {
        errors.Conflict("somebody was faster"): logging.DEBUG,
        errors.ServiceUnavailable("away"): logging.WARNING,
        Expected("no luck"): logging.WARNING,
        ZeroDivisionError("a bug"): logging.ERROR,
    }
    for error, level in told.items():
        caplog.clear()
        controller = Recorder(failing(error))
        async with working(controller) as queue:
            queue.add("a")
            await settle()
        [record] = [record for record in caplog.records if record.name.startswith("seamark")]
        assert record.levelno == level
        assert (record.exc_info is not None) == (level == logging.ERROR)
        assert record.getMessage().startswith("recorder: a failed (attempt 1)")


# --- later -------------------------------------------------------------------------------------------


async def test_again_is_no_failure():
    async def later(key):
        if len(controller.seen) < 3:
            raise Again(10)

    controller = Recorder(later)
    async with working(controller) as queue:
        queue.add("a")
        await controller.clock.advance(9)
        assert controller.seen == ["a"]
        await controller.clock.advance(1)
        assert len(controller.seen) == 2
        await controller.clock.advance(10)
        assert len(controller.seen) == 3
        assert queue.empty


async def test_delayed_additions_happen_at_the_earliest_time_asked_for():
    controller = Recorder()
    async with working(controller) as queue:
        queue.add_after("a", 10)
        queue.add_after("a", 5)
        queue.add_after("a", 20)
        queue.add_after("b", 0)
        queue.add_after("c", 30)
        assert not queue.empty
        await controller.clock.advance(4)
        assert controller.seen == ["b"]
        await controller.clock.advance(1)
        assert controller.seen == ["b", "a"]
        queue.add("c")
        await controller.clock.advance(60)
        assert controller.seen == ["b", "a", "c"], "what was handled meanwhile does not come again"


async def test_keys_handled_long_before_they_were_due_leave_nothing_behind(monkeypatch):
    monkeypatch.setattr(queue_module, "SWEEP", 10)
    controller = Recorder()
    async with working(controller) as queue:
        queue.add_after("other", 1e6)
        for number in range(500):
            queue.add_after(f"key-{number}", 1e6)  # as a CronJob that runs once a year
            queue.add(f"key-{number}")  # it is deleted
            await settle()
        assert len(queue._heap) <= 2 + 10 + 1
        await controller.clock.advance(1e6)
        assert controller.seen[-1] == "other"
        assert len(controller.seen) == 501


async def test_a_later_look_may_be_asked_for_while_the_key_is_handled():
    async def later(key):
        if len(controller.seen) == 1:
            controller.queue.add_after(key, 3)

    controller = Recorder(later)
    async with working(controller) as queue:
        queue.add("a")
        await controller.clock.advance(2.5)
        assert controller.seen == ["a"]
        await controller.clock.advance(0.5)
        assert controller.seen == ["a", "a"]


async def test_a_time_that_comes_while_the_key_is_handled_is_not_lost():
    gate = asyncio.Event()
    controller = Recorder(lambda key: gate.wait())
    async with working(controller) as queue:
        queue.add("a")
        await settle()
        queue.add_after("a", 1)
        await controller.clock.advance(2)
        gate.set()
        await settle()
        assert controller.seen == ["a", "a"]
        assert queue.empty


# --- batches -----------------------------------------------------------------------------------------


async def test_a_single_change_does_not_wait_for_a_batch_and_a_burst_is_one():
    controller = Recorder(batch=1.0)
    async with working(controller) as queue:
        queue.add_batched("a")
        await settle()
        assert controller.seen == ["a"]
        for _ in range(10):
            queue.add_batched("a")
            await controller.clock.advance(0.05)
        assert controller.seen == ["a"]
        await controller.clock.advance(0.6)
        assert controller.seen == ["a", "a"]
        await controller.clock.advance(5)
        queue.add_batched("a")
        await settle()
        assert controller.seen == ["a", "a", "a"]


async def test_a_change_is_handled_to_the_end_within_the_batch_period():
    ended = []

    async def slowly(key):
        await controller.clock.sleep(0.25)
        ended.append(controller.clock.now)

    controller = Recorder(slowly, batch=1.0)
    clock = controller.clock
    async with working(controller) as queue:
        queue.add_batched("a")
        await clock.advance(0.5)
        changed = clock.now
        queue.add_batched("a")
        await clock.advance(0.0)
        assert len(controller.seen) == 1, "it may still gather company"
        for _ in range(20):
            await clock.advance(0.05)
        assert len(ended) == 2
        assert ended[1] - changed <= 1.0
        # The worst moment: just after a handling has begun, which therefore does not know of it.
        await clock.advance(10)
        queue.add_batched("a")
        await settle()
        changed = clock.now
        queue.add_batched("a")
        for _ in range(30):
            await clock.advance(0.05)
        assert len(ended) == 4
        assert ended[3] - changed <= 1.0 + 1e-9


async def test_a_key_that_is_expensive_to_handle_may_ask_for_longer_pauses():
    controller = Recorder()
    async with working(controller) as queue:
        for _ in range(10):
            queue.add_batched("a", at_least=0.5)
            queue.add_batched("b")
            await controller.clock.advance(0.1)
        assert controller.seen.count("a") == 3
        assert controller.seen.count("b") == 10


async def test_keys_that_do_not_come_back_are_forgotten():
    controller = Recorder(batch=1.0)
    async with working(controller) as queue:
        for number in range(3000):
            queue.add_batched(f"key-{number}")
            await controller.clock.advance(0.01)
        assert len(queue._started) < 2500


# --- the end -----------------------------------------------------------------------------------------


async def test_what_is_being_handled_may_finish_and_nothing_else_is_begun():
    gate, finished = asyncio.Event(), []

    async def slow(key):
        await gate.wait()
        finished.append(key)

    controller = Recorder(slow, workers=2)
    async with working(controller) as queue:
        for key in "abc":
            queue.add(key)
        await settle()
        stopping = asyncio.create_task(controller.workers.stop(grace=60))
        await settle()
        assert not stopping.done()
        gate.set()
        await stopping
        assert finished == ["a", "b"]


async def test_what_does_not_finish_in_time_is_left_to_be_cut_off():
    controller = Recorder(lambda key: asyncio.Event().wait())
    async with working(controller) as queue:
        queue.add("a")
        await settle()
        await controller.workers.stop(grace=0.01)
        assert controller.running == ["a"]
    assert controller.running == []


async def test_metrics_tell_of_the_queue():
    registry = Registry()
    controller = Recorder(metrics=registry)
    async with working(controller) as queue:
        queue.add("a")
        await settle()
        controller.behave = failing()
        queue.add("b")
        await settle()
    text = registry.text()
    assert 'workqueue_adds_total{name="recorder"} 2' in text
    assert 'workqueue_depth{name="recorder"} 0' in text
    assert 'workqueue_retries_total{name="recorder"} 1' in text
    assert 'workqueue_queue_duration_seconds_count{name="recorder"} 2' in text
    assert 'workqueue_work_duration_seconds_count{name="recorder"} 2' in text


# --- whatever happens --------------------------------------------------------------------------------


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("add"), st.sampled_from("abc")),
            st.tuples(st.just("after"), st.sampled_from("abc"), st.sampled_from([0.0, 1.0, 3.0])),
            st.tuples(st.just("batched"), st.sampled_from("abc"), st.sampled_from([0.0, 2.0])),
            st.tuples(st.just("take")),
            st.tuples(st.just("finish"), st.sampled_from(["done", "failed", "again"])),
            st.tuples(st.just("pass"), st.sampled_from([0.5, 2.0])),
        ),
        max_size=40,
    )
)
@settings(max_examples=120)
def test_no_key_is_lost_or_held_twice(script):
    clock = VirtualClock(1000.0)
    queue = Queue("test", retry=Retry(base=1.0, cap=4.0), batch=1.0, clock=clock)
    asked, held = set(), []

    def take():
        key = queue.take()
        if key is not None:
            assert key not in held
            held.append(key)
            asked.discard(key)

    def finish(how):
        key = held.pop(0)
        if how == "done":
            queue.done(key)
            return
        asked.add(key)
        if how == "failed":
            queue.failed(key)
        else:
            queue.again(key, 2.0)

    def play():
        for step, *more in script:
            if step == "take":
                take()
            elif step == "finish" and held:
                finish(*more)
            elif step == "pass":
                clock.pass_without_tasks(*more)
            elif step in ("add", "after", "batched"):
                key, *when = more
                asked.add(key)
                if step == "add":
                    queue.add(key)
                elif step == "after":
                    queue.add_after(key, *when)
                else:
                    queue.add_batched(key, at_least=when[0])
        while held:
            finish("done")
        clock.pass_without_tasks(10.0)
        while len(queue):
            take()
            finish("done")
        assert queue.empty
        assert not asked

    play()


async def test_a_controller_must_say_what_it_does():
    with pytest.raises(NotImplementedError):
        await Controller("idle", Manager(Informers(None))).reconcile("a")


def test_a_key_is_in_the_queue_from_when_it_is_due_until_it_is_handled():
    clock = VirtualClock(1000.0)
    queue = Queue("test", clock=clock)
    queue.add("now")
    queue.add_after("later", 5.0)
    assert ("now" in queue, "later" in queue) == (True, False)
    assert queue.take() == "now"
    assert "now" in queue
    queue.again("now", 5.0)
    assert "now" not in queue
