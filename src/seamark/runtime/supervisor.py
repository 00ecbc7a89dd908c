"""Keeps the parts of a process running: a part that fails is started again, after a delay that grows with each failure.

A part is a coroutine that runs until it is cancelled.  Before it is started again, its last attempt has ended, and with
it everything that the part had started.  A part that fails does not disturb the others: the process lives, and shows
which part failed and why.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

import msgspec

from seamark.clock import SYSTEM_CLOCK, Clock, doubling
from seamark.errors import ApiError
from seamark.metrics import Registry, Value
from seamark.runtime.workers import Expected

log = logging.getLogger(__name__)

UP = "seamark_part_up"

# What a part does until it is cancelled.  It calls its argument when it has started.
Started = Callable[[], None]
Work = Callable[[Started], Awaitable[None]]

# What is wrong with a part although it runs; None if nothing is.
Check = Callable[[], str | None]


class Backoff(msgspec.Struct, frozen=True):
    """How long a part waits after a failure: twice as long each time, from ``first`` to ``longest`` seconds.

    A part that ran for ``trusted_after`` seconds before it failed waits as after its first failure.
    """

    first: float = 0.5
    longest: float = 30.0
    trusted_after: float = 60.0

    def failures(self, before: int, ran: float) -> int:
        """How many failures in a row there are with this one, if there were so many ``before``."""
        return 1 if ran >= self.trusted_after else before + 1

    def delay(self, failures: int) -> float:
        return doubling(self.first, self.longest, failures - 1)


class Part:
    """One part.  ``settled`` is set once it has started, or has failed for the first time."""

    def __init__(self, name: str, work: Work, check: Check, supervisor: Supervisor, restarts: Value) -> None:
        self.name = name
        self.settled = asyncio.Event()
        self._work = work
        self._check = check
        self._supervisor = supervisor
        self._restarts = restarts
        self._started_at: float | None = None  # None while it does not run
        self._failure = ""  # why it failed, until it has started again
        self._failures = 0
        self._logged = ""

    @property
    def up(self) -> bool:
        return self._started_at is not None

    @property
    def problem(self) -> str | None:
        """Why it does not work; None if it does, or is still starting for the first time."""
        return self._failure or self._check()

    async def run(self) -> None:
        """Run the part until cancelled, and start it again whenever it fails."""
        clock, backoff = self._supervisor.clock, self._supervisor.backoff
        try:
            while True:
                error = await self._attempt()
                ran = 0.0 if self._started_at is None else clock.monotonic() - self._started_at
                self._started_at = None
                self._failures = backoff.failures(self._failures, ran)
                delay = backoff.delay(self._failures)
                self._tell(error, delay)
                self.settled.set()
                await clock.sleep(delay)
                self._restarts.add()
        finally:
            self._supervisor.dismiss(self)

    async def _attempt(self) -> Exception:
        """Run the part once; returns the error that ended it."""
        try:
            await self._work(self._started)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            return RuntimeError("it was cancelled from inside")
        except Exception as error:
            return error
        return RuntimeError("it ended")

    def _started(self) -> None:
        self._started_at = self._supervisor.clock.monotonic()
        if self._failure:
            log.info("%s works again", self.name)
        self._failure = ""
        self.settled.set()

    def _tell(self, error: Exception, delay: float) -> None:
        """Log the failure in one line; an unexpected error also with its traceback, but only once if it repeats."""
        cause = first_cause(error)
        self._failure = reason(error)
        traceback = None if isinstance(cause, ApiError | Expected) or self._logged == self._failure else error
        self._logged = self._failure
        log.error("%s failed: %s; it is started again in %g s", self.name, self._failure, delay, exc_info=traceback)


class Supervisor:
    """The parts of one process that run now."""

    def __init__(self, *, clock: Clock = SYSTEM_CLOCK, metrics: Registry, backoff: Backoff | None = None) -> None:
        self.clock = clock
        self.backoff = backoff or Backoff()
        self.parts: dict[str, Part] = {}
        self._metrics = metrics

    def part(self, name: str, work: Work, check: Check = lambda: None) -> Part:
        """A part to run.  It is listed from now on, in place of an earlier one of this name, until it has stopped."""
        restarts = self._metrics.counter(
            "seamark_part_restarts_total", "Parts started again after a failure.", name, labels=("part",)
        )
        part = self.parts[name] = Part(name, work, check, self, restarts)
        self._metrics.measured(UP, "1 while the part runs.", lambda: float(part.up), name, labels=("part",))
        return part

    def dismiss(self, part: Part) -> None:
        """Remove a part that has stopped for good, unless another one has its name now."""
        if self.parts.get(part.name) is part:
            del self.parts[part.name]
            self._metrics.forget(UP, part.name)

    async def run(self, *parts: Part) -> None:
        """Run these parts until cancelled; then all of them stop at the same time."""
        async with asyncio.TaskGroup() as tasks:
            for part in parts:
                tasks.create_task(part.run(), name=part.name)

    def problems(self) -> dict[str, str | None]:
        """Why each part does not work; None for those that do."""
        return {name: part.problem for name, part in self.parts.items()}


def at_once(work: Callable[[], Awaitable[None]]) -> Work:
    """A part that has started as soon as it runs."""

    async def run(started: Started) -> None:
        started()
        await work()

    return run


def note_name(task: asyncio.Task[None]) -> None:
    """For ``add_done_callback``: add the name of the failed task to its error; of nested tasks, the innermost."""
    if not task.cancelled() and (error := task.exception()) is not None:
        cause = first_cause(error)
        if not hasattr(cause, "__notes__"):
            cause.add_note(task.get_name())


def first_cause(error: BaseException) -> BaseException:
    """The first error inside nested exception groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def reason(error: BaseException) -> str:
    """One line about an error: the task that failed, if its name was noted, and what happened."""
    cause = first_cause(error)
    text = " ".join(str(cause).split())
    if not isinstance(cause, ApiError | Expected):
        text = f"{type(cause).__name__}: {text}" if text else type(cause).__name__
    return ": ".join([*getattr(cause, "__notes__", ()), text])
