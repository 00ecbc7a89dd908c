"""The contract: every promise of ``seamark.store.protocol``, held against every engine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from seamark.store.protocol import (
    LAST_CHARACTER,
    Batch,
    Change,
    Compacted,
    Future,
    Mismatch,
    Row,
    Store,
    StoreError,
    Unavailable,
    Write,
    prefix_end,
)


async def changes_until(watch: AsyncIterator[Batch], revision: int) -> list[Change]:
    """Everything a watch delivers up to ``revision``; it may not deliver more than was asked for in between."""
    changes: list[Change] = []
    async for batch in watch:
        assert all(change.revision <= batch.revision for change in batch.changes)
        changes += batch.changes
        if batch.revision >= revision:
            return changes
    raise AssertionError("the watch ended")


async def keys(store: Store, start: str = "/", end: str = "0", *, revision: int = 0) -> list[str]:
    return [row.key for row in (await store.read(start, end, revision=revision)).rows]


# --- commit ------------------------------------------------------------------------------------------


async def test_a_fresh_store_has_a_revision_that_can_be_read_and_watched(store: Store) -> None:
    start = await store.revision()
    assert start >= 1
    assert (await store.read("/", "0", revision=start)).rows == []
    watch = store.watch("/", start)
    revision = await store.commit([Write("/a", b"1")])
    assert await changes_until(watch, revision) == [Change("/a", b"1", None, revision)]


async def test_a_check_changes_nothing(store: Store) -> None:
    before = await store.commit([Write("/a", b"1")])
    await store.check()
    assert await store.revision() == before
    assert await store.commit([Write("/a", b"2")]) == before + 1
    await store.close()
    with pytest.raises(Unavailable):
        await store.check()


async def test_each_transaction_takes_the_next_revision(store: Store) -> None:
    before = await store.revision()
    first = await store.commit([Write("/a", b"1"), Write("/b", b"1")])
    second = await store.commit([Write("/a", b"2")])
    assert before < first < second == await store.revision()
    rows = (await store.read("/", "0")).rows
    assert rows == [Row("/a", b"2", second, first), Row("/b", b"1", first, first)]


async def test_an_empty_value_is_a_value(store: Store) -> None:
    revision = await store.commit([Write("/a", b"")])
    assert (await store.read("/a", "")).rows == [Row("/a", b"", revision, revision)]


@pytest.mark.parametrize("key", ["/é/ü", "/" + "long" * 200, "/a b%/\n", "/\U0001f600"])
async def test_keys_are_any_text(store: Store, key: str) -> None:
    revision = await store.commit([Write(key, b"1")])
    watch = store.watch(key, revision - 1)
    assert await keys(store, key, prefix_end(key)) == [key]
    assert [change.key for change in await changes_until(watch, revision)] == [key]


@pytest.mark.parametrize("key", ["", "a", "/a\0b", "/\ud800"])
async def test_what_cannot_be_a_key_is_refused(store: Store, key: str) -> None:
    with pytest.raises(ValueError, match=r"key|surrogates"):
        await store.commit([Write("/fine", b""), Write(key, b"")])
    assert await keys(store) == []


async def test_a_key_may_not_stand_twice_in_a_transaction(store: Store) -> None:
    with pytest.raises(ValueError, match="twice"):
        await store.commit([Write("/a", b"1"), Write("/a", b"2")])


async def test_expecting_absence(store: Store) -> None:
    created = await store.commit([Write("/a", b"1", expect=0)])
    with pytest.raises(Mismatch) as mismatch:
        await store.commit([Write("/a", b"2", expect=0)])
    assert (mismatch.value.key, mismatch.value.found) == ("/a", created)


async def test_expecting_a_revision(store: Store) -> None:
    first = await store.commit([Write("/a", b"1")])
    second = await store.commit([Write("/a", b"2", expect=first)])
    with pytest.raises(Mismatch) as mismatch:
        await store.commit([Write("/a", b"3", expect=first)])
    assert (mismatch.value.key, mismatch.value.found) == ("/a", second)
    assert await store.commit([Write("/a", None, expect=second)]) > second
    with pytest.raises(Mismatch) as mismatch:
        await store.commit([Write("/a", b"4", expect=second)])
    assert (mismatch.value.key, mismatch.value.found) == ("/a", 0)


async def test_the_first_key_not_as_expected_is_named_and_nothing_is_written(store: Store) -> None:
    revision = await store.commit([Write("/b", b"1"), Write("/c", b"1")])
    with pytest.raises(Mismatch) as mismatch:
        await store.commit(
            [Write("/a", b"2"), Write("/b", b"2", expect=revision), Write("/d", b"2", expect=9), Write("/c", b"", 0)]
        )
    assert (mismatch.value.key, mismatch.value.found) == ("/d", 0)
    assert await store.revision() == revision
    assert [row.value for row in (await store.read("/", "0")).rows] == [b"1", b"1"]


async def test_deleting_and_creating_again(store: Store) -> None:
    first = await store.commit([Write("/a", b"1")])
    deleted = await store.commit([Write("/a", None)])
    again = await store.commit([Write("/a", b"2", expect=0)])
    assert first < deleted < again
    assert (await store.read("/a", "")).rows == [Row("/a", b"2", again, again)]
    assert (await store.read("/a", "", revision=deleted)).rows == []
    assert (await store.read("/a", "", revision=first)).rows == [Row("/a", b"1", first, first)]


@pytest.mark.parametrize("writes", [[], [Write("/absent", None)], [Write("/absent", None, 0), Write("/b", None)]])
async def test_changing_nothing_takes_no_revision(store: Store, writes: list[Write]) -> None:
    revision = await store.commit([Write("/a", b"1")])
    assert await store.commit(writes) == revision == await store.revision()


async def test_deleting_the_absent_beside_a_real_change(store: Store) -> None:
    since = await store.revision()
    revision = await store.commit([Write("/absent", None), Write("/a", b"1")])
    assert await changes_until(store.watch("/", since), revision) == [Change("/a", b"1", None, revision)]


async def test_concurrent_commits_of_one_key_succeed_exactly_once(store: Store) -> None:
    outcomes = await asyncio.gather(
        *(store.commit([Write("/a", str(i).encode(), expect=0), Write(f"/own/{i}", b"")]) for i in range(50)),
        return_exceptions=True,
    )
    (revision,) = [outcome for outcome in outcomes if isinstance(outcome, int)]
    assert all(
        isinstance(outcome, Mismatch) and outcome.found == revision for outcome in outcomes if outcome != revision
    )
    assert len(await keys(store)) == 2


async def test_concurrent_counters_lose_no_step(store: Store) -> None:
    await store.commit([Write("/n", b"0")])

    async def add() -> None:
        for _ in range(10):
            while True:
                (row,) = (await store.read("/n", "")).rows
                try:
                    await store.commit([Write("/n", str(int(row.value) + 1).encode(), expect=row.revision)])
                    break
                except Mismatch:
                    continue

    await asyncio.gather(*(add() for _ in range(5)))
    assert (await store.read("/n", "")).rows[0].value == b"50"


# --- read --------------------------------------------------------------------------------------------


async def test_ranges_are_half_open_and_in_the_order_of_the_keys(store: Store) -> None:
    for key in ["/b", "/a/2", "/a/10", "/a/1", "/a0", "/c"]:
        await store.commit([Write(key, b"")])
    assert await keys(store, "/a/", prefix_end("/a/")) == ["/a/1", "/a/10", "/a/2"]
    assert await keys(store, "/a/10", "/b") == ["/a/10", "/a/2", "/a0"]
    assert await keys(store, "/b", "/b") == []
    assert await keys(store, "/b", "") == ["/b"]
    assert await keys(store, "/", prefix_end("")) == ["/a/1", "/a/10", "/a/2", "/a0", "/b", "/c"]


async def test_paging(store: Store) -> None:
    await store.commit([Write(f"/{i}", b"") for i in range(5)])
    at = (await store.read("/", "0", limit=1)).revision
    await store.commit([Write("/1", None), Write("/2", b"changed"), Write("/2b", b"new")])
    found, start = [], "/"
    while True:
        page = await store.read(start, "0", revision=at, limit=2)
        found += [(row.key, row.value) for row in page.rows]
        if not page.more:
            break
        assert len(page.rows) == 2
        start = page.rows[-1].key + "\0"
    assert found == [(f"/{i}", b"") for i in range(5)]


async def test_a_limit_that_just_suffices_leaves_nothing_more(store: Store) -> None:
    await store.commit([Write("/a", b""), Write("/b", b""), Write("/d", b"")])
    await store.commit([Write("/d", None)])
    page = await store.read("/", "0", limit=2)
    assert [row.key for row in page.rows] == ["/a", "/b"]
    assert not page.more


async def test_a_read_of_the_past_tells_the_revision_of_now(store: Store) -> None:
    first = await store.commit([Write("/a", b"1")])
    second = await store.commit([Write("/a", b"2")])
    page = await store.read("/", "0", revision=first)
    assert [row.value for row in page.rows] == [b"1"]
    assert page.revision == second


async def test_the_future_is_refused(store: Store) -> None:
    revision = await store.commit([Write("/a", b"1")])
    for asked in (revision + 1, revision + 1000):
        with pytest.raises(Future) as future:
            await store.read("/", "0", revision=asked)
        assert (future.value.asked, future.value.current) == (asked, revision)
        with pytest.raises(Future):
            await anext(store.watch("/", asked))
        with pytest.raises(Future):
            await store.compact(asked)


async def test_a_read_never_sees_half_a_transaction(store: Store) -> None:
    async def write() -> None:
        for i in range(30):
            await store.commit([Write("/a", b"%d" % i), Write("/b", b"%d" % i)])

    writing = asyncio.create_task(write())
    while not writing.done():
        rows = (await store.read("/", "0")).rows
        assert len({row.value for row in rows}) <= 1
        assert len({row.revision for row in rows}) <= 1
    await writing


# --- watch -------------------------------------------------------------------------------------------


async def test_a_watch_replays_and_goes_on_live(store: Store) -> None:
    since = await store.commit([Write("/a", b"0")])
    replayed = [await store.commit([Write("/a", b"1")]), await store.commit([Write("/b", b"1"), Write("/c", b"1")])]
    watch = store.watch("/", since)
    expected = [
        Change("/a", b"1", b"0", replayed[0]),
        Change("/b", b"1", None, replayed[1]),
        Change("/c", b"1", None, replayed[1]),
    ]
    assert await changes_until(watch, replayed[1]) == expected
    deleted = await store.commit([Write("/a", None)])
    assert await changes_until(watch, deleted) == [Change("/a", None, b"1", deleted)]
    recreated = await store.commit([Write("/a", b"2")])
    assert await changes_until(watch, recreated) == [Change("/a", b"2", None, recreated)]


async def test_a_watch_tells_only_its_prefix_but_the_progress_of_all(store: Store) -> None:
    since = await store.revision()
    watch = store.watch("/a/", since)
    await store.commit([Write("/a", b""), Write("/a/1", b""), Write("/a0", b"")])
    last = await store.commit([Write("/b", b"")])
    assert [change.key for change in await changes_until(watch, last)] == ["/a/1"]
    later = await store.commit([Write("/b", b"")])
    assert await changes_until(watch, later) == []


async def test_a_batch_holds_whole_transactions(store: Store) -> None:
    since = await store.revision()
    live, seen = store.watch("/", since), []
    reading = asyncio.create_task(changes_until(live, since + 40))
    await asyncio.gather(*(store.commit([Write(f"/{i}/{j}", b"") for j in range(5)]) for i in range(40)))
    last = await store.revision()
    async for batch in store.watch("/", since):
        sizes: dict[int, int] = {}
        for change in batch.changes:
            sizes[change.revision] = sizes.get(change.revision, 0) + 1
        assert set(sizes.values()) <= {5}
        seen += batch.changes
        if batch.revision >= last:
            break
    assert [change.revision for change in seen] == sorted(change.revision for change in seen)
    assert len({change.revision for change in seen}) == 40
    assert await reading == seen


async def test_watches_begun_in_the_middle_of_writes_have_no_gap_and_no_repeats(store: Store) -> None:
    since = await store.revision()
    done = asyncio.Event()

    async def write(name: str) -> None:
        while not done.is_set():
            await store.commit([Write(f"/{name}", b"")])

    writers = [asyncio.create_task(write(name)) for name in "abcd"]
    watches = []
    for _ in range(5):
        await asyncio.sleep(0.01)
        watches.append(store.watch("/", since))
        await anext(watches[-1])
    done.set()
    await asyncio.gather(*writers)
    last = await store.revision()
    for watch in [store.watch("/", since), *watches[:1]]:
        seen = [change.revision for change in await changes_until(watch, last)]
        assert seen == list(range(last - len(seen) + 1, last + 1))


async def test_a_reader_far_behind_still_gets_everything(store: Store) -> None:
    since = await store.revision()
    watch = store.watch("/", since)
    first = await store.commit([Write("/x", b"")])
    assert len(await changes_until(watch, first)) == 1
    await asyncio.gather(*(store.commit([Write("/x", b"%d" % i)]) for i in range(2000)))
    last = await store.revision()
    seen = await changes_until(watch, last)
    assert [change.revision for change in seen] == list(range(first + 1, last + 1))
    assert [change.previous for change in seen[1:]] == [change.value for change in seen[:-1]]


async def test_closing_ends_the_watches(store: Store) -> None:
    watch = store.watch("/", await store.revision())
    reading = asyncio.ensure_future(anext(watch))
    await asyncio.sleep(0)
    await store.close()
    with pytest.raises(StopAsyncIteration):
        await reading
    with pytest.raises(StopAsyncIteration):
        await anext(watch)


# --- compact -----------------------------------------------------------------------------------------


async def test_compaction_forgets_the_past_and_keeps_what_is_current(store: Store) -> None:
    old = await store.commit([Write("/a", b"1"), Write("/gone", b"1"), Write("/b", b"1")])
    await store.commit([Write("/gone", None)])
    at = await store.commit([Write("/a", b"2")])
    last = await store.commit([Write("/a", b"3")])
    await store.commit([Write("/elsewhere", b"")])
    await store.compact(at)
    for asked in (old, at - 1):
        with pytest.raises(Compacted) as compacted:
            await store.read("/", "0", revision=asked)
        assert (compacted.value.asked, compacted.value.oldest) == (asked, at)
        with pytest.raises(Compacted):
            await anext(store.watch("/", asked))
    rows = (await store.read("/", "0", revision=at)).rows
    assert rows == [Row("/a", b"2", at, old), Row("/b", b"1", old, old)]
    assert await changes_until(store.watch("/a", at), last) == [Change("/a", b"3", b"2", last)]
    assert [row.value for row in (await store.read("/", "0")).rows] == [b"3", b"1", b""]


async def test_compacting_up_to_now_and_twice(store: Store) -> None:
    await store.commit([Write("/a", b"1")])
    revision = await store.commit([Write("/a", None)])
    await store.compact(revision)
    await store.compact(revision)
    await store.compact(revision - 1)
    assert await store.revision() == revision
    assert await keys(store, revision=revision) == []
    watch = store.watch("/", revision)
    again = await store.commit([Write("/a", b"2", expect=0)])
    assert await changes_until(watch, again) == [Change("/a", b"2", None, again)]


async def test_a_watch_that_keeps_up_does_not_notice_compaction(store: Store) -> None:
    watch = store.watch("/", await store.revision())
    for i in range(10):
        revision = await store.commit([Write("/a", b"%d" % i)])
        assert [change.value for change in await changes_until(watch, revision)] == [b"%d" % i]
        await store.compact(revision)


# --- life --------------------------------------------------------------------------------------------


async def test_close_finishes_the_writes_under_way_and_can_be_repeated(store: Store) -> None:
    writing = [asyncio.ensure_future(store.commit([Write(f"/{i}", b"")])) for i in range(20)]
    await asyncio.sleep(0)
    await store.close()
    assert len({await write for write in writing}) == 20
    await store.close()
    with pytest.raises(StoreError, match="not open"):
        await store.commit([Write("/a", b"")])
    with pytest.raises(StoreError, match="not open"):
        await store.read("/", "0")


def test_prefix_end() -> None:
    assert prefix_end("/a/") == "/a0"
    assert prefix_end("/\ud7ff") == "/\ue000"
    assert prefix_end("/" + LAST_CHARACTER) == "0"
    assert prefix_end("") == LAST_CHARACTER
