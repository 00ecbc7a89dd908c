"""State derived from informers: handlers keep it up to date, and it is rebuilt when a handler fails.

A handler that raises leaves its state half changed, and the event does not come again to correct it.  So the whole
:class:`Following` is rebuilt: every state is reset, then every handler is called for every object as if it were new,
which also queues every key again.  If a step of the rebuild fails too, the other steps are taken nevertheless, so that
no state is left empty, and the rebuild is repeated after growing delays.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, TypeVar

from seamark.access.backoff import Backoff
from seamark.access.informer import Handler, Informer
from seamark.clock import SYSTEM_CLOCK, Cancellable, Clock
from seamark.metrics import Registry

log = logging.getLogger(__name__)

T = TypeVar("T")

FIRST_RETRY, LAST_RETRY = 1.0, 300.0

# After this many seconds without a failure, the next failure is followed by a rebuild without delay.
TRUSTED_AFTER = 600.0


class Derived:
    """State that is built from informers.  Subclasses say what they watch and how to reset."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.watches: list[tuple[Informer[Any], Handler[Any]]] = []
        # Set on connecting; called when a handler, ``reset`` or ``look_around`` raises.
        self.failed: Callable[[Exception], None] | None = None

    def watch(self, informer: Informer[T], handler: Handler[T]) -> Informer[T]:
        """Once connected, call ``handler(key, old, new)`` for every object and every change."""
        self.watches.append((informer, handler))
        if self.failed is not None:
            informer.on_change(handler, self.failed)
        return informer

    def unwatch(self, informer: Informer[Any]) -> None:
        """Stop watching an informer that has been stopped for good."""
        self.watches = [(each, handler) for each, handler in self.watches if each is not informer]

    def reset(self) -> None:
        """Forget what was derived from informers.  Keep what only our own writes told: no informer repeats it."""

    def look_around(self) -> None:
        """Called after the first listing and after every rebuild: find work that no handler would notice."""

    def close(self) -> None:
        """Stop following sources other than informers."""


class Following:
    """States that depend on each other, so they are connected to their informers together and rebuilt together."""

    def __init__(self, *states: Derived, clock: Clock = SYSTEM_CLOCK, metrics: Registry | None = None) -> None:
        self._states = states
        self._clock = clock
        self._metrics = metrics or Registry()
        self._backoff = Backoff(base=FIRST_RETRY, cap=LAST_RETRY, jitter=0.0)
        self._failed_at = float("-inf")
        self._rebuilding: Cancellable | None = None  # the timer of the next rebuild
        self._complete = False

    def connect(self) -> None:
        """Call the handlers for everything the informers know, and for every change from now on."""
        for state in self._states:
            state.failed = self._failure_of(state)
            for informer, handler in list(state.watches):
                informer.on_change(handler, state.failed)

    async def synced(self) -> None:
        """Return once every watched informer has listed its objects."""
        for state in self._states:
            for informer, _ in list(state.watches):
                await informer.synced.wait()
        self._complete = True
        self._look_around()

    def close(self) -> None:
        """Disconnect from the informers, which may serve others, and from all other sources."""
        if self._rebuilding is not None:
            self._rebuilding.cancel()
            self._rebuilding = None
        for state in self._states:
            state.close()
            state.failed = None
            for informer, handler in state.watches:
                informer.forget(handler)

    def _failure_of(self, state: Derived) -> Callable[[Exception], None]:
        counter = self._metrics.counter(
            "seamark_handler_failures_total",
            "Failures to take in a change or to rebuild a state, after which it was rebuilt.",
            state.name,
            labels=("name",),
        )

        def failed(error: Exception) -> None:
            counter.add()
            log.error("%s could not bring its state up to date; the state is rebuilt", state.name, exc_info=error)
            self._mark()

        return failed

    def _mark(self) -> None:
        """Schedule a rebuild after the current event, or later if the last failure was a short while ago."""
        if self._rebuilding is not None:
            return
        now = self._clock.monotonic()
        if now - self._failed_at > TRUSTED_AFTER:
            self._backoff.reset()
            delay = 0.0
        else:
            delay = self._backoff.next()
        self._failed_at = now
        self._rebuilding = self._clock.call_later(delay, self._rebuild)

    def _rebuild(self) -> None:
        self._rebuilding = None
        for state in self._states:
            _attempt(state, state.reset)
        for state in self._states:
            assert state.failed is not None  # only connected states are rebuilt
            for informer, handler in list(state.watches):
                informer.replay(handler, state.failed)
        if self._complete:
            self._look_around()

    def _look_around(self) -> None:
        for state in self._states:
            _attempt(state, state.look_around)


def _attempt(state: Derived, step: Callable[[], None]) -> None:
    try:
        step()
    except Exception as error:
        assert state.failed is not None  # these steps are taken only after connecting
        state.failed(error)
