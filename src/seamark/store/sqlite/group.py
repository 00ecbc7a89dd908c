"""Decides which transactions of a group succeed and what they change.  Pure: reads the log through a callback."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from seamark.store.protocol import Change, Mismatch, StoreError, Write

# A row's number combines its revision and its position within the transaction in one integer, so that the table's
# primary key order is the order of the log, and no further index is needed.
POSITION_BITS = 16
MAX_KEYS = 1 << POSITION_BITS


def first_row(revision: int) -> int:
    """The lowest row number of a revision."""
    return revision << POSITION_BITS


def revision_of(row: int) -> int:
    return row >> POSITION_BITS


class Version(NamedTuple):
    """The last version of a key in the log.  A deleted key is ``ABSENT``."""

    row: int
    created: int
    value: bytes | None


ABSENT = Version(0, 0, None)


class LogRow(NamedTuple):
    """One row to append.  ``replaces`` is the key's previous row, None if the key was absent."""

    row: int
    key: str
    value: bytes | None
    created: int
    replaces: int | None


class Settled(NamedTuple):
    """The decision on a group: one outcome per transaction, in order, and the rows to append."""

    outcomes: list[int | StoreError]
    rows: list[LogRow]
    changes: list[Change]
    revision: int


def settle(transactions: Sequence[Sequence[Write]], *, revision: int, latest: Callable[[str], Version]) -> Settled:
    """Decide the transactions in order, each seeing those before it; ``revision`` is the store's current one."""
    seen: dict[str, Version] = {}
    outcomes: list[int | StoreError] = []
    rows: list[LogRow] = []
    changes: list[Change] = []
    for writes in transactions:
        for write in writes:
            if write.key not in seen:
                seen[write.key] = latest(write.key)
        mismatch = _first_mismatch(writes, seen)
        if mismatch is not None:
            outcomes.append(mismatch)
            continue
        number = first_row(revision + 1)
        for write in writes:
            key, value, before = write.key, write.value, seen[write.key]
            if value is None and before.value is None:
                continue  # deleting an absent key changes nothing
            created = before.created or revision + 1
            rows.append(LogRow(number, key, value, created, before.row or None))
            changes.append(Change(key, value, before.value, revision + 1))
            seen[key] = ABSENT if value is None else Version(number, created, value)
            number += 1
        if number > first_row(revision + 1):
            revision += 1
        outcomes.append(revision)
    return Settled(outcomes, rows, changes, revision)


def _first_mismatch(writes: Sequence[Write], seen: dict[str, Version]) -> Mismatch | None:
    for write in writes:
        if write.expect is not None:
            found = revision_of(seen[write.key].row)
            if found != write.expect:
                return Mismatch(write.key, found)
    return None
