"""Starts of containers that failed, and when each is tried again."""

from __future__ import annotations

import msgspec

from seamark.clock import Clock, doubling

_LONGEST = 300.0  # seconds until the next try


class _Attempt(msgspec.Struct, frozen=True):
    tries: int
    failed: float  # when the last one did
    due: float


_NONE = _Attempt(0, 0.0, 0.0)


class Attempts:
    """Of the containers of one Pod, by name."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last: dict[str, _Attempt] = {}

    def put_off(self, name: str, first: float) -> None:
        """A start failed: the next may be after ``first`` seconds, and later each time."""
        tries, now = self._last.get(name, _NONE).tries + 1, self._clock.time()
        self._last[name] = _Attempt(tries, now, now + doubling(first, _LONGEST, tries - 1))

    def due(self, name: str) -> float:
        """When it may be started; long ago if no start failed."""
        return self._last.get(name, _NONE).due

    def failed(self, name: str) -> float:
        """When its last start failed."""
        return self._last.get(name, _NONE).failed

    def forget(self, name: str) -> None:
        """It was started, or there is a new reason to try."""
        self._last.pop(name, None)
