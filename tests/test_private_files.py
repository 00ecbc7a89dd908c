"""Files with data or secrets: private from their first moment, and no one else's."""

from __future__ import annotations

import errno
import logging
import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from seamark.private_files import (
    check_private,
    is_unfinished,
    make_private_directory,
    open_log,
    open_private,
    write_private,
)

CREATE = os.O_RDWR | os.O_CREAT
ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as two users")
NOBODY = 65534


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.fixture(autouse=True)
def no_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def test_new_ones_are_private(tmp_path: Path) -> None:
    os.close(open_private(tmp_path / "a", CREATE))
    os.close(open_log(str(tmp_path / "log"), os.O_WRONLY | os.O_CREAT))
    make_private_directory(tmp_path / "d")
    assert [mode(tmp_path / name) for name in ("a", "log", "d")] == [0o600, 0o600, 0o700]


def test_wide_ones_are_narrowed_and_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for name in ("a", "b"):
        (tmp_path / name).touch(0o644)
    with caplog.at_level(logging.WARNING):
        os.close(open_private(tmp_path / "a", os.O_RDWR))
        check_private(tmp_path / "b")
    assert [mode(tmp_path / name) for name in ("a", "b")] == [0o600, 0o600]
    assert [record.message.partition(" had mode 0644")[0] for record in caplog.records] == [
        str(tmp_path / "a"),
        str(tmp_path / "b"),
    ]
    (tmp_path / "d").mkdir(0o777)
    make_private_directory(tmp_path / "d")
    assert mode(tmp_path / "d") == 0o755


def test_wide_ones_can_be_read_where_nothing_can_be_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").touch(0o644)

    def refuse(*_: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(os, "chmod", refuse)
    os.close(open_private(tmp_path / "a", os.O_RDONLY))
    check_private(tmp_path / "a")


def test_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("precious")
    (tmp_path / "victim").chmod(0o644)
    (tmp_path / "a").symlink_to("victim")
    (tmp_path / "dangling").symlink_to("elsewhere")
    for name in ("a", "dangling"):
        with pytest.raises(OSError, match=f"{name} is a symbolic link"):
            open_private(tmp_path / name, CREATE)
    assert mode(tmp_path / "victim") == 0o644
    assert not (tmp_path / "elsewhere").exists()
    check_private(tmp_path / "a")  # our own link to a certificate, say
    check_private(tmp_path / "missing")


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="pipe is not a file"):
        open_private(tmp_path / "pipe", os.O_RDWR)
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="directory"):
        open_private(tmp_path / "folder", CREATE)


def test_a_log_that_is_a_pipe_needs_a_reader(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="it is a pipe that no process reads"):
        open_log(str(tmp_path / "pipe"), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    writer = open_log(str(tmp_path / "pipe"), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    assert os.get_blocking(writer)
    os.write(writer, b"line\n")
    assert os.read(reader, 100) == b"line\n"
    os.close(writer)
    os.close(reader)


@ROOT
def test_another_users_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    (tmp_path / "l").symlink_to("a")
    os.chown(tmp_path / "a", NOBODY, -1)
    os.lchown(tmp_path / "l", NOBODY, -1)
    with pytest.raises(OSError, match="a belongs to another user"):
        open_private(tmp_path / "a", CREATE)
    for check in (check_private, lambda path: open_log(str(path), os.O_WRONLY)):
        with pytest.raises(OSError, match="symbolic link that belongs to another user"):
            check(tmp_path / "l")


@ROOT
def test_another_users_directory_within_ours_is_refused(tmp_path: Path) -> None:
    (tmp_path / "pki").mkdir()
    (tmp_path / "link").symlink_to("pki")
    os.chown(tmp_path / "pki", NOBODY, -1)
    os.lchown(tmp_path / "link", NOBODY, -1)
    with pytest.raises(OSError, match="pki belongs to another user"):
        make_private_directory(tmp_path / "pki")
    with pytest.raises(OSError, match="link is a symbolic link that belongs to another user"):
        make_private_directory(tmp_path / "link")
    os.lchown(tmp_path / "link", os.geteuid(), -1)
    with pytest.raises(OSError, match="link belongs to another user"):
        make_private_directory(tmp_path / "link")
    os.chown(tmp_path / "pki", os.geteuid(), -1)
    make_private_directory(tmp_path / "link")  # all ours


@ROOT
def test_a_directory_that_was_named_may_be_another_users_unless_anybody_could_have_made_it(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    os.chown(tmp_path / "data", NOBODY, -1)
    make_private_directory(tmp_path / "data", named=True)  # a volume of a container, say
    tmp_path.chmod(0o1777)
    with pytest.raises(OSError, match="data belongs to another user"):
        make_private_directory(tmp_path / "data", named=True)


@pytest.fixture
def everybodys() -> Iterator[Path]:
    """A temporary directory that other users can reach: those of pytest are in one that they cannot."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@ROOT
def test_a_directory_of_root_may_be_open_to_all_but_what_others_put_there_is_refused(everybodys: Path) -> None:
    """As the volumes of Pods are: root's, and writable for all, because their processes are of other users."""
    data = everybodys / "data"
    for folder in (data, data / "pki"):
        folder.mkdir()
    (data / "store.db").touch()
    (data / "store.db").chmod(0o666)
    for each in (data / "pki", data / "store.db"):
        os.chown(each, NOBODY - 1, -1)
    data.chmod(0o777)
    os.seteuid(NOBODY)
    try:
        make_private_directory(data, named=True)
        os.close(open_private(data / "kubeconfig", CREATE))
        with pytest.raises(OSError, match="pki belongs to another user"):
            make_private_directory(data / "pki")
        with pytest.raises(OSError, match=r"store\.db belongs to another user"):
            open_private(data / "store.db", CREATE)
    finally:
        os.seteuid(0)
    assert mode(data / "kubeconfig") == 0o600


@ROOT
def test_keys_that_another_user_put_into_an_open_data_directory_are_not_believed(tmp_path: Path) -> None:
    """The attack: a data directory that all could write to, and in it a ``pki`` with a token that its maker knows."""
    data = tmp_path / "data"
    pki = data / "pki"
    pki.mkdir(parents=True)
    data.chmod(0o777)
    (pki / "admin.token").write_text("known" * 8)
    for each in (pki, pki / "admin.token"):
        os.chown(each, NOBODY, -1)
    command = [sys.executable, "-m", "seamark", "apiserver", "--data-dir", str(data), "--api-port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert server.stdout is not None
    assert "ready\n" not in server.stdout, server.kill()
    said = server.communicate()[1]
    assert server.returncode == 1
    assert said.splitlines()[-1].endswith("pki belongs to another user; see --data-dir")


@ROOT
def test_an_ordinary_user_reads_nothing_of_a_server_in_an_open_directory(tmp_path: Path) -> None:
    """The attack: a data directory that was there already, open to all, and a store elsewhere."""
    for folder in (tmp_path, *tmp_path.parents[:2], tmp_path / "data", tmp_path / "store"):
        folder.mkdir(exist_ok=True)
        folder.chmod(0o755)
    arguments = ["--data-dir", tmp_path / "data", "--store", f"sqlite://{tmp_path}/store/s.db", "--api-port", "0"]
    command = [sys.executable, "-m", "seamark", "apiserver", *map(str, arguments), "--log-file", str(tmp_path / "log")]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, umask=0)
    assert server.stdout is not None
    try:
        assert any(line == "ready\n" for line in server.stdout)
        files = [path for path in tmp_path.rglob("*") if path.is_file()]
        assert {"s.db", "s.db-wal", "s.db-shm", "kubeconfig", "admin.token", "log", "running.json"} <= {
            path.name for path in files
        }
        assert {path.name: oct(mode(path)) for path in files if mode(path) & 0o077} == {}
        os.seteuid(NOBODY)
        try:
            assert [path for path in files if os.access(path, os.R_OK, effective_ids=True)] == []
        finally:
            os.seteuid(0)
    finally:
        server.terminate()
        server.communicate()


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "secret"
    write_private(path, b"one")
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        write_private(path, b"two")
    assert path.read_bytes() == b"one"
    assert [p.name for p in tmp_path.iterdir()] == ["secret"]


def test_what_a_killed_process_left_is_removed_by_the_next_and_not_while_it_is_in_use(tmp_path):
    path = tmp_path / "secret"
    code = (
        "import os, sys; from pathlib import Path; from seamark.private_files import write_private\n"
        "os.fsync = lambda _: (print('written', flush=True), sys.stdin.read(), os._exit(9))\n"
        "write_private(Path(sys.argv[1]), b'one')"
    )
    command = [sys.executable, "-c", code, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        writer.stdout.readline()
        write_private(path, b"two")
        (unfinished,) = {each.name for each in tmp_path.iterdir()} - {"secret"}
        assert is_unfinished(unfinished)
    assert {each.name for each in tmp_path.iterdir()} == {"secret", unfinished}
    (tmp_path / ".secret-20260101").touch()  # a name that others give to files
    write_private(path, b"three")
    assert {each.name for each in tmp_path.iterdir()} == {"secret", ".secret-20260101"}
