"""``backup`` and ``restore`` in the hands of an unlucky operator: all of it, or one line and nothing left behind."""

from __future__ import annotations

import asyncio
import errno
import io
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

from seamark.cli import main
from seamark.cli.keeping import archive, backup
from seamark.presence import hold
from seamark.private_files import UNFINISHED
from seamark.store.protocol import StoreError, Write
from seamark.store.sqlite import SqliteStore, upkeep

KEY, VALUE = "/core/pods/default/a", b'{"metadata":{"name":"a","namespace":"default"}}'


@pytest.fixture
async def data(tmp_path: Path) -> Path:
    """A data directory with one object and one certificate."""
    directory = tmp_path / "data"
    (directory / "pki").mkdir(parents=True)
    (directory / "pki" / "ca.crt").write_text("certificate")
    store = SqliteStore(directory / "store.db")
    await store.open()
    await store.commit([Write(KEY, VALUE)])
    await store.close()
    return directory


@pytest.fixture
def made(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    file = tmp_path / "made.tar"
    assert main(["backup", str(file), "--data-dir", str(data)]) == 0
    capsys.readouterr()
    return file


def refused(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    """What is told, in one line."""
    assert main([str(word) for word in words]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    return line


async def objects(directory: Path) -> list[str]:
    store = SqliteStore(directory / "store.db")
    await store.open()
    rows = (await store.read("/core/", "/core0")).rows
    await store.close()
    return [row.key for row in rows]


def left_over(tmp_path: Path) -> list[Path]:
    return list(tmp_path.rglob(".seamark-*"))


# --- writing one -------------------------------------------------------------------------------------


def test_a_disk_that_fills_is_told_by_the_name_of_the_backup(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = sqlite3.connect

    def cramped(path: Any, *more: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(path, *more, **options)
        if "members" in str(path) and "uri" not in options:
            connection.execute("PRAGMA max_page_count = 1")
        return connection

    monkeypatch.setattr(sqlite3, "connect", cramped)
    file = tmp_path / "new.tar"
    assert (
        refused(capsys, "backup", file, "--data-dir", data) == f"seamark: cannot write {file}: No space left on device"
    )
    assert not file.exists()
    assert left_over(tmp_path) == []


def test_a_file_system_without_links(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def link(*_: object) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", link)
    assert main(["backup", str(tmp_path / "new.tar"), "--data-dir", str(data)]) == 0
    assert archive.unpack(tmp_path / "new.tar", None).revision
    with pytest.raises(FileExistsError):
        backup._give_name(tmp_path / "data" / "store.db", tmp_path / "new.tar")


def test_what_a_killed_rotation_left_is_not_kept(data: Path, tmp_path: Path) -> None:
    (data / "pki" / f".ca.key{UNFINISHED}abcdefgh").touch()
    assert main(["backup", str(tmp_path / "new.tar"), "--data-dir", str(data)]) == 0
    assert [each for each in archive.unpack(tmp_path / "new.tar", None).sha256 if UNFINISHED in each] == []


def test_a_certificate_with_an_impossible_name(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (data / "pki" / os.fsdecode(b"caf\xe9")).touch()
    assert "which is no name for a certificate" in refused(capsys, "backup", tmp_path / "new.tar", "--data-dir", data)
    assert not (tmp_path / "new.tar").exists()


async def test_a_store_that_lacks_writes_is_not_backed_up(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (data / "store.db").unlink()
    assert "were acknowledged" in refused(capsys, "backup", tmp_path / "new.tar", "--data-dir", data)


# --- checking ----------------------------------------------------------------------------------------


async def test_a_check_that_cannot_go_on_tells_what_it_found(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A log that was removed under a running server, say, which SQLite then cannot read."""
    store = SqliteStore(data / "store.db")
    await store.open()
    await store.commit([Write(KEY, VALUE)])
    (data / "store.db-wal").unlink()
    assert await asyncio.to_thread(main, ["fsck", "--data-dir", str(data)]) == 1
    first, second = capsys.readouterr().out.splitlines()
    assert "were acknowledged and are missing" in first
    assert "disk I/O error" in second
    await store.close()
    assert main(["fsck", "--data-dir", str(data)]) == 0


# --- reading one -------------------------------------------------------------------------------------


def test_a_pipe_is_no_backup(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "pipe")
    line = refused(capsys, "restore", tmp_path / "pipe", "--data-dir", tmp_path / "new")
    assert line.endswith("it is not a file")


def test_a_backup_without_a_store_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = json.dumps({"made": "x", "version": "1", "revision": 1, "sha256": {}}).encode()
    with tarfile.open(tmp_path / "empty.tar", "w") as tar:
        info = tarfile.TarInfo("backup.json")
        info.size = len(text)
        tar.addfile(info, io.BytesIO(text))
    line = refused(capsys, "restore", tmp_path / "empty.tar", "--data-dir", tmp_path / "new")
    assert line.endswith("is not a whole Seamark backup: it has no store.db")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("place", ["absent", "empty", "link", "volume"])
async def test_a_restore_into(made: Path, tmp_path: Path, place: str) -> None:
    """An empty directory is filled, and not replaced: it may be a link, or the root of another file system."""
    directory = tmp_path / "new"
    if place == "link":
        (tmp_path / "elsewhere").mkdir()
        directory.symlink_to("elsewhere")
    elif place != "absent":
        directory.mkdir()
        if place == "volume":
            (directory / "lost+found").mkdir()
    before = directory.stat().st_ino if place != "absent" else None
    assert main(["restore", str(made), "--data-dir", str(directory)]) == 0
    assert before in (None, directory.stat().st_ino)
    assert await objects(directory) == [KEY]
    assert (directory / "pki" / "ca.crt").read_text() == "certificate"
    assert left_over(tmp_path) == []
    assert main(["restore", str(made), "--data-dir", str(directory)]) == 1


async def test_a_restore_that_was_cut_short_is_no_empty_cluster(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed while it fills a directory: a start there does not begin anew with the certificates of the backup."""
    directory = tmp_path / "new"
    directory.mkdir()
    killed = subprocess.run(
        [sys.executable, "-c", KILLED_AT_THE_STORE, "restore", str(made), "--data-dir", str(directory)], check=False
    )
    assert killed.returncode == -signal.SIGKILL
    assert (directory / "pki").exists()
    with pytest.raises(StoreError, match="acknowledged"):
        await SqliteStore(directory / "store.db").open()


KILLED_AT_THE_STORE = """
import os, signal, sys
from pathlib import Path
from seamark.cli import main

rename = Path.rename

def killed(path, target):
    if Path(target).name == "store.db":
        os.kill(os.getpid(), signal.SIGKILL)
    return rename(path, target)

Path.rename = killed
main(sys.argv[1:])
"""


def test_what_a_killed_restore_left_is_removed_by_the_next(made: Path, tmp_path: Path) -> None:
    directory = tmp_path / "new"
    directory.mkdir()
    child = f"import os, signal\nfrom seamark.store.sqlite import upkeep\n{KILLED_IN_RENEW}"
    killed = subprocess.run(
        [sys.executable, "-c", child, "restore", str(made), "--data-dir", str(directory)], check=False
    )
    assert killed.returncode == -signal.SIGKILL
    assert len(left_over(tmp_path)) == 1
    assert main(["restore", str(made), "--data-dir", str(directory)]) == 0
    assert left_over(tmp_path) == []


KILLED_IN_RENEW = """
import sys
from seamark.cli import main

upkeep.renew = lambda path: os.kill(os.getpid(), signal.SIGKILL)
main(sys.argv[1:])
"""


def test_two_at_once_do_not_mix(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = tmp_path / "new"
    directory.mkdir()
    child = "import sys\nfrom pathlib import Path\nfrom seamark.presence import hold\n"
    child += "with hold(Path(sys.argv[1])):\n    print('held', flush=True)\n    sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", child, str(directory)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        assert "running" in refused(capsys, "restore", made, "--data-dir", directory)
        other.communicate()
    with hold(directory):
        pass
    assert main(["restore", str(made), "--data-dir", str(directory)]) == 0
    assert list(upkeep.faults(directory / "store.db")) == []
