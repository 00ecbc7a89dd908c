"""Which backend gets a connection: each in turn, or the one that this client had before (pure but for the time)."""

from __future__ import annotations

import random
from collections.abc import Collection

from seamark.clock import SYSTEM_CLOCK, Clock
from seamark.rules.routing.model import Choice

MOST_CLIENTS = 16_384  # that one port of a Service remembers; beyond that, the one that was away longest is forgotten

Target = tuple[str, int]


class Balancer:
    """The choices of one port of a Service in one family, whichever of its frontends a client uses."""

    def __init__(self, *, clock: Clock = SYSTEM_CLOCK, most: int = MOST_CLIENTS) -> None:
        self._clock = clock
        self._most = most
        self._turn = random.randrange(1 << 16)  # so that after a restart the first backend does not get all the firsts
        self._had: dict[str, tuple[Target, float]] = {}  # client -> its backend and when; the longest away come first

    def pick(self, choice: Choice, client: str, *, affinity: int = 0, tried: Collection[Target] = ()) -> Target | None:
        """A backend that is not among those ``tried``; None if there is none.

        With an ``affinity`` of so many seconds, a client that was here within that time gets the backend it had, as
        long as that one is chosen from.
        """
        backends = choice.backends
        if not affinity:
            self._had.clear()
            return self._next(choice, tried)
        now = self._clock.monotonic()
        self._forget(now - affinity)
        target, _ = self._had.pop(client, (None, 0.0))
        if target is None or target in tried or all(target != (each.address, each.port) for each in backends):
            target = self._next(choice, tried)
        if target is not None:
            self._had[client] = target, now
        return target

    def __len__(self) -> int:
        """How many clients are remembered."""
        return len(self._had)

    def _next(self, choice: Choice, tried: Collection[Target]) -> Target | None:
        backends = choice.backends
        for _ in backends:
            self._turn += 1
            backend = backends[self._turn % len(backends)]
            target = backend.address, backend.port
            if target not in tried:
                return target
        return None

    def _forget(self, before: float) -> None:
        while self._had:
            client = next(iter(self._had))
            if self._had[client][1] > before and len(self._had) < self._most:
                return
            del self._had[client]
