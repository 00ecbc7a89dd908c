"""Watches: the log from a past revision, then live changes, without a gap and without repetition.

The feed lives on the event loop.  Each watch has a bounded buffer of live batches.  If a slow reader lets the buffer
overflow, the watch empties it and reads the log again, as it does at its start.  So memory stays bounded, and a watch
gets ``Compacted`` only if its reader falls behind the history that is kept.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from weakref import WeakSet

from seamark.store.protocol import Batch

# prefix, after, until → the next part of the log
ReadLog = Callable[[str, int, int], Awaitable[Batch]]


class Feed:
    """Passes the changes of each committed group to the watches."""

    def __init__(self, revision: int, *, read_log: ReadLog, buffer: int) -> None:
        self.revision = revision  # the last one published
        self.read_log = read_log
        self.buffer = buffer
        self.closed = False
        self._watches: WeakSet[Watch] = WeakSet()  # weak: a watch ends when its reader drops it

    def watch(self, prefix: str, since: int) -> Watch:
        return Watch(self, prefix, since)

    def publish(self, batch: Batch) -> None:
        """Offer a group's changes to every watch; watches of the same prefix share one filtered batch."""
        self.revision = batch.revision
        parts: dict[str, Batch] = {}
        for watch in list(self._watches):  # a copy: an overflowing watch leaves the set
            part = parts.get(watch.prefix)
            if part is None:
                wanted = [change for change in batch.changes if change.key.startswith(watch.prefix)]
                part = parts[watch.prefix] = Batch(wanted, batch.revision)
            watch.offer(part)

    def attach(self, watch: Watch) -> None:
        self._watches.add(watch)

    def detach(self, watch: Watch) -> None:
        self._watches.discard(watch)

    def close(self) -> None:
        """End every watch once it has delivered the batches in its buffer."""
        self.closed = True
        for watch in self._watches:
            watch.wake()


class Watch(AsyncIterator[Batch]):
    """One reader's position in the log.  One task at a time may read it."""

    def __init__(self, feed: Feed, prefix: str, since: int) -> None:
        self.prefix = prefix
        self._feed = feed
        self._position = since  # everything up to here has been delivered
        self._replay_until: int | None = None  # read the log up to here, then the buffer; None: not attached
        self._buffer: deque[Batch] = deque()
        self._buffered = 0
        self._reader: asyncio.Future[None] | None = None

    def offer(self, batch: Batch) -> None:
        """Buffer a live batch; if the buffer overflows, detach and read the log again."""
        if not batch.changes and self._buffer and not self._buffer[-1].changes:
            self._buffer[-1] = batch  # of several progress batches only the last one matters
            return
        if self._buffer and self._buffered + len(batch.changes) > self._feed.buffer:
            self._detach()
        else:
            self._buffer.append(batch)
            self._buffered += len(batch.changes)
        self.wake()

    def wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    async def __anext__(self) -> Batch:
        while True:
            behind = self._replay_until is None or self._position < self._replay_until
            if self._feed.closed and (behind or not self._buffer):
                raise StopAsyncIteration
            if self._replay_until is None:
                self._attach()
                if self._position > self._feed.revision:
                    # The revision is durable but not published yet, or not written at all: then this raises `Future`.
                    await self._feed.read_log(self.prefix, self._position, self._position)
            elif behind:
                batch = await self._feed.read_log(self.prefix, self._position, self._replay_until)
                self._position = batch.revision
                return batch
            elif self._buffer:
                batch = self._buffer.popleft()
                self._buffered -= len(batch.changes)
                # The batch is old if `since` came from a read that saw the group before it was published.
                if batch.revision > self._position:
                    self._position = batch.revision
                    return batch
            else:
                await self._wait()

    async def aclose(self) -> None:
        """Stop the watch at once; dropping every reference to it has the same effect."""
        self._detach()

    async def _wait(self) -> None:
        self._reader = asyncio.get_running_loop().create_future()
        try:
            await self._reader
        finally:
            self._reader = None

    def _attach(self) -> None:
        # Without an await in between: changes published so far are in the log, later ones come into the buffer.
        self._replay_until = self._feed.revision
        self._feed.attach(self)

    def _detach(self) -> None:
        self._feed.detach(self)
        self._replay_until = None
        self._buffer.clear()
        self._buffered = 0
