"""Moving the write-ahead log into the file, mostly off the writers' path.

SQLite would do it inside some unlucky commit.  Here a connection of its own does the bulk in the background, where it
holds nobody up, and then the writer does the little that came in meanwhile, between two groups.  Only that last step
lets the write-ahead log start over, and it must: a log that keeps growing makes every commit slower, since the file
system has to record its new length each time.
"""

from __future__ import annotations

import sqlite3

EVERY_PAGES = 1000


class Checkpoints:
    """Says when to checkpoint; ``due`` after so many pages, one at a time."""

    def __init__(self) -> None:
        self._written = 0
        self._running = False

    def due(self, written: int) -> bool:
        """Count pages written; True when a checkpoint should start, which must end with :meth:`ended`."""
        self._written += written
        if self._running or self._written < EVERY_PAGES:
            return False
        self._written = 0
        self._running = True
        return True

    def ended(self) -> None:
        self._running = False


def checkpoint(connection: sqlite3.Connection) -> None:
    """Move as much as can be without waiting for anyone."""
    connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
