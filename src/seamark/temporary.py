"""Temporary directories that do not outlive their process for long, however it ends.

A process that is killed leaves its directory behind.  Each directory holds a file that is locked while it is in use,
and the kernel releases the lock when the process ends.  So the next process that makes a directory of the same kind can
tell which ones are left over, and removes them.  It looks at directories of the same user only.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Self

from seamark.private_files import open_private

IN_USE = "in-use"

_swept: set[tuple[Path, str]] = set()  # what this process has looked at: places, and the beginnings of names


class TemporaryFolder:
    """A new directory for its owner only, in the system's place for such or ``within`` another directory.

    Raises OSError if it cannot be made.
    """

    def __init__(self, prefix: str = "seamark-", *, within: Path | None = None) -> None:
        place = Path(tempfile.gettempdir()) if within is None else within
        if (place, prefix) not in _swept:
            _swept.add((place, prefix))
            remove_leftovers(place, prefix)
        self.path = Path(tempfile.mkdtemp(prefix=prefix, dir=place))
        # The name appears when the lock is held: a directory with this file and without the lock is left over.
        self._lock = open_private(self.path / f"{IN_USE}.new", os.O_RDWR | os.O_CREAT)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        os.rename(self.path / f"{IN_USE}.new", self.path / IN_USE)

    def remove(self) -> None:
        _remove(self.path)
        os.close(self._lock)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.remove()


def remove_leftovers(place: Path, prefix: str) -> None:
    """Remove the directories of this kind whose processes have ended."""
    with suppress(OSError), os.scandir(place) as found:
        folders = [
            Path(each.path)
            for each in found
            if each.name.startswith(prefix) and each.is_dir(follow_symlinks=False) and _is_ours(each)
        ]
        for folder in folders:
            with suppress(OSError):  # it is in use, or another process has just removed it
                _remove_if_left(folder)


def _is_ours(entry: os.DirEntry[str]) -> bool:
    return entry.stat(follow_symlinks=False).st_uid == os.geteuid()


def _remove_if_left(folder: Path) -> None:
    lock = open_private(folder / IN_USE, os.O_RDWR)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _remove(folder)
    finally:
        os.close(lock)


def _remove(folder: Path) -> None:
    """The lock's file last, so that a process that ends in the middle of it leaves the rest to the next one."""
    with suppress(OSError):
        for each in list(folder.iterdir()):
            if each.name == IN_USE:
                continue
            if each.is_dir() and not each.is_symlink():
                shutil.rmtree(each, ignore_errors=True)
            else:
                each.unlink()
    shutil.rmtree(folder, ignore_errors=True)
