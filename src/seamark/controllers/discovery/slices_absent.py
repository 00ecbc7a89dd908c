"""Slices that were ours and still exist, but not in our hands: relabelled by somebody, or kept by a finalizer.

Their endpoints are listed there, so making up for them at once could list everything twice.  Kubernetes takes such a
slice for one its informer has yet to show and leaves the Service alone until it comes back, for ever if need be.
"""

from __future__ import annotations

from seamark.access.clock import Clock
from seamark.runtime.loop import Again

Key = str

# For how long an absent slice is waited for: in the end the endpoints must be somewhere.
PATIENCE = 60.0


class AbsentSlices:
    """Which slices of each Service are absent, and since when."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since: dict[Key, dict[str, float]] = {}

    def miss(self, key: Key, name: str) -> None:
        """The slice is not in our hands any more."""
        self._since.setdefault(key, {}).setdefault(name, self._clock.now())

    def found(self, key: Key, name: str) -> bool:
        """The slice came back, or is gone for good; says whether it was missed."""
        missed = self._since.get(key, {})
        known = missed.pop(name, None) is not None
        if known and not missed:
            del self._since[key]
        return known

    def forget(self, key: Key) -> None:
        """Nothing of what there was matters to the Service any more."""
        self._since.pop(key, None)

    def wait(self, key: Key) -> None:
        """Raise :class:`Again` while a slice of the Service is missed."""
        now = self._clock.now()
        missed = {name: since for name, since in self._since.get(key, {}).items() if now - since < PATIENCE}
        if not missed:
            self.forget(key)
            return
        self._since[key] = missed
        raise Again(min(missed.values()) + PATIENCE - now, "a slice was taken out of our hands")
