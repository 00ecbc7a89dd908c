"""What is kept of documents that come again and again: of those that came once only that they did."""

from __future__ import annotations

from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Recurring(Generic[K, V]):
    """A bounded number of them; those that are used are kept."""

    def __init__(self) -> None:
        self._kept: dict[K, V | None] = {}  # the latest last; None for what came once

    def __contains__(self, key: K) -> bool:
        return key in self._kept

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: K) -> V | None:
        return self._kept.get(key)

    def used(self, key: K) -> None:
        self._kept[key] = self._kept.pop(key)

    def put(self, key: K, value: V | None, *, most: int) -> None:
        """Keep it, and at most so many in all."""
        self._kept.pop(key, None)
        self._kept[key] = value
        if len(self._kept) > most:
            del self._kept[next(iter(self._kept))]
