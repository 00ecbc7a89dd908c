"""The ``Store`` protocol over one SQLite file.  This code runs on the event loop; threads do the SQLite work."""

from __future__ import annotations

import asyncio
import logging
import shutil
import sqlite3
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from seamark.store import history
from seamark.store.protocol import Batch, Page, StoreError, Unavailable, Write, check_writes
from seamark.store.sqlite import log
from seamark.store.sqlite.feed import Feed
from seamark.store.sqlite.group import MAX_KEYS
from seamark.store.sqlite.opened import OpenedFiles
from seamark.store.sqlite.reader import Reader
from seamark.store.sqlite.writer import MAX_BYTES, Writer

logger = logging.getLogger(__name__)

T = TypeVar("T")

REPLAY_ROWS = 1000
SWEEP_ROWS = 200  # one step takes about two milliseconds between two groups
VACUUM_PAGES = 200
CHECKPOINT_PAGES = 1000  # pages written to the write-ahead log between two checkpoints


class SqliteStore:
    """A store in one file.  With ``path`` None the file is temporary, and closing the store deletes it.

    ``durable=False`` is faster, but a power cut may lose commits (a crash of the process does not).  History is kept
    for ``history_seconds``; None means for ever.
    """

    shared = False

    def __init__(
        self,
        path: str | Path | None,
        *,
        durable: bool = True,
        history_seconds: float | None = 300.0,
        watch_buffer: int = 10_000,
    ) -> None:
        self._asked_path = path
        self._durable = durable and path is not None
        self._window = None if history_seconds is None else history.Window(seconds=history_seconds)
        self._watch_buffer = watch_buffer
        self._opened: OpenedFiles | None = None

    async def open(self) -> None:
        if self._opened is not None:
            raise StoreError("the store is open already")
        self._loop = asyncio.get_running_loop()
        self._read_revision = 0
        self._pages_written = 0  # to the write-ahead log since the last checkpoint
        self._checkpointing = False
        self._background: set[asyncio.Future[None]] = set()
        opened = await asyncio.to_thread(OpenedFiles, self._asked_path, durable=self._durable)
        self._feed = Feed(opened.revision, read_log=self._read_log, buffer=self._watch_buffer)
        self._writer = Writer(
            opened.writing,
            opened.path,
            revision=opened.revision,
            make_durable=opened.make_durable,
            publish=self._publish,
        )
        self._readers = [Reader(connection, opened.path, number) for number, connection in enumerate(opened.reading)]
        self._opened = opened
        if self._window is not None:
            self._spawn(history.keep(self, self._window))

    async def close(self) -> None:
        opened, self._opened = self._opened, None
        if opened is None:
            return
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        await self._writer.finish()
        await asyncio.gather(*(reader.finish() for reader in self._readers))
        await asyncio.to_thread(opened.close)
        self._feed.close()

    # --- writing -----------------------------------------------------------------------------------

    def commit(self, writes: Sequence[Write]) -> asyncio.Future[int]:
        check_writes(writes)
        if len(writes) > MAX_KEYS:
            raise ValueError(f"a transaction has {len(writes)} keys, more than {MAX_KEYS}")
        self._require_open()
        return self._writer.commit(writes)

    async def check(self) -> None:
        opened = self._require_open()
        await asyncio.to_thread(opened.require_in_place)
        await self._between_groups(opened.checkpoint)  # the write-ahead log can start over, which may be all it takes
        if (left := shutil.disk_usage(opened.path).free) < MAX_BYTES:  # a small write can fit where others do not
            raise Unavailable(f"{opened.path}: only {left} bytes are left on the disk")
        await self._between_groups(log.rewrite)

    def _publish(self, batch: Batch, pages: int) -> None:
        self._feed.publish(batch)
        self._count(pages)

    def _count(self, pages: int) -> None:
        """Count pages written to the write-ahead log, and start a checkpoint when one is due."""
        self._pages_written += pages
        if self._opened is not None and not self._checkpointing and self._pages_written >= CHECKPOINT_PAGES:
            self._pages_written = 0
            self._checkpointing = True
            self._spawn(self._checkpoint())

    async def _checkpoint(self) -> None:
        """Move the write-ahead log into the file, mostly without delaying writers.

        SQLite would do this inside an arbitrary commit.  Here a reader's thread moves the bulk in the background, and
        the writer then moves the rest between two groups.  Only that last step lets the write-ahead log start over,
        and it must: while the log grows, each commit is slower, because the file system records a new file length.
        """
        opened = self._require_open()
        try:
            await self._in_reader(opened.begin_checkpoint)
            await self._between_groups(opened.checkpoint)
        except StoreError as error:  # nothing is lost: the data stays in the write-ahead log until the next checkpoint
            logger.warning("the write-ahead log stays as it is for now: %s", error)
        finally:
            self._checkpointing = False

    # --- reading -----------------------------------------------------------------------------------

    async def read(self, start: str, end: str, *, revision: int = 0, limit: int = 0) -> Page:
        page = await self._in_reader(partial(log.read, start=start, end=end, at=revision, limit=limit))
        # A read can see a group that the writer's thread has committed, but the event loop has not processed yet.
        self._read_revision = max(self._read_revision, page.revision)
        return page

    def latest(self) -> int:
        return max(self._feed.revision, self._read_revision)

    async def revision(self) -> int:
        self._require_open()
        return self.latest()

    def watch(self, prefix: str, since: int) -> AsyncIterator[Batch]:
        self._require_open()
        return self._feed.watch(prefix, since)

    async def _read_log(self, prefix: str, after: int, until: int) -> Batch:
        return await self._in_reader(partial(log.changes, prefix=prefix, after=after, until=until, limit=REPLAY_ROWS))

    # --- compacting --------------------------------------------------------------------------------

    async def compact(self, revision: int) -> None:
        await self._between_groups(partial(log.forget_before, oldest=revision))
        while await self._between_groups(partial(log.sweep, limit=SWEEP_ROWS)):
            self._count(SWEEP_ROWS)
        while await self._between_groups(partial(log.release_space, pages=VACUUM_PAGES)):
            self._count(VACUUM_PAGES)
        self._count(CHECKPOINT_PAGES)  # only a checkpoint shrinks the file

    # --- threads -----------------------------------------------------------------------------------

    async def _in_reader(self, run: Callable[[sqlite3.Connection], T]) -> T:
        self._require_open()
        return await min(self._readers, key=lambda reader: reader.outstanding).run(run)

    async def _between_groups(self, run: Callable[[sqlite3.Connection], T]) -> T:
        self._require_open()
        return await self._writer.between_groups(run)

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = self._loop.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    def _require_open(self) -> OpenedFiles:
        if self._opened is None:
            raise Unavailable("the store is not open")
        return self._opened
