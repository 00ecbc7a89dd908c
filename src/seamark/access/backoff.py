"""Delays between retries: each is longer than the one before, and random, so that clients do not retry together.

:func:`patiently` retries what a server refuses only for the moment.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from seamark.clock import Clock
from seamark.errors import ServerTimeout, ServiceUnavailable, Timeout, TooManyRequests

Random = Callable[[], float]  # a number from 0 up to 1, as random.random gives


def at_random() -> float:
    """``random.random``; the module is imported when first needed, because most commands end before that."""
    from random import random

    return random()


class Backoff:
    """Delays that double from ``base`` to ``cap``, each lengthened at random by up to ``jitter`` times itself."""

    def __init__(
        self, *, base: float = 0.8, cap: float = 30.0, jitter: float = 1.0, random: Random = at_random
    ) -> None:
        self._base = base
        self._cap = cap
        self._jitter = jitter
        self._random = random
        self._next = base

    def next(self) -> float:
        """The next delay in seconds."""
        delay = self._next
        self._next = min(self._cap, 2 * delay)
        return delay * (1 + self._jitter * self._random())

    def reset(self) -> None:
        """Start again with the shortest delay, after a success."""
        self._next = self._base


async def patiently(work: Callable[[], Awaitable[None]], *, clock: Clock) -> None:
    """Do ``work``, again and again while the server cannot do it now; ``work`` must not mind being done twice."""
    import logging  # here, because most commands end before they need it

    backoff = Backoff(base=0.25, cap=5.0)
    while True:
        try:
            return await work()
        except (ServiceUnavailable, Timeout, ServerTimeout, TooManyRequests) as error:
            logging.getLogger(__name__).warning("trying again: %s", error)
            await clock.sleep(backoff.next())
