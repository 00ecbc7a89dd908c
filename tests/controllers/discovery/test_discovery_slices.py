"""What a controller knows of its slices between its own writes and what its informer shows."""

import msgspec
import pytest
from memory_cluster import MemoryCluster
from worlds import node as make_node
from worlds import pod, service

from seamark.access.cluster import Change
from seamark.access.informer import Informer
from seamark.access.informers import Informers
from seamark.controllers.discovery.slices import Outrun, Slices
from seamark.kinds.resource import ENDPOINT_SLICES
from seamark.kinds.wellknown import SERVICE_NAME_LABEL, SLICE_CONTROLLER, SLICE_MANAGED_BY_LABEL
from seamark.rules.changes import Changes
from seamark.rules.objects.endpointslice import EndpointSlice
from seamark.rules.slices.state import SlicesState
from seamark.runtime.controller import Controller
from seamark.runtime.manager import Manager
from virtual_time import VirtualClock

KEY = "default/web"


class Scene:
    """A controller's slices on a cluster, and an informer that is as far behind as the test wants."""

    def __init__(self):
        self.cluster = MemoryCluster()
        self.clock = VirtualClock()
        self.informer = Informer(None, ENDPOINT_SLICES, as_=EndpointSlice)
        self.informer.last_version = "1"
        manager = Manager(Informers(self.cluster), clock=self.clock)
        self.controller = Controller("tested", manager)
        self.slices = Slices(manager, self.cluster, self.informer, self.controller, managed_by=SLICE_CONTROLLER)
        self.told = {}
        self._news = []
        self._shown = 0
        self.informer.on_change(lambda *change: self._news.extend(self.slices.see(*change)))

    def show(self, events=1000):
        """What is news of the next few events."""
        self._news.clear()
        for version, type, _, obj in self.cluster._log[self._shown : self._shown + events]:
            self._shown += 1
            self.informer._apply(Change(type, msgspec.convert(obj, EndpointSlice), str(version)))
        return list(self._news)

    async def write(self, *pods):
        """Make the slices as they should be for these Pods; the one that there is then, as written."""
        state = SlicesState(service())
        for known in self.slices.of(KEY).values():
            state.observe(known)
        for name in pods:
            state.put(name, pod(name), make_node())
        await self.slices.carry_out(KEY, state.plan().changes, self.told.__setitem__)
        return self.known()

    async def patch(self, name, patch):
        await self.cluster.patch(ENDPOINT_SLICES, name, patch, namespace="default")

    def known(self):
        found = list(self.slices.of(KEY).values())
        return found[0] if found else None


@pytest.fixture
def scene():
    return Scene()


async def test_our_own_write_coming_back_is_no_news(scene):
    made = await scene.write("a")
    assert scene.told == {made.metadata.name: made}
    assert scene.show() == []
    assert scene.known().metadata.name == made.metadata.name


async def test_what_was_before_our_write_is_old_news(scene):
    await scene.write("a")
    second = await scene.write("a", "b")
    assert scene.show(1) == []
    assert scene.known() is second
    assert scene.show() == []


async def test_what_others_do_is_news(scene):
    name = (await scene.write("a")).metadata.name
    await scene.patch(name, {"endpoints": []})
    [news] = scene.show()
    assert (news.key, news.name, news.slice.endpoints, news.taken) == (KEY, name, (), False)
    await scene.cluster.delete(ENDPOINT_SLICES, name, namespace="default")
    [news] = scene.show()
    assert (news.key, news.slice, news.taken) == (KEY, None, False)
    assert scene.known() is None


async def test_what_is_no_new_generation_is_trifling_news(scene):
    name = (await scene.write("a")).metadata.name
    await scene.patch(name, {"metadata": {"annotations": {"a": "b"}}})
    [news] = scene.show()
    assert news.trifling
    assert scene.known().metadata.annotations["a"] == "b"
    await scene.patch(name, {"metadata": {"labels": {"mine": "x"}}})
    assert not any(news.trifling for news in scene.show())


async def test_our_own_deletion_is_no_news_and_neither_is_what_led_up_to_it(scene):
    made = await scene.write("a")
    scene.show()
    await scene.patch(made.metadata.name, {"metadata": {"annotations": {"a": "b"}}})
    await scene.slices.carry_out(KEY, Changes(delete=(made,)), scene.told.__setitem__)
    assert scene.told[made.metadata.name] is None
    assert scene.known() is None
    assert scene.show(1) == []
    assert scene.known() is None
    assert scene.show() == []


async def test_a_slice_that_is_taken_away_is_told_as_such(scene):
    name = (await scene.write("a")).metadata.name
    await scene.patch(name, {"metadata": {"labels": {SLICE_MANAGED_BY_LABEL: "me"}}})
    [news] = scene.show()
    assert (news.key, news.slice, news.taken) == (KEY, None, True)
    assert scene.known() is None


async def test_a_slice_that_moves_concerns_both_services(scene):
    name = (await scene.write("a")).metadata.name
    await scene.patch(name, {"metadata": {"labels": {SERVICE_NAME_LABEL: "other"}}})
    left, joined = scene.show()
    assert (left.key, left.taken) == (KEY, True)
    assert (joined.key, joined.name) == ("default/other", name)
    assert list(scene.slices.of("default/other")) == [name]


async def test_a_slice_that_was_never_shown_as_ours_is_missed_all_the_same(scene):
    name = (await scene.write("a")).metadata.name
    await scene.patch(name, {"metadata": {"labels": {SERVICE_NAME_LABEL: "other"}}})
    del scene.cluster._log[0]  # an informer that lists sees only what is there then
    left, joined = scene.show()
    assert (left.key, left.taken, joined.key) == (KEY, True, "default/other")


async def test_slices_of_others_do_not_concern_us(scene):
    made = await scene.write("a")
    labels = {**made.metadata.labels, SLICE_MANAGED_BY_LABEL: "me"}
    foreign = {"metadata": {"name": "foreign", "labels": labels}, "addressType": "IPv4", "endpoints": []}
    await scene.cluster.create(ENDPOINT_SLICES, foreign, namespace="default")
    assert scene.show() == []
    await scene.cluster.delete(ENDPOINT_SLICES, "foreign", namespace="default")
    assert scene.show() == []


async def test_reading_everything_anew_replaces_what_was_known(scene):
    made = await scene.write("a")
    scene.show()
    await scene.cluster.delete(ENDPOINT_SLICES, made.metadata.name, namespace="default")
    other = {**msgspec.to_builtins(made), "metadata": {"name": "another", "labels": made.metadata.labels}}
    await scene.cluster.create(ENDPOINT_SLICES, other, namespace="default")
    await scene.slices.refresh(KEY)
    assert list(scene.slices.of(KEY)) == ["another"]
    scene.show(1)
    assert list(scene.slices.of(KEY)) == ["another"]
    scene.show()
    assert list(scene.slices.of(KEY)) == ["another"]


async def test_a_plan_from_an_outdated_view_is_outrun_and_the_truth_is_read(scene):
    name = (await scene.write("a")).metadata.name
    scene.show()
    await scene.patch(name, {"endpoints": []})
    with pytest.raises(Outrun):
        await scene.write("a", "b")
    assert scene.known().endpoints == ()
    assert len((await scene.write("a", "b")).endpoints) == 2


async def test_what_we_made_and_is_never_shown_is_doubted(scene):
    await scene.write("a")
    await scene.clock.advance(40)
    assert scene.slices.doubtful(KEY)
    assert len(scene.controller.queue) == 1
    await scene.slices.refresh(KEY)
    assert not scene.slices.doubtful(KEY)
