"""The log: every SQL statement about keys and their history.

One table, in the order of the log, holds every version that is current or within the history kept; one index finds the
versions of a key.  The current value of a key is its last version, so nothing is stored twice, and the cost of a write
does not depend on the number of keys.

Each row names the row it replaces.  A sweep of old history therefore walks the log once, from where the last sweep
stopped, and removes the rows that the walked rows replaced; it never searches.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from seamark.store.protocol import Batch, Change, Compacted, Future, Page, Row, prefix_end
from seamark.store.sqlite.group import ABSENT, POSITION_BITS, LogRow, Version, first_row, revision_of

# The revision of an empty store.  Any number above 0 works (0 means "now" to readers); a number larger than ports and
# counts keeps people, and tools that compare texts, from mistaking a resourceVersion for one of those.
FIRST_REVISION = 100_000


def begin(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN")


def commit(connection: sqlite3.Connection) -> None:
    """Make the writes since :func:`begin` durable; undo them if that fails."""
    try:
        connection.execute("COMMIT")
    except BaseException:
        undo(connection)
        raise


def undo(connection: sqlite3.Connection) -> None:
    if connection.in_transaction:  # after some errors SQLite has rolled back already
        connection.execute("ROLLBACK")


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Run the block in one SQLite transaction; an error undoes it."""
    begin(connection)
    try:
        yield
    except BaseException:
        undo(connection)
        raise
    commit(connection)


# --- writing ---------------------------------------------------------------------------------------


def latest(connection: sqlite3.Connection, key: str) -> Version:
    """The last version of a key; ``ABSENT`` if it was deleted or never written."""
    found = connection.execute(
        "SELECT row, created, value FROM log WHERE key = ? ORDER BY row DESC LIMIT 1", (key,)
    ).fetchone()
    return ABSENT if found is None or found[2] is None else Version(*found)


def append(connection: sqlite3.Connection, rows: Sequence[LogRow]) -> None:
    connection.executemany("INSERT INTO log (row, key, value, created, replaces) VALUES (?, ?, ?, ?, ?)", rows)


def rewrite(connection: sqlite3.Connection) -> None:
    """Write what is there already, to find out whether the disk takes writes."""
    with transaction(connection):
        # There and back, because SQLite does not write a page that an update leaves as it was.
        connection.execute("UPDATE state SET swept = swept + 1")
        connection.execute("UPDATE state SET swept = swept - 1")


# --- reading ---------------------------------------------------------------------------------------


def revision(connection: sqlite3.Connection) -> int:
    """The store's revision: that of the last row, which :func:`sweep` always leaves in place."""
    (last,) = connection.execute("SELECT max(row) FROM log").fetchone()
    return FIRST_REVISION if last is None else revision_of(last)


def compacted(connection: sqlite3.Connection) -> int:
    (oldest,) = connection.execute("SELECT compacted FROM state").fetchone()
    return int(oldest)


def read(connection: sqlite3.Connection, start: str, end: str, *, at: int, limit: int) -> Page:
    """``Store.read``; ``at`` 0 is now."""
    with transaction(connection):
        current = revision(connection)
        if at:
            _check_known(connection, at, current)
        found = _versions(connection, start, end, before=first_row((at or current) + 1), limit=limit)
    more = 0 < limit < len(found)
    rows = [Row(key, value, revision_of(row), created) for row, key, value, created in found[: limit or None]]
    return Page(rows, current, more)


def _versions(
    connection: sqlite3.Connection, start: str, end: str, *, before: int, limit: int
) -> list[tuple[int, str, bytes, int]]:
    """Each key's last version before row ``before``, without deleted keys; at most ``limit`` + 1, to know of more."""
    if not end:
        return connection.execute(
            "SELECT row, key, value, created FROM"
            " (SELECT * FROM log WHERE key = ? AND row < ? ORDER BY row DESC LIMIT 1) WHERE value IS NOT NULL",
            (start, before),
        ).fetchall()
    return connection.execute(
        "SELECT row, key, value, created FROM log WHERE key >= ? AND key < ? AND row < ? AND value IS NOT NULL"
        " AND NOT EXISTS (SELECT 1 FROM log AS later WHERE later.key = log.key AND later.row > log.row"
        "  AND later.row < ?)"
        " ORDER BY key LIMIT ?",
        (start, end, before, before, limit + 1 if limit else -1),
    ).fetchall()


def changes(connection: sqlite3.Connection, prefix: str, *, after: int, until: int, limit: int) -> Batch:
    """Changes of the revisions ``after < r <= until``: about ``limit`` of them, in whole transactions."""
    with transaction(connection):
        _check_known(connection, after, revision(connection))
        # `limit` counts rows of the whole log, not only of the prefix, so that a step costs the same for any prefix.
        cut = connection.execute(
            "SELECT row FROM log WHERE row >= ? AND row < ? ORDER BY row LIMIT 1 OFFSET ?",
            (first_row(after + 1), first_row(until + 1), limit - 1),
        ).fetchone()
        reached = until if cut is None else revision_of(cut[0])
        found = connection.execute(
            "SELECT log.key, log.value, before.value, log.row >> ?"
            " FROM log NOT INDEXED LEFT JOIN log AS before ON before.row = log.replaces"
            " WHERE log.row >= ? AND log.row < ? AND log.key >= ? AND log.key < ? ORDER BY log.row",
            (POSITION_BITS, first_row(after + 1), first_row(reached + 1), prefix, prefix_end(prefix)),
        ).fetchall()
    return Batch([Change(*columns) for columns in found], reached)


def _check_known(connection: sqlite3.Connection, asked: int, current: int) -> None:
    if asked > current:
        raise Future(asked, current)
    oldest = compacted(connection)
    if asked < oldest:
        raise Compacted(asked, oldest)


# --- compacting ------------------------------------------------------------------------------------


def forget_before(connection: sqlite3.Connection, oldest: int) -> None:
    """Refuse reads of history before revision ``oldest`` from now on; :func:`sweep` then removes that history."""
    current = revision(connection)
    if oldest > current:
        raise Future(oldest, current)
    with transaction(connection):
        connection.execute("UPDATE state SET compacted = max(compacted, ?)", (oldest,))


def sweep(connection: sqlite3.Connection, *, limit: int) -> bool:
    """Walk ``limit`` rows of the log and remove compacted history; returns whether there is more to walk.

    The last row of the log stays even if it is a deletion, because it holds the store's revision.
    """
    with transaction(connection):
        oldest, swept = connection.execute("SELECT compacted, swept FROM state").fetchone()
        walked = connection.execute(
            "SELECT row, replaces, value IS NULL FROM log"
            " WHERE row > ? AND row < ? AND row < (SELECT max(row) FROM log) ORDER BY row LIMIT ?",
            (swept, first_row(oldest + 1), limit),
        ).fetchall()
        unwanted = [(replaces,) for _, replaces, _ in walked if replaces is not None]
        unwanted += [(row,) for row, _, deleted in walked if deleted]
        if walked:
            connection.executemany("DELETE FROM log WHERE row = ?", unwanted)
            connection.execute("UPDATE state SET swept = ?", (walked[-1][0],))
    return len(walked) == limit


def release_space(connection: sqlite3.Connection, *, pages: int) -> bool:
    """Give up to ``pages`` free pages back to the file system; False if too few are free for that to be worthwhile."""
    (free,) = connection.execute("PRAGMA freelist_count").fetchone()
    (total,) = connection.execute("PRAGMA page_count").fetchone()
    if free < pages or free * 4 < total:  # keep some free pages for the next writes
        return False
    # Not `execute`: the statement yields a row without columns per page, which `execute` takes for its end.
    connection.executescript(f"PRAGMA incremental_vacuum({pages})")
    return True


def checkpoint(connection: sqlite3.Connection) -> bool:
    """Move as much of the write-ahead log into the file as possible without waiting for readers or writers.

    Returns whether that was all of it.
    """
    busy, pages, moved = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    return not busy and pages == moved
