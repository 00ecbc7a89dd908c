"""The embedded engine's own matters: the file, its errors, group commit, compaction, the feed."""

from __future__ import annotations

import asyncio
import os
import re
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from seamark.store.protocol import Batch, Change, Compacted, Mismatch, StoreError, Unavailable, Uncertain, Write
from seamark.store.sqlite import SqliteStore, log, writer
from seamark.store.sqlite.feed import Feed
from seamark.store.sqlite.file import APPLICATION_ID, MIGRATIONS, prepare, translate
from seamark.store.sqlite.group import ABSENT, MAX_KEYS, Version, first_row, settle
from seamark.store.sqlite.log import FIRST_REVISION
from seamark.store.sqlite.writer import MAX_BYTES, MAX_TRANSACTIONS


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(path, durable=False, history_seconds=None)
    await store.open()
    yield store
    await store.close()


async def reopened(path: Path) -> SqliteStore:
    store = SqliteStore(path, durable=False, history_seconds=None)
    await store.open()
    return store


# --- what a restart keeps ------------------------------------------------------------------------------


async def test_a_restart_keeps_revisions_rows_and_history(path: Path, store: SqliteStore) -> None:
    first = await store.commit([Write("/a", b"1"), Write("/b", b"1")])
    second = await store.commit([Write("/a", b"2")])
    third = await store.commit([Write("/b", None)])
    await store.close()
    again = await reopened(path)
    assert await again.revision() == third
    assert [row.value for row in (await again.read("/", "0")).rows] == [b"2"]
    assert [row.value for row in (await again.read("/", "0", revision=first)).rows] == [b"1", b"1"]
    batch = await anext(again.watch("/", first))
    assert batch.changes == [Change("/a", b"2", b"1", second), Change("/b", None, b"1", third)]
    assert await again.commit([Write("/c", b"")]) == third + 1
    await again.close()


async def test_the_revision_survives_a_restart_when_all_history_is_compacted(path: Path, store: SqliteStore) -> None:
    await store.commit([Write("/a", b"1")])
    revision = await store.commit([Write("/a", None)])
    await store.compact(revision)
    await store.close()
    again = await reopened(path)
    assert await again.revision() == revision
    with pytest.raises(Compacted):
        await again.read("/", "0", revision=revision - 1)
    assert await again.commit([Write("/a", b"2")]) == revision + 1
    await again.close()


async def test_an_ephemeral_store_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    store = SqliteStore(None)
    await store.open()
    await store.commit([Write("/a", b"1")])
    assert list(tmp_path.iterdir())
    await store.close()
    assert not list(tmp_path.iterdir())


# --- what cannot be opened -----------------------------------------------------------------------------


async def opening_fails(path: Path, says: str) -> None:
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(StoreError, match=says) as error:
        await SqliteStore(path).open()
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)
    assert (path.read_bytes() if path.is_file() else None) == before


async def test_something_else_entirely(path: Path) -> None:
    path.write_text("a shopping list, and long enough to be taken for a file with a header\n" * 20)
    await opening_fails(path, r"is not a Seamark store, or damaged .*seamark restore")


async def test_a_damaged_file_says_what_to_do(path: Path) -> None:
    store = SqliteStore(path)
    await store.open()
    await store.close()
    with path.open("r+b") as file:
        file.seek(100)  # behind the header, which says what kind of file it is
        file.write(b"\xff" * 16_000)
    await opening_fails(path, "malformed; `seamark fsck` says what is damaged; .*`seamark restore`")


async def test_somebody_elses_database(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE log (entry)")
    connection.close()
    await opening_fails(path, "is a SQLite database, but not a Seamark store")


async def test_a_newer_format(path: Path, store: SqliteStore) -> None:
    await store.close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    await opening_fails(path, f"newer Seamark: it has format 99, this one knows up to {len(MIGRATIONS)}")


async def test_a_directory(tmp_path: Path) -> None:
    await opening_fails(tmp_path, "it is a directory")


async def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    await opening_fails(tmp_path / "missing" / "store.db", "No such file or directory")


async def test_a_directory_nobody_can_write_to() -> None:
    await opening_fails(Path("/proc/store.db"), "cannot open the store")


async def test_a_file_that_lost_its_tables(path: Path, store: SqliteStore) -> None:
    await store.close()
    connection = sqlite3.connect(path)
    connection.execute("DROP TABLE log")
    connection.close()
    await opening_fails(path, "no such table")


async def test_opening_twice_in_one_process(path: Path, store: SqliteStore) -> None:
    with pytest.raises(StoreError, match="in use by process"):
        await SqliteStore(path).open()
    with pytest.raises(StoreError, match="open already"):
        await store.open()
    assert await store.commit([Write("/a", b"1")])


async def test_opening_in_a_second_process(path: Path, store: SqliteStore) -> None:
    script = (
        "import asyncio, sys; from seamark.store.sqlite import SqliteStore;asyncio.run(SqliteStore(sys.argv[1]).open())"
    )
    child = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=False
    )
    assert child.returncode != 0
    assert f"the store {path} is in use by process" in child.stderr.splitlines()[-1]
    assert await store.commit([Write("/a", b"1")])


# --- formats -------------------------------------------------------------------------------------------


def test_a_new_file_has_todays_format(path: Path) -> None:
    prepare(path)
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
    assert connection.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)
    assert connection.execute("PRAGMA auto_vacuum").fetchone() == (2,)
    connection.close()


async def test_an_older_format_is_brought_up_to_date_once(path: Path, store: SqliteStore) -> None:
    await store.commit([Write("/a", b"1")])
    await store.close()
    newer = [*MIGRATIONS, "ALTER TABLE state ADD COLUMN note TEXT NOT NULL DEFAULT 'moved'"]
    prepare(path, migrations=newer)
    prepare(path, migrations=newer)
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA user_version").fetchone() == (len(newer),)
    assert connection.execute("SELECT note FROM state").fetchone() == ("moved",)
    assert connection.execute("SELECT key, value FROM log").fetchall() == [("/a", b"1")]
    connection.close()


async def test_a_migration_that_fails_leaves_the_old_format(path: Path, store: SqliteStore) -> None:
    await store.commit([Write("/a", b"1")])
    await store.close()
    broken = [*MIGRATIONS, "ALTER TABLE state ADD COLUMN note TEXT; INSERT INTO nowhere VALUES (1)"]
    with pytest.raises(StoreError, match="no such table: nowhere"):
        prepare(path, migrations=broken)
    again = await reopened(path)
    assert [row.value for row in (await again.read("/", "0")).rows] == [b"1"]
    await again.close()


# --- a full disk ---------------------------------------------------------------------------------------


async def on_writer(store: SqliteStore, statement: str) -> None:
    await store._between_groups(lambda connection: connection.execute(statement).fetchall())


async def test_a_full_disk_refuses_writes_until_there_is_room_again(path: Path, store: SqliteStore) -> None:
    kept = await store.commit([Write("/a", b"kept")])
    watch = store.watch("/", kept)
    await on_writer(store, "PRAGMA max_page_count = 10")
    outcomes = await asyncio.gather(
        *(store.commit([Write(f"/big/{i}", b"x" * 100_000), Write("/a", b"")]) for i in range(3)),
        return_exceptions=True,
    )
    assert all(isinstance(outcome, Unavailable) for outcome in outcomes)
    assert len({id(outcome) for outcome in outcomes}) == 3
    assert "full" in str(outcomes[0])
    assert [row.value for row in (await store.read("/", "0")).rows] == [b"kept"]
    assert await store.revision() == kept
    await on_writer(store, "PRAGMA max_page_count = 1000000")
    revision = await store.commit([Write("/b", b"x" * 100_000)])
    assert revision == kept + 1
    assert [change.key for change in (await anext(watch)).changes] == ["/b"]
    await store.close()
    again = await reopened(path)
    assert [row.key for row in (await again.read("/", "0")).rows] == ["/a", "/b"]
    await again.close()


DISK_FULL = """
import asyncio, resource, sys
from seamark.store.protocol import Unavailable, Write
from seamark.store.sqlite import SqliteStore

async def main():
    store = SqliteStore(sys.argv[1])
    await store.open()
    kept = await store.commit([Write("/a", b"kept")])
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, resource.RLIM_INFINITY))
    try:
        await store.commit([Write("/b", b"x" * (4 << 20))])
    except Unavailable as error:
        print("refused", error)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
    try:
        await store.check()
    except Unavailable as error:
        print("checked", error)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    await store.check()
    assert await store.commit([Write("/c", b"x" * (4 << 20))]) == kept + 1
    print([row.key for row in (await store.read("/", "0")).rows])
    await store.close()

asyncio.run(main())
"""


def test_the_system_refusing_to_write_any_further(path: Path) -> None:
    child = subprocess.run([sys.executable, "-c", DISK_FULL, str(path)], capture_output=True, text=True, check=False)
    assert child.returncode == 0, child.stderr
    refused, checked, rows = child.stdout.splitlines()
    assert refused.startswith(f"refused {path}: ")
    assert checked.startswith(f"checked {path}: ")
    assert rows == "['/a', '/c']"


async def test_a_disk_that_does_not_answer_fails_commits_but_loses_none(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = await store.commit([Write("/a", b"kept")])
    watch = store.watch("/", kept)
    answered = threading.Event()
    commit = log.commit

    def hang(connection: sqlite3.Connection) -> None:
        answered.wait()
        commit(connection)

    monkeypatch.setattr(log, "commit", hang)
    monkeypatch.setattr(writer, "PATIENCE_SECONDS", 0.01)
    first = asyncio.ensure_future(store.commit([Write("/a", b"first")]))
    await asyncio.sleep(0)
    await asyncio.sleep(0)  # now its group is under way
    second = asyncio.ensure_future(store.commit([Write("/a", b"second")]))
    with pytest.raises(Uncertain, match="the disk has not answered for"):
        await first
    with pytest.raises(Unavailable) as refused:
        await second
    assert not isinstance(refused.value, Uncertain)
    answered.set()
    # It was done after all, and all that follow the log are told.
    assert [change.value for change in (await anext(watch)).changes] == [b"first"]
    monkeypatch.undo()
    assert await store.commit([Write("/a", b"third")]) == kept + 2


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (sqlite3.SQLITE_FULL, Unavailable),
        (sqlite3.SQLITE_READONLY, Unavailable),
        (sqlite3.SQLITE_READONLY_DBMOVED, Unavailable),
        (sqlite3.SQLITE_CANTOPEN, Unavailable),
        (sqlite3.SQLITE_IOERR_WRITE, Unavailable),
        (sqlite3.SQLITE_IOERR_FSYNC, Uncertain),
        (sqlite3.SQLITE_CORRUPT, StoreError),
        (sqlite3.SQLITE_NOTADB, StoreError),
    ],
)
def test_what_an_error_means(path: Path, code: int, kind: type[StoreError]) -> None:
    error = sqlite3.OperationalError("something")
    error.sqlite_errorcode = code
    assert type(translate(error, path)) is kind


async def test_somebody_holding_a_lock_is_told_and_overcome(path: Path, store: SqliteStore) -> None:
    person = sqlite3.connect(path, isolation_level=None)
    person.execute("BEGIN IMMEDIATE")
    with pytest.raises(Unavailable, match="database is locked"):
        await store.commit([Write("/a", b"")])
    person.execute("ROLLBACK")
    person.close()
    assert await store.commit([Write("/a", b"")]) == FIRST_REVISION + 1


# --- groups --------------------------------------------------------------------------------------------


async def group_sizes(store: SqliteStore, transactions: list[list[Write]]) -> list[int]:
    """Commit all at once; the number of changes in each batch that a live watch gets."""
    sizes: list[int] = []

    async def follow() -> None:
        nonlocal sizes
        async for batch in store.watch("/", await store.revision()):
            sizes += [len(batch.changes)]

    following = asyncio.create_task(follow())
    await asyncio.sleep(0)
    await asyncio.gather(*map(store.commit, transactions))
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)
    return sizes


async def test_commits_of_one_turn_of_the_loop_share_a_group(store: SqliteStore) -> None:
    assert await group_sizes(store, [[Write(f"/{i}", b"")] for i in range(100)]) == [100]
    assert await store.revision() == FIRST_REVISION + 100


async def test_a_group_is_bounded(store: SqliteStore) -> None:
    many = [[Write(f"/many/{i}", b"")] for i in range(2 * MAX_TRANSACTIONS)]
    assert await group_sizes(store, many) == [MAX_TRANSACTIONS] * 2
    large = [[Write(f"/large/{i}", b"x" * (MAX_BYTES // 2))] for i in range(4)]
    assert await group_sizes(store, large) == [2, 2]


async def test_a_mismatch_fails_only_its_own_transaction(store: SqliteStore) -> None:
    outcomes = await asyncio.gather(
        store.commit([Write("/a", b"1", expect=0)]),
        store.commit([Write("/a", b"2", expect=0), Write("/b", b"2")]),
        store.commit([Write("/a", b"3", expect=FIRST_REVISION + 1)]),
        store.commit([Write("/c", None)]),
        return_exceptions=True,
    )
    assert outcomes[0] == FIRST_REVISION + 1
    assert isinstance(outcomes[1], Mismatch)
    assert outcomes[2:] == [FIRST_REVISION + 2] * 2


async def test_whoever_follows_the_log_has_a_change_before_its_writer_has_the_answer(store: SqliteStore) -> None:
    seen: set[int] = set()
    caught_up = asyncio.Event()

    async def follow() -> None:
        async for batch in store.watch("/", FIRST_REVISION):
            seen.update(change.revision for change in batch.changes)
            caught_up.set()

    following = asyncio.create_task(follow())
    await store.commit([Write("/first", b"")])
    await caught_up.wait()  # until here it may have been reading what was before

    async def write(i: int) -> None:
        for _ in range(20):
            assert await store.commit([Write(f"/{i}", b"")]) in seen

    await asyncio.gather(*(write(i) for i in range(10)))
    await store.close()
    await following


async def test_a_writer_that_gives_up_waiting_disturbs_nobody(store: SqliteStore) -> None:
    impatient = asyncio.ensure_future(store.commit([Write("/a", b"")]))
    patient = asyncio.ensure_future(store.commit([Write("/b", b"")]))
    await asyncio.sleep(0)
    impatient.cancel()
    assert await patient == FIRST_REVISION + 2
    assert [row.key for row in (await store.read("/", "0")).rows] == ["/a", "/b"]


async def test_a_busy_event_loop_does_not_keep_writers_waiting(store: SqliteStore) -> None:
    """Left to the interpreter, a thread can wait for seconds to get a word in: tens of thousands of these turns.

    Of several writes the fastest counts, because other processes may have had the cores meanwhile.
    """

    async def turns_of_a_write(duration: float) -> int:
        turns, writing = 0, asyncio.ensure_future(store.commit([Write("/a", b"")]))
        while not writing.done():
            end = time.perf_counter() + duration
            while time.perf_counter() < end:
                pass
            turns += 1
            await asyncio.sleep(0)
        return turns

    for duration in (0.00005, 0.0005):
        assert min([await turns_of_a_write(duration) for _ in range(5)]) < 2000


async def test_more_keys_than_a_transaction_can_have(store: SqliteStore) -> None:
    with pytest.raises(ValueError, match="more than"):
        await store.commit([Write(f"/{i}", b"") for i in range(MAX_KEYS + 1)])


async def test_a_mistake_inside_the_writer_is_told_and_survived(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(log, "append", lambda *_: 1 / 0)
        with pytest.raises(StoreError, match="ZeroDivisionError"):
            await store.commit([Write("/a", b"")])
    assert await store.commit([Write("/a", b"")]) == FIRST_REVISION + 1


def test_settling_sees_what_the_group_did_before() -> None:
    stored = {"/a": Version(first_row(5) + 1, 3, b"old")}
    settled = settle(
        [[Write("/a", None, 5), Write("/b", b"1", 0)], [Write("/a", b"new", 0)], [Write("/b", b"2", 7)]],
        revision=6,
        latest=lambda key: stored.get(key, ABSENT),
    )
    assert settled.outcomes == [7, 8, 9]
    assert settled.revision == 9
    seven, eight, nine = first_row(7), first_row(8), first_row(9)
    assert settled.rows == [
        (seven, "/a", None, 3, first_row(5) + 1),
        (seven + 1, "/b", b"1", 7, None),
        (eight, "/a", b"new", 8, None),
        (nine, "/b", b"2", 7, seven + 1),
    ]
    assert [change.previous for change in settled.changes] == [b"old", None, None, b"1"]


# --- compaction and space ------------------------------------------------------------------------------


async def log_rows(store: SqliteStore) -> int:
    return await store._in_reader(lambda connection: connection.execute("SELECT count(*) FROM log").fetchone()[0])


async def test_compaction_leaves_the_current_rows_and_gives_space_back(path: Path, store: SqliteStore) -> None:
    for _ in range(5):
        await store.commit([Write(f"/{i}", b"x" * 5000) for i in range(800)])
    await store.commit([Write(f"/{i}", None) for i in range(700)])
    last = await store.commit([Write("/0", b"back")])
    assert await log_rows(store) == 4701
    await store.close()
    full = path.stat().st_size
    again = await reopened(path)
    await again.compact(last)
    assert len((await again.read("/", "0")).rows) == await log_rows(again) == 101
    await again.close()
    assert path.stat().st_size < full / 10


async def test_writers_go_on_during_compaction(store: SqliteStore) -> None:
    for i in range(40):
        await store.commit([Write(f"/{j}", b"%d" % i) for j in range(100)])
    compacting = asyncio.create_task(store.compact(await store.revision()))
    written = 0
    while not compacting.done():
        await store.commit([Write("/during", b"")])
        written += 1
    await compacting
    assert written > 5
    assert len((await store.read("/", "0")).rows) == 101


async def test_history_leaves_the_window_by_itself(path: Path) -> None:
    store = SqliteStore(path, durable=False, history_seconds=0.05)
    await store.open()
    for i in range(10):
        old = await store.commit([Write("/a", b"%d" % i)])
    while await log_rows(store) > 2:
        await asyncio.sleep(0.02)
    await store.commit([Write("/a", b"new")])
    with pytest.raises(Compacted):
        await store.read("/", "0", revision=old - 1)
    await store.close()


async def test_the_write_ahead_log_starts_over(path: Path, store: SqliteStore) -> None:
    wal = Path(f"{path}-wal")
    sizes = []
    for _ in range(10):
        await asyncio.gather(*(store.commit([Write(f"/{i}", b"x" * 8000)]) for i in range(500)))
        while store._background:
            await asyncio.sleep(0.01)
        sizes.append(wal.stat().st_size)
    assert sizes[-1] <= 2 * sizes[1]


# --- watches -------------------------------------------------------------------------------------------


async def collect(watch: AsyncIterator[Batch], until: int) -> list[int]:
    revisions: list[int] = []
    async for batch in watch:
        revisions += [change.revision for change in batch.changes]
        if batch.revision >= until:
            break
    return revisions


async def test_a_slow_reader_goes_back_to_the_log_and_misses_nothing(path: Path) -> None:
    store = SqliteStore(path, durable=False, watch_buffer=10)
    await store.open()
    watch = store.watch("/", 1)
    first = await store.commit([Write("/a", b"")])
    assert await collect(watch, first) == [first]
    for _ in range(50):
        last = await store.commit([Write("/a", b"")])
    assert sum(len(batch.changes) for batch in watch._buffer) <= 10  # type: ignore[attr-defined]
    assert await collect(watch, last) == list(range(first + 1, last + 1))
    await store.close()


async def test_a_reader_that_fell_behind_the_history_is_told(path: Path) -> None:
    store = SqliteStore(path, durable=False, watch_buffer=10)
    await store.open()
    watch = store.watch("/", 1)
    first = await store.commit([Write("/a", b"")])
    assert await collect(watch, first) == [first]
    for _ in range(50):
        last = await store.commit([Write("/a", b"")])
    await store.compact(last)
    with pytest.raises(Compacted) as compacted:
        await anext(watch)
    assert (compacted.value.asked, compacted.value.oldest) == (first, last)
    await store.close()


async def test_what_a_read_has_shown_before_it_was_published_is_not_told_again() -> None:
    async def read_log(prefix: str, after: int, until: int) -> Batch:
        assert after == until  # nothing to replay: only to see that the revision exists
        return Batch([], until)

    feed = Feed(5, read_log=read_log, buffer=10)
    watch = feed.watch("/", 7)
    reading = asyncio.ensure_future(anext(watch))
    await asyncio.sleep(0)
    feed.publish(Batch([Change("/a", b"6", None, 6), Change("/a", b"7", b"6", 7)], 7))
    feed.publish(Batch([Change("/a", b"8", b"7", 8)], 8))
    assert await reading == Batch([Change("/a", b"8", b"7", 8)], 8)


async def test_a_dropped_watch_is_forgotten(store: SqliteStore) -> None:
    watch = store.watch("/", 1)
    await store.commit([Write("/a", b"")])
    await anext(watch)
    assert len(store._feed._watches) == 1
    del watch
    assert len(store._feed._watches) == 0


async def test_a_reader_interrupted_in_its_wait_loses_nothing(store: SqliteStore) -> None:
    watch = store.watch("/", 1)
    for i in range(5):
        waiting = asyncio.ensure_future(anext(watch))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        revision = await store.commit([Write("/a", b"%d" % i)])
        assert await collect(watch, revision) == [revision]


# --- cost ----------------------------------------------------------------------------------------------


async def test_no_statement_scans_the_table(store: SqliteStore) -> None:
    def plans(connection: sqlite3.Connection) -> list[str]:
        statements: list[str] = []
        connection.set_trace_callback(statements.append)
        log.latest(connection, "/a")
        log.revision(connection)
        log.read(connection, "/a", "/b", at=0, limit=5)
        log.read(connection, "/a", "", at=0, limit=0)
        log.changes(connection, "/", after=1, until=1, limit=10)
        log.sweep(connection, limit=10)
        connection.set_trace_callback(None)
        asked = [statement for statement in statements if statement.lstrip().startswith("SELECT")]
        assert len(asked) > 8
        return [row[3] for statement in asked for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}")]

    steps = await store._between_groups(plans)
    assert not [step for step in steps if re.match("SCAN (log|later|before)|.*TEMP B-TREE", step)]


async def test_a_store_is_its_owners_only(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    before = os.umask(0)
    try:
        store = await reopened(path)
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
        assert modes == dict.fromkeys(("store.db", "store.db-wal", "store.db-shm", "store.db.lock"), 0o600)
        await store.close()
        path.chmod(0o644)
        store = await reopened(path)
        await store.commit([Write("/a", b"1")])
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
        assert set(modes.values()) == {0o600}
        assert "store.db had mode 0644" in caplog.text
        await store.close()
    finally:
        os.umask(before)


@pytest.mark.parametrize("name", ["store.db", "store.db-wal", "store.db-shm", "store.db-journal", "store.db.lock"])
async def test_a_link_in_the_place_of_a_store_is_refused(path: Path, name: str) -> None:
    await (await reopened(path)).close()
    victim = path.with_name("victim")
    victim.write_text("precious")
    path.with_name(name).unlink(missing_ok=True)
    path.with_name(name).symlink_to(victim)
    with pytest.raises(StoreError, match=f"{re.escape(name)} is a symbolic link"):
        await reopened(path)
    assert victim.read_text() == "precious"


# --- versions kept in memory ---------------------------------------------------------------------------


async def test_what_is_looked_up_and_what_is_remembered_is_the_same(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "RECENT_KEYS", 2)
    monkeypatch.setattr(writer, "RECENT_BYTES", 3)
    keys = ["/a", "/b", "/c", "/long"]
    versions = {key: await store.commit([Write(key, b"long" if key == "/long" else b"1")]) for key in keys}
    start = await store.revision()
    expected = []
    for value in (b"2", b"long", b"3", None, b"4"):
        for key in keys:
            with pytest.raises(Mismatch) as refused:
                await store.commit([Write(key, value, versions[key] + 1000)])
            assert refused.value.found == versions[key]
            before = (await store.read(key, "")).rows
            written = await store.commit([Write(key, value, versions[key])])
            expected.append(Change(key, value, before[0].value if before else None, written))
            versions[key] = 0 if value is None else written
    assert (await anext(store.watch("/", start))).changes == expected


async def test_a_group_that_could_not_be_made_durable_is_not_remembered(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await store.commit([Write("/a", b"1")])
    with monkeypatch.context() as broken:

        def fail(connection: sqlite3.Connection) -> None:
            log.undo(connection)
            raise sqlite3.OperationalError("disk I/O error")

        broken.setattr(log, "commit", fail)
        with pytest.raises(StoreError):
            await store.commit([Write("/a", b"2", first)])
    assert await store.commit([Write("/a", b"3", first)]) == first + 1


async def test_what_sqlite_keeps_in_memory_is_small(tmp_path):
    store = SqliteStore(tmp_path / "store.db")
    await store.open()
    try:
        files = store._opened
        kept = [each.execute("PRAGMA cache_size").fetchone()[0] for each in (files.writing, *files.reading)]
        assert kept == [-4096, -1024, -1024]  # kilobytes
    finally:
        await store.close()


EPHEMERAL = """
import asyncio, os, signal
from seamark.store.sqlite import SqliteStore

async def main():
    await SqliteStore(None).open()
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


async def test_an_ephemeral_store_removes_those_of_killed_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    for _ in range(2):
        subprocess.run([sys.executable, "-c", EPHEMERAL], env=environment, check=False)
        assert len(list(tmp_path.iterdir())) == 1
    store = SqliteStore(None)
    await store.open()
    assert len(list(tmp_path.iterdir())) == 1
    await store.close()
    assert not list(tmp_path.iterdir())


async def test_an_ephemeral_store_without_a_place_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
    with pytest.raises(StoreError, match=r"cannot make a directory for an ephemeral store: No such file.*TMPDIR"):
        await SqliteStore(None).open()
