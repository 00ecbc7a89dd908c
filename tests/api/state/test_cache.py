"""The cache against a model: after any batches it holds what the log says, and remembers how that came about."""

import asyncio

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark.api.state.cache import PORTS_PREFIX, RECENT_SECONDS, Cache
from seamark.api.state.entries import entry_of, key_of, prefix_of, restamped, stored
from seamark.kinds.resource import CONFIGMAPS, EVENTS, NAMESPACES, NEW_EVENTS, NODES
from seamark.kinds.table import KINDS
from seamark.store.opening import open_store
from seamark.store.protocol import Batch, Change, Unavailable, Write
from virtual_time import VirtualClock

NAMES = ("a", "a0", "b", "b-1", "b.x")


def value(number, **labels):
    return stored(
        {"metadata": {"name": "x", "labels": labels} if labels else {"name": "x"}, "data": {"n": str(number)}}
    )


class Quiet:
    """A store that is never asked."""

    shared = False


class Watcher:
    def __init__(self):
        self.seen, self.flushed = [], []

    def offer(self, event):
        self.seen.append((event.type, event.entry.path, event.entry.revision))

    def flush(self, revision):
        self.flushed.append(revision)


paths = st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)).map("/".join)
steps = st.tuples(st.sampled_from([CONFIGMAPS, NAMESPACES]), paths, st.sampled_from(["put", "delete"]), st.booleans())
logs = st.lists(st.lists(steps, max_size=5), max_size=12)


@given(logs, paths, st.sampled_from(NAMES))
def test_the_cache_is_what_the_log_says(log, after, namespace):
    cache = Cache(Quiet(), KINDS)
    everywhere, one_namespace, one_name = Watcher(), Watcher(), Watcher()
    configmaps = cache.of(CONFIGMAPS)
    configmaps.subscribe(everywhere, "", "")
    configmaps.subscribe(one_namespace, namespace, "")
    stop = configmaps.subscribe(one_name, namespace, "a")
    model, history, revision = {}, [], 0
    for transactions in log:
        changes = []
        for resource, path, verb, labelled in transactions:
            revision += 1
            path = path if resource is CONFIGMAPS else path.partition("/")[0]
            key = prefix_of(resource) + path
            new = value(revision, **({"l": "v"} if labelled else {})) if verb == "put" else None
            changes.append(Change(key, new, None, revision))
            known = model.pop(key, None)
            if new is not None:
                model[key] = (new, revision)
            if resource is CONFIGMAPS and (new is not None or known is not None):
                type = "DELETED" if new is None else "MODIFIED" if known else "ADDED"
                history.append((type, path, revision))
        cache.apply(Batch(changes, revision))
    assert cache.revision == revision
    held = {c.prefix + path: entry for c in cache.collections for path, entry in c.entries.items()}
    assert held == {key: entry_of(held[key].path, *at) for key, at in model.items()}
    # ranges and counts
    inside = sorted(path for path in configmaps.entries if path.startswith(f"{namespace}/"))
    assert [e.path for e in configmaps.of_namespace(namespace)] == inside
    assert configmaps.count(namespace) == len(inside)
    behind = [path for path in sorted(configmaps.entries) if path > after]
    assert [e.path for e in configmaps.of_namespace("", after)] == behind
    assert configmaps.count("", after) == len(behind)
    # who was told what
    assert everywhere.seen == history
    assert one_namespace.seen == [h for h in history if h[1].startswith(f"{namespace}/")]
    assert one_name.seen == [h for h in history if h[1] == f"{namespace}/a"]
    assert len(everywhere.flushed) <= len(log)
    for since in range(revision + 1):
        told = [(e.type, e.entry.path, e.entry.revision) for e in configmaps.since(since)]
        assert told == [h for h in history if h[2] > since]
    stop()
    assert configmaps.watcher_count == 2


def test_only_so_much_is_remembered(monkeypatch):
    monkeypatch.setattr("seamark.api.state.collection.RECENT_EVENTS", 10)
    cache = Cache(Quiet(), KINDS)
    for revision in range(1, 26):
        cache.apply(Batch([Change(key_of(CONFIGMAPS, "d", "a"), value(revision), None, revision)], revision))
    configmaps = cache.of(CONFIGMAPS)
    assert configmaps.since(14) is None
    assert [event.entry.revision for event in configmaps.since(15)] == list(range(16, 26))
    assert cache.of(NODES).since(0) is not None
    cache.settle()
    assert configmaps.since(24) is None
    assert list(configmaps.since(25)) == []


async def test_what_is_old_is_not_remembered():
    clock = VirtualClock(0.0)
    cache = Cache(Quiet(), KINDS, clock=clock)

    def change(resource, revision):
        cache.apply(Batch([Change(key_of(resource, "", "a"), value(revision), None, revision)], revision))

    change(NODES, 1)
    change(NAMESPACES, 2)
    nodes, configmaps = cache.of(NODES), cache.of(CONFIGMAPS)
    nodes.behind = 1
    for revision in range(3, 40):
        await clock.advance(RECENT_SECONDS / 10)
        change(CONFIGMAPS, revision)
    assert not cache.of(NAMESPACES).events, "nothing changed there for long"
    assert cache.of(NAMESPACES).since(1) is None
    assert list(cache.of(NAMESPACES).since(2)) == []
    assert 10 <= len(configmaps.events) <= 12
    assert len(nodes.events) == 1, "a watcher has yet to read it"
    nodes.behind = 0
    await clock.advance(RECENT_SECONDS)
    change(CONFIGMAPS, 40)
    assert not nodes.events


def test_an_object_is_its_bytes():
    obj = {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"name": "x", "resourceVersion": "5"},
        "data": {"a": "b"},
    }
    entry = entry_of("ns/x", stored(obj), 7)
    assert (entry.namespace, entry.name, entry.revision, entry.labels) == ("ns", "x", 7, {})
    assert entry.decode() == {"metadata": {"resourceVersion": "7", "name": "x"}, "data": {"a": "b"}}
    again = restamped(entry, 9)
    assert again.decode()["metadata"]["resourceVersion"] == "9"
    assert msgspec.structs.replace(again, tail=entry.tail, revision=7) == entry


def test_ports_are_followed():
    cache = Cache(Quiet(), KINDS)
    cache.apply(
        Batch([Change(f"{PORTS_PREFIX}30001", b"{}", None, 1), Change(f"{PORTS_PREFIX}30002", b"{}", None, 2)], 2)
    )
    cache.apply(Batch([Change(f"{PORTS_PREFIX}30001", None, None, 3), Change("/unknown/things/x", b"{}", None, 3)], 3))
    assert cache.ports == {30002: 2}


def test_two_views_are_one_collection():
    cache = Cache(Quiet(), KINDS)
    assert cache.of(EVENTS) is cache.of(NEW_EVENTS)


async def test_waiting_for_a_revision():
    cache = Cache(Quiet(), KINDS)
    await cache.reach(0)
    waiting = [asyncio.create_task(cache.reach(revision)) for revision in (3, 1, 2)]
    await asyncio.sleep(0)
    cache.apply(Batch([], 2))
    await asyncio.gather(*waiting[1:])
    assert not waiting[0].done()
    cache.apply(Batch([], 3))
    await asyncio.gather(*waiting)


async def test_who_follows_acts_before_who_wrote_goes_on():
    cache = Cache(Quiet(), KINDS)
    told, order = asyncio.Event(), []

    class Follower:
        def offer(self, event):
            pass

        def flush(self, revision):
            told.set()

    async def follow():
        await told.wait()
        order.append("follower")

    async def write():
        await cache.reach(1)
        order.append("writer")

    cache.of(CONFIGMAPS).subscribe(Follower(), "", "")
    tasks = [asyncio.create_task(write()), asyncio.create_task(follow())]
    await asyncio.sleep(0)
    cache.apply(Batch([Change(key_of(CONFIGMAPS, "d", "a"), value(1), None, 1)], 1))
    await asyncio.gather(*tasks)
    assert order == ["follower", "writer"]


async def test_who_gives_up_waiting_is_forgotten():
    cache = Cache(Quiet(), KINDS)
    for _ in range(3000):
        task = asyncio.create_task(cache.reach(10**9))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert len(cache._waiting) < 1100


async def test_who_waits_is_told_when_the_store_is_lost():
    store = open_store("memory:")
    await store.open()
    cache = Cache(store, KINDS)
    await cache.load()
    following = asyncio.create_task(cache.follow())
    waiting = asyncio.create_task(cache.reach(10**9))
    await asyncio.sleep(0.01)
    await store.close()
    await asyncio.gather(following, return_exceptions=True)
    for call in (waiting, cache.reach(10**9)):
        with pytest.raises(Unavailable, match="not followed: it was closed"):
            await call
    assert cache.lost is not None


async def test_loading_in_pages_and_following(monkeypatch):
    monkeypatch.setattr("seamark.api.state.cache.LOAD_PAGE", 7)
    store = open_store("memory:")
    await store.open()
    for number in range(40):
        await store.commit([Write(key_of(CONFIGMAPS, "d", f"c{number:02}"), value(number))])
    await store.commit([Write(f"{PORTS_PREFIX}30000", b"{}")])
    cache = Cache(store, KINDS)
    await cache.load()
    assert [e.name for e in cache.of(CONFIGMAPS).of_namespace("d")] == [f"c{n:02}" for n in range(40)]
    assert set(cache.ports) == {30000}
    following = asyncio.create_task(cache.follow())
    revision = await store.commit(
        [Write(key_of(CONFIGMAPS, "d", "new"), value(1)), Write(key_of(CONFIGMAPS, "d", "c00"), None)]
    )
    await cache.reach(revision)
    assert cache.of(CONFIGMAPS).get("d/new") is not None
    assert cache.of(CONFIGMAPS).get("d/c00") is None
    assert cache.fresh
    await cache.freshen()
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)
    await store.close()
