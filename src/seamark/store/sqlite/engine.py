"""The store as the rest of Seamark sees it.  Everything here runs on the event loop; threads do the SQLite work."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import TypeVar

from seamark.store import history
from seamark.store.protocol import Batch, Page, StoreError, Unavailable, Write, check_writes
from seamark.store.sqlite import log
from seamark.store.sqlite.checkpoints import EVERY_PAGES, Checkpoints, checkpoint
from seamark.store.sqlite.feed import Feed
from seamark.store.sqlite.file import FileLock, connect, prepare, translate
from seamark.store.sqlite.group import MAX_KEYS
from seamark.store.sqlite.writer import Done, Job, Request, Writer

T = TypeVar("T")

READERS = 2  # so that a long list does not hold up a short read
REPLAY_ROWS = 1000
SWEEP_ROWS = 200  # a step of about two milliseconds between two groups
VACUUM_PAGES = 200


class SqliteStore:
    """One file.  ``path`` None is a store that is gone when closed.

    ``durable=False`` gives up surviving a power cut (not a crash of the process) for speed.  History is kept for
    ``history_seconds``, and never more than ``history_revisions`` of it; None means for ever.
    """

    shared = False

    def __init__(
        self,
        path: str | Path | None,
        *,
        durable: bool = True,
        history_seconds: float | None = 300.0,
        history_revisions: int | None = None,
        watch_buffer: int = 10_000,
    ) -> None:
        self._asked_path = path
        self._durable = durable and path is not None
        self._window = history.Window(seconds=history_seconds, revisions=history_revisions)
        self._keeps_all = history_seconds is None and history_revisions is None
        self._watch_buffer = watch_buffer
        self._opened: _Opened | None = None

    async def open(self) -> None:
        if self._opened is not None:
            raise StoreError("the store is open already")
        self._loop = asyncio.get_running_loop()
        self._arrivals: list[Request] = []
        self._read_revision = 0
        self._checkpoints = Checkpoints()
        self._background: set[asyncio.Future[None]] = set()
        opened = await asyncio.to_thread(_Opened, self._asked_path, durable=self._durable, deliver=self._hand_back)
        self._feed = Feed(opened.writer.revision, read_log=self._read_log, buffer=self._watch_buffer)
        self._opened = opened
        if not self._keeps_all:
            self._spawn(history.keep(self, self._window))

    async def close(self) -> None:
        opened, self._opened = self._opened, None
        if opened is None:
            return
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        self._hand_over(opened)
        await asyncio.to_thread(opened.close)
        # The writer's last answers were put on the loop before it ended, so they have run by now.
        self._feed.close()

    # --- writing -----------------------------------------------------------------------------------

    async def commit(self, writes: Sequence[Write]) -> int:
        check_writes(writes)
        if len(writes) > MAX_KEYS:
            raise ValueError(f"a transaction has {len(writes)} keys, more than {MAX_KEYS}")
        opened = self._require_open()
        answer: asyncio.Future[int] = self._loop.create_future()
        # What one turn of the loop brings goes over in one piece, so that it shares one group.
        if not self._arrivals:
            self._loop.call_soon(self._hand_over, opened)
        self._arrivals.append(Request(writes, answer))
        return await answer

    def _hand_over(self, opened: _Opened) -> None:
        if self._arrivals:
            opened.writer.submit(self._arrivals)
            self._arrivals = []

    def _hand_back(self, done: Done) -> None:
        """Called in the writer's thread, once per group."""
        self._loop.call_soon_threadsafe(self._settle, done)

    def _settle(self, done: Done) -> None:
        # The watches first: when the writer learns its revision, whoever follows the log has the change already.
        if done.batch is not None:
            self._feed.publish(done.batch)
        for answer, outcome in done.answers:
            if answer.cancelled():
                continue
            if isinstance(outcome, int):
                answer.set_result(outcome)
            else:
                answer.set_exception(outcome)
        self._count(done.pages)

    def _count(self, pages: int) -> None:
        if self._opened is not None and self._checkpoints.due(pages):
            self._spawn(self._checkpoint())

    async def _checkpoint(self) -> None:
        try:
            await self._in_reader(checkpoint)
            await self._between_groups(checkpoint)
        except Unavailable:
            pass  # nothing is lost: the write-ahead log keeps it, and the next checkpoint or start moves it
        finally:
            self._checkpoints.ended()

    # --- reading -----------------------------------------------------------------------------------

    async def read(self, start: str, end: str, *, revision: int = 0, limit: int = 0) -> Page:
        page = await self._in_reader(partial(log.read, start=start, end=end, at=revision, limit=limit))
        # A read can see a group the writer has made durable but the loop has not heard of yet.
        self._read_revision = max(self._read_revision, page.revision)
        return page

    async def revision(self) -> int:
        self._require_open()
        return max(self._feed.revision, self._read_revision)

    def watch(self, prefix: str, since: int) -> AsyncIterator[Batch]:
        self._require_open()
        return self._feed.watch(prefix, since)

    async def _read_log(self, prefix: str, after: int, until: int) -> Batch:
        return await self._in_reader(partial(log.changes, prefix=prefix, after=after, until=until, limit=REPLAY_ROWS))

    # --- forgetting --------------------------------------------------------------------------------

    async def compact(self, revision: int) -> None:
        await self._between_groups(partial(log.forget_before, oldest=revision))
        while await self._between_groups(partial(log.sweep, limit=SWEEP_ROWS)):
            self._count(SWEEP_ROWS)
        while await self._between_groups(partial(log.release_space, pages=VACUUM_PAGES)):
            self._count(VACUUM_PAGES)
        self._count(EVERY_PAGES)  # the file shrinks when the write-ahead log moves into it

    # --- threads -----------------------------------------------------------------------------------

    async def _in_reader(self, run: Callable[[sqlite3.Connection], T]) -> T:
        opened = self._require_open()
        return await self._loop.run_in_executor(opened.executor, opened.with_reader, run)

    async def _between_groups(self, run: Callable[[sqlite3.Connection], T]) -> T:
        result: asyncio.Future[T] = self._loop.create_future()

        def tell(value: T, error: StoreError | None) -> None:
            if result.cancelled():
                return
            if error is None:
                result.set_result(value)
            else:
                result.set_exception(error)

        def done(value: T, error: StoreError | None) -> None:
            self._loop.call_soon_threadsafe(tell, value, error)

        self._require_open().writer.between_groups(Job(run, done))
        return await result

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = self._loop.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    def _require_open(self) -> _Opened:
        if self._opened is None:
            raise Unavailable("the store is not open")
        return self._opened


class _Opened:
    """What an open store holds: the file's lock, the writer, the readers.  Built and closed off the event loop."""

    def __init__(self, path: str | Path | None, *, durable: bool, deliver: Callable[[Done], None]) -> None:
        self._temporary = tempfile.mkdtemp(prefix="seamark-") if path is None else None
        self.path = Path(self._temporary or "", "store.db") if path is None else Path(path)
        self._lock = FileLock(self.path)
        self._connections: list[sqlite3.Connection] = []
        try:
            prepare(self.path)
            self._readers: SimpleQueue[sqlite3.Connection] = SimpleQueue()
            for _ in range(READERS):
                self._readers.put(self._connect(durable))
            self.writer = Writer(self._connect(durable), self.path, deliver=deliver)
        except sqlite3.Error as error:
            self._let_go()
            raise translate(error, self.path) from error
        except StoreError:
            self._let_go()
            raise
        self.executor = ThreadPoolExecutor(READERS, thread_name_prefix="store-reader")

    def with_reader(self, run: Callable[[sqlite3.Connection], T]) -> T:
        connection = self._readers.get()
        try:
            return run(connection)
        except sqlite3.Error as error:
            raise translate(error, self.path) from error
        finally:
            self._readers.put(connection)

    def close(self) -> None:
        self.writer.finish()
        self.executor.shutdown()
        self._let_go()

    def _connect(self, durable: bool) -> sqlite3.Connection:
        connection = connect(self.path, durable=durable)
        self._connections.append(connection)
        return connection

    def _let_go(self) -> None:
        for connection in self._connections:
            connection.close()
        self._lock.release()
        if self._temporary is not None:
            shutil.rmtree(self._temporary)
