"""A store file from outside, while a server may be writing to it: copy it, check it, prepare a copy for new use.

Readers of SQLite's write-ahead log neither block the writer nor see half a transaction, so all of this works on a store
that is in use.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec

from seamark.store.protocol import StoreError
from seamark.store.sqlite import log
from seamark.store.sqlite.acknowledged import Loss, Record, lost
from seamark.store.sqlite.file import APPLICATION_ID, MIGRATIONS, FileLock, prepare, translate
from seamark.store.sqlite.group import POSITION_BITS, first_row
from seamark.store.sqlite.outside import log_of, reading

# A restored store continues this many revisions later.  Clients may know newer revisions than the copy has; none of
# them may be given to another write, or a watch would resume in the middle of another history.
RESTORE_GAP = 1_000_000

MARK = "/seamark/restored"

SHOWN = 20  # faults of one kind


@contextmanager
def _reading(path: Path) -> Iterator[sqlite3.Connection]:
    if not path.is_file():
        raise StoreError(f"there is no store at {path}")
    try:
        with reading(path) as opened:
            (application,) = opened.execute("PRAGMA application_id").fetchone()
            (version,) = opened.execute("PRAGMA user_version").fetchone()
            if application != APPLICATION_ID:
                raise StoreError(f"{path} is not a Seamark store")
            if version > len(MIGRATIONS):
                raise StoreError(f"{path} was written by a newer Seamark (format {version})")
            yield opened
    except sqlite3.Error as error:
        raise translate(error, path) from error


def copy(source: Path, target: Path) -> int:
    """Write the store as it is at one moment to a new file; returns its revision.  OSError: the disk is full."""
    with _reading(source) as read, closing(sqlite3.connect(target, isolation_level=None)) as writing:
        try:
            read.backup(writing)
        except sqlite3.Error as error:
            if error.sqlite_errorcode == sqlite3.SQLITE_FULL:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(target)) from error
            raise
        # One file without a log beside it is easier to keep.
        writing.execute("PRAGMA journal_mode = DELETE")
        return log.revision(writing)


def renew(path: Path, *, acknowledged: int = 0) -> int:
    """Make a copy fit to be served again: all its past is closed, and new revisions begin far from the old ones.

    ``acknowledged`` is a revision that clients may know, if it is later than those of the copy.
    """
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        revision = max(log.revision(connection), acknowledged) + RESTORE_GAP
        before = log.latest(connection, MARK)
        with log.transaction(connection):
            connection.execute(
                "INSERT INTO log (row, key, value, created, replaces) VALUES (?, ?, ?, ?, ?)",
                (first_row(revision), MARK, b"{}", before.created or revision, before.row or None),
            )
            connection.execute("UPDATE state SET compacted = ?", (revision,))
    record = Record(path)
    record.acknowledge(revision)
    record.close()
    return revision


def accept_loss(path: Path) -> Loss | None:
    """Go on without the acknowledged writes that are missing; returns which those are, None if none is.

    A log that belongs to another file is put aside.
    """
    lock = FileLock(path)
    try:
        loss = lost(path)
        if loss is not None:
            if loss.foreign_log:
                log_of(path).rename(f"{log_of(path)}.aside")
                Path(f"{path}-shm").unlink(missing_ok=True)
            prepare(path)
            renew(path, acknowledged=loss.acknowledged)
        return loss
    finally:
        lock.release()


# --- checking --------------------------------------------------------------------------------------


def faults(path: Path) -> Iterator[str]:
    """What is wrong with a store, a sentence each; nothing if it is sound."""
    if (loss := lost(path)) is not None:
        yield str(loss)
        if not loss.found:
            return  # there is nothing else to look at
    with _reading(path) as connection:
        for (line,) in connection.execute(f"PRAGMA integrity_check({SHOWN})"):
            if line != "ok":
                yield f"SQLite: {line}"
                return  # what follows would read the broken pages
        with log.transaction(connection):
            yield from _broken_chains(connection)
            yield from _broken_values(connection)


def _broken_chains(connection: sqlite3.Connection) -> Iterator[str]:
    """Every version of a key names the version before it, unless that one was swept, and its creation."""
    for key, row in connection.execute(
        "WITH versions AS (SELECT row, key, value, created, replaces,"
        "  lag(row) OVER same AS before, lag(value) OVER same AS old, lag(created) OVER same AS since"
        "  FROM log WINDOW same AS (PARTITION BY key ORDER BY row))"
        " SELECT key, row FROM versions WHERE replaces >= row OR created > row >> ?"
        "  OR (old IS NOT NULL AND (replaces IS NOT before OR created IS NOT since))"
        "  OR (old IS NULL AND before IS NOT NULL AND replaces IS NOT NULL)"
        " LIMIT ?",
        (POSITION_BITS, SHOWN),
    ):
        yield f"{key}: its version of revision {row >> POSITION_BITS} does not continue the one before"


class _Metadata(msgspec.Struct):
    name: str
    namespace: str = ""


class _Stored(msgspec.Struct):
    metadata: _Metadata


def _broken_values(connection: sqlite3.Connection) -> Iterator[str]:
    """Every current object is JSON and has the name and namespace of its key."""
    found = 0
    decoder = msgspec.json.Decoder(_Stored)
    for key, value in connection.execute(
        "SELECT key, value FROM log WHERE value IS NOT NULL AND key NOT LIKE '/seamark/%'"
        " AND NOT EXISTS (SELECT 1 FROM log AS later WHERE later.key = log.key AND later.row > log.row)"
    ):
        try:
            meta = decoder.decode(value).metadata
            msgspec.json.decode(value)
            wrong = "" if key.split("/", 3)[3] == "/".join(filter(None, (meta.namespace, meta.name))) else "its name"
        except (msgspec.DecodeError, IndexError) as error:
            wrong = str(error)
        if wrong:
            yield f"{key}: the stored object does not fit its key: {wrong}"
            found += 1
            if found == SHOWN:
                return
