"""The cell under AGE in a table."""

from __future__ import annotations

from seamark.kinds import times


def age(timestamp: str | None, now: float) -> str:
    """How long ago an object was made, in ``kubectl``'s words."""
    return times.age(now, timestamp)
