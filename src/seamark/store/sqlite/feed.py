"""Watches: the log from a past revision on, then live, without a gap and without repeating anything.

The feed lives on the event loop.  Each watch has a bounded buffer of live batches.  A reader slower than the writers
lets it overflow; the watch then drops it and goes back to reading the log, as it does at its beginning.  So memory
stays bounded, a burst costs a reader nothing but time, and only who lags behind the history kept gets ``Compacted``.
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
    """Takes each group's changes as it commits and passes them on to the watches that want them."""

    def __init__(self, revision: int, *, read_log: ReadLog, buffer: int) -> None:
        self.revision = revision  # the last one published
        self.read_log = read_log
        self.buffer = buffer
        self.closed = False
        self._watches: WeakSet[Watch] = WeakSet()  # a watch nobody holds any more is gone by itself

    def watch(self, prefix: str, since: int) -> Watch:
        return Watch(self, prefix, since)

    def publish(self, batch: Batch) -> None:
        """Hand a group's changes to every watch; each prefix is filtered once."""
        self.revision = batch.revision
        parts: dict[str, Batch] = {}
        for watch in list(self._watches):  # an overflowing one leaves the set
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
        """End every watch once it has delivered what it has buffered."""
        self.closed = True
        for watch in self._watches:
            watch.wake()


class Watch(AsyncIterator[Batch]):
    """One reader's place in the log.  It may be read by one task at a time."""

    def __init__(self, feed: Feed, prefix: str, since: int) -> None:
        self.prefix = prefix
        self._feed = feed
        self._position = since  # everything up to here has been delivered
        self._replay_until: int | None = None  # the log has to be read up to here first; None: not attached
        self._buffer: deque[Batch] = deque()
        self._buffered = 0
        self._reader: asyncio.Future[None] | None = None

    def offer(self, batch: Batch) -> None:
        """Take a live batch; too much of it and the watch goes back to the log."""
        if not batch.changes and self._buffer and not self._buffer[-1].changes:
            self._buffer[-1] = batch  # only the last word on progress counts
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
                    # Durable but not published yet, or not written at all: the log knows, and refuses the latter.
                    await self._feed.read_log(self.prefix, self._position, self._position)
            elif behind:
                batch = await self._feed.read_log(self.prefix, self._position, self._replay_until)
                self._position = batch.revision
                return batch
            elif self._buffer:
                batch = self._buffer.popleft()
                self._buffered -= len(batch.changes)
                # A read may have shown a group that was durable but not yet published here.
                if batch.revision > self._position:
                    self._position = batch.revision
                    return batch
            else:
                await self._wait()

    async def aclose(self) -> None:
        """Let go before the end; a watch that is merely dropped does so too."""
        self._detach()

    async def _wait(self) -> None:
        self._reader = asyncio.get_running_loop().create_future()
        try:
            await self._reader
        finally:
            self._reader = None

    def _attach(self) -> None:
        # No await in between: what is published up to now is in the log, what comes later in the buffer.
        self._replay_until = self._feed.revision
        self._feed.attach(self)

    def _detach(self) -> None:
        self._feed.detach(self)
        self._replay_until = None
        self._buffer.clear()
        self._buffered = 0
