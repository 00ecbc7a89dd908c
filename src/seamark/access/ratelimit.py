"""Rate limiting by a token bucket: a burst at once, then a steady rate per second."""

from __future__ import annotations

from seamark.clock import SYSTEM_CLOCK, Clock


class TokenBucket:
    """Holds up to ``burst`` tokens and gains ``rate`` of them per second; starts full."""

    __slots__ = ("_burst", "_clock", "_rate", "_tokens", "_updated")

    def __init__(self, *, rate: float, burst: int, clock: Clock = SYSTEM_CLOCK) -> None:
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._tokens = float(burst)
        self._updated = clock.monotonic()

    def take(self, count: int = 1) -> bool:
        """Take so many tokens if they are there."""
        self._refill()
        if self._tokens < count:
            return False
        self._tokens -= count
        return True

    def reserve(self) -> float:
        """Take a token even if there is none yet; returns in how many seconds it may be used."""
        self._refill()
        self._tokens -= 1
        return max(0.0, -self._tokens / self._rate)

    def _refill(self) -> None:
        now = self._clock.monotonic()
        self._tokens = min(float(self._burst), self._tokens + (now - self._updated) * self._rate)
        self._updated = now
