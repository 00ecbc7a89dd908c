"""Reads a store from outside: while a server may be writing to it, and where this process may only read.

Even a reader of SQLite's write-ahead log writes: it needs an index of the log beside the file (``-shm``).  Where it
cannot make one, it reads the file alone if there is no log, and otherwise a copy of both.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from seamark.store.protocol import StoreError
from seamark.store.sqlite.file import PRIMARY_CODE
from seamark.temporary import TemporaryFolder

WITHOUT_LOG = "immutable=1"
CANNOT_WRITE = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)


def log_of(path: Path) -> Path:
    """SQLite's write-ahead log."""
    return Path(f"{path}-wal")


def has_log(path: Path) -> bool:
    return _stamp(log_of(path))[0] > 0


@contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that only reads.  Raises sqlite3.Error for what is no database, StoreError if it may not be read."""
    try:
        with path.open("rb"):
            pass
        opened = _connection(path)
        if opened is None:
            with _reading_only(path) as opened:
                yield opened
        else:
            with closing(opened):
                yield opened
    except OSError as error:
        raise StoreError(f"cannot read {error.filename or path}: {error.strerror}") from error


@contextmanager
def reading_without_log(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection to the file as it is without its log.  If a server is writing, it may find pages of two moments."""
    with closing(_connect(path, WITHOUT_LOG)) as connection:
        yield connection


@contextmanager
def _reading_only(path: Path) -> Iterator[sqlite3.Connection]:
    before = _stamps(path)
    if not has_log(path):
        with reading_without_log(path) as connection:
            yield connection
        _refuse_changes(path, before)
        return
    with TemporaryFolder() as folder:
        copy = folder.path / "store.db"
        for source, target in ((path, copy), (log_of(path), log_of(copy))):
            shutil.copyfile(source, target)
        _refuse_changes(path, before)
        with closing(_connect(copy, "mode=ro")) as connection:
            yield connection


def _connection(path: Path) -> sqlite3.Connection | None:
    """None where the index of the log cannot be made."""
    connection = _connect(path, "mode=ro")
    try:
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    except sqlite3.Error as error:
        connection.close()
        if error.sqlite_errorcode & PRIMARY_CODE in CANNOT_WRITE:
            return None
        raise
    return connection


def _connect(path: Path, how: str) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?{how}", uri=True, isolation_level=None)


def _refuse_changes(path: Path, before: list[tuple[int, ...]]) -> None:
    if _stamps(path) != before:
        raise StoreError(f"{path} was written to while it was read; try again")


def _stamps(path: Path) -> list[tuple[int, ...]]:
    return [_stamp(each) for each in (path, log_of(path))]


def _stamp(path: Path) -> tuple[int, ...]:
    try:
        found = path.stat()
    except FileNotFoundError:
        return (0,)
    return (found.st_size, found.st_mtime_ns, found.st_ino)
