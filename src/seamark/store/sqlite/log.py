"""The log: every SQL statement about keys and their history.

One table, in the order of the log, holds every version still wanted; one index finds the versions of a key.  What is
current is each key's last version, so nothing is stored twice, and the cost of a write does not depend on how many
keys there are.

Each row names the row it replaces.  Sweeping history therefore walks the log once, from where it last stopped, and
removes what each row replaced; it never searches.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from seamark.store.protocol import Batch, Change, Compacted, Future, Page, Row, prefix_end
from seamark.store.sqlite.group import ABSENT, LogRow, Version, first_row, revision_of

# Where an empty store begins.  Any number above 0 will do (0 means "now" to readers); one beyond ports and counts keeps
# versions from being mistaken for them by people and by tools that compare texts.
FIRST_REVISION = 100_000


def begin(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN")


def commit(connection: sqlite3.Connection) -> None:
    """Make durable what has been done since :func:`begin`, or undo it."""
    try:
        connection.execute("COMMIT")
    except BaseException:
        undo(connection)
        raise


def undo(connection: sqlite3.Connection) -> None:
    if connection.in_transaction:  # SQLite ends it itself after some errors
        connection.execute("ROLLBACK")


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Everything within sees and makes one state; an error undoes it."""
    begin(connection)
    try:
        yield
    except BaseException:
        undo(connection)
        raise
    commit(connection)


# --- writing ---------------------------------------------------------------------------------------


def latest(connection: sqlite3.Connection, key: str) -> Version:
    """The last version of a key."""
    found = connection.execute(
        "SELECT row, created, value FROM log WHERE key = ? ORDER BY row DESC LIMIT 1", (key,)
    ).fetchone()
    return ABSENT if found is None or found[2] is None else Version(*found)


def append(connection: sqlite3.Connection, rows: Sequence[LogRow]) -> None:
    connection.executemany("INSERT INTO log (row, key, value, created, replaces) VALUES (?, ?, ?, ?, ?)", rows)


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
    """Each key's last version before row ``before``, deleted ones left out, and one more than ``limit`` of them."""
    if not end:
        return connection.execute(
            "SELECT row, key, value, created FROM"
            " (SELECT * FROM log WHERE key = ? AND row < ? ORDER BY row DESC LIMIT 1) WHERE value IS NOT NULL",
            (start, before),
        ).fetchall()
    return connection.execute(
        "SELECT row, key, value, created FROM log WHERE key >= ?1 AND key < ?2 AND row < ?3 AND value IS NOT NULL"
        " AND NOT EXISTS (SELECT 1 FROM log AS later WHERE later.key = log.key AND later.row > log.row"
        "  AND later.row < ?3)"
        " ORDER BY key LIMIT ?4",
        (start, end, before, limit + 1 if limit else -1),
    ).fetchall()


def changes(connection: sqlite3.Connection, prefix: str, *, after: int, until: int, limit: int) -> Batch:
    """Changes of revisions ``after < r <= until``: about ``limit`` of them, but whole transactions."""
    with transaction(connection):
        _check_known(connection, after, revision(connection))
        # The batch covers `limit` rows of the log, not of the prefix, so that a step costs the same for any prefix.
        cut = connection.execute(
            "SELECT row FROM log WHERE row >= ? AND row < ? ORDER BY row LIMIT 1 OFFSET ?",
            (first_row(after + 1), first_row(until + 1), limit - 1),
        ).fetchone()
        reached = until if cut is None else revision_of(cut[0])
        found = connection.execute(
            "SELECT log.key, log.value, before.value, log.row >> 16"
            " FROM log NOT INDEXED LEFT JOIN log AS before ON before.row = log.replaces"
            " WHERE log.row >= ? AND log.row < ? AND log.key >= ? AND log.key < ? ORDER BY log.row",
            (first_row(after + 1), first_row(reached + 1), prefix, prefix_end(prefix)),
        ).fetchall()
    return Batch([Change(*columns) for columns in found], reached)


def _check_known(connection: sqlite3.Connection, asked: int, current: int) -> None:
    if asked > current:
        raise Future(asked, current)
    oldest = compacted(connection)
    if asked < oldest:
        raise Compacted(asked, oldest)


# --- forgetting ------------------------------------------------------------------------------------


def forget_before(connection: sqlite3.Connection, oldest: int) -> None:
    """From now on nobody reads history before revision ``oldest``; :func:`sweep` removes it."""
    current = revision(connection)
    if oldest > current:
        raise Future(oldest, current)
    with transaction(connection):
        connection.execute("UPDATE state SET compacted = max(compacted, ?)", (oldest,))


def sweep(connection: sqlite3.Connection, *, limit: int) -> bool:
    """Walk ``limit`` rows of the log and remove what is no longer wanted; says whether there is more to do.

    The last row of all stays even if it is a deletion: it is what remembers the store's revision.
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
    """Give up to ``pages`` free pages back to the file system; says whether more than a quarter is still free."""
    (free,) = connection.execute("PRAGMA freelist_count").fetchone()
    (total,) = connection.execute("PRAGMA page_count").fetchone()
    if free < pages or free * 4 < total:  # some free pages are good: the next writes take them
        return False
    # The statement yields once per page, without columns, which `execute` takes for its end.
    connection.executescript(f"PRAGMA incremental_vacuum({pages})")
    return True
