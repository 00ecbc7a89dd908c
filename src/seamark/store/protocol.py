"""The interface of a storage engine.  One contract suite (``tests/store/test_contract.py``) checks every engine.

The model is etcd's.  There is one counter, the *revision*; every committed transaction takes the next one, and every
key it wrote keeps it as its *mod revision*.  Every write has a revision, revisions never go back and never repeat, and
a transaction is visible whole or not at all.

A past revision can be read until it is compacted; a watch from a revision delivers every later change, in order,
without a gap, or fails with :class:`Compacted`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Sequence
from typing import Protocol

import msgspec


class StoreError(Exception):
    """Something is wrong with the store itself; the text is one line that tells an operator what to do."""


class Unavailable(StoreError):
    """The store cannot be reached or cannot write just now, and may be able to later.  A write was not done."""


class Uncertain(Unavailable):
    """As :class:`Unavailable`, but the write may have been done: its answer was lost, or the disk does not say."""


class Compacted(StoreError):
    """The requested revision is older than the history kept; ``oldest`` is the first that can still be read."""

    def __init__(self, asked: int, oldest: int) -> None:
        super().__init__(f"revision {asked} has been compacted, the oldest kept is {oldest}")
        self.asked, self.oldest = asked, oldest


class Future(StoreError):
    """The requested revision has not been written yet."""

    def __init__(self, asked: int, current: int) -> None:
        super().__init__(f"revision {asked} is in the future, the current one is {current}")
        self.asked, self.current = asked, current


class Mismatch(StoreError):
    """A transaction's ``expect`` did not hold; nothing was written.

    ``key`` is the first key, in the transaction's order, that was not as expected; ``found`` is its mod revision, 0 if
    the key is absent.
    """

    def __init__(self, key: str, found: int) -> None:
        super().__init__(f"{key} is at revision {found}")
        self.key, self.found = key, found


class Write(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One key of a transaction.  Keys are paths: they begin with a slash.

    ``value`` None deletes the key.  ``expect`` is the mod revision that the key must have for the transaction to
    happen: 0 means that the key must be absent, None means no condition.  A transaction names a key at most once.
    """

    key: str
    value: bytes | None
    expect: int | None = None


class Row(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One key as it was at the revision read.  ``revision`` is its mod revision, ``created`` its create revision."""

    key: str
    value: bytes
    revision: int
    created: int


class Page(msgspec.Struct, frozen=True, array_like=True):
    """Rows in key order.  ``revision`` is the store's at the time of the read; ``more``: ``limit`` cut the rows off."""

    rows: Sequence[Row]
    revision: int
    more: bool


class Change(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One change of one key: ``value`` None means deleted.

    ``previous`` is the value before the change; None if the key was new, or if the engine no longer has that value.
    """

    key: str
    value: bytes | None
    previous: bytes | None
    revision: int


class Batch(msgspec.Struct, frozen=True, array_like=True):
    """Changes up to and including ``revision``, in order; whole transactions only.

    ``changes`` may be empty: the batch then reports progress, that is, no other change happened up to that revision.
    """

    changes: Sequence[Change]
    revision: int


class Store(Protocol):
    """An engine.  Call its constructor, then ``await open()``; ``await close()`` loses no acknowledged write.

    ``shared`` is True if other processes may write to the same store; a copy in memory can then be behind it.
    """

    shared: bool

    async def open(self) -> None:
        """Open files or connections; raises :class:`StoreError` if that fails."""
        ...

    async def close(self) -> None:
        """Finish the writes under way, end the watches, release files and connections.  Safe to call twice."""
        ...

    def commit(self, writes: Sequence[Write]) -> Awaitable[int]:
        """Write all of ``writes`` or none of them; the transaction's revision comes once it is durable.

        Raises :class:`Mismatch` if an ``expect`` fails, :class:`Unavailable` if nothing was written because the store
        is away, and :class:`Uncertain` if it cannot tell.  Deleting an absent key with ``expect=None`` is no error; a
        transaction that changes nothing returns the current revision without taking a new one.
        """
        ...

    async def read(self, start: str, end: str, *, revision: int = 0, limit: int = 0) -> Page:
        """Rows with ``start <= key < end`` (an empty ``end`` means just the key ``start``), as of ``revision``.

        ``revision`` 0 reads the current state, linearizably: the read sees every write that any process had
        acknowledged before it began.  Raises :class:`Compacted` or :class:`Future`.
        """
        ...

    async def revision(self) -> int:
        """The current revision, linearizably: no write acknowledged before the call has a higher revision."""
        ...

    def latest(self) -> int | None:
        """The same, from an engine that need not wait to know it; None from others."""
        ...

    def watch(self, prefix: str, since: int) -> AsyncIterator[Batch]:
        """Every change to keys beginning with ``prefix`` after revision ``since``, in order, then live.

        Raises :class:`Compacted` if ``since`` is too old (also later, if the reader falls too far behind) and
        :class:`Future` if ``since`` has not been written yet; ends when the store is closed.  An engine that loses its
        connection resumes by itself without a gap; when it has tried in vain for some time it raises
        :class:`Unavailable`, and a new watch from the last ``Batch.revision`` goes on from there.  The batches reach
        every revision of the store, also those that changed nothing under ``prefix``.  One task at a time may read a
        watch; dropping the watch stops it.

        An engine in the same process (SQLite) delivers a commit to its watchers before ``commit`` returns, wherever it
        can; with other engines, a reader compares ``Batch.revision`` with the revision that ``commit`` returned.
        """
        ...

    async def check(self) -> None:
        """Raise :class:`Unavailable` unless the store can be read and written to now.  Changes nothing."""
        ...

    async def compact(self, revision: int) -> None:
        """Remove history before ``revision``; current values stay.  Never blocks writers for long.

        Afterwards ``revision`` is the oldest that can be read or watched from.  Compacting again to the same or an
        older revision is no error; :class:`Future` if ``revision`` has not been written yet.
        """
        ...


LAST_CHARACTER = "\U0010ffff"


def prefix_end(prefix: str) -> str:
    """The smallest string that sorts after every key that begins with ``prefix``."""
    stem = prefix.rstrip(LAST_CHARACTER)
    if not stem:
        return LAST_CHARACTER
    following = ord(stem[-1]) + 1
    if following == 0xD800:  # skip the surrogates: keys are UTF-8 on disk and on the wire, which cannot encode them
        following = 0xE000
    return stem[:-1] + chr(following)


def check_writes(writes: Sequence[Write]) -> None:
    """Raise ``ValueError`` for keys that no engine can store: that is a mistake of the caller, not of the store."""
    for write in writes:
        key = write.key
        if key[:1] != "/" or "\0" in key:
            raise ValueError(f"{key!r} cannot be a key: keys begin with a slash and hold no NUL")
        if not key.isascii():
            key.encode()  # raises for lone surrogates
    if len(writes) > 1 and len({write.key for write in writes}) < len(writes):
        raise ValueError("a key stands twice in one transaction")
