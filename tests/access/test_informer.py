"""An informer holds what the server holds, and tells exactly what changed, whatever happens to its connection."""

import asyncio
import contextlib
import logging

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_cluster import SmallCluster

from seamark import errors
from seamark.access.informer import Informer, key_of, split_key
from seamark.access.informers import Informers
from seamark.kinds.resource import PODS
from seamark.metrics import Registry
from virtual_time import HastyClock


class Metadata(msgspec.Struct, frozen=True, gc=False):
    name: str
    namespace: str = ""
    uid: str = ""


class Pod(msgspec.Struct, frozen=True, gc=False):
    metadata: Metadata
    color: str = ""
    size: int = 0


def colors(pod):
    return [pod.color] if pod.color else []


def informer_of(cluster, clock, **more):
    return Informer(cluster, PODS, as_=Pod, clock=clock, random=lambda: 0.5, **more)


@contextlib.asynccontextmanager
async def running(*informers):
    tasks = [asyncio.create_task(informer.run()) for informer in informers]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@contextlib.asynccontextmanager
async def synced(informer):
    async with running(informer):
        await informer.synced.wait()
        yield


async def until(condition):
    for _ in range(10_000):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("it never came true")


async def caught_up(informer, cluster):
    await until(lambda: informer.connected and informer.last_version == str(cluster.version))


class Replay:
    """What a handler was told, and what the world looks like to a reader that knows nothing else."""

    def __init__(self):
        self.calls = []

    def __call__(self, key, old, new):
        assert key == key_of("default", (new or old).metadata.name)
        self.calls.append((old, new))

    @property
    def objects(self):
        """Raises if something it was told makes no sense."""
        objects = {}
        for old, new in self.calls:
            key = (new or old).metadata.name
            assert objects.get(key) == old
            assert old != new
            if old is not None and new is not None:
                assert old.metadata.uid == new.metadata.uid
            if new is None:
                del objects[key]
            else:
                objects[key] = new
        return objects


NAMES = st.sampled_from("abcd")
WRITES = st.one_of(
    st.tuples(st.just("put"), NAMES, st.sampled_from(["red", "green"]), st.integers(0, 2)),
    st.tuples(st.just("remove"), NAMES),
    st.tuples(st.just("replace"), NAMES),
    st.just(("bookmark",)),
)
OUTAGES = st.tuples(
    st.just("outage"),
    st.sampled_from([errors.ServiceUnavailable("connection reset"), errors.InternalError("cannot decode"), "end"]),
    st.lists(WRITES, max_size=5),
    st.booleans(),  # whether the server forgets its history meanwhile
    st.integers(0, 3),  # how many attempts to come back fail
)
STEPS = st.lists(
    st.one_of(WRITES, OUTAGES, st.sampled_from([("compact",), ("settle",), ("step",)])),
    max_size=30,
)


async def happen(cluster, informer, step):
    match step:
        case ("put", name, color, size):
            cluster.put(name, color=color, size=size)
        case ("remove", name):
            cluster.remove(name)
        case ("replace", name):
            cluster.remove(name)
            cluster.put(name, color="red")
        case ("bookmark",):
            cluster.bookmark()
        case ("outage", error, writes, forgetful, failures):
            cluster.cut(error)
            for write in writes:
                await happen(cluster, informer, write)
            if forgetful:
                cluster.compact()
            cluster.failures += [errors.ServiceUnavailable("refused"), errors.Forbidden("not now")][:failures]
        case ("compact",):
            cluster.compact()
        case ("step",):
            await asyncio.sleep(0)
        case ("settle",):
            await caught_up(informer, cluster)


@given(STEPS)
def test_state_equals_the_servers_after_any_interleaving(steps):
    async def scenario():
        cluster, clock, replay = SmallCluster(), HastyClock(), Replay()
        informer = informer_of(cluster, clock)
        informer.on_change(replay)
        by_color = informer.index("color", colors)
        async with running(informer):
            for step in steps:
                await happen(cluster, informer, step)
            await caught_up(informer, cluster)
            expected = {name: msgspec.convert(obj, Pod) for name, obj in cluster.objects.items()}
            assert {pod.metadata.name: pod for pod in informer.objects()} == expected
            assert replay.objects == expected
            for color in ("red", "green"):
                assert {pod.metadata.name: pod for pod in by_color.objects(color)} == {
                    name: pod for name, pod in expected.items() if pod.color == color
                }
            assert set(by_color.values()) == {pod.color for pod in expected.values()}

    asyncio.run(scenario())


async def test_follows_in_order_and_skips_what_the_projection_does_not_see():
    cluster, clock, replay = SmallCluster(), HastyClock(), Replay()
    informer = informer_of(cluster, clock)
    informer.on_change(replay)
    async with synced(informer):
        cluster.put("a", color="red")
        cluster.put("a", color="red", unseen=1)
        cluster.put("a", color="green")
        cluster.remove("a")
        await caught_up(informer, cluster)
    assert [(old and old.color, new and new.color) for old, new in replay.calls] == [
        (None, "red"),
        ("red", "green"),
        ("green", None),
    ]
    assert clock.slept == []


async def test_resumes_after_a_drop_without_listing_again():
    cluster, clock = SmallCluster(), HastyClock()
    informer = informer_of(cluster, clock)
    async with running(informer):
        cluster.put("a")
        await caught_up(informer, cluster)
        cluster.put("b")
        await caught_up(informer, cluster)
        cluster.cut(errors.ServiceUnavailable("connection reset"))
        cluster.put("c")
        await caught_up(informer, cluster)
        assert len(informer) == 3
        assert cluster.lists == 1


async def test_says_when_the_server_is_out_of_sight_and_keeps_what_it_knows(caplog):
    cluster, clock = SmallCluster(), HastyClock()
    informer = informer_of(cluster, clock)
    cluster.put("a")
    async with synced(informer):
        await until(lambda: cluster.open)
        assert informer.connected
        assert informer.lag == 0
        refused = [errors.ServiceUnavailable("refused")] * 5
        cluster.failures += refused
        lost = []
        with caplog.at_level(logging.INFO):
            cluster.cut(errors.ServiceUnavailable("connection reset"))
            while cluster.failures or not informer.connected:
                await asyncio.sleep(0)
                if not informer.connected:
                    lost.append(informer.lag)
                assert informer.get("a", "default") is not None
        assert lost == sorted(lost)
        assert lost[-1] > 10
        assert informer.lag == 0
        assert cluster.lists == 1
        messages = [record.message for record in caplog.records]
        assert messages == [
            "pods: cannot follow the server, keeping what is known: connection reset",
            "pods: cannot follow the server, keeping what is known: refused",
            "pods: following the server again",
        ]
    assert not informer.connected


async def test_backs_off_longer_each_time_and_begins_anew_after_success():
    cluster, clock = SmallCluster(), HastyClock()
    informer = informer_of(cluster, clock)
    cluster.failures += [errors.ServiceUnavailable("refused")] * 8
    async with synced(informer):
        assert clock.slept == pytest.approx([1.2, 2.4, 4.8, 9.6, 19.2, 38.4, 45, 45])
        cluster.put("a")
        await caught_up(informer, cluster)
        cluster.failures += [errors.ServiceUnavailable("refused")]
        cluster.cut()
        await until(lambda: len(clock.slept) == 9)
        assert clock.slept[-1] == pytest.approx(1.2)


async def test_waits_as_long_as_the_server_asks():
    cluster, clock = SmallCluster(), HastyClock()
    informer = informer_of(cluster, clock)
    cluster.failures += [errors.TooManyRequests("slow down", retry_after=7)]
    async with synced(informer):
        pass
    assert clock.slept == [7]


async def test_a_server_that_forgets_at_once_is_not_hammered():
    cluster, clock = SmallCluster(), HastyClock()
    informer = informer_of(cluster, clock)
    async with synced(informer):
        for _ in range(3):
            await until(lambda: cluster.open)
            cluster.cut(errors.Expired("too old"))
            await until(lambda lists=cluster.lists: cluster.lists == lists + 1)
        assert clock.slept == pytest.approx([1.2, 2.4, 4.8])
        assert informer.connected


async def test_a_handler_that_fails_harms_nobody_else(caplog):
    cluster, clock, replay = SmallCluster(), HastyClock(), Replay()
    informer = informer_of(cluster, clock)

    def broken(key, old, new):
        raise ZeroDivisionError

    informer.on_change(broken)
    informer.on_change(replay)
    cluster.put("a")
    async with running(informer):
        await caught_up(informer, cluster)
    assert list(replay.objects) == ["a"]
    assert "a handler failed" in caplog.text
    assert "ZeroDivisionError" in caplog.text


async def test_late_readers_are_told_what_is_there():
    cluster, clock, replay = SmallCluster(), HastyClock(), Replay()
    informer = informer_of(cluster, clock)
    cluster.put("a", color="red")
    async with synced(informer):
        informer.on_change(replay)
        assert list(replay.objects) == ["a"]
        assert informer.index("color", colors).keys("red") == ["default/a"]
        assert informer.index("color", colors).objects("blue") == ()


async def test_two_functions_cannot_share_an_index():
    informer = informer_of(SmallCluster(), HastyClock())
    informer.index("color", colors)
    with pytest.raises(ValueError, match="pods have an index 'color' of another function already"):
        informer.index("color", lambda pod: ())


def test_a_projection_needs_metadata():
    class Bare(msgspec.Struct):
        color: str

    with pytest.raises(TypeError, match="Bare cannot be followed: it needs a field `metadata`"):
        Informer(SmallCluster(), PODS, as_=Bare)


def test_keys():
    assert key_of("default", "web") == "default/web"
    assert key_of("", "node-a") == "node-a"
    assert split_key("default/web") == ("default", "web")
    assert split_key("node-a") == ("", "node-a")


async def test_whole_objects_can_be_followed_too():
    cluster = SmallCluster()
    informers = Informers(cluster)
    cluster.put("a", labels={"app": "web"})
    cluster.put("b", labels={"app": "db"})
    web = informers.of(PODS, labels="app=web")
    task = asyncio.create_task(informers.run())
    await informers.synced()
    assert [pod["metadata"]["name"] for pod in web.objects()] == ["a"]
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_readers_of_the_same_share_one_informer():
    cluster = SmallCluster()
    informers = Informers(cluster)
    first = informers.of(PODS, as_=Pod)
    assert informers.of(PODS, as_=Pod) is first
    assert informers.of(PODS, as_=Pod, namespace="default") is not first
    assert informers.of(PODS) is not first
    assert not informers.connected
    task = asyncio.create_task(informers.run())
    await informers.synced()
    assert informers.connected
    assert informers.lag == 0
    later = informers.of(PODS, as_=Pod, labels="app=web")
    assert not later.synced.is_set()
    await informers.synced()
    assert later.synced.is_set()
    assert cluster.lists == 4
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert not informers.connected


# --- objects that the view cannot hold --------------------------------------------------------------


async def test_an_object_that_cannot_be_decoded_is_absent_and_the_others_are_not(caplog):
    cluster, told = SmallCluster(), Replay()
    cluster.put("good", color="red")
    cluster.put("bad", size="large")
    informer = informer_of(cluster, HastyClock())
    informer.on_change(told)
    async with synced(informer):
        assert sorted(informer.keys()) == ["default/good"]
        assert sorted(informer.unreadable) == ["default/bad"]
        cluster.put("good", color="blue")
        await caught_up(informer, cluster)
        assert informer.get("good", "default").color == "blue"
    assert [(old and old.color, new.color) for old, new in told.calls] == [(None, "red"), ("red", "blue")]
    said = [record.message for record in caplog.records]
    assert said == [
        "pods: default/bad is left out, because it cannot be read as Pod: Expected `int`, got `str` - at `$.size`"
    ]


async def test_an_object_that_turns_strange_is_told_as_deleted_and_comes_back_when_mended(caplog):
    cluster, told = SmallCluster(), Replay()
    cluster.put("a", color="red")
    informer = informer_of(cluster, HastyClock())
    informer.on_change(told)
    async with synced(informer):
        cluster.put("a", size="large")
        cluster.put("a", size="larger")  # strange in the same way: logged once
        await caught_up(informer, cluster)
        assert (informer.keys(), list(informer.unreadable)) == ([], ["default/a"])
        cluster.put("a", size=3)
        await caught_up(informer, cluster)
        assert (informer.get("a", "default").size, informer.unreadable) == (3, {})
        cluster.put("a", size="large")
        cluster.remove("a")
        await caught_up(informer, cluster)
        assert (informer.keys(), informer.unreadable) == ([], {})
    steps = [(old and old.size, new and new.size) for old, new in told.calls]
    assert steps == [(None, 0), (0, None), (None, 3), (3, None)]
    assert len(caplog.records) == 2


async def test_a_list_after_a_lost_connection_forgets_strange_objects_that_are_gone(caplog):
    cluster = SmallCluster()
    for name in ("stays", "goes", "mends"):
        cluster.put(name, size="large")
    informer = informer_of(cluster, HastyClock())
    async with synced(informer):
        cluster.cut(errors.InternalError("lost"))
        cluster.remove("goes")
        cluster.put("mends", size=1)
        cluster.compact()
        await until(lambda: cluster.lists == 2)
        await caught_up(informer, cluster)
        assert (list(informer.unreadable), informer.keys()) == (["default/stays"], ["default/mends"])
    assert len([record for record in caplog.records if "left out" in record.message]) == 3


async def test_the_objects_left_out_are_counted_once_for_all_views():
    class Tiny(msgspec.Struct, frozen=True):
        metadata: Metadata
        size: int = 0

    cluster, metrics = SmallCluster(), Registry()
    cluster.put("bad", size="large")
    informers = Informers(cluster, metrics=metrics)
    informers.of(PODS, as_=Pod)
    informers.of(PODS, as_=Tiny)
    async with running(informers):
        await informers.synced()
        assert 'seamark_undecodable_objects{resource="pods"} 1' in metrics.text()


async def test_a_defect_does_not_end_an_informer(caplog):
    cluster, clock = SmallCluster(), HastyClock()
    cluster.failures.append(RuntimeError("a defect"))
    cluster.put("a")
    informer = informer_of(cluster, clock)
    async with synced(informer):
        assert informer.keys() == ["default/a"]
    assert "pods: an event could not be handled" in caplog.text


async def test_a_change_that_an_index_could_not_take_is_told_after_the_next_list():
    cluster, clock = SmallCluster(), HastyClock()
    cluster.put("a", color="red")
    informer, told, broken = informer_of(cluster, clock), Replay(), []

    def by_color(pod):
        if broken and pod.color == "green":
            raise broken.pop()
        return colors(pod)

    index = informer.index("color", by_color)
    informer.on_change(told)
    async with running(informer):
        await caught_up(informer, cluster)
        broken.append(RuntimeError("a defect"))
        cluster.put("a", color="green")
        await until(lambda: not broken)
        await caught_up(informer, cluster)
        assert told.objects["a"].color == "green"
        assert index.keys("green") == ["default/a"]
        assert index.keys("red") == []


async def test_a_handler_that_is_forgotten_is_called_no_longer():
    cluster, clock = SmallCluster(), HastyClock()
    informer, first, second = informer_of(cluster, clock), Replay(), Replay()
    informer.on_change(first)
    informer.on_change(second)
    informer.forget(first)
    async with running(informer):
        cluster.put("a")
        await caught_up(informer, cluster)
    assert (first.calls, list(second.objects)) == ([], ["a"])
