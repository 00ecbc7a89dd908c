"""A copy of a store is its state at one moment, and a check finds what no store may hold."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from seamark.store.protocol import Compacted, StoreError, Write
from seamark.store.sqlite import SqliteStore, upkeep


def stored(name: str, namespace: str = "default") -> bytes:
    return b'{"metadata":{"name":"%b","namespace":"%b"}}' % (name.encode(), namespace.encode())


def key(name: str) -> str:
    return f"/core/pods/default/{name}"


async def filled(path: Path) -> SqliteStore:
    """An open store with objects that were created, changed, deleted and made again."""
    store = SqliteStore(path, history_seconds=None)
    await store.open()
    for name in ("a", "b", "c"):
        await store.commit([Write(key(name), stored(name), 0)])
    await store.commit([Write(key("a"), stored("a")), Write(key("b"), None)])
    await store.commit([Write(key("b"), stored("b"), 0)])
    return store


@contextmanager
def edited(path: Path) -> Iterator[sqlite3.Connection]:
    """The file as no Seamark would change it."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield connection


async def test_a_copy_is_made_beside_a_writer(tmp_path: Path) -> None:
    store = await filled(tmp_path / "store.db")
    stop = asyncio.Event()
    acknowledged: list[int] = []

    async def write() -> None:
        while not stop.is_set():
            pair = [Write(key("left"), stored("left")), Write(key("right"), stored("right"))]
            acknowledged.append(await store.commit(pair))

    writing = asyncio.create_task(write())
    for number in range(10):
        while len(acknowledged) < number * 10:
            await asyncio.sleep(0)
        before = acknowledged[-1] if acknowledged else 0
        copy = tmp_path / f"copy{number}.db"
        revision = await asyncio.to_thread(upkeep.copy, tmp_path / "store.db", copy)
        assert revision >= before, "an acknowledged write is missing"
        assert list(upkeep.faults(copy)) == []
        with edited(copy) as connection:
            left, right = (
                connection.execute("SELECT max(row) >> 16 FROM log WHERE key = ?", (key(name),)).fetchone()[0]
                for name in ("left", "right")
            )
        assert left == right, "half a transaction was copied"
    stop.set()
    await writing
    await store.close()


async def test_a_renewed_copy_continues_above_all_revisions(tmp_path: Path) -> None:
    store = await filled(tmp_path / "store.db")
    copy = tmp_path / "copy.db"
    upkeep.copy(tmp_path / "store.db", copy)
    latest = await store.commit([Write(key("later"), stored("later"), 0)])  # a client may have seen this one
    await store.close()
    for _ in range(2):  # a restored store can be backed up and restored again
        upkeep.renew(copy)
    again = SqliteStore(copy, history_seconds=None)
    await again.open()
    assert await again.revision() > latest + 1000
    names = [row.key for row in (await again.read("/core/", "/core0")).rows]
    assert names == [key("a"), key("b"), key("c")]
    with pytest.raises(Compacted):
        async for _ in again.watch("/", latest):
            pass
    assert await again.commit([Write(key("later"), stored("later"), 0)]) > latest
    await again.close()
    assert list(upkeep.faults(copy)) == []


async def test_compacted_history_is_no_fault(tmp_path: Path) -> None:
    store = await filled(tmp_path / "store.db")
    await store.compact(await store.revision())
    await store.close()
    assert list(upkeep.faults(tmp_path / "store.db")) == []


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ("UPDATE log SET replaces = NULL WHERE key LIKE '%/a' AND replaces IS NOT NULL", "/a: its version"),
        ("UPDATE log SET created = created + 1 WHERE key LIKE '%/a' AND replaces IS NOT NULL", "/a: its version"),
        ("DELETE FROM log WHERE key LIKE '%/b' AND value IS NULL", "/b: its version"),
        ("UPDATE log SET value = '{\"metadata\":' WHERE key LIKE '%/c'", "/c: the stored object"),
        ("UPDATE log SET key = '/core/pods/other/c' WHERE key LIKE '%/c'", "other/c: the stored object"),
        ("UPDATE log SET key = '/c' WHERE key LIKE '%/c'", "/c: the stored object"),
    ],
)
async def test_what_no_store_may_hold_is_found(tmp_path: Path, change: str, fault: str) -> None:
    store = await filled(tmp_path / "store.db")
    await store.close()
    with edited(tmp_path / "store.db") as connection:
        connection.execute(change)
    [found] = upkeep.faults(tmp_path / "store.db")
    assert fault in found


async def test_broken_pages_are_found(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store = await filled(path)
    await store.close()
    with edited(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (page,) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'log_by_key'").fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    content = bytearray(path.read_bytes())
    content[(page - 1) * size : page * size] = bytes(size)
    path.write_bytes(content)
    try:
        found = list(upkeep.faults(path))
    except StoreError as error:
        found = [str(error)]
    assert found


@pytest.mark.parametrize("content", [None, b"", b"no database", b"x" * 100_000])
def test_other_files_are_refused(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "other.db"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(StoreError, match=r"other\.db"):
        list(upkeep.faults(path))
