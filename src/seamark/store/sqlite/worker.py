"""A thread that does SQLite's slow work for an event loop, and gets the interpreter's lock also from a busy loop.

A Python thread needs the interpreter's lock to report that it has finished.  A busy event loop releases the lock only
for moments that are shorter than a sleeping thread takes to wake up, so the thread can lose every race for it: measured
with a busy loop, it waited for seconds, whatever ``sys.setswitchinterval`` says.  So when work has been outstanding for
some time, the event loop blocks for a fraction of a millisecond and lets the thread through.  With an idle loop, the
thread finishes before that.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

# Called on the event loop with the result, or with the exception.
Done = Callable[[Any, Exception | None], None]

FIRST_LET_IN_SECONDS = 0.001
LONGEST_PAUSE_SECONDS = 0.016  # between two standstills, for work that takes long
STANDSTILL_SECONDS = 0.0003


class _Outcome(NamedTuple):
    result: Any
    error: Exception | None


class Worker:
    """Runs one task after the other in its own thread.  Belongs to the event loop it was created on."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.get_running_loop()
        self._tasks: SimpleQueue[Callable[[], Any] | None] = SimpleQueue()
        self._outcomes: SimpleQueue[_Outcome] = SimpleQueue()
        self._waiting: deque[Done] = deque()
        self._let_in: asyncio.TimerHandle | None = None
        self._pause = FIRST_LET_IN_SECONDS
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    @property
    def outstanding(self) -> int:
        return len(self._waiting)

    def do(self, task: Callable[[], Any], done: Done) -> None:
        self._waiting.append(done)
        self._tasks.put(task)
        if self._let_in is None:
            self._let_in = self._loop.call_later(self._pause, self._stand_still)

    def stop(self) -> None:
        """Finish the outstanding tasks and end the thread.  Blocks: do not call it on the event loop."""
        self._tasks.put(None)
        self._thread.join()

    # --- in the thread -------------------------------------------------------------------------------

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            try:
                outcome = _Outcome(task(), None)
            except Exception as error:
                outcome = _Outcome(None, error)
            self._outcomes.put(outcome)
            self._loop.call_soon_threadsafe(self._collect)

    # --- on the event loop ---------------------------------------------------------------------------

    def _collect(self) -> None:
        try:
            outcome = self._outcomes.get_nowait()
        except Empty:
            return  # _stand_still has taken it already
        self._tell(outcome)

    def _stand_still(self) -> None:
        self._let_in = None
        try:
            outcome = self._outcomes.get(timeout=STANDSTILL_SECONDS)
        except Empty:
            self._pause = min(self._pause * 2, LONGEST_PAUSE_SECONDS)
            self._let_in = self._loop.call_later(self._pause, self._stand_still)
        else:
            self._tell(outcome)

    def _tell(self, outcome: _Outcome) -> None:
        self._pause = FIRST_LET_IN_SECONDS
        if self._let_in is not None:
            self._let_in.cancel()
            self._let_in = None
        done = self._waiting.popleft()
        if self._waiting:
            self._let_in = self._loop.call_later(self._pause, self._stand_still)
        done(outcome.result, outcome.error)
