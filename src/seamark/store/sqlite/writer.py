"""The thread that writes.  Concurrent commits share one durable transaction; a lone one waits for nobody.

There are no timers: while one group is being made durable the next one gathers by itself.
"""

from __future__ import annotations

import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

from seamark.store.protocol import Batch, StoreError, Write
from seamark.store.sqlite import log
from seamark.store.sqlite.file import PAGE_SIZE, translate
from seamark.store.sqlite.group import Settled, settle

MAX_GROUP = 1024  # transactions; bounds how long the first of a group waits for the last


class Request(NamedTuple):
    """One transaction and whom to tell."""

    writes: Sequence[Write]
    answer: Any  # asyncio.Future[int]; opaque to this thread


class Job(NamedTuple):
    """Something else to do on the writer's connection between two groups."""

    run: Callable[[sqlite3.Connection], Any]
    done: Callable[[Any, StoreError | None], None]


class Done(NamedTuple):
    """A group that has been dealt with: what to tell each requester, and the changes that are now durable, if any."""

    answers: list[tuple[Any, int | StoreError]]
    batch: Batch | None
    pages: int  # of the write-ahead log, roughly


class Writer:
    """Owns the writing connection.  ``deliver`` and ``Job.done`` are called from the writer's thread."""

    def __init__(self, connection: sqlite3.Connection, path: Path, *, deliver: Callable[[Done], None]) -> None:
        self._connection = connection
        self._path = path
        self._deliver = deliver
        self._latest = partial(log.latest, connection)
        self._revision = log.revision(connection)
        self._queue: SimpleQueue[list[Request] | Job | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="store-writer", daemon=True)
        self._thread.start()

    @property
    def revision(self) -> int:
        return self._revision

    def submit(self, requests: list[Request]) -> None:
        self._queue.put(requests)

    def between_groups(self, job: Job) -> None:
        self._queue.put(job)

    def finish(self) -> None:
        """Do everything submitted so far, then stop; blocks until then."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        requests: deque[Request] = deque()
        while True:
            item = self._queue.get()
            stop = item is None
            while True:  # gather what has arrived meanwhile
                if isinstance(item, Job):
                    self._work_off(requests)  # what came before the job is done before it
                    self._do(item)
                elif item is not None:
                    requests.extend(item)
                if stop:
                    break
                try:
                    item = self._queue.get_nowait()
                except Empty:
                    break
                stop = item is None
            self._work_off(requests)
            if stop:
                return

    def _work_off(self, requests: deque[Request]) -> None:
        while requests:
            group = [requests.popleft() for _ in range(min(len(requests), MAX_GROUP))]
            self._deliver(self._commit(group))

    def _do(self, job: Job) -> None:
        try:
            result = job.run(self._connection)
        except sqlite3.Error as error:
            job.done(None, translate(error, self._path))
        except StoreError as error:
            job.done(None, error)
        else:
            job.done(result, None)

    def _commit(self, group: list[Request]) -> Done:
        """Decide the group and make it durable; an error of SQLite undoes and fails all of it."""
        try:
            with log.transaction(self._connection):
                settled = settle([request.writes for request in group], revision=self._revision, latest=self._latest)
                log.append(self._connection, settled.rows)
        except sqlite3.Error as error:
            return _failed(group, translate(error, self._path))
        except Exception as error:  # a mistake of ours must not leave writers waiting for ever
            return _failed(group, StoreError(f"{self._path}: {error!r}"))
        self._revision = settled.revision
        answers = [(request.answer, outcome) for request, outcome in zip(group, settled.outcomes, strict=True)]
        return Done(answers, _batch(settled), _pages(settled))


def _failed(group: list[Request], error: StoreError) -> Done:
    # An exception of its own for each: tasks add their traceback to the one they are given.
    return Done([(request.answer, type(error)(*error.args)) for request in group], None, 0)


def _batch(settled: Settled) -> Batch | None:
    return Batch(settled.changes, settled.revision) if settled.changes else None


def _pages(settled: Settled) -> int:
    # Per row a page of the log's index, besides the log's own pages, which rows share.
    return sum(1 + len(change.value or b"") // PAGE_SIZE for change in settled.changes) + 2
