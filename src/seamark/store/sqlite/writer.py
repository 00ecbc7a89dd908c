"""Group commit: concurrent commits share one durable transaction; a single commit starts without a delay.

There are no timers: the next group gathers while the previous one is being made durable.

A group is decided and appended on the event loop; only the slow part, making it durable, happens in a thread.  Done
entirely in the thread, every statement would have to get the interpreter's lock back (see ``worker``).
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from seamark.store.protocol import Batch, StoreError, Unavailable, Uncertain, Write
from seamark.store.sqlite import log
from seamark.store.sqlite.file import PAGE_SIZE, translate
from seamark.store.sqlite.group import ABSENT, LogRow, Settled, Version, settle
from seamark.store.sqlite.worker import Done, Worker

T = TypeVar("T")

# Limits of a group: they bound how long its first commit waits, and how long the event loop is busy with it.
MAX_TRANSACTIONS = 128
MAX_BYTES = 2 << 20

# Keys whose last version is kept: most are written again soon, and then need not be looked up.
RECENT_KEYS = 512
RECENT_BYTES = 16 << 10  # longer values are not kept

PATIENCE_SECONDS = 30.0


class Commit(NamedTuple):
    """One transaction, and the future that its ``commit`` call waits for."""

    writes: Sequence[Write]
    answer: asyncio.Future[int]


class Group(NamedTuple):
    """Commits that share one durable transaction, and the decision on them."""

    commits: list[Commit]
    settled: Settled

    @property
    def pages(self) -> int:
        """About how many pages it adds to the write-ahead log: an index page per row, and the values."""
        return sum(1 + len(change.value or b"") // PAGE_SIZE for change in self.settled.changes) + 2


class Job(NamedTuple):
    """Other work for the writer's connection, run in its thread between two groups."""

    run: Callable[[sqlite3.Connection], Any]
    result: asyncio.Future[Any]


class Writer:
    """Owns the writing connection: one group or job at a time uses it.

    ``make_durable`` commits a group of the given revision, in the thread; ``publish`` gets each durable group's changes
    and its number of pages before the ``commit`` calls get their answers.  A commit that waits for a disk that has not
    answered for ``PATIENCE_SECONDS`` fails; the disk may still complete it.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        path: Path,
        *,
        revision: int,
        make_durable: Callable[[sqlite3.Connection, int], None],
        publish: Callable[[Batch, int], None],
    ) -> None:
        self._connection = connection
        self._path = path
        self._revision = revision
        self._make_durable = make_durable
        self._publish = publish
        self._recent: dict[str, Version] = {}  # the last versions of keys written lately, the latest last
        self._loop = asyncio.get_running_loop()
        self._commits: deque[Commit] = deque()
        self._jobs: deque[Job] = deque()
        self._busy = False  # whether the thread has the connection
        self._under_way: Sequence[Commit] = ()  # the commits of the group that the thread makes durable
        self._giving_up: asyncio.TimerHandle | None = None  # while the thread has the connection
        self._turn_is_coming = False
        self._idle = asyncio.Event()
        self._worker = Worker("store-writer")

    def commit(self, writes: Sequence[Write]) -> asyncio.Future[int]:
        answer: asyncio.Future[int] = self._loop.create_future()
        self._commits.append(Commit(writes, answer))
        self._take_turn_soon()
        return answer

    async def between_groups(self, run: Callable[[sqlite3.Connection], T]) -> T:
        result: asyncio.Future[T] = self._loop.create_future()
        self._jobs.append(Job(run, result))
        self._take_turn_soon()
        return await result

    async def finish(self) -> None:
        """Finish all commits and jobs, then stop the thread."""
        while self._busy or self._commits or self._jobs:
            self._idle.clear()
            await self._idle.wait()
        await asyncio.to_thread(self._worker.stop)

    # --- one turn: a group, or a job -----------------------------------------------------------------

    def _take_turn_soon(self) -> None:
        # Not at once, so that commits requested later in this turn of the event loop share the group.
        if not self._busy and not self._turn_is_coming:
            self._turn_is_coming = True
            self._loop.call_soon(self._take_turn)

    def _take_turn(self) -> None:
        self._turn_is_coming = False
        if self._jobs:
            job = self._jobs.popleft()
            self._hand_over(partial(job.run, self._connection), partial(self._job_is_done, job), ())
        elif self._commits:
            self._begin_group()
        else:
            self._idle.set()

    def _hand_over(self, task: Callable[[], Any], done: Done, commits: Sequence[Commit]) -> None:
        self._busy, self._under_way = True, commits
        self._giving_up = self._loop.call_later(PATIENCE_SECONDS, self._give_up)
        self._worker.do(task, done)

    def _take_back(self) -> None:
        self._busy, self._under_way = False, ()
        if self._giving_up is not None:
            self._giving_up.cancel()
            self._giving_up = None

    def _give_up(self) -> None:
        """Fail the commits that wait for the disk: those of the group under way may still become durable."""
        waiting, self._commits = list(self._commits), deque()
        said = f"{self._path}: the disk has not answered for {PATIENCE_SECONDS:g} seconds"
        self._fail(self._under_way, Uncertain(said))
        self._fail(waiting, Unavailable(said))
        self._giving_up = self._loop.call_later(PATIENCE_SECONDS, self._give_up)

    def _job_is_done(self, job: Job, result: Any, error: Exception | None) -> None:
        self._take_back()
        if job.result.cancelled():
            pass
        elif error is None:
            job.result.set_result(result)
        else:
            job.result.set_exception(self._translate(error))
        # Commits go first, so that a long chain of jobs does not delay them.
        if self._commits:
            self._begin_group()
        else:
            self._take_turn_soon()

    def _begin_group(self) -> None:
        """Decide the next group; if it changes anything, let the thread make it durable."""
        commits = self._next_commits()
        try:
            log.begin(self._connection)
            settled = settle([commit.writes for commit in commits], revision=self._revision, latest=self._latest)
            log.append(self._connection, settled.rows)
        except Exception as error:
            # An error of SQLite, or a bug of ours: in both cases the waiting commits must fail, not hang.
            self._fail(commits, error)
            self._take_turn_soon()
            log.undo(self._connection)
            return
        group = Group(commits, settled)
        if settled.rows:
            make_durable = partial(self._make_durable, self._connection, settled.revision)
            self._hand_over(make_durable, partial(self._group_is_done, group), commits)
        else:
            log.commit(self._connection)
            self._group_is_done(group, None, None)

    def _latest(self, key: str) -> Version:
        return self._recent.get(key) or log.latest(self._connection, key)

    def _remember(self, rows: Sequence[LogRow]) -> None:
        """Keep these as the last versions of their keys, since they are durable."""
        recent = self._recent
        for row, key, value, created, _ in rows:
            recent.pop(key, None)
            if value is None:
                recent[key] = ABSENT
            elif len(value) <= RECENT_BYTES:
                recent[key] = Version(row, created, value)
        for key in list(islice(recent, max(0, len(recent) - RECENT_KEYS))):
            del recent[key]

    def _next_commits(self) -> list[Commit]:
        taken: list[Commit] = []
        size = 0
        while self._commits and len(taken) < MAX_TRANSACTIONS and size < MAX_BYTES:
            commit = self._commits.popleft()
            taken.append(commit)
            for write in commit.writes:
                size += len(write.value or b"")
        return taken

    def _group_is_done(self, group: Group, _: None, error: Exception | None) -> None:
        self._take_back()
        if error is not None:
            self._fail(group.commits, error)
        else:
            self._revision = group.settled.revision
            self._remember(group.settled.rows)
            # Watches first: when `commit` returns a revision, every watch has that change in its buffer already.
            if group.settled.changes:
                self._publish(Batch(group.settled.changes, self._revision), group.pages)
            for commit, outcome in zip(group.commits, group.settled.outcomes, strict=True):
                if commit.answer.done():
                    continue  # its caller gave up waiting, or was told that the disk does not answer
                if isinstance(outcome, int):
                    commit.answer.set_result(outcome)
                else:
                    commit.answer.set_exception(outcome)
        self._take_turn_soon()

    def _fail(self, commits: Sequence[Commit], error: Exception) -> None:
        for commit in commits:
            if not commit.answer.done():
                # A separate exception for each commit, because each waiting task adds its traceback to it.
                commit.answer.set_exception(self._translate(error))

    def _translate(self, error: Exception) -> StoreError:
        if isinstance(error, Unavailable):
            return type(error)(*error.args)
        if isinstance(error, StoreError):
            return error
        if isinstance(error, sqlite3.Error):
            return translate(error, self._path)
        return StoreError(f"{self._path}: {error!r}")
