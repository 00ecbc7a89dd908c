"""State derived from informers: handlers keep it up to date, and what a failed handler spoiled is rebuilt.

A handler that raises leaves its state half changed, and nothing would ever put that right: the event is over.  So the
whole :class:`Following` is built again: every state forgets, then every handler is told every object as if it were
new, which also adds every key again.  Should that fail too, it is tried again, later each time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, TypeVar

from seamark.access.backoff import Backoff
from seamark.access.informer import Handler, Informer
from seamark.clock import SYSTEM_CLOCK, Clock
from seamark.metrics import Registry

log = logging.getLogger(__name__)

T = TypeVar("T")

FIRST_RETRY, LAST_RETRY = 1.0, 300.0

# After this long without a failure, the next one is mended at once again.
TRUSTED_AFTER = 600.0


class Derived:
    """State that is built from informers.  Subclasses name what they watch and how to begin anew."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.watches: list[tuple[Informer[Any], Handler[Any]]] = []
        self.failed: Callable[[Exception], None] | None = None  # once connected: what a handler that raises calls

    def watch(self, informer: Informer[T], handler: Handler[T]) -> Informer[T]:
        """Have ``handler(key, old, new)`` called for every object and every change, once this is connected."""
        self.watches.append((informer, handler))
        if self.failed is not None:
            informer.on_change(handler, self.failed)
        return informer

    def unwatch(self, informer: Informer[Any]) -> None:
        """The informer has been stopped for good."""
        self.watches = [(each, handler) for each, handler in self.watches if each is not informer]

    def reset(self) -> None:
        """Forget what was derived from informers.  What was learned by writing must be kept."""

    def look_around(self) -> None:
        """Everything watched is known, for the first time or again: notice what no handler would."""

    def close(self) -> None:
        """The end: stop following what is not an informer."""


class Following:
    """States that build on each other: they are connected to their informers together, and rebuilt together."""

    def __init__(self, *states: Derived, clock: Clock = SYSTEM_CLOCK, metrics: Registry | None = None) -> None:
        self._states = states
        self._clock = clock
        self._metrics = metrics or Registry()
        self._backoff = Backoff(base=FIRST_RETRY, cap=LAST_RETRY, jitter=0.0)
        self._failed_at = float("-inf")
        self._marked = False
        self._complete = False

    def connect(self) -> None:
        """Call the handlers for everything the informers know, and for every change from now on."""
        for state in self._states:
            state.failed = self._failure_of(state)
            for informer, handler in list(state.watches):
                informer.on_change(handler, state.failed)

    async def synced(self) -> None:
        """Return once every informer that is watched has been listed."""
        for state in self._states:
            for informer, _ in list(state.watches):
                await informer.synced.wait()
        self._complete = True
        for state in self._states:
            state.look_around()

    def close(self) -> None:
        for state in self._states:
            state.close()

    def _failure_of(self, state: Derived) -> Callable[[Exception], None]:
        counter = self._metrics.counter(
            "seamark_handler_failures_total",
            "Changes that a handler failed to take in, after which its state was rebuilt.",
            state.name,
            labels=("name",),
        )

        def failed(error: Exception) -> None:
            counter.add()
            log.error("%s could not take in a change; its state is rebuilt", state.name, exc_info=error)
            self._mark()

        return failed

    def _mark(self) -> None:
        """Rebuild once the event that is being told is over, or later if a rebuild was needed a short while ago."""
        if self._marked:
            return
        self._marked = True
        now = self._clock.monotonic()
        if now - self._failed_at > TRUSTED_AFTER:
            self._backoff.reset()
            delay = 0.0
        else:
            delay = self._backoff.next()
        self._failed_at = now
        self._clock.call_later(delay, self._rebuild)

    def _rebuild(self) -> None:
        self._marked = False
        for state in self._states:
            state.reset()
        for state in self._states:
            assert state.failed is not None  # it is connected, or no handler could have failed
            for informer, handler in list(state.watches):
                informer.replay(handler, state.failed)
        if self._complete:
            for state in self._states:
                state.look_around()
