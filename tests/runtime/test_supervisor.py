"""The supervisor: a part that fails starts again, later each time, and its state says which one and why."""

import asyncio
import contextlib
import logging

import pytest

from seamark.errors import ServiceUnavailable
from seamark.metrics import Registry
from seamark.runtime.supervisor import Backoff, Supervisor, note_name, reason
from turns import turns
from virtual_time import VirtualClock

BACKOFF = Backoff(first=1.0, longest=8.0, trusted_after=60.0)


class Script:
    """A part that does what the test says next; ``held`` is what it has open."""

    def __init__(self):
        self.attempts = 0
        self.open = 0
        self.most_open = 0
        self.starts = True
        self.end = None

    async def __call__(self, started):
        self.attempts += 1
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        self.end = asyncio.get_running_loop().create_future()
        try:
            if self.starts:
                started()
            await self.end
        finally:
            await asyncio.sleep(0)  # as what has to be closed takes its time
            self.open -= 1

    async def fail(self, error):
        self.end.set_exception(error)
        await turns()


@pytest.fixture
def clock():
    return VirtualClock()


@pytest.fixture
def metrics():
    return Registry()


@pytest.fixture
def supervisor(clock, metrics):
    return Supervisor(clock=clock, metrics=metrics, backoff=BACKOFF)


@contextlib.asynccontextmanager
async def running(supervisor, **works):
    parts = [supervisor.part(name, work) for name, work in works.items()]
    task = asyncio.create_task(supervisor.run(*parts))
    await turns()
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def test_delays_double_up_to_the_longest_and_begin_anew_after_a_good_while():
    assert [BACKOFF.delay(failures) for failures in (1, 2, 3, 4, 5, 10_000)] == [1.0, 2.0, 4.0, 8.0, 8.0, 8.0]
    assert BACKOFF.failures(4, ran=59.0) == 5
    assert BACKOFF.failures(4, ran=60.0) == 1


async def test_a_part_that_fails_starts_again_later_each_time(supervisor, clock):
    part = Script()
    async with running(supervisor, dns=part):
        for wait in (1.0, 2.0, 4.0, 8.0, 8.0):
            attempts = part.attempts
            await part.fail(ValueError("it broke"))
            await clock.advance(wait - 0.01)
            assert part.attempts == attempts
            await clock.advance(0.01)
            assert part.attempts == attempts + 1
        await clock.advance(60.0)
        await part.fail(ValueError("it broke"))
        await clock.advance(1.0)
        assert part.attempts == 7, "it had run well, so that it waits as the first time"
    assert (part.open, part.most_open) == (0, 1), "nothing of a failed attempt is left when the next one begins"


async def test_time_spent_starting_does_not_count_as_running_well(supervisor, clock):
    part = Script()
    part.starts = False
    async with running(supervisor, dns=part):
        for wait in (1.0, 2.0):
            await clock.advance(100.0)
            attempts = part.attempts
            await part.fail(ValueError("it broke"))
            await clock.advance(wait - 0.01)
            assert part.attempts == attempts
            await clock.advance(0.01)
            assert part.attempts == attempts + 1


async def test_other_parts_do_not_notice(supervisor, clock):
    dns, nodes = Script(), Script()
    async with running(supervisor, dns=dns, nodes=nodes):
        await dns.fail(ValueError("it\nbroke"))
        assert supervisor.problems() == {"dns": "ValueError: it broke", "nodes": None}
        await clock.advance(1.0)
        assert supervisor.problems() == {"dns": None, "nodes": None}
        assert nodes.attempts == 1


async def test_a_part_that_starts_again_is_failed_until_it_has_started(supervisor, clock):
    part = Script()
    part.starts = False
    async with running(supervisor, dns=part):
        assert supervisor.problems() == {"dns": None}, "the first start is no failure"
        assert not supervisor.parts["dns"].settled.is_set()
        await part.fail(ServiceUnavailable("not now"))
        assert supervisor.parts["dns"].settled.is_set()
        await clock.advance(1.0)
        assert part.attempts == 2
        assert supervisor.problems() == {"dns": "not now"}


async def test_what_is_wrong_with_a_running_part_is_shown(supervisor):
    wrong = None
    part = supervisor.part("informers", Script(), lambda: wrong)
    assert part.problem is None
    wrong = "pods: they cannot be read"
    assert supervisor.problems() == {"informers": "pods: they cannot be read"}


async def test_metrics_count_restarts_and_show_what_runs(supervisor, clock, metrics):
    part = Script()
    async with running(supervisor, dns=part):
        assert 'seamark_part_up{part="dns"} 1\n' in metrics.text()
        assert 'seamark_part_restarts_total{part="dns"} 0\n' in metrics.text()
        await part.fail(ValueError("it broke"))
        assert 'seamark_part_up{part="dns"} 0\n' in metrics.text()
        await clock.advance(1.0)
        assert 'seamark_part_up{part="dns"} 1\n' in metrics.text()
        assert 'seamark_part_restarts_total{part="dns"} 1\n' in metrics.text()
    assert "seamark_part_up{" not in metrics.text(), "a part that was stopped is not one that is down"
    assert supervisor.problems() == {}


async def test_a_part_that_ends_or_cancels_itself_has_failed(supervisor, clock):
    part = Script()
    async with running(supervisor, dns=part):
        part.end.set_result(None)
        await turns()
        assert supervisor.problems() == {"dns": "RuntimeError: it ended"}
        await clock.advance(1.0)
        part.end.cancel()
        await turns()
        assert supervisor.problems() == {"dns": "RuntimeError: it was cancelled from inside"}
        await clock.advance(2.0)
        assert part.attempts == 3


async def test_one_line_per_failure_and_one_traceback_per_defect(supervisor, clock, caplog):
    caplog.set_level(logging.ERROR)
    part = Script()
    async with running(supervisor, dns=part):
        for error in (ValueError("it broke"), ValueError("it broke"), ServiceUnavailable("not now")):
            await part.fail(error)
            await clock.advance(8.0)
    assert [(record.getMessage(), record.exc_info is not None) for record in caplog.records] == [
        ("dns failed: ValueError: it broke; it is started again in 1 s", True),
        ("dns failed: ValueError: it broke; it is started again in 2 s", False),
        ("dns failed: not now; it is started again in 4 s", False),
    ]


async def test_of_nested_tasks_the_innermost_is_named():
    async def die():
        raise ValueError("it broke")

    async def outer():
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(die(), name="the culprit").add_done_callback(note_name)

    with pytest.raises(BaseExceptionGroup) as raised:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(outer(), name="around it").add_done_callback(note_name)
    assert reason(raised.value) == "the culprit: ValueError: it broke"


async def test_a_later_part_takes_the_place_of_one_of_its_name(supervisor):
    never_run = supervisor.part("dns", Script())
    part = supervisor.part("dns", Script())
    supervisor.dismiss(never_run)
    assert supervisor.parts == {"dns": part}
