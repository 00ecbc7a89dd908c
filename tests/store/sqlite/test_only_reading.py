"""A store in a place where only reading is allowed can be checked and copied."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from seamark.store.protocol import StoreError, Write
from seamark.store.sqlite import SqliteStore, outside, upkeep

WITHOUT_RIGHTS = ["setpriv", "--bounding-set", "-all", "--inh-caps", "-all"]  # root may write everywhere otherwise

CHILD = """
import json, sys
from pathlib import Path
from seamark.store.protocol import StoreError
from seamark.store.sqlite import upkeep

source, target = map(Path, sys.argv[1:])
try:
    print(json.dumps([list(upkeep.faults(source)), upkeep.copy(source, target)]))
except StoreError as error:
    print(json.dumps(str(error)))
"""

KILLED = """
import asyncio, os, signal, sys
from seamark.store.protocol import Write
from seamark.store.sqlite import SqliteStore

async def main(path):
    store = SqliteStore(path, history_seconds=None)
    await store.open()
    await store.commit([Write("/core/pods/default/a", b'{"metadata":{"name":"a","namespace":"default"}}')])
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main(sys.argv[1]))
"""


def checked_and_copied(path: Path, target: Path) -> object:
    """What a process without rights to write there makes of the store."""
    if os.geteuid() == 0 and shutil.which("setpriv") is None:
        pytest.skip("there is no setpriv on this machine, by which root gives up its rights")
    words = [*(WITHOUT_RIGHTS if os.geteuid() == 0 else []), sys.executable, "-c", CHILD, str(path), str(target)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("end", ["orderly", "killed", "killed, without an index"])
async def test_a_store_in_a_directory_that_cannot_be_written_to(tmp_path: Path, end: str) -> None:
    directory, target = tmp_path / "data", tmp_path / "copy.db"
    directory.mkdir()
    path = directory / "store.db"
    subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    store = SqliteStore(path, history_seconds=None)
    if end == "orderly":
        await store.open()
        await store.close()
    if end == "killed, without an index":
        (directory / "store.db-shm").unlink()
    before = sorted(each.name for each in directory.iterdir())
    assert ("store.db-wal" in before) is (end != "orderly")
    for each in directory.iterdir():
        each.chmod(0o400)
    directory.chmod(0o500)
    try:
        faults, revision = checked_and_copied(path, target)
    finally:
        directory.chmod(0o700)
    assert faults == []
    assert sorted(each.name for each in directory.iterdir()) == before
    copy = SqliteStore(target, history_seconds=None)
    await copy.open()
    assert await copy.revision() == revision
    assert [row.key for row in (await copy.read("/", "0")).rows] == ["/core/pods/default/a"]
    await copy.close()


async def test_a_store_that_may_not_be_read_is_told(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store = SqliteStore(path)
    await store.open()
    await store.close()
    path.chmod(0o000)
    assert checked_and_copied(path, tmp_path / "copy.db") == f"cannot read {path}: Permission denied"


@pytest.mark.parametrize("log", [b"", b"x"])
async def test_a_store_that_changes_meanwhile_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: bytes
) -> None:
    path = tmp_path / "store.db"
    store = SqliteStore(path)
    await store.open()
    await store.commit([Write("/a", b"1")])
    await store.close()
    outside.log_of(path).write_bytes(log)
    monkeypatch.setattr(outside, "_connection", lambda path: None)  # as in a directory that cannot be written to
    copyfile = shutil.copyfile

    def copy_and_write(source: Path, target: Path) -> None:
        copyfile(source, target)
        os.utime(path, ns=(0, 0))

    monkeypatch.setattr(shutil, "copyfile", copy_and_write)
    with pytest.raises(StoreError, match="was written to while it was read; try again"), outside.reading(path):
        os.utime(path, ns=(0, 0))


HALF_WRITTEN = """
import os, sqlite3, sys

connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA cache_size = 1")
connection.execute("BEGIN")
for number in range(100):
    connection.execute("UPDATE log SET value = ? WHERE row = (SELECT max(row) FROM log)", (b"x" * 100_000,))
    connection.execute("INSERT INTO log SELECT row + 65536, 'k', value, 1, NULL FROM log ORDER BY row DESC LIMIT 1")
os._exit(0)
"""


async def test_a_file_that_was_half_written_is_read_as_it_was_before(tmp_path: Path) -> None:
    """A store that is not in write-ahead mode yet, as a first start or a restore leaves it when it is killed."""
    store = SqliteStore(tmp_path / "store.db", history_seconds=None)
    await store.open()
    revision = await store.commit([Write("/core/pods/default/a", b'{"metadata":{"name":"a","namespace":"default"}}')])
    await store.close()
    path = tmp_path / "copy.db"
    assert upkeep.copy(tmp_path / "store.db", path) == revision
    subprocess.run([sys.executable, "-c", HALF_WRITTEN, str(path)], check=True)
    assert outside.journal_of(path).exists()
    assert list(upkeep.faults(path)) == []
    assert upkeep.copy(path, tmp_path / "again.db") == revision
    assert outside.journal_of(path).exists()


async def test_a_full_disk_does_not_keep_us_from_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "store.db"
    store = SqliteStore(path)
    await store.open()
    await store.close()
    connect = outside._connect

    def cramped(path: Path, how: str) -> sqlite3.Connection:
        if how == "mode=ro":
            return sqlite3.connect(path, factory=Cramped)
        return connect(path, how)

    class Cramped(sqlite3.Connection):
        def execute(self, *_: object) -> sqlite3.Cursor:  # type: ignore[override]
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorcode = sqlite3.SQLITE_IOERR_SHMSIZE
            raise error

    monkeypatch.setattr(outside, "_connect", cramped)
    assert list(upkeep.faults(path)) == []
