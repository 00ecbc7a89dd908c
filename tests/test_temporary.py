"""Temporary directories: gone with their process, or with the next one of their kind; those of others stay."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from seamark.temporary import IN_USE, TemporaryFolder, remove_leftovers

PREFIX = "kind-"

MAKES_ONE = """
import sys
from pathlib import Path
from seamark.temporary import TemporaryFolder

folder = TemporaryFolder("kind-", within=Path(sys.argv[1]))
(folder.path / "some").mkdir()
(folder.path / "some" / "file").write_text("x")
print(folder.path, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def process(tmp_path: Path) -> subprocess.Popen[str]:
    words = [sys.executable, "-c", MAKES_ONE, str(tmp_path)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as started:
        yield started
        started.kill()


def test_one_is_private_and_goes_at_the_end(tmp_path: Path) -> None:
    with TemporaryFolder(PREFIX, within=tmp_path) as folder:
        assert folder.path.stat().st_mode & 0o077 == 0
        (folder.path / "file").touch()
        (folder.path / "folder").mkdir()
        (folder.path / "link").symlink_to(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_one_of_a_killed_process_goes_and_one_in_use_stays(tmp_path: Path, process: subprocess.Popen[str]) -> None:
    path = Path(process.stdout.readline().strip())
    with TemporaryFolder(PREFIX, within=tmp_path) as ours:
        remove_leftovers(tmp_path, PREFIX)
        assert path.exists()
        assert ours.path.exists()
        process.kill()
        process.wait()
        remove_leftovers(tmp_path, PREFIX)
        assert not path.exists()
        assert ours.path.exists()


def test_the_first_of_a_process_removes_what_is_left(tmp_path: Path, process: subprocess.Popen[str]) -> None:
    path = Path(process.stdout.readline().strip())
    process.kill()
    process.wait()
    assert path.exists()
    TemporaryFolder(PREFIX, within=tmp_path).remove()
    assert list(tmp_path.iterdir()) == []


def test_what_is_not_known_to_be_left_over_stays(tmp_path: Path) -> None:
    """A directory without the file may be about to get it; a link may lead anywhere."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / IN_USE).touch()
    (tmp_path / f"{PREFIX}link").symlink_to("elsewhere")
    (tmp_path / f"{PREFIX}new").mkdir()
    (tmp_path / f"{PREFIX}file").touch()
    (tmp_path / f"{PREFIX}linked").mkdir()
    (tmp_path / f"{PREFIX}linked" / IN_USE).symlink_to(tmp_path / "elsewhere" / IN_USE)
    before = sorted(tmp_path.rglob("*"))
    remove_leftovers(tmp_path, PREFIX)
    assert sorted(tmp_path.rglob("*")) == before
    remove_leftovers(tmp_path / "missing", PREFIX)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as two users")
def test_what_belongs_to_another_user_stays(tmp_path: Path) -> None:
    (tmp_path / f"{PREFIX}theirs").mkdir()
    (tmp_path / f"{PREFIX}theirs" / IN_USE).touch()
    os.chown(tmp_path / f"{PREFIX}theirs", 65534, -1)
    remove_leftovers(tmp_path, PREFIX)
    assert (tmp_path / f"{PREFIX}theirs" / IN_USE).exists()
