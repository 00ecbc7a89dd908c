"""Watches: what is told, to whom, once; and what a watch costs."""

import asyncio
import gc
import socket
import sys
from itertools import pairwise

import pytest
import uvloop
from served import ADMIN, served

from seamark.api.http.watches import alike, opening, rounds
from seamark.api.http.watches import watch as watching
from seamark.api.state.entries import prefix_of
from seamark.kinds.resource import CONFIGMAPS
from seamark.runtime import turns
from seamark.store.protocol import Batch, Change

BASE = "/api/v1/namespaces/default/configmaps"
TABLE = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
INITIAL = "watch=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"


def configmap(name, **data):
    return {"metadata": {"name": name, "labels": {"app": name[0]}}, "data": data}


def told(events):
    return [(e["type"], e["object"]["metadata"].get("name")) for e in events]


async def test_from_now_on(api):
    await api.post(BASE, configmap("old"))
    version = (await api.get(BASE))["metadata"]["resourceVersion"]
    lines = await api.watch(f"{BASE}?watch=1&resourceVersion={version}")
    await api.post(BASE, configmap("a"))
    await api.merge(f"{BASE}/a", {"data": {"k": "v"}})
    await api.delete(f"{BASE}/a")
    events = await lines.wait_for(3)
    assert told(events) == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]
    versions = [int(e["object"]["metadata"]["resourceVersion"]) for e in events]
    assert versions == sorted(set(versions))


async def test_a_version_to_come_is_waited_for(api):
    version = int((await api.get(BASE))["metadata"]["resourceVersion"])
    lines = await api.watch(f"{BASE}?watch=1&resourceVersion={version + 2}")
    for name in ("a", "b", "c"):
        await api.post(BASE, configmap(name))
    assert told(await lines.wait_for(1)) == [("ADDED", "c")]


async def test_a_watch_of_one_object_selects_no_other(api):
    await api.post(BASE, configmap("a"))
    path = "/api/v1/watch/namespaces/default/configmaps/a?fieldSelector="
    lines = await api.watch(f"{path}metadata.name%3Da,metadata.namespace%3Ddefault")
    assert told(await lines.wait_for(1)) == [("ADDED", "a")]
    for selector in ("metadata.name%3Db", "metadata.name!%3Db", "metadata.namespace%3Ddefault"):
        answer = await api.ask("GET", f"{path}{selector}")
        assert (answer.status, answer.json["message"]) == (
            400,
            "fieldSelector metadata.name doesn't match requested name",
        )


async def test_initial_state_is_told_once_whatever_happens_meanwhile(api):
    await api.post(BASE, configmap("a"))
    lines = await api.watch(f"{BASE}?watch=1")
    # Before the watch's task has had its first turn:
    await asyncio.gather(*(api.post(BASE, configmap(f"n{n}")) for n in range(5)))
    await api.post(BASE, configmap("z"))
    await lines.wait_for(7)
    await api.post(BASE, configmap("last"))  # whatever were told twice would come before
    events = await lines.wait_for(8)
    assert told(events)[-1] == ("ADDED", "last")
    assert sorted(told(events)) == sorted(set(told(events)))
    assert {name for _, name in told(events)} == {"a", "z", "last", *(f"n{n}" for n in range(5))}


async def test_a_watch_list_ends_its_beginning_with_a_bookmark(api):
    for name in ("a", "b"):
        await api.post(BASE, configmap(name))
    lines = await api.watch(f"{BASE}?{INITIAL}&labelSelector=app%3Da")
    events = await lines.wait_for(2)
    assert told(events) == [("ADDED", "a"), ("BOOKMARK", None)]
    assert events[1]["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


async def test_a_watch_list_waits_for_its_version_and_gives_up(api, monkeypatch):
    monkeypatch.setattr("seamark.api.state.read.PATIENCE_SECONDS", 1e6)
    version = int((await api.get(BASE))["metadata"]["resourceVersion"])
    lines = await api.watch(f"{BASE}?{INITIAL}&resourceVersion={version + 1}")
    await asyncio.sleep(0)
    assert lines.events == []
    await api.post(BASE, configmap("a"))
    assert told(await lines.wait_for(2)) == [("ADDED", "a"), ("BOOKMARK", None)]
    monkeypatch.setattr("seamark.api.state.read.PATIENCE_SECONDS", 0.05)
    lines = await api.watch(f"{BASE}?{INITIAL}&resourceVersion={version + 1000}")
    (event,) = await lines.ended()
    assert event["type"] == "ERROR"
    assert (event["object"]["code"], event["object"]["reason"]) == (504, "Timeout")
    assert all(watch._stream is not lines for watch in api.api.watches.open)


async def test_selectors_see_coming_and_going(api):
    lines = await api.watch(f"{BASE}?watch=1&labelSelector=app%3Da")
    by_name = await api.watch(f"{BASE}?watch=1&fieldSelector=metadata.name%3Db1")
    await api.post(BASE, configmap("a1"))
    await api.post(BASE, configmap("b1"))
    await api.merge(f"{BASE}/b1", {"metadata": {"labels": {"app": "a"}}})
    await api.merge(f"{BASE}/b1", {"data": {"x": "y"}})
    await api.merge(f"{BASE}/b1", {"metadata": {"labels": {"app": "b"}}})
    await api.delete(f"{BASE}/b1")
    expected = [("ADDED", "a1"), ("ADDED", "b1"), ("MODIFIED", "b1"), ("DELETED", "b1")]
    events = await lines.wait_for(4)
    assert told(events) == expected
    # What left is shown as it last matched, under the version of its leaving.
    assert events[3]["object"]["metadata"]["labels"] == {"app": "a"}
    assert [t for t, _ in told(await by_name.wait_for(5))] == ["ADDED", "MODIFIED", "MODIFIED", "MODIFIED", "DELETED"]


async def test_fields_of_pods_select_too(api):
    pods = "/api/v1/namespaces/default/pods"
    lines = await api.watch("/api/v1/pods?watch=1&fieldSelector=spec.nodeName%3Dn1")
    await api.post(pods, {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}, "target": {"name": "n1"}}
    await api.post(f"{pods}/p/binding", binding)
    assert told(await lines.wait_for(1)) == [("ADDED", "p")]


async def test_an_old_version_is_replayed_from_the_store(api):
    version = (await api.get(BASE))["metadata"]["resourceVersion"]
    await api.post(BASE, configmap("a", k="1"))
    await api.merge(f"{BASE}/a", {"data": {"k": "2"}})
    await api.delete(f"{BASE}/a")
    await api.post(BASE, configmap("b"))
    api.api.cache.settle()
    for query in ("", "&labelSelector=app%3Da", "&fieldSelector=metadata.name%3Da"):
        lines = await api.watch(f"{BASE}?watch=1&resourceVersion={version}{query}")
        expected = [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")] + ([] if query else [("ADDED", "b")])
        assert told(await lines.wait_for(len(expected))) == expected


async def test_a_version_too_old_is_an_error_event(api):
    for name in ("a", "b", "c"):
        await api.post(BASE, configmap(name))
    api.api.cache.settle()
    await api.store.compact(await api.store.revision())
    lines = await api.watch(f"{BASE}?watch=1&resourceVersion=1")
    (event,) = await lines.ended()
    assert (event["object"]["code"], event["object"]["reason"]) == (410, "Expired")


@pytest.mark.parametrize("version", ["x", "-1", "1.0", str(2**64), "9" * 5000])
async def test_versions_that_are_none(api, version):
    answer = await api.ask("GET", f"{BASE}?watch=1&resourceVersion={version}")
    assert (answer.status, answer.json["kind"]) == (500, "Status")
    assert "strconv.ParseUint" in answer.json["message"]


async def test_a_watch_has_lines_and_yaml_has_none(api):
    answer = await api.ask("GET", f"{BASE}?watch=1", headers={"accept": "application/yaml"})
    assert (answer.status, answer.type) == (406, "application/yaml")
    assert b"application/json;stream=watch" in answer.body


async def test_tables_name_their_columns_once(api):
    lines = await api.watch(f"{BASE}?watch=1&includeObject=Object", headers=TABLE)
    other = await api.watch(f"{BASE}?watch=1&includeObject=None", headers=TABLE)
    for name in ("a", "b", "c"):
        await api.post(BASE, configmap(name))
    late = await api.watch(
        f"{BASE}?watch=1&includeObject=Object&resourceVersion={api.api.cache.revision}", headers=TABLE
    )
    await api.post(BASE, configmap("d"))
    for watch, count in ((lines, 4), (other, 4), (late, 1)):
        tables = [event["object"] for event in await watch.wait_for(count)]
        assert [bool(table["columnDefinitions"]) for table in tables] == [True] + [False] * (count - 1)
        assert all(len(table["rows"]) == 1 for table in tables)
    assert lines.events[0]["object"]["rows"][0]["object"]["kind"] == "ConfigMap"
    assert other.events[0]["object"]["rows"][0]["object"] is None


async def test_bookmarks_in_every_representation(api, monkeypatch):
    monkeypatch.setattr(watching, "BOOKMARK_SECONDS", 0.01)
    metadata = {"accept": "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"}
    for headers, kind in ((None, "ConfigMap"), (TABLE, "Table"), (metadata, "PartialObjectMetadata")):
        lines = await api.watch(f"{BASE}?watch=1&allowWatchBookmarks=true", headers=headers)
        event = (await lines.wait_for(2))[0]
        assert (event["type"], event["object"]["kind"]) == ("BOOKMARK", kind)
        assert event["object"]["metadata"]["resourceVersion"] == str(api.api.cache.revision)
        if kind == "Table":
            assert event["object"]["columnDefinitions"]
            assert lines.events[1]["object"]["columnDefinitions"] is None
            (row,) = event["object"]["rows"]
            assert row["object"]["kind"] == "PartialObjectMetadata"
        lines.on_close()


async def test_the_end_of_a_watch(api):
    lines = await api.watch(f"{BASE}?watch=1&timeoutSeconds=1&allowWatchBookmarks=true")
    assert await lines.ended() == []  # too short for a bookmark before its end
    endless = await api.watch(f"{BASE}?watch=1")
    api.api.watches.end_all()
    assert endless.finished
    assert not api.api.watches.open


async def test_long_selectors_of_open_watches_are_bounded(api, monkeypatch):
    monkeypatch.setattr(opening, "LONG_SELECTORS", 3 * opening.LONG_SELECTOR)
    long = f"{BASE}?watch=1&labelSelector=app in ({','.join('a' * 63 for _ in range(17))})".replace(" ", "%20")
    first, second = await api.watch(long), await api.watch(long)
    refused = await api.ask("GET", long)
    assert (refused.status, refused.header("Retry-After")) == (429, "1")
    await api.watch(f"{BASE}?watch=1&labelSelector=app%3Da")
    first.abort()
    assert (await api.watch(long)).frames == []
    second.abort()


async def test_a_client_that_leaves_is_forgotten(api):
    lines = await api.watch(f"{BASE}?watch=1")
    assert len(api.api.watches.open) == 1
    lines.on_close()
    assert not api.api.watches.open
    await api.post(BASE, configmap("a"))
    assert lines.events == []


class TestSlowClients:
    """A client that does not read costs its socket's buffers; the events it misses are kept once for all watchers."""

    async def _stalled(self, api, query="watch=1", **more):
        lines = await api.watch(f"{BASE}?{query}", **more)
        await lines.wait_for(0)
        lines.stalled = True
        return lines

    async def test_what_it_missed_comes_when_it_reads_again(self, api):
        lines, other = await self._stalled(api), await api.watch(f"{BASE}?watch=1")
        for number in range(50):
            await api.post(BASE, configmap(f"n{number:02}"))
        assert len(lines.events) == 1  # which filled its buffers
        assert len(await other.wait_for(50)) == 50
        lines.read_again()
        await api.post(BASE, configmap("last"))
        assert [name for _, name in told(lines.events)] == [*(f"n{n:02}" for n in range(50)), "last"]
        assert api.api.watches.unread.size == 0
        assert api.api.cache.of(CONFIGMAPS).behind == 0

    async def test_one_that_stalls_between_two_events_is_sent_none_from_then_on(self, api):
        lines = await api.watch(f"{BASE}?watch=1")
        for name in ("a", "b"):
            await api.post(BASE, configmap(name))
        lines.stalled = True
        lines.on_stall()  # by the answer to a ping, say
        assert api.api.cache.of(CONFIGMAPS).behind == 1
        assert api.api.watches.unread.size == lines.unsent
        for name in ("c", "d"):
            await api.post(BASE, configmap(name))
        assert [name for _, name in told(lines.events)] == ["a", "b"]
        lines.read_again()
        for name in ("e", "f"):
            await api.post(BASE, configmap(name))
        assert [name for _, name in told(lines.events)] == ["a", "b", "c", "d", "e", "f"]

    async def test_it_may_stall_again_and_again(self, api):
        lines = await self._stalled(api, "watch=1&labelSelector=app%3Dn")
        lines.write_stalls = True
        for number in range(300):
            await api.post(BASE, configmap(f"n{number:03}", k="x" * 1000))
            await api.post(BASE, configmap(f"other{number:03}"))
        while len(lines.events) < 300:
            before = len(lines.events)
            lines.read_again()
            assert before < len(lines.events) < before + 100
        assert [name for _, name in told(lines.events)] == [f"n{n:03}" for n in range(300)]

    async def test_during_its_beginning_as_well(self, api):
        for number in range(300):
            await api.post(BASE, configmap(f"n{number:03}", k="x" * 1000))
        lines = await api.watch(f"{BASE}?watch=1")
        lines.write_stalls = True
        await lines.wait_for(10)
        for number in range(300, 600):
            await api.post(BASE, configmap(f"n{number:03}"))
        while len(lines.events) < 600:
            await asyncio.sleep(0)
            lines.read_again()
        assert [name for _, name in told(lines.events)] == [f"n{n:03}" for n in range(600)]

    async def test_events_that_are_no_longer_kept_end_its_watch(self):
        async with served(watch_bytes=4 * 50_000) as api:
            lines = await self._stalled(api)
            for number in range(50):
                await api.post(BASE, configmap(f"n{number}", k="x" * 5000))
            assert api.api.cache.room.used <= 50_000
            lines.read_again()
            assert lines.finished
            (event,) = lines.events
            # The client watches on from the last version it saw.
            again = await api.watch(f"{BASE}?watch=1&resourceVersion={event['object']['metadata']['resourceVersion']}")
            assert told(await again.wait_for(49)) == [("ADDED", f"n{n}") for n in range(1, 50)]

    async def test_the_slowest_are_cut_first_if_too_many_do_not_read(self):
        async with served(watch_bytes=1_000_000) as api:
            slow = [await self._stalled(api) for _ in range(5)]
            await api.post(BASE, configmap("a"))
            slow[0].read_again()
            slow[0].stalled = True
            await api.post(BASE, configmap("b"))
            more = [await self._stalled(api) for _ in range(8)]
            await api.post(BASE, configmap("c"))
            assert api.api.watches.unread.size <= 750_000
            cut = [lines.aborted for lines in (*slow[1:], slow[0], *more)]
            assert cut == [True] * cut.count(True) + [False] * cut.count(False)
            assert 0 < cut.count(True) < 5
            assert len(api.api.watches.open) == api.api.cache.of(CONFIGMAPS).behind == cut.count(False)
            assert f"seamark_api_watches_cut_total {cut.count(True)}\n" in api.metrics.text()

    async def test_one_that_alone_takes_too_much_is_cut_and_leaves_nothing(self):
        async with served(watch_bytes=50_000) as api:
            lines = await self._stalled(api)
            await api.post(BASE, configmap("a"))
            assert lines.aborted
            assert not api.api.watches.open
            assert api.api.cache.of(CONFIGMAPS).behind == 0

    async def test_a_large_event_is_written_in_pieces(self, api):
        lines = await self._stalled(api, "watch=1&includeObject=Object", headers=TABLE)
        lines.write_stalls = True
        lines.stalled = False
        await api.post(BASE, configmap("large", k="x" * 500_000))
        await api.post(BASE, configmap("small"))
        assert len(lines.frames) == 1
        assert api.api.watches.unread.size > 400_000  # the rest of it
        while lines.stalled:
            lines.stalled = False
            lines.on_writable()
        first, second = lines.events
        assert [bool(each["object"]["columnDefinitions"]) for each in (first, second)] == [True, False]
        assert max(map(len, lines.frames)) <= alike.PIECE

    async def test_one_that_ends_within_an_event_sends_it_whole(self, api):
        lines = await self._stalled(api)
        await api.post(BASE, configmap("large", k="x" * 500_000))
        assert len(lines.frames) == 1
        api.api.watches.end_all()
        assert lines.finished
        assert told(lines.events) == [("ADDED", "large")]

    async def test_a_quiet_watch_is_not_behind(self, api, monkeypatch):
        monkeypatch.setattr("seamark.api.state.collection.RECENT_EVENTS", 10)
        lines = await api.watch(f"{BASE}?watch=1&labelSelector=app%3Dq")
        for number in range(50):
            await api.post(BASE, configmap(f"n{number}"))
        assert len(api.api.cache.of(CONFIGMAPS).events) <= 11
        await api.post(BASE, configmap("q", k="x" * 200_000))
        assert told(await lines.wait_for(1)) == [("ADDED", "q")]


class TestAlike:
    """Watches that see the same are offered an event together; each still sends what it has to, once."""

    async def test_they_may_begin_at_different_versions(self, api):
        version = int((await api.get(BASE))["metadata"]["resourceVersion"])
        watches = [await api.watch(f"{BASE}?watch=1&resourceVersion={version + n}") for n in range(4)]
        value = b'{"metadata":{"name":"%d","namespace":"default"}}'
        places = [prefix_of(CONFIGMAPS, "default") + str(n) for n in range(5)]
        changes = [Change(places[n], value % n, None, version + n) for n in range(1, 5)]
        api.api.cache.apply(Batch(changes, version + 4))  # one batch, in which some of them begin
        for begun, lines in enumerate(watches):
            assert told(lines.events) == [("ADDED", str(n)) for n in range(begun + 1, 5)]

    async def test_each_is_told_the_columns_of_a_table_once(self, api):
        early = await api.watch(f"{BASE}?watch=1", headers=TABLE)
        await api.post(BASE, configmap("a"))
        version = api.api.cache.revision
        late = await api.watch(f"{BASE}?watch=1&resourceVersion={version}", headers=TABLE)
        for name in ("b", "c"):
            await api.post(BASE, configmap(name))
        assert [bool(e["object"]["columnDefinitions"]) for e in await early.wait_for(3)] == [True, False, False]
        assert [bool(e["object"]["columnDefinitions"]) for e in await late.wait_for(2)] == [True, False]
        assert early.frames[-1] is late.frames[-1]

    async def test_nothing_is_left_of_them(self, api):
        collection = api.api.cache.of(CONFIGMAPS)
        before = collection.watcher_count
        watches = [await api.watch(f"{BASE}?watch=1&labelSelector=app%3Da") for _ in range(3)]
        assert collection.watcher_count == before + 1
        for lines in watches:
            lines.on_close()
        assert collection.watcher_count == before
        await api.post(BASE, configmap("a"))
        assert not api.api.watches.open


@pytest.mark.parametrize("size", [40_000, 200_000], ids=["an event", "an event in pieces"])
@pytest.mark.parametrize("selector", ["", "&labelSelector=a{0}!%3Db"], ids=["alike", "each its own"])
async def test_in_one_turn_so_much_is_written(api, monkeypatch, size, selector):
    """A large event for many watches is not written to all of them at once: other clients would wait."""
    monkeypatch.setattr(rounds, "AT_ONCE", 5 * 210_000)
    monkeypatch.setattr(turns, "TURN", 0)  # so that one of them goes on in a turn
    version = api.api.cache.revision
    query = f"watch=1&resourceVersion={version}"
    watches = [await api.watch(f"{BASE}?{query}{selector.format(n)}") for n in range(100)]
    sums = [0]
    place = prefix_of(CONFIGMAPS, "default")
    value = b'{"metadata":{"name":"large","namespace":"default"},"data":{"a":"%b"}}' % (b"x" * size)
    api.api.cache.apply(Batch([Change(place + "large", value, None, version + 1)], version + 1))
    small = b'{"metadata":{"name":"small","namespace":"default"}}'
    api.api.cache.apply(Batch([Change(place + "small", small, None, version + 2)], version + 2))
    while sums[-1] < 100 * size:
        sums.append(sum(len(frame) for lines in watches for frame in lines.frames))
        await asyncio.sleep(0)
    assert max(after - before for before, after in pairwise(sums)) <= 5 * 210_000
    for lines in watches:
        assert told(await lines.wait_for(2)) == [("ADDED", "large"), ("ADDED", "small")]
    assert api.api.cache.of(CONFIGMAPS).behind == 0


async def test_those_that_fail_or_leave_meanwhile_keep_no_other_waiting(api, monkeypatch, caplog):
    monkeypatch.setattr(rounds, "AT_ONCE", 0)
    monkeypatch.setattr(turns, "TURN", 0)
    watches = [await api.watch(f"{BASE}?watch=1&resourceVersion={api.api.cache.revision}") for _ in range(5)]

    def broken(_frames):
        raise RuntimeError("a mistake of ours")

    watches[1].write = broken
    await api.post(BASE, configmap("a"))
    watches[3].on_close()
    for number in (0, 2, 4):
        assert told(await watches[number].wait_for(1)) == [("ADDED", "a")]
    assert "a watch of configmaps is cut off" in caplog.text
    assert len(api.api.watches.open) == 3


async def test_one_event_is_encoded_once_for_a_thousand(api, monkeypatch):
    from seamark.api.http.render import Renderer

    calls = []
    event = Renderer.event

    def counted(self, type, entry, *, first):
        calls.append(type)
        return event(self, type, entry, first=first)

    monkeypatch.setattr(Renderer, "event", counted)
    version = api.api.cache.revision
    watches = [await api.watch(f"{BASE}?watch=1&resourceVersion={version}") for _ in range(1000)]
    await api.post(BASE, configmap("a"))
    await api.delete(f"{BASE}/a")
    assert calls == ["ADDED", "DELETED"]
    assert all(watch.frames == watches[0].frames for watch in watches)
    assert watches[0].frames[0] is watches[999].frames[0]


async def test_what_an_idle_watch_keeps():
    """Memory per watch, by what Python allocates for it: its stream stands in for the connection."""
    async with served() as api:
        version = api.api.cache.revision
        await api.watch(f"{BASE}?watch=1&resourceVersion={version}&allowWatchBookmarks=true")
        gc.collect()
        before, objects = sys.getallocatedblocks(), len(gc.get_objects())
        kept = [
            await api.watch(f"{BASE}?watch=1&resourceVersion={version}&allowWatchBookmarks=true") for _ in range(2000)
        ]
        gc.collect()
        blocks, more = sys.getallocatedblocks() - before, len(gc.get_objects()) - objects
        assert blocks / 2000 < 70
        assert more / 2000 < 40
        for lines in kept:
            lines.on_close()
        del kept, lines
        gc.collect()
        # Timers that were cancelled may wait in the loop's heap; the watches themselves are gone.
        assert len(api.api.watches.open) == 1
        assert sum(isinstance(o, watching.Watch) for o in gc.get_objects()) == 1


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_clients_that_never_read_over_tls(run, authority, trust):
    """The attack: many watchers that do not read, and large writes.  Memory stays within its bounds; others go on."""
    ask = f"GET {BASE}?watch=1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {ADMIN}\r\n\r\n".encode()

    async def main():
        async with served(watch_bytes=1_600_000) as api:
            listener = await api.api.listen("127.0.0.1", 0, authority.tls())

            async def open_watch(buffer):
                sock = socket.socket()
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
                sock.setblocking(False)
                await asyncio.get_running_loop().sock_connect(sock, listener.address)
                reader, writer = await asyncio.open_connection(sock=sock, ssl=trust, server_hostname="127.0.0.1")
                writer.write(ask)
                await reader.readuntil(b"\r\n\r\n")
                return reader, writer

            good = await open_watch(2**20)
            deaf = [await open_watch(4096) for _ in range(20)]
            for _, writer in deaf:
                writer.transport.pause_reading()
            seen = asyncio.create_task(_count_lines(good[0], b'"type":"ADDED"', 600))
            most = 0
            for number in range(600):
                await api.post(BASE, configmap(f"n{number}", k="x" * 10_000))
                held = [c.transport.get_write_buffer_size() for c in listener.connections if c.transport is not None]
                most = max(most, sum(held))
            await seen
            assert most <= 21 * 2 * alike.PIECE
            assert api.api.watches.unread.size <= 1_200_000
            assert api.api.cache.room.used <= 400_000
            assert len(api.api.watches.open) < 21  # some had to go
            for _, writer in (good, *deaf):
                writer.transport.abort()
            await asyncio.gather(*(writer.wait_closed() for _, writer in (good, *deaf)), return_exceptions=True)

    run(main())


async def _count_lines(reader, what, count):
    rest = b""
    while count > 0:
        rest += await reader.read(2**18)
        count -= rest.count(what)
        rest = rest[-len(what) + 1 :]
