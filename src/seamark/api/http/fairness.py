"""Whose request is next when there are more than the server can do at once.

Requests of one user for one kind are a *flow*.  While the server keeps up, a request is performed as soon as it comes.
When it does not, requests wait in the queue of their flow, and the flows take turns: a client that sends a thousand
requests delays another's one by a single request, not by a thousand.  A flow with too many waiting is told to retry.

Two things can be short.  Time: what is performed within one turn of the event loop is limited, because clients that
are not read from meanwhile cannot take their turn.  And seats: so many requests may wait for the store at once.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")
Item = tuple[Callable[[], T], "asyncio.Future[T]"]

# Seconds of work after which further requests wait until the event loop has looked at all connections.
TURN = 0.005
# How many requests of a flow may wait, for each seat.
WAITING_PER_SEAT = 4


class Full(Exception):
    """The flow has too many requests waiting."""


class _Ring(Generic[T]):
    """The waiting requests of flows, which take turns."""

    def __init__(self) -> None:
        self._flows: OrderedDict[Hashable, deque[Item[T]]] = OrderedDict()
        self.size = 0

    def add(self, flow: Hashable, item: Item[T], limit: int) -> None:
        waiting = self._flows.setdefault(flow, deque())
        if len(waiting) >= limit:
            raise Full
        waiting.append(item)
        self.size += 1

    def pop(self) -> Item[T]:
        """The first request of the flow whose turn it is, which then is the last one."""
        flow, waiting = self._flows.popitem(last=False)
        item = waiting.popleft()
        if waiting:
            self._flows[flow] = waiting
        self.size -= 1
        return item


class FairQueue(Generic[T]):
    """Performs requests in a fair order; ``seats`` is how many may be under way."""

    def __init__(self, seats: int, *, now: Callable[[], float] = time.perf_counter) -> None:
        self._seats = seats
        self._longest = seats * WAITING_PER_SEAT
        self._now = now
        self._left = TURN
        self._reads, self._writes = _Ring[T](), _Ring[T]()
        self._next: asyncio.Handle | None = None
        self.taken = 0

    @property
    def waiting(self) -> int:
        return self._reads.size + self._writes.size

    def at_once(self, work: Callable[[], T], *, began: float, seat: bool) -> T | None:
        """Perform work if its turn has come; None if it has not.

        ``began`` is when the request was taken up.  ``seat`` says that it needs one of the seats; the caller takes it
        (:meth:`enter`) once it has to wait for the store.
        """
        if not self.waiting and self._left > 0 and not (seat and self.taken >= self._seats):
            return self._perform(work, began)
        return None

    def wait(self, flow: Hashable, work: Callable[[], T], *, seat: bool, exempt: bool = False) -> asyncio.Future[T]:
        """Perform work in its turn; raises :class:`Full`.  What is exempt needs no seat, and its flow is never full."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        ring = self._writes if seat and not exempt else self._reads
        ring.add(flow, (work, future), sys.maxsize if exempt else self._longest)
        self._soon()
        return future

    def enter(self) -> None:
        self.taken += 1

    def leave(self) -> None:
        self.taken -= 1
        if self._writes.size:
            self._soon()

    def _perform(self, work: Callable[[], T], began: float) -> T:
        try:
            return work()
        finally:
            self._left -= self._now() - began
            if self._left <= 0:
                self._soon()

    def _soon(self) -> None:
        if self._next is None:
            self._next = asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        self._next = None
        self._left = TURN
        taken = self.taken  # those performed here enter only when their tasks run
        while self._left > 0 and (self._reads.size or (self._writes.size and taken < self._seats)):
            if self._reads.size:
                self._resolve(*self._reads.pop())
            if self._writes.size and taken < self._seats:
                taken += 1
                self._resolve(*self._writes.pop())
        if self._reads.size or (self._writes.size and self.taken < self._seats):
            self._soon()

    def _resolve(self, work: Callable[[], T], future: asyncio.Future[T]) -> None:
        if future.cancelled():
            return
        try:
            future.set_result(self._perform(work, self._now()))
        except Exception as error:
            future.set_exception(error)
