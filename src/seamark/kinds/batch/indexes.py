"""Sets of indexes as Kubernetes writes them: ``1,3-5,7``, held as intervals, because there may be billions.

A Job of two billion completions is handled by the intervals of its finished indexes, never index by index.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator

import msgspec

from seamark.kinds.values.numbers import int64


class Indexes(msgspec.Struct, frozen=True):
    """Ordered intervals, both ends included, that do not touch each other."""

    intervals: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, numbers: Iterable[int]) -> Indexes:
        """From single numbers, in any order."""
        return _joined((number, number) for number in sorted(numbers))

    @classmethod
    def read(cls, text: str, completions: int) -> Indexes:
        """From text that a controller wrote; parts that make no sense, or lie beyond the completions, are left out."""
        found = []
        for part in text.split(","):
            first, _, last = part.partition("-")
            low, high = int64(first), int64(last or first)
            if low is not None and high is not None and 0 <= low <= high and low < completions:
                found.append((low, min(high, completions - 1)))
        return _joined(sorted(found))

    def __str__(self) -> str:
        return ",".join(_text(low, high) for low, high in self.intervals)

    def __len__(self) -> int:
        return sum(high - low + 1 for low, high in self.intervals)

    def __contains__(self, number: int) -> bool:
        place = bisect_right(self.intervals, number, key=lambda interval: interval[0])
        return place > 0 and number <= self.intervals[place - 1][1]

    def __or__(self, other: Indexes) -> Indexes:
        return _joined(sorted((*self.intervals, *other.intervals)))

    def __and__(self, other: Indexes) -> Indexes:
        both = []
        mine, its = list(self.intervals), list(other.intervals)
        while mine and its:
            low, high = max(mine[0][0], its[0][0]), min(mine[0][1], its[0][1])
            if low <= high:
                both.append((low, high))
            (mine if mine[0][1] < its[0][1] else its).pop(0)
        return Indexes(tuple(both))

    def missing(self, completions: int) -> Iterator[int]:
        """The numbers below ``completions`` that are not in the set, in order; take only as many as needed."""
        following = 0
        for low, high in self.intervals:
            yield from range(following, min(low, completions))
            following = high + 1
        yield from range(following, completions)


def _joined(ordered: Iterable[tuple[int, int]]) -> Indexes:
    joined: list[tuple[int, int]] = []
    for low, high in ordered:
        if joined and low <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(high, joined[-1][1]))
        else:
            joined.append((low, high))
    return Indexes(tuple(joined))


def _text(low: int, high: int) -> str:
    return f"{low}" if low == high else f"{low},{high}" if low + 1 == high else f"{low}-{high}"


def count(text: str, completions: int) -> int:
    """How many indexes a text that a user wrote names; ``ValueError`` with Kubernetes' sentence if it is malformed."""
    total, last = 0, -1
    for interval in text.split(",") if text else ():
        ends = interval.split("-")
        if len(ends) > 2:
            raise ValueError(
                f'the fragment "{interval}" violates the requirement that an index interval can have at most two parts '
                "separated by '-'"
            )
        for position, end in enumerate(ends):
            number = int64(end)
            if number is None:
                raise ValueError(f'cannot convert string to integer for index: "{end}"')
            if number >= completions:
                raise ValueError(f'too large index: "{end}"')
            if number <= last and (position or total):
                raise ValueError(f"non-increasing order, previous: {last}, current: {number}")
            total += number - last if position else 1
            last = number
    return total
