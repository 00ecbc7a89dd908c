"""The file: its lock, its format, and the migrations from older formats.

A file is only written to after two checks: it is a Seamark store, and its format is not newer than this code.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path

from seamark.private_files import open_private
from seamark.store.protocol import StoreError, Unavailable, Uncertain

APPLICATION_ID = 0x5EA3A4C0  # marks a Seamark store in the file's header; `file` and sqlite3 show it

# A file's format number is the number of migrations applied to it.  Never edit a released migration; add another one.
MIGRATIONS: Sequence[str] = (
    """
    CREATE TABLE log (
      row INTEGER PRIMARY KEY,   -- revision * 65536 + position in the transaction
      key TEXT NOT NULL,
      value BLOB,                -- NULL: deleted
      created INTEGER NOT NULL,  -- revision of the key's creation
      replaces INTEGER           -- the key's row before; NULL: it was absent
    );
    CREATE INDEX log_by_key ON log (key);
    -- History before revision `compacted` may not be read; rows before `swept` have had their past removed.
    CREATE TABLE state (compacted INTEGER NOT NULL, swept INTEGER NOT NULL);
    INSERT INTO state VALUES (0, 0);
    """,
)

PAGE_SIZE = 8192  # measured: a tenth cheaper than 4096 for objects of a kilobyte, and larger ones need fewer pages
# Pages that a connection keeps, in kilobytes: the writer needs those of the index again and again, a reader none.  The
# operating system has the file in memory anyway.  With 150,000 keys a write costs the same with 4, 8 and 16 MB; a large
# cache is full only after an hour of changes, and looks like a leak until then.
WRITER_CACHE, READER_CACHE = 4 << 10, 1 << 10

# Errors that may pass: the disk cannot take the write now.  All others mean that something is wrong with the file.
PASSING_CODES = {
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_NOMEM,
}
# The write is in the file, but the disk did not confirm it: after a crash it may be there or not.
UNCERTAIN_CODES = {sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_DIR_FSYNC}
PRIMARY_CODE = 0xFF  # SQLite's extended codes keep the primary one in the low byte
RESCUE = (
    "move it and the files beside it away and start anew,"
    " or make another data directory from a backup (`seamark restore`)"
)


def translate(error: sqlite3.Error, path: Path) -> StoreError:
    """The store error for a SQLite error."""
    code = getattr(error, "sqlite_errorcode", 0)
    if code in UNCERTAIN_CODES:
        return Uncertain(f"{path}: {error}")
    kind = Unavailable if code & PRIMARY_CODE in PASSING_CODES else StoreError
    return kind(f"{path}: {error}")


class FileLock:
    """Holds a lock on ``<path>.lock`` while the store is open; the kernel releases it if the process dies.

    It is a separate file, because closing any descriptor of the database file would drop SQLite's own locks on it.
    """

    def __init__(self, path: Path) -> None:
        self._path = Path(f"{path}.lock")
        try:
            self._descriptor = open_private(self._path, os.O_RDWR | os.O_CREAT)
        except OSError as error:
            raise StoreError(f"cannot open the store {path}: {error.strerror}") from error
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.read(self._descriptor, 32).decode(errors="replace").strip()
            os.close(self._descriptor)
            raise StoreError(f"the store {path} is in use by process {holder or 'unknown'}") from error
        with contextlib.suppress(OSError):  # the number only helps people; a full disk does not keep us from reading
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        os.close(self._descriptor)


def connect(path: Path, *, durable: bool, cache: int) -> sqlite3.Connection:
    """A new connection to a file that :func:`prepare` has checked.

    It does not wait for SQLite's locks: the store's own connections never conflict, and if a person holds a lock with
    the sqlite3 shell, a write fails at once instead of blocking the event loop.
    """
    connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False, cached_statements=64)
    connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'OFF'}")
    connection.execute("PRAGMA fullfsync = ON")  # macOS: fsync alone does not reach the medium there
    connection.execute("PRAGMA wal_autocheckpoint = 0")  # the engine runs checkpoints itself
    connection.execute(f"PRAGMA journal_size_limit = {64 << 20}")
    connection.execute(f"PRAGMA cache_size = {-cache}")
    connection.execute("PRAGMA secure_delete = OFF")  # overwriting freed pages with zeros would double their cost
    return connection


def prepare(path: Path, *, durable: bool = True, migrations: Sequence[str] = MIGRATIONS) -> None:
    """Create the store if the file is new, else check and migrate its format."""
    if path.is_dir():
        raise StoreError(f"cannot open the store {path}: it is a directory")
    _keep_private(path)
    try:
        connection = sqlite3.connect(path, isolation_level=None)
        try:
            connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'OFF'}")
            _migrate(connection, path, migrations)
        finally:
            connection.close()
    except sqlite3.Error as error:
        code = error.sqlite_errorcode & PRIMARY_CODE
        if code == sqlite3.SQLITE_NOTADB:
            raise StoreError(f"{path} is not a Seamark store, or damaged beyond reading; {RESCUE}") from error
        remedy = f"; `seamark fsck` says what is damaged; {RESCUE}" if code == sqlite3.SQLITE_CORRUPT else ""
        raise StoreError(f"cannot open the store {path}: {error}{remedy}") from error


def _keep_private(path: Path) -> None:
    """Create the file for its owner only, before SQLite does; SQLite gives its other files the mode of this one."""
    try:
        os.close(open_private(path, os.O_RDWR | os.O_CREAT))
        for suffix in ("-wal", "-shm", "-journal"):
            with contextlib.suppress(FileNotFoundError):
                os.close(open_private(Path(f"{path}{suffix}"), os.O_RDWR))
    except OSError as error:
        raise StoreError(f"cannot open the store {path}: {error.strerror}") from error


def _migrate(connection: sqlite3.Connection, path: Path, migrations: Sequence[str]) -> None:
    version = _format(connection, path)
    if version > len(migrations):
        raise StoreError(
            f"{path} was written by a newer Seamark: it has format {version}, this one knows up to {len(migrations)}"
        )
    if version == 0:
        # Both can only be set before the first page is written.
        connection.execute(f"PRAGMA page_size = {PAGE_SIZE}")
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    connection.execute("PRAGMA journal_mode = WAL")
    for number, migration in enumerate(migrations[version:], start=version + 1):
        # executescript commits any open transaction first, so the script contains its own.
        connection.executescript(
            f"BEGIN IMMEDIATE; {migration};"
            f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {number}; COMMIT"
        )


def _format(connection: sqlite3.Connection, path: Path) -> int:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (objects,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if application == APPLICATION_ID and version >= 1:
        return int(version)
    if application == 0 and version == 0 and objects == 0:
        return 0  # a new file, or a first start that crashed before its first migration
    raise StoreError(f"{path} is a SQLite database, but not a Seamark store")
