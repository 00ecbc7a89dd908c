"""The files of an open store: the lock, the record of what was acknowledged, and the connections to the database.

All of it blocks: call it in a thread.
"""

from __future__ import annotations

import errno
import logging
import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path

from seamark.store.protocol import StoreError, Unavailable
from seamark.store.sqlite import log
from seamark.store.sqlite.acknowledged import Record, refuse_loss
from seamark.store.sqlite.file import READER_CACHE, WRITER_CACHE, FileLock, connect, prepare, translate
from seamark.store.sqlite.outside import log_of
from seamark.temporary import TemporaryFolder

logger = logging.getLogger(__name__)

READERS = 2  # so that a long list does not hold up a short read
LOOK_SECONDS = 1.0  # between two looks, while there are writes, whether the files are still in their places


class OpenedFiles:
    """An open store.  With ``path`` None it is temporary, and :meth:`close` deletes it."""

    def __init__(self, path: str | Path | None, *, durable: bool) -> None:
        self._temporary = _temporary_folder() if path is None else None
        self.path = Path(path or "") if self._temporary is None else self._temporary.path / "store.db"
        self._lock = FileLock(self.path)
        self._connections: list[sqlite3.Connection] = []
        self._record: Record | None = None
        self._places: dict[Path, os.stat_result] = {}
        self._looked = time.monotonic()
        try:
            refuse_loss(self.path)
            if durable:
                self._record = self._recorded()
            prepare(self.path, durable=durable)
            self.writing = self._connect(durable, WRITER_CACHE)
            self.revision = log.revision(self.writing)
            if self._record is not None:
                self._record.acknowledge(self.revision)
            self.reading = [self._connect(durable, READER_CACHE) for _ in range(READERS)]
            if self._temporary is None:
                self._places = {each: each.stat() for each in (self.path, log_of(self.path))}
        except (OSError, sqlite3.Error, StoreError) as error:
            self.close()
            if isinstance(error, sqlite3.Error):
                raise translate(error, self.path) from error
            if isinstance(error, OSError):
                raise StoreError(f"cannot open the store {self.path}: {error.strerror}") from error
            raise

    def _recorded(self) -> Record | None:
        try:
            record = Record(self.path)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                return None  # a full disk does not keep us from reading; the next start makes a record
            raise
        record.moving()  # whatever the log holds now, `prepare` moves into the file
        return record

    def _connect(self, durable: bool, cache: int) -> sqlite3.Connection:
        connection = connect(self.path, durable=durable, cache=cache)
        self._connections.append(connection)
        return connection

    def close(self) -> None:
        copy = self._copy_of_what_was_removed()
        if self._record is not None:
            self._record.moving()  # the last connection to close moves the log into the file
        for connection in self._connections:
            connection.close()
        if copy is not None:
            for rest in ("-wal", "-shm"):  # of the file that was removed; the copy has all of it
                Path(f"{self.path}{rest}").unlink(missing_ok=True)
            copy.rename(self.path)
            logger.warning("%s was removed while it was in use, and is written again", self.path)
        if self._record is not None:
            self._record.close()
        self._lock.release()
        if self._temporary is not None:
            self._temporary.remove()

    # --- writing -----------------------------------------------------------------------------------

    def make_durable(self, connection: sqlite3.Connection, revision: int) -> None:
        """Commit, and write down that this revision is there to stay."""
        if (now := time.monotonic()) - self._looked > LOOK_SECONDS:
            try:
                self.require_in_place()
            except Unavailable:
                log.undo(connection)
                raise
            self._looked = now
        log.commit(connection)
        if self._record is not None:
            self._record.acknowledge(revision)

    def begin_checkpoint(self, connection: sqlite3.Connection) -> bool:
        """Move what can be moved of the write-ahead log into the file; returns whether that was all."""
        if self._record is not None:
            self._record.moving()
        return log.checkpoint(connection)

    def checkpoint(self, connection: sqlite3.Connection) -> None:
        """The same, to the end: on the writer's connection, between two groups."""
        if self.begin_checkpoint(connection) and self._record is not None:
            self._record.moved(log.revision(connection))

    # --- files that others remove ------------------------------------------------------------------

    def require_in_place(self) -> None:
        """Raise Unavailable if the file or its log was removed: what is written then ends with this process."""
        for place, ours in self._places.items():
            if not _is(place, ours):
                raise Unavailable(
                    f"{place} was removed or replaced while it is in use, so nothing more is written to it;"
                    " stop Seamark in good order (not by kill -9), which keeps all it has, and start it again"
                )

    def _copy_of_what_was_removed(self) -> Path | None:
        """The store in a new file, if its own was removed and no other has taken its name."""
        if self.path not in self._places or self.path.exists():
            return None
        made = Path(f"{self.path}.again")
        try:
            made.unlink(missing_ok=True)
            with closing(sqlite3.connect(made, isolation_level=None)) as writing:
                made.chmod(0o600)
                self.writing.backup(writing)
                writing.execute("PRAGMA journal_mode = DELETE")
        except (OSError, sqlite3.Error) as error:
            logger.error("%s was removed while it was in use, and cannot be written again: %s", self.path, error)
            return None
        return made


def _temporary_folder() -> TemporaryFolder:
    try:
        return TemporaryFolder()
    except OSError as error:
        raise StoreError(f"cannot make a directory for an ephemeral store: {error.strerror}; see TMPDIR") from error


def _is(place: Path, ours: os.stat_result) -> bool:
    try:
        return os.path.samestat(place.stat(), ours)
    except OSError:
        return False
