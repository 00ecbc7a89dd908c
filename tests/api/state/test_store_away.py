"""What the server does while its store is away, and when it returns."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from distant_store import DistantStore
from served import Served, served

from seamark.api.state import cache
from seamark.kinds.resource import CONFIGMAPS
from seamark.kinds.table import KINDS
from seamark.store import metered
from seamark.store.opening import open_store
from seamark.store.protocol import Future, Write

BASE = "/api/v1/namespaces/default/configmaps"


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server looks without a pause whether its store is back."""
    monkeypatch.setattr(cache, "RETRY_SECONDS", 0.0)
    monkeypatch.setattr(metered, "CHECK_SECONDS", 0.0)


@pytest.fixture
async def away() -> AsyncIterator[tuple[Served, DistantStore]]:
    store = DistantStore()
    async with served(store=store) as api:
        yield api, store


Away = tuple[Served, DistantStore]


async def noticed(api: Served) -> None:
    """Until the server knows that its store cannot be followed."""
    while api.api.cache.lost is None:
        await asyncio.sleep(0)


async def followed(api: Served, store: DistantStore) -> None:
    """Until the server has all that happened meanwhile."""
    await noticed_return(api)
    while api.api.cache.revision < await store.behind.revision():
        await asyncio.sleep(0)


async def noticed_return(api: Served) -> None:
    while api.api.cache.lost is not None:
        await asyncio.sleep(0)


async def ready(api: Served, status: int) -> str:
    while (answer := await api.ask("GET", "/readyz")).status != status:
        await asyncio.sleep(0)
    return answer.body.decode()


async def test_reads_are_fresh_or_refused(away: Away) -> None:
    api, store = away
    made = await api.post(BASE, {"metadata": {"name": "a"}})
    store.go_away()
    for path in (f"{BASE}/a", BASE, f"{BASE}?limit=1", f"{BASE}?resourceVersion=1&resourceVersionMatch=Exact"):
        answer = await api.ask("GET", path)
        assert (answer.status, answer.json["reason"]) == (503, "ServiceUnavailable")
        assert answer.header("Retry-After") == "1"
    # "At least as new as" a version that is in memory, or any version: memory will do.
    version = made["metadata"]["resourceVersion"]
    for path in (f"{BASE}/a?resourceVersion=0", f"{BASE}/a?resourceVersion={version}", f"{BASE}?resourceVersion=0"):
        assert (await api.ask("GET", path)).status == 200
    store.come_back()
    assert (await api.get(f"{BASE}/a")) == made


async def test_a_fresh_read_that_waits_for_a_cut_watch_is_refused(away: Away) -> None:
    api, store = away
    store.cut_watches()
    await noticed(api)
    await store.behind.commit([Write("/else", b"")])
    assert (await api.ask("GET", BASE)).status == 503
    store.come_back()
    await followed(api, store)
    assert (await api.ask("GET", BASE)).status == 200


async def test_a_write_says_whether_it_was_done(away: Away) -> None:
    api, store = away
    store.calls_fail = True
    refused = await api.ask("POST", BASE, {"metadata": {"name": "a"}})
    assert (refused.status, refused.header("Retry-After")) == (503, "1")
    store.calls_fail, store.answers_are_lost = False, True
    unknown = await api.ask("POST", BASE, {"metadata": {"name": "b"}})
    assert (unknown.status, unknown.json["reason"]) == (504, "Timeout")
    assert unknown.json["message"] == "the write may have been done, or not: the connection broke"
    assert unknown.header("Retry-After") is None
    store.answers_are_lost = False
    assert (await api.ask("GET", f"{BASE}/a")).status == 404
    assert (await api.ask("GET", f"{BASE}/b")).status == 200


async def test_a_write_that_was_done_is_acknowledged_though_nothing_can_be_followed(away: Away) -> None:
    api, store = away
    store.cut_watches()
    await noticed(api)
    made = await api.post(BASE, {"metadata": {"name": "a"}})
    assert (await api.ask("GET", f"{BASE}/a")).status == 503  # memory does not have it
    store.come_back()
    await followed(api, store)
    assert (await api.get(f"{BASE}/a")) == made
    store.cut_watches()
    await noticed(api)
    assert (await api.ask("DELETE", f"{BASE}/a")).status == 200
    store.come_back()
    await followed(api, store)
    assert (await api.ask("GET", f"{BASE}/a")).status == 404


async def test_a_write_under_way_when_the_watch_is_cut_is_acknowledged(away: Away) -> None:
    api, store = away
    waiting = asyncio.ensure_future(api.api.cache.show(10**9))
    await asyncio.sleep(0)
    store.cut_watches()
    await waiting


async def test_watches_are_held_and_miss_nothing(away: Away) -> None:
    api, store = away
    version = (await api.get(BASE))["metadata"]["resourceVersion"]
    lines = await api.watch(f"{BASE}?watch=true&resourceVersion={version}")
    await api.post(BASE, {"metadata": {"name": "before"}})
    store.go_away()
    await noticed(api)
    template = (await store.behind.read("/core/configmaps/default/before", "")).rows
    for name in ("a", "b"):  # another server's writes
        value = template[0].value.replace(b'"before"', f'"{name}"'.encode())
        await store.behind.commit([Write(f"/core/configmaps/default/{name}", value, 0)])
    store.come_back()
    await followed(api, store)
    await api.post(BASE, {"metadata": {"name": "after"}})
    seen = [(event["type"], event["object"]["metadata"]["name"]) for event in await lines.wait_for(4)]
    assert seen == [("ADDED", name) for name in ("before", "a", "b", "after")]
    assert not lines.finished
    await api.cache_equals_store()


async def test_what_was_compacted_meanwhile_is_told_as_differences(away: Away) -> None:
    api, store = away
    for name in ("same", "changed", "deleted", "replaced"):
        await api.post(BASE, {"metadata": {"name": name}})
    version = (await api.get(BASE))["metadata"]["resourceVersion"]
    lines = await api.watch(f"{BASE}?watch=true&resourceVersion={version}")
    store.go_away()
    await noticed(api)

    def key(name: str) -> str:
        return f"/core/configmaps/default/{name}"

    rows = {row.key: row for row in (await store.behind.read(key(""), key("~"))).rows}
    value = rows[key("changed")].value
    replaced = rows[key("replaced")].value
    await store.behind.commit([Write(key("changed"), value + b" "), Write(key("replaced"), None)])
    await store.behind.commit([Write(key("deleted"), None), Write("/seamark/nodeports/30000", b"{}")])
    recreated = await store.behind.commit([Write(key("replaced"), replaced)])
    last = await store.behind.commit([Write(key("new"), value.replace(b'"changed"', b'"new"'))])
    await store.behind.compact(last)
    store.come_back()
    await followed(api, store)
    events = await lines.wait_for(5)
    seen = [(event["type"], event["object"]["metadata"]["name"]) for event in events]
    assert sorted(seen) == [
        ("ADDED", "new"),
        ("ADDED", "replaced"),
        ("DELETED", "deleted"),
        ("DELETED", "replaced"),
        ("MODIFIED", "changed"),
    ]
    assert seen.index(("DELETED", "replaced")) < seen.index(("ADDED", "replaced"))
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
    assert versions == sorted(versions)
    assert set(api.api.cache.ports) == {30000}
    await api.cache_equals_store()
    # A watch from within the gap cannot be complete: its client has to list again.
    late = await api.watch(f"{BASE}?watch=true&resourceVersion={recreated}")
    (error,) = await late.ended()
    assert (error["type"], error["object"]["code"]) == ("ERROR", 410)


async def test_a_kind_added_during_a_reload_is_complete(away: Away) -> None:
    api, store = away
    kind = next(kind for kind in KINDS if kind.resource == CONFIGMAPS)
    await api.post(BASE, {"metadata": {"name": "a"}})
    await api.api.remove_kind(CONFIGMAPS)
    store.go_away()
    await noticed(api)
    await store.behind.commit([Write("/core/configmaps/default/a", None)])
    await store.behind.compact(await store.behind.revision())
    store.come_back()
    await noticed_return(api)  # the reload has begun
    await api.api.add_kind(kind)
    await api.cache_equals_store()


async def test_a_watch_whose_past_cannot_be_read_is_told_to_try_again(away: Away) -> None:
    api, store = away
    version = (await api.get(BASE))["metadata"]["resourceVersion"]
    await api.post(BASE, {"metadata": {"name": "a"}})
    api.api.cache.settle()
    store.go_away()
    lines = await api.watch(f"{BASE}?watch=true&resourceVersion={version}")
    (error,) = await lines.ended()
    assert (error["type"], error["object"]["reason"]) == ("ERROR", "ServiceUnavailable")


async def test_readyz_names_the_store_and_livez_stays(away: Away, caplog: pytest.LogCaptureFixture) -> None:
    api, store = away
    store.calls_fail = True
    for _ in range(3):
        assert (await api.ask("GET", BASE)).status == 503
    assert await ready(api, 500) == "[+]ping ok\n[-]store failed: no connection\nreadyz check failed\n"
    assert (await api.ask("GET", "/livez?verbose")).body == b"[+]ping ok\nlivez check passed\n"
    store.calls_fail = False
    assert await ready(api, 200) == "ok"  # though no request called the store meanwhile
    store.cut_watches()
    assert "[-]store failed: the watch was cut\n" in await ready(api, 500)
    store.come_back()
    await ready(api, 200)
    said = [record.message for record in caplog.records]
    assert said.count("the store is away: no connection") == said.count("the store works again") == 1


async def test_a_store_that_went_back_ends_the_server() -> None:
    store = DistantStore()
    await store.open()
    following = cache.Cache(store, KINDS)
    await following.load()
    following.revision += 1  # as if the store had been restored from a backup since
    with pytest.raises(Future):
        await following.follow()
    await store.close()


async def test_with_a_full_disk_reads_go_on_and_writes_are_refused_until_there_is_room(tmp_path: Path) -> None:
    store = open_store(f"sqlite://{tmp_path}/store.db")

    async def allow(pages: int) -> None:
        pragma = f"PRAGMA max_page_count = {pages}"
        await store._between_groups(lambda connection: connection.execute(pragma).fetchall())  # type: ignore[attr-defined]

    async with served(store=store) as api:
        made = await api.post(BASE, {"metadata": {"name": "a"}})
        await allow(1)
        big = {"metadata": {"name": "big"}, "data": {"x": "x" * 500_000}}
        refused = await api.ask("POST", BASE, big)
        assert (refused.status, refused.header("Retry-After")) == (503, "1")
        assert "full" in refused.json["message"]
        assert await api.get(f"{BASE}/a") == made
        assert (await api.ask("GET", f"{BASE}/big")).status == 404
        await allow(1_000_000)
        await api.post(BASE, big)
        await ready(api, 200)
        await api.cache_equals_store()
