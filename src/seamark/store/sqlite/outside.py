"""Reads a store from outside: while a server may be writing to it, and where this process may only read.

Even a reader of SQLite's write-ahead log writes: it needs an index of the log beside the file (``-shm``).  Where it
cannot make one, be it for want of room on the disk, it reads the file alone if there is no log, and otherwise a copy.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from seamark.store.protocol import StoreError
from seamark.store.sqlite.file import PRIMARY_CODE
from seamark.temporary import TemporaryFolder

WITHOUT_LOG = "immutable=1"
CANNOT_WRITE = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)
CANNOT_INDEX = (sqlite3.SQLITE_IOERR_SHMOPEN, sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_SHMMAP)


def log_of(path: Path) -> Path:
    """SQLite's write-ahead log."""
    return Path(f"{path}-wal")


def journal_of(path: Path) -> Path:
    """What SQLite has to undo in a file without such a log, if its writer was killed."""
    return Path(f"{path}-journal")


def has_log(path: Path) -> bool:
    return _stamp(log_of(path))[0] > 0


@contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that only reads.  Raises sqlite3.Error for what is no database, StoreError if it may not be read."""
    with ExitStack() as stack:
        before = None
        try:
            path.open("rb").close()
            opened = _connection(path)
            if opened is None and not has_log(path) and not journal_of(path).exists():
                before = _stamps(path)
                opened = _connect(path, WITHOUT_LOG)
            elif opened is None:
                opened = _connect(_copied(path, stack.enter_context(TemporaryFolder()).path), "mode=rw")
        except OSError as error:
            raise StoreError(f"cannot read {error.filename or path}: {error.strerror}") from error
        with closing(opened):
            yield opened
        if before is not None:
            _refuse_changes(path, before)


@contextmanager
def reading_without_log(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection to the file as it is without its log.  If a server is writing, it may find pages of two moments."""
    with closing(_connect(path, WITHOUT_LOG)) as connection:
        yield connection


def _copied(path: Path, folder: Path) -> Path:
    """A copy of the file, and of its log, that can be written to."""
    before = _stamps(path)
    copy = folder / "store.db"
    for source, target in zip(_files(path), _files(copy), strict=True):
        if source.exists():
            shutil.copyfile(source, target)
    _refuse_changes(path, before)
    return copy


def _connection(path: Path) -> sqlite3.Connection | None:
    """None where the index of the log cannot be made."""
    connection = _connect(path, "mode=ro")
    try:
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    except sqlite3.Error as error:
        connection.close()
        code = error.sqlite_errorcode
        if code & PRIMARY_CODE in CANNOT_WRITE or code in CANNOT_INDEX:
            return None
        raise
    return connection


def _connect(path: Path, how: str) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?{how}", uri=True, isolation_level=None)


def _refuse_changes(path: Path, before: list[tuple[int, ...]]) -> None:
    if _stamps(path) != before:
        raise StoreError(f"{path} was written to while it was read; try again")


def _stamps(path: Path) -> list[tuple[int, ...]]:
    return [_stamp(each) for each in _files(path)]


def _files(path: Path) -> list[Path]:
    return [path, log_of(path), journal_of(path)]


def _stamp(path: Path) -> tuple[int, ...]:
    try:
        found = path.stat()
    except FileNotFoundError:
        return (0,)
    return (found.st_size, found.st_mtime_ns, found.st_ino)
