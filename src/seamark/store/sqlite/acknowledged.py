"""A record beside the store of how far its writes were acknowledged, by which missing ones are noticed.

SQLite cannot notice them.  It reads its write-ahead log up to the first page that is damaged and takes the rest for a
write that was never finished; and if the log is gone, it takes the file alone for the whole store.

The record, ``<store>.acknowledged``, is a file of three numbers.  To write one takes a microsecond: the kernel keeps it
if the process is killed, and writes it to the disk in its own time.  After a power cut it may therefore be older than
the store, but never newer, because it is written after a commit is durable: it accuses no store that is whole.  (Mapped
memory would be faster still, but who cuts the file off would end the process.)
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path
from struct import Struct
from typing import NamedTuple

from seamark.private_files import open_private
from seamark.store.protocol import StoreError
from seamark.store.sqlite import log
from seamark.store.sqlite.outside import has_log, log_of, reading, reading_without_log
from seamark.store.sqlite.unread_log import commits_behind_the_stop

WORD, TWO_WORDS = Struct("=Q"), Struct("=QQ")
WORDS = 3
SIZE = WORDS * WORD.size
HIGHEST_REVISION = 1 << 46  # a larger number is no revision, but damage


def record_of(path: Path) -> Path:
    return Path(f"{path}.acknowledged")


class Known(NamedTuple):
    """What a record says.  0: nothing."""

    acknowledged: int  # the last revision that was acknowledged
    moved: int  # the file itself, without the write-ahead log, has all up to this revision


class Record:
    """The record of an open store; the words are ``acknowledged``, the same again, and ``moved``.

    A process can be killed between two words, so the smaller of the first two is the one that holds.
    """

    def __init__(self, path: Path) -> None:
        """Raises OSError if the file cannot be had, for example on a full disk."""
        descriptor = open_private(record_of(path), os.O_RDWR | os.O_CREAT)
        try:
            if os.fstat(descriptor).st_size != SIZE:
                # Written, not only made longer: the disk may be too full for it later.
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, bytes(SIZE), 0)
            self._moved = WORD.unpack(os.pread(descriptor, WORD.size, TWO_WORDS.size))[0]
        except BaseException:
            os.close(descriptor)
            raise
        self._file = descriptor

    def acknowledge(self, revision: int) -> None:
        """Call it when the commit of this revision is durable, before any caller or watcher is told of it."""
        with contextlib.suppress(OSError):  # an older number does no harm
            os.pwrite(self._file, TWO_WORDS.pack(revision, revision), 0)

    def moving(self) -> None:
        """Call it before the write-ahead log is moved into the file, which is neither old nor new meanwhile."""
        if self._moved:
            os.pwrite(self._file, WORD.pack(0), TWO_WORDS.size)
            os.fsync(self._file)
            self._moved = 0

    def moved(self, revision: int) -> None:
        """Call it when the file itself has everything up to this revision."""
        self._moved = revision
        with contextlib.suppress(OSError):
            os.pwrite(self._file, WORD.pack(revision), TWO_WORDS.size)

    def close(self) -> None:
        os.fsync(self._file)
        os.close(self._file)


def known(path: Path) -> Known:
    """What the record of a store says, if there is one."""
    try:
        descriptor = open_private(record_of(path), os.O_RDONLY)  # does not wait for a pipe in its place
        with open(descriptor, "rb") as opened:
            words = memoryview(opened.read(SIZE + 1)).cast("Q").tolist()
    except (OSError, TypeError):  # TypeError: it ends within a word
        words = []
    if len(words) != WORDS or min(words[:2]) > HIGHEST_REVISION:
        return Known(0, 0)
    return Known(min(words[:2]), words[2])


class Loss(NamedTuple):
    """Acknowledged writes that a store lacks."""

    path: Path
    found: int  # the last revision that is there
    acknowledged: int  # the last one that is known to have been
    foreign_log: bool = False  # the write-ahead log belongs to a newer file than the one beside it
    unread: int = 0  # commits in the log behind its first damaged page

    def __str__(self) -> str:
        missing = f"revisions {self.found + 1} to {self.acknowledged} were acknowledged and are missing"
        log, file = log_of(self.path).name, self.path.name
        if not self.found:
            return f"{self.path} holds nothing: revisions to {self.acknowledged} were acknowledged and are missing"
        if self.foreign_log:
            return f"{self.path} is older than the write-ahead log beside it: {missing} or do not fit"
        if self.acknowledged <= self.found:
            missing = f"at least {self.unread} commits after revision {self.found} were acknowledged and are missing"
            return f"{self.path} ends too early: {missing}; {log} is damaged before them"
        state = "damaged or cut off" if has_log(self.path) else "gone or empty"
        return f"{self.path} ends too early: {missing}; {log} is {state}, or {file} is an older one"


def lost(path: Path) -> Loss | None:
    """The acknowledged writes that are missing, as far as that can be known.  Changes nothing.

    None also for a file that SQLite cannot read: that is another fault, which others tell.
    """
    before = known(path)  # first, as the store may be in use and go on meanwhile
    logged = has_log(path)
    with contextlib.suppress(sqlite3.Error):
        if before.acknowledged and (before.moved or not logged):
            alone = _alone(path)
            if alone < before.moved and known(path).moved == before.moved:
                return Loss(path, alone, before.acknowledged, foreign_log=logged and alone > 0)
            if not logged and alone < before.acknowledged:
                return Loss(path, alone, before.acknowledged)
        if logged:
            found, unread = _looked_through(path)
            if found < before.acknowledged or unread:
                return Loss(path, found, max(found, before.acknowledged), unread=unread)
    return None


def refuse_loss(path: Path) -> None:
    """Raise StoreError if acknowledged writes are missing."""
    if (loss := lost(path)) is not None:
        raise StoreError(
            f"{loss}; make another data directory from a backup (`seamark restore`), "
            "or go on without them: `seamark fsck --accept-loss`"
        )


def _looked_through(path: Path) -> tuple[int, int]:
    """The last revision, and the number of commits that are in the log and not read."""
    if not _exists(path):
        return 0, 0
    with reading(path) as connection:
        return _last(connection), commits_behind_the_stop(path)


def _alone(path: Path) -> int:
    """The last revision that the file holds without its log."""
    if not _exists(path):
        return 0
    with reading_without_log(path) as connection:
        return _last(connection)


def _exists(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0


def _last(connection: sqlite3.Connection) -> int:
    """The last revision; 0 if it is not a store yet."""
    (there,) = connection.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'log'").fetchone()
    return log.revision(connection) if there else 0
