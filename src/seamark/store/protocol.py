"""The storage seam: what an engine promises, and the one contract suite that holds every engine to it.

The model is etcd's.  There is one counter, the *revision*; every committed transaction takes the next one, and every
key it wrote remembers it as its *mod revision*.  Nothing is ever written without a revision, revisions never go back
and never repeat, and a transaction is visible whole or not at all.

Reads of the past work until they are compacted; a watch from a revision delivers every later change, in order,
without a gap, or fails with :class:`Compacted`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

import msgspec


class StoreError(Exception):
    """Something is wrong with the store itself; the text is one line a person can act on."""


class Unavailable(StoreError):
    """The store cannot be reached or cannot write just now.  The write may or may not have happened."""


class Compacted(StoreError):
    """The revision asked for is older than the history kept; ``oldest`` is the first that can still be had."""

    def __init__(self, asked: int, oldest: int) -> None:
        super().__init__(f"revision {asked} has been compacted, the oldest kept is {oldest}")
        self.asked, self.oldest = asked, oldest


class Future(StoreError):
    """The revision asked for has not happened yet."""

    def __init__(self, asked: int, current: int) -> None:
        super().__init__(f"revision {asked} is in the future, the current one is {current}")
        self.asked, self.current = asked, current


class Mismatch(StoreError):
    """A transaction's expectation did not hold; nothing was written.

    ``key`` is the first key, in the transaction's order, that was not as expected; ``found`` is its mod revision, 0 if
    the key is absent.
    """

    def __init__(self, key: str, found: int) -> None:
        super().__init__(f"{key} is at revision {found}")
        self.key, self.found = key, found


class Write(msgspec.Struct, frozen=True, gc=False):
    """One key of a transaction.  Keys are paths: they begin with a slash.

    ``value`` None deletes the key.  ``expect`` is the mod revision the key must have for the transaction to happen:
    0 means it must be absent, None means anything goes.  A key stands at most once in a transaction.
    """

    key: str
    value: bytes | None
    expect: int | None = None


class Row(msgspec.Struct, frozen=True, gc=False):
    """One key as it was at the revision read.  ``revision`` is its mod revision, ``created`` that of its creation."""

    key: str
    value: bytes
    revision: int
    created: int


class Page(msgspec.Struct, frozen=True):
    """Rows in key order.  ``revision`` is the store's at the time of the read; ``more`` says that ``limit`` cut it."""

    rows: Sequence[Row]
    revision: int
    more: bool


class Change(msgspec.Struct, frozen=True, gc=False):
    """One key's step in the log: ``value`` None means deleted.

    ``previous`` is the value before, None if the key was new (it may be None too when the engine no longer knows it).
    """

    key: str
    value: bytes | None
    previous: bytes | None
    revision: int


class Batch(msgspec.Struct, frozen=True):
    """Changes up to and including ``revision``, in order; whole transactions only.

    ``changes`` may be empty: then it only says that nothing else happened up to that revision (progress).
    """

    changes: Sequence[Change]
    revision: int


class Store(Protocol):
    """An engine.  Built by its own constructor, then ``await open()``; ``await close()`` loses nothing.

    ``shared`` says that other processes may write to the same store, so that a copy in memory can be behind it.
    """

    shared: bool

    async def open(self) -> None:
        """Get ready; raises :class:`StoreError` with a sentence to act on if that cannot be."""
        ...

    async def close(self) -> None:
        """Finish the writes under way, end the watches, let go of everything.  Safe to call twice."""
        ...

    async def commit(self, writes: Sequence[Write]) -> int:
        """Write all of it or nothing; returns the revision once it is durable.

        Raises :class:`Mismatch` if an expectation fails.  Deleting an absent key with ``expect=None`` is no error; a
        transaction that changes nothing at all returns the current revision without taking a new one.
        """
        ...

    async def read(self, start: str, end: str, *, revision: int = 0, limit: int = 0) -> Page:
        """Rows with ``start <= key < end`` (an empty ``end`` means just the key ``start``), as of ``revision``.

        ``revision`` 0 is now, and then the read is linearizable: it sees every write acknowledged anywhere before it
        began.  Raises :class:`Compacted` or :class:`Future`.
        """
        ...

    async def revision(self) -> int:
        """The current revision, linearizably: no write acknowledged before the call has a higher one."""
        ...

    def watch(self, prefix: str, since: int) -> AsyncIterator[Batch]:
        """Every change to keys beginning with ``prefix`` after revision ``since``, in order, then live.

        Raises :class:`Compacted` if ``since`` is too old (also later, for a reader that fell too far behind),
        :class:`Future` if it has not happened yet, and ends when the store is closed.  An engine that loses its
        connection resumes by itself without a gap.  Every revision of the store is reached by some batch, even if it
        changed nothing under ``prefix``.  One task at a time may read a watch; it is given up by dropping it.

        An engine in the same process (SQLite) delivers a commit to its watchers before ``commit`` returns it to the
        writer wherever it can; for others a reader compares ``Batch.revision`` with what ``commit`` returned.
        """
        ...

    async def compact(self, revision: int) -> None:
        """Forget history before ``revision``; what is current stays.  Never blocks writers for long.

        Afterwards ``revision`` is the oldest that can be read, and watched from.  What is forgotten already may be
        forgotten again; :class:`Future` if ``revision`` has not happened yet.
        """
        ...


LAST_CHARACTER = "\U0010ffff"


def prefix_end(prefix: str) -> str:
    """The first text after every key that begins with ``prefix``."""
    stem = prefix.rstrip(LAST_CHARACTER)
    if not stem:
        return LAST_CHARACTER
    following = ord(stem[-1]) + 1
    if following == 0xD800:  # the surrogates are no characters: keys are UTF-8 on disk and on the wire
        following = 0xE000
    return stem[:-1] + chr(following)


def check_writes(writes: Sequence[Write]) -> None:
    """Refuse with ``ValueError`` what no engine could store: that is the caller's mistake, not the store's state."""
    for write in writes:
        key = write.key
        if key[:1] != "/" or "\0" in key:
            raise ValueError(f"{key!r} cannot be a key: keys begin with a slash and hold no NUL")
        if not key.isascii():
            key.encode()  # lone surrogates
    if len(writes) > 1 and len({write.key for write in writes}) < len(writes):
        raise ValueError("a key stands twice in one transaction")
