"""The memory that clients take who do not read what they asked for: watches and long answers have one budget."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Unreading(Protocol):
    """What writes to a client that does not read."""

    def cut(self) -> None:
        """Close at once; calls :meth:`Unread.moves`."""
        ...


class Unread:
    """If there is too much of this memory, those that have not read for the longest time are cut off."""

    def __init__(self, limit: int, *, cut: Callable[[], None] = lambda: None) -> None:
        """``cut`` counts those that are cut off."""
        self._limit = limit
        self._cut = cut
        self._stalled: dict[Unreading, int] = {}  # the bytes each holds, the longest stalled first
        self.size = 0

    def stalls(self, who: Unreading, size: int) -> None:
        """A client does not read; that holds about so many bytes."""
        self.moves(who)
        self._stalled[who] = size
        self.size += size
        while self.size > self._limit:
            self._cut()
            next(iter(self._stalled)).cut()

    def moves(self, who: Unreading) -> None:
        """The client reads again, or is gone."""
        self.size -= self._stalled.pop(who, 0)
