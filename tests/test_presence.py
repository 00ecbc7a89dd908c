"""Who holds a data directory, as other processes see it."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from seamark import presence
from seamark.presence import DirectoryError, Presence, find, hold
from seamark.private_files import open_private

HOLDER = """
import sys
from pathlib import Path
from seamark.presence import Presence, hold
with hold(Path(sys.argv[1])) as held:
    held.tell(Presence(pid=1, ready=True, api="https://here"))
    print("held", flush=True)
    for line in sys.stdin:
        held.tell(Presence(pid=1, ready=True, api=line.strip()))
        print("told", flush=True)
"""


def holder(directory: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", HOLDER, str(directory)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def end(process: subprocess.Popen[str]) -> None:
    process.communicate("")


def test_the_number_is_the_kernels_not_the_files(tmp_path: Path) -> None:
    process = holder(tmp_path)
    try:
        found = find(tmp_path)
        assert found == Presence(pid=process.pid, ready=True, api="https://here")
        with pytest.raises(DirectoryError, match=f"in use by pid {process.pid};"), hold(tmp_path):
            pass
    finally:
        end(process)
    assert find(tmp_path) is None


def test_a_killed_holder_holds_nothing(tmp_path: Path) -> None:
    process = holder(tmp_path)
    process.kill()
    process.communicate()
    # What it said of itself is still there, and is not believed.
    assert b"https://here" in (tmp_path / "running.json").read_bytes()
    assert find(tmp_path) is None
    end(holder(tmp_path))


def test_a_file_that_makes_no_sense_does_not_hide_the_holder(tmp_path: Path) -> None:
    process = holder(tmp_path)
    try:
        (tmp_path / "running.json").write_bytes(b"{")
        assert find(tmp_path) == Presence(pid=process.pid)
    finally:
        end(process)


def test_a_reader_sees_what_was_told_before_or_after_and_never_a_part(tmp_path: Path) -> None:
    with hold(tmp_path) as held:
        held.tell(Presence(pid=1, api="https://first"))
        with (tmp_path / "running.json").open("rb") as reader:
            held.tell(Presence(pid=1, api="https://second"))
            assert msgspec.json.decode(reader.read(), type=Presence).api == "https://first"
        assert msgspec.json.decode((tmp_path / "running.json").read_bytes(), type=Presence).api == "https://second"
    assert (tmp_path / "running.json").read_bytes() == b""


def test_what_cannot_be_written_leaves_what_was_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with hold(tmp_path) as held:
        held.tell(Presence(pid=1, api="https://here"))
        monkeypatch.setattr(os, "pwrite", full)
        with pytest.raises(DirectoryError, match="No space left"):
            held.tell(Presence(pid=1, api="https://there"))
        assert b"https://here" in (tmp_path / "running.json").read_bytes()


def test_a_file_replaced_while_it_is_read_does_not_hide_the_holder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = holder(tmp_path)
    opened = []

    def open_slowly(path: Path, flags: int) -> int:
        descriptor = open_private(path, flags)
        if not opened:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write("https://there\n")
            process.stdin.flush()
            assert process.stdout.readline() == "told\n"
        opened.append(path)
        return descriptor

    try:
        monkeypatch.setattr(presence, "open_private", open_slowly)
        assert find(tmp_path) == Presence(pid=process.pid, ready=True, api="https://there")
        assert len(opened) == 2
    finally:
        end(process)


def test_a_directory_nobody_was_in(tmp_path: Path) -> None:
    assert find(tmp_path) is None
    assert find(tmp_path / "missing") is None
    with hold(tmp_path / "new" / "one"):
        assert stat.S_IMODE((tmp_path / "new" / "one").stat().st_mode) == 0o700
        assert stat.S_IMODE((tmp_path / "new" / "one" / "running.json").stat().st_mode) == 0o600


def test_a_directory_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(DirectoryError, match=r"cannot use the data directory .*: it is a file;"),
        hold(tmp_path / "file"),
    ):
        pass
    if os.geteuid() != 0:
        tmp_path.chmod(0o500)
        with pytest.raises(DirectoryError, match="Permission denied"), hold(tmp_path):
            pass
        tmp_path.chmod(0o700)


@pytest.mark.parametrize("name", ["lock", "running.json"])
def test_a_link_in_the_place_of_our_files_is_refused(tmp_path: Path, name: str) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / name).symlink_to(victim)
    with pytest.raises(DirectoryError, match=f"{name} is a symbolic link"), hold(tmp_path):
        pass
    assert victim.read_text() == "precious"


def test_a_name_that_is_not_utf8_is_told(tmp_path: Path) -> None:
    with hold(tmp_path) as held, pytest.raises(DirectoryError, match=r"caf.*: the name is not UTF-8"):
        held.tell(Presence(os.getpid(), kubeconfig=os.fsdecode(b"caf\xe9")))


LONG = """
import os, sys
from pathlib import Path
from seamark.presence import Presence, hold
with hold(Path(sys.argv[1])) as held:
    held.tell(Presence(os.getpid(), api="https://here", not_served=("203.0.113.1:80: Permission denied",) * 10_000))
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_long_account_is_read_whole(tmp_path: Path) -> None:
    """Thousands of Services whose ports cannot be had, say: the address of the API must still be found."""
    words = [sys.executable, "-c", LONG, str(tmp_path)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        found = find(tmp_path)
        holder.communicate()
    assert found is not None
    assert (found.api, len(found.not_served)) == ("https://here", 10_000)
