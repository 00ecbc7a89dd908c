"""Acknowledged writes that are missing from the files are noticed by a start and by a check; nothing else is."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from seamark.store.protocol import StoreError, Unavailable, Write
from seamark.store.sqlite import SqliteStore, opened, upkeep
from seamark.store.sqlite.acknowledged import Record, known, lost, record_of
from seamark.store.sqlite.file import PAGE_SIZE

# Writes revisions until the number given, of which the first `moved` are in the file itself, and is then killed.
KILLED = """
import asyncio, os, signal, sys
from seamark.store.protocol import Write
from seamark.store.sqlite import SqliteStore

async def main(path, moved, count):
    store = SqliteStore(path, history_seconds=None)
    await store.open()
    for number in range(count):
        if number == moved:
            await store.check()
        stored = b'{"metadata":{"name":"n%d","namespace":"default"}}' % number
        at = await store.commit([Write(f"/core/pods/default/n{number}", stored)])
    print(at, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
"""

MOVED, WRITTEN = 10, 30


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


def killed(path: Path, moved: int = MOVED, written: int = WRITTEN) -> int:
    """Let a process write and be killed; returns the last revision that it acknowledged."""
    child = subprocess.run(
        [sys.executable, "-c", KILLED, str(path), str(moved), str(written)], stdout=subprocess.PIPE, check=False
    )
    assert child.returncode == -9
    return int(child.stdout)


def beside(path: Path, suffix: str) -> Path:
    return Path(f"{path}{suffix}")


def files(path: Path) -> dict[str, bytes]:
    """What the files hold, without those that every reader makes."""
    read = {each.name: each.read_bytes() for each in path.parent.iterdir()}
    return {name: content for name, content in read.items() if content and not name.endswith((".lock", "-shm"))}


async def opened_at(path: Path) -> SqliteStore:
    store = SqliteStore(path, history_seconds=None)
    await store.open()
    return store


async def revision_after_start(path: Path) -> int:
    store = await opened_at(path)
    try:
        return await store.revision()
    finally:
        await store.close()


def remove_log(path: Path) -> None:
    beside(path, "-wal").unlink()


def remove_log_and_index(path: Path) -> None:
    beside(path, "-wal").unlink()
    beside(path, "-shm").unlink()


def empty_log(path: Path) -> None:
    os.truncate(beside(path, "-wal"), 0)


def cut_log(path: Path) -> None:
    os.truncate(beside(path, "-wal"), beside(path, "-wal").stat().st_size // 2)


def damage_log(path: Path) -> None:
    """One byte in the middle: SQLite reads the log up to there."""
    with beside(path, "-wal").open("r+b") as opened:
        opened.seek(beside(path, "-wal").stat().st_size // 2)
        (byte,) = opened.read(1)
        opened.seek(-1, os.SEEK_CUR)
        opened.write(bytes([byte ^ 1]))


def empty_file(path: Path) -> None:
    os.truncate(path, 0)


DAMAGES = [remove_log, remove_log_and_index, empty_log, cut_log, damage_log, Path.unlink, empty_file]


@pytest.mark.parametrize("damage", DAMAGES)
async def test_a_start_refuses_what_lacks_acknowledged_writes(path: Path, damage: Callable[[Path], None]) -> None:
    last = killed(path)
    damage(path)
    before = files(path)
    with pytest.raises(
        StoreError, match=rf"to {last},? .*acknowledged.*`seamark restore`.*`seamark fsck --accept-loss`"
    ):
        await SqliteStore(path).open()
    assert files(path) == before, "what may help to repair it was changed"


@pytest.mark.parametrize("damage", DAMAGES[:5])
async def test_a_check_says_which_revisions_are_missing(path: Path, damage: Callable[[Path], None]) -> None:
    last = killed(path)
    damage(path)
    before = files(path)
    found = list(upkeep.faults(path))
    assert files(path) == before
    with closing(sqlite3.connect(path)) as connection:
        there = connection.execute("SELECT max(row) >> 16 FROM log").fetchone()[0]
    assert there < last
    assert [fault for fault in found if f"revisions {there + 1} to {last} were acknowledged" in fault]


async def test_an_older_file_beside_a_newer_log_is_refused(path: Path, tmp_path: Path) -> None:
    """SQLite would carry out the log on a file that it does not belong to."""
    store = await opened_at(path)
    await store.commit([Write("/a", b"1")])
    await store.close()
    older = shutil.copy(path, tmp_path / "older.db")
    killed(path)
    shutil.copy(older, path)
    before = files(path)
    with pytest.raises(StoreError, match="older than the write-ahead log beside it"):
        await SqliteStore(path).open()
    assert files(path) == before
    assert any("older than the write-ahead log" in fault for fault in upkeep.faults(path))


async def test_an_older_file_alone_is_refused(path: Path, tmp_path: Path) -> None:
    store = await opened_at(path)
    first = await store.commit([Write("/a", b"1")])
    await store.close()
    older = shutil.copy(path, tmp_path / "older.db")
    await store.open()
    last = await store.commit([Write("/a", b"2")])
    await store.close()
    shutil.copy(older, path)
    with pytest.raises(StoreError, match=f"revisions {first + 1} to {last} were acknowledged"):
        await store.open()


async def test_a_damaged_log_is_noticed_without_a_record(path: Path) -> None:
    """What follows the damage proves that it was written, and that the damaged commit was finished."""
    killed(path)
    record_of(path).unlink()
    damage_log(path)
    told = r"at least \d+ commits after revision \d+ were acknowledged and are missing; store.db-wal is damaged"
    with pytest.raises(StoreError, match=told):
        await SqliteStore(path).open()
    loss = lost(path)
    assert loss is not None
    assert list(upkeep.faults(path)) == [str(loss)]
    upkeep.accept_loss(path)
    assert await revision_after_start(path) >= loss.found + upkeep.RESTORE_GAP


# --- what is no loss ---------------------------------------------------------------------------------


async def test_a_killed_process_loses_nothing_and_is_not_accused(path: Path) -> None:
    last = killed(path)
    assert list(upkeep.faults(path)) == []
    assert await revision_after_start(path) == last
    assert list(upkeep.faults(path)) == []


async def test_a_write_that_was_not_finished_is_no_loss(path: Path) -> None:
    """A power cut leaves pages of a commit that was not acknowledged, and maybe not all of them."""
    last = killed(path)
    chance = random.Random(1)
    log = beside(path, "-wal")
    whole = log.read_bytes()
    tail = bytearray(chance.randbytes(5 * (PAGE_SIZE + 24)))
    for length in (1, 24, PAGE_SIZE, len(tail)):
        log.write_bytes(whole + tail[:length])
        assert lost(path) is None
    assert await revision_after_start(path) == last


async def test_pages_of_one_commit_that_came_in_any_order_are_no_loss(path: Path) -> None:
    """A power cut may leave the last commit without some of its pages, and its last page may be there."""
    killed(path)
    record_of(path).unlink()
    log = beside(path, "-wal")
    whole = log.read_bytes()
    frame = PAGE_SIZE + 24
    frames = (len(whole) - 32) // frame
    last = max(n for n in range(frames - 1) if int.from_bytes(whole[32 + n * frame + 4 :][:4], "big")) + 1
    assert last < frames - 1, "the last commit has several pages"
    for hole in range(last, frames - 1):
        log.write_bytes(whole[: 32 + hole * frame] + bytes(frame) + whole[32 + (hole + 1) * frame :])
        assert lost(path) is None


async def test_an_earlier_content_of_the_log_is_no_loss(path: Path) -> None:
    """After a checkpoint the log is begun anew, and commits of before follow those of now."""
    killed(path, moved=25, written=WRITTEN)
    record_of(path).unlink()
    assert lost(path) is None
    whole = beside(path, "-wal").read_bytes()
    assert whole[16:24] not in whole[-PAGE_SIZE - 24 : -PAGE_SIZE], "the log does not end with what is older"


async def test_a_store_that_is_written_to_lacks_nothing(path: Path) -> None:
    store = await opened_at(path)
    for _ in range(20):
        writing = asyncio.gather(*(store.commit([Write(f"/{n}", b"x" * 5000)]) for n in range(50)))
        assert await asyncio.to_thread(lost, path) is None
        await writing
        await store.check()
    await store.close()


async def test_a_record_that_the_system_had_not_written_is_no_loss(path: Path) -> None:
    """After a power cut the record may be older than the store, which is synced with every commit."""
    store = await opened_at(path)
    await store.commit([Write("/a", b"1")])
    older = record_of(path).read_bytes()
    last = await store.commit([Write("/a", b"2")])
    await store.close()
    record_of(path).write_bytes(older)
    assert await revision_after_start(path) == last


@pytest.mark.parametrize("content", [b"", b"x", bytes(24)])
async def test_a_record_without_a_number_says_nothing(path: Path, content: bytes) -> None:
    last = killed(path)
    record_of(path).write_bytes(content)
    assert await revision_after_start(path) == last
    assert record_of(path).stat().st_size == 24


async def test_a_pipe_in_the_place_of_the_record_is_refused(path: Path) -> None:
    killed(path)
    record_of(path).unlink()
    os.mkfifo(record_of(path))
    assert list(upkeep.faults(path)) == []
    with pytest.raises(StoreError, match=r"store.db.acknowledged is not a file"):
        await SqliteStore(path).open()


async def test_a_record_that_was_being_written_is_the_smaller_number(path: Path) -> None:
    last = killed(path)
    numbers = bytearray(record_of(path).read_bytes())
    numbers[:8] = (last + 1).to_bytes(8, sys.byteorder)
    record_of(path).write_bytes(numbers)
    assert await revision_after_start(path) == last


async def test_a_copy_of_a_store_is_no_loss(path: Path, tmp_path: Path) -> None:
    """With or without what is beside it, after an orderly end; and all of it after another end."""
    store = await opened_at(path)
    last = await store.commit([Write("/a", b"1")])
    await store.close()
    shutil.copy(path, tmp_path / "alone.db")
    assert await revision_after_start(tmp_path / "alone.db") == last
    last = killed(path)
    shutil.copytree(tmp_path, tmp_path / "all")
    assert await revision_after_start(tmp_path / "all" / "store.db") == last


async def test_killed_in_the_middle_of_moving_the_log(path: Path) -> None:
    """The file alone is then neither old nor new, and says nothing."""
    last = killed(path)
    record = Record(path)
    record.moving()
    record.close()
    pages = bytearray(path.read_bytes())
    pages[PAGE_SIZE * 2 :] = bytes(len(pages) - PAGE_SIZE * 2)
    path.write_bytes(pages)
    assert lost(path) is None
    assert last


# --- files that are cut off or removed while they are in use --------------------------------------------


async def test_a_record_that_is_cut_off_does_not_end_the_process(path: Path) -> None:
    """Nor does it accuse the store; once the log was moved into the file, it is whole again."""
    store = await opened_at(path)
    await store.commit([Write("/a", b"1")])
    os.truncate(record_of(path), 0)
    await store.commit([Write("/a", b"2")])
    assert lost(path) is None
    await store.check()
    last = await store.commit([Write("/a", b"3")])
    assert known(path).acknowledged == last
    await store.close()
    assert await revision_after_start(path) == last


@pytest.mark.parametrize("suffix", ["", "-wal"])
async def test_files_removed_under_an_open_store_are_noticed_and_written_again(
    path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opened, "LOOK_SECONDS", 0.0)
    store = await opened_at(path)
    kept = await store.commit([Write("/a", b"kept")])
    aside = beside(path, suffix).rename(path.parent / "aside")
    with pytest.raises(Unavailable, match=rf"{beside(path, suffix)} was removed.*start it again"):
        await store.commit([Write("/a", b"refused")])
    with pytest.raises(Unavailable, match="was removed"):
        await store.check()
    aside.rename(beside(path, suffix))
    await store.check()
    last = await store.commit([Write("/a", b"last")])
    assert last == kept + 1
    beside(path, suffix).unlink()
    await store.close()
    assert await revision_after_start(path) == last
    assert path.stat().st_mode & 0o077 == 0
    assert list(path.parent.glob("*.again")) == []


async def test_an_open_store_does_not_replace_a_file_that_took_its_place(path: Path) -> None:
    store = await opened_at(path)
    await store.commit([Write("/a", b"1")])
    path.unlink()
    path.write_bytes(b"")
    await store.close()
    assert path.read_bytes() == b""
    with pytest.raises(StoreError, match="acknowledged"):
        await store.open()


# --- going on without them ---------------------------------------------------------------------------


@pytest.mark.parametrize("damage", DAMAGES)
async def test_a_loss_that_is_accepted_gives_no_revision_twice(path: Path, damage: Callable[[Path], None]) -> None:
    last = killed(path)
    damage(path)
    upkeep.accept_loss(path)
    assert list(upkeep.faults(path)) == []
    store = await opened_at(path)
    assert await store.revision() >= last + upkeep.RESTORE_GAP
    assert await store.commit([Write("/again", b"1")]) > last + upkeep.RESTORE_GAP
    await store.close()
    assert lost(path) is None


async def test_an_accepted_older_file_goes_on_without_the_log_of_another(path: Path, tmp_path: Path) -> None:
    store = await opened_at(path)
    await store.commit([Write("/core/pods/default/a", b'{"metadata":{"name":"a","namespace":"default"}}')])
    await store.close()
    older = shutil.copy(path, tmp_path / "older.db")
    last = killed(path)
    shutil.copy(older, path)
    upkeep.accept_loss(path)
    assert list(upkeep.faults(path)) == []
    await store.open()
    assert [row.key for row in (await store.read("/core/", "/core0")).rows] == ["/core/pods/default/a"]
    assert await store.revision() >= last + upkeep.RESTORE_GAP
    await store.close()


async def test_nothing_is_accepted_while_the_store_is_in_use(path: Path) -> None:
    store = await opened_at(path)
    with pytest.raises(StoreError, match="in use"):
        upkeep.accept_loss(path)
    await store.close()
    assert upkeep.accept_loss(path) is None
