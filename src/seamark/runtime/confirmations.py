"""Objects we have made and whose informer has yet to show them.

What we make counts as there from the moment the server says so.  Should somebody delete it again before the informer
has ever seen it (it may be reconnecting just then), nobody would tell us, and we would believe in it for ever.  So what
is not shown within a while is reported, to be looked at on the server itself.
"""

from __future__ import annotations

from collections.abc import Callable

from seamark.access.clock import Cancellable, Clock

PATIENCE = 30.0


class Confirmations:
    """Awaited sightings; ``overdue`` is called with the key of each that does not come."""

    def __init__(self, clock: Clock, overdue: Callable[[str], None]) -> None:
        self._clock = clock
        self._overdue = overdue
        self._awaited: dict[str, tuple[float, str]] = {}
        self._timer: Cancellable | None = None

    def expect(self, item: str, key: str) -> None:
        """This item of that key has been made and should be shown soon."""
        self._awaited.pop(item, None)  # to the end: the order is that of the deadlines
        self._awaited[item] = (self._clock.now() + PATIENCE, key)
        if self._timer is None:
            self._timer = self._clock.call_later(PATIENCE, self._sweep)

    def settle(self, item: str) -> None:
        """It has been shown, or we have deleted it ourselves."""
        self._awaited.pop(item, None)

    def _sweep(self) -> None:
        self._timer = None
        now = self._clock.now()
        late = [(item, key) for item, (due, key) in self._awaited.items() if due <= now]
        for item, key in late:
            del self._awaited[item]
            self._overdue(key)
        if self._awaited:
            due, _ = next(iter(self._awaited.values()))
            self._timer = self._clock.call_later(max(0.0, due - now), self._sweep)
