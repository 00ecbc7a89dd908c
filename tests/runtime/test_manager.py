"""The manager: controllers begin when everything is known, end in good order, and never die unnoticed."""

import asyncio
import contextlib

import pytest
from hand_fed import Thing, thing

from seamark.access.cluster import Change, Listing
from seamark.access.informers import Informers
from seamark.kinds.resource import PODS, SERVICES
from seamark.metrics import Registry
from seamark.runtime.controller import Controller
from seamark.runtime.following import Derived
from seamark.runtime.manager import Manager
from seamark.runtime.supervisor import first_cause
from turns import turns as settle
from virtual_time import VirtualClock


class Slow:
    """A cluster whose lists come when the test lets them, and whose watches say nothing."""

    def __init__(self):
        self.listed = asyncio.Event()
        self.lists = []

    async def list(self, resource, *, as_, **query):
        self.lists.append(resource)
        await self.listed.wait()
        return Listing([thing("a", 2), thing("b", 3)], "3")

    async def watch(self, resource, *, since, as_, **query):
        yield Change("BOOKMARK", None, since)
        await asyncio.Event().wait()


class Recorder(Controller):
    def __init__(self, manager, resource=PODS, name="recorder"):
        super().__init__(name, manager)
        self.handled = []
        self.gate = None
        self.watch(manager.informers.of(resource, as_=Thing), lambda key, old, new: self.queue.add(key))

    async def reconcile(self, key):
        if self.gate is not None:
            await self.gate.wait()
        self.handled.append(key)


@pytest.fixture
def cluster():
    return Slow()


@pytest.fixture
def manager(cluster):
    return Manager(Informers(cluster), clock=VirtualClock(), metrics=Registry(), grace=0.05)


@contextlib.asynccontextmanager
async def managed(manager):
    task = asyncio.create_task(manager.run())
    await settle()
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_nothing_is_handled_before_everything_is_known(cluster, manager):
    controller = Recorder(manager)
    manager.add(controller)
    async with managed(manager):
        assert not manager.ready.is_set()
        cluster.listed.set()
        await settle()
        assert manager.ready.is_set()
        assert manager.idle
        assert controller.handled == ["default/a", "default/b"]
    assert not manager.ready.is_set()


async def test_an_idle_manager_has_a_task_per_informer_and_no_other(cluster, manager):
    before = asyncio.all_tasks()
    for number in range(5):
        manager.add(Recorder(manager, name=f"controller {number}"))
    manager.add(Recorder(manager, SERVICES))
    cluster.listed.set()
    async with managed(manager) as running:
        await manager.quiet()
        await settle()
        names = sorted(task.get_name() for task in asyncio.all_tasks() - before - {running})
        assert names == ["informer of pods", "informer of services", "informers"]
        assert cluster.lists == [PODS, SERVICES], "those who ask for the same share an informer"


async def test_informers_that_run_already_are_shared(cluster):
    informers = Informers(cluster)
    cluster.listed.set()
    running = asyncio.create_task(informers.run())
    await settle()
    managers = [Manager(informers, clock=VirtualClock()) for _ in range(2)]
    controllers = [Recorder(manager) for manager in managers]
    for manager, controller in zip(managers, controllers, strict=True):
        manager.add(controller)
    async with managed(managers[0]):
        async with managed(managers[1]):
            assert all(controller.handled == ["default/a", "default/b"] for controller in controllers)
        assert not running.done()
        assert cluster.lists == [PODS]
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_what_comes_first_is_done_before_anything_is_told(cluster, manager):
    controller, done = Recorder(manager), asyncio.Event()
    manager.add(controller, first=done.wait)
    cluster.listed.set()
    async with managed(manager):
        assert len(controller.queue) == 0
        assert not manager.ready.is_set()
        done.set()
        await settle()
        assert controller.handled == ["default/a", "default/b"]


async def test_what_is_being_handled_may_finish_and_the_rest_is_cut_off(cluster, manager):
    finishing, hanging = Recorder(manager, name="finishing"), Recorder(manager, name="hanging")
    finishing.gate, hanging.gate = asyncio.Event(), asyncio.Event()
    manager.add(finishing)
    manager.add(hanging)
    cluster.listed.set()
    async with managed(manager) as running:
        running.cancel()
        await settle()
        assert not running.done()
        finishing.gate.set()
        with pytest.raises(asyncio.CancelledError):
            await running
    assert finishing.handled == ["default/a", "default/b"]
    assert hanging.handled == []
    assert manager.informers.running is False


@pytest.mark.parametrize("when", ["beside", "first"])
async def test_what_dies_takes_all_with_it_and_is_named(cluster, manager, when):
    async def die():
        raise ValueError("it broke")

    if when == "beside":
        manager.add(Recorder(manager))
        manager.beside("the culprit", die)
    else:
        manager.add(Recorder(manager, name="the culprit"), first=die)
    with pytest.raises(BaseExceptionGroup) as raised:
        await manager.run()
    cause = first_cause(raised.value)
    assert isinstance(cause, ValueError)
    assert cause.__notes__ == ["the culprit"]


async def test_at_the_end_states_stop_following_what_is_no_informer(cluster, manager):
    class State(Derived):
        closed = False

        def close(self):
            self.closed = True

    state = State("state")
    manager.add(state)
    async with managed(manager):
        assert not state.closed
    assert state.closed


async def test_a_manager_that_failed_leaves_shared_informers_as_they_were(cluster):
    informers = Informers(cluster)
    cluster.listed.set()
    running = asyncio.create_task(informers.run())
    for _ in range(3):
        manager = Manager(informers, clock=VirtualClock())
        controller, broken = Recorder(manager), asyncio.Event()

        async def die(broken=broken):
            await broken.wait()
            raise ValueError("it broke")

        manager.add(controller)
        manager.beside("the culprit", die)
        working = asyncio.create_task(manager.work())
        await manager.ready.wait()
        await manager.quiet()
        assert controller.handled == ["default/a", "default/b"], "each is told everything"
        broken.set()
        with pytest.raises(BaseExceptionGroup):
            await working
        assert informers.of(PODS, as_=Thing)._handlers == []
    assert cluster.lists == [PODS]
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
