"""Moving the write-ahead log into the file, off the writers' path.

SQLite would do it inside some unlucky commit.  Here a connection of its own does it in the background, where it holds
nobody up.  Writers that never pause could keep it from ever reaching the end, so that the write-ahead log would grow
without bound: when it has become large, the writer itself finishes the rest between two groups.
"""

from __future__ import annotations

import sqlite3

EVERY_BYTES = 4 << 20  # of values written
LARGE_PAGES = 16 << 10  # 64 MB


class Checkpoints:
    """Says when to checkpoint; ``due`` after so many bytes, one at a time."""

    def __init__(self) -> None:
        self._written = 0
        self._running = False

    def due(self, written: int) -> bool:
        """Count bytes written; True when a checkpoint should start, which must end with :meth:`ended`."""
        self._written += written
        if self._running or self._written < EVERY_BYTES:
            return False
        self._written = 0
        self._running = True
        return True

    def ended(self) -> None:
        self._running = False


def checkpoint(connection: sqlite3.Connection) -> int:
    """Move as much as can be without waiting for anyone; returns the pages then in the write-ahead log."""
    _, pages, _ = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    return int(pages)
