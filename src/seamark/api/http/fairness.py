"""Whose request is next when there are more than the server can do at once.

Requests of one user for one kind are a *flow*.  While the server keeps up, a request is performed as soon as it comes.
When it does not, requests wait in the queue of their flow, and the flows take turns: a client that sends a thousand
requests delays another's one by a single request, not by a thousand.  A flow with too many waiting is told to retry.

Three things can be short.  Time: what is performed within one turn of the event loop is limited, because clients that
are not read from meanwhile cannot take their turn.  Seats: so many requests may wait for the store at once.  And room:
so many bytes of long lists may be under way, from when a list is made until its client has been sent the last byte.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

T = TypeVar("T")
Item = tuple[Callable[[], T], "asyncio.Future[T]", "Load | None"]

# Seconds of work after which further requests wait until the event loop has looked at all connections.
TURN = 0.005
# How many requests of a flow may wait, for each seat.
WAITING_PER_SEAT = 4
# Lists of about so many bytes need room, and so many bytes there may be under way.  A flow that has none under way does
# not wait for the others', as long as there are not many such flows.
LONG_LIST = 1024 * 1024
ROOM = 64 * 1024 * 1024
CROWDED_ROOM = 4 * ROOM
# How many large requests of a flow may wait.
LONGEST_LARGE = 16


class Full(Exception):
    """The flow has too many requests waiting."""


class Room:
    """The bytes of long lists under way, of all flows and of each."""

    def __init__(self) -> None:
        self.used = 0
        self._of: dict[Hashable, int] = {}

    def fits(self, load: Load) -> bool:
        used = self.used + load.size
        return not self.used or used <= ROOM or (load.flow not in self._of and used <= CROWDED_ROOM)

    def add(self, flow: Hashable, size: int) -> None:
        self.used += size
        self._of[flow] = self._of.get(flow, 0) + size
        if not self._of[flow]:
            del self._of[flow]


class Load:
    """What a long list takes of the room while it is under way."""

    __slots__ = ("_queue", "_taken", "flow", "size")

    def __init__(self, queue: FairQueue[Any], flow: Hashable, size: int) -> None:
        self._queue, self.flow, self.size = queue, flow, size
        self._taken = False

    def take(self) -> None:
        self._taken = True
        self._queue.room.add(self.flow, self.size)

    def release(self) -> None:
        """The client has been sent everything, is gone, or does not read.  May be called again."""
        if self._taken:
            self._taken = False
            self._queue.room.add(self.flow, -self.size)
            self._queue.released()


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

    def next(self, room: Room | None = None) -> Hashable | None:
        """The flow whose turn it is: the first, or the first whose list has room."""
        if room is None:
            return next(iter(self._flows), None)
        loads = ((flow, waiting[0][2]) for flow, waiting in self._flows.items())
        return next((flow for flow, load in loads if load is None or room.fits(load)), None)

    def pop(self, flow: Hashable) -> Item[T]:
        """The first request of the flow, which then is the last one to have a turn."""
        waiting = self._flows.pop(flow)
        item = waiting.popleft()
        if waiting:
            self._flows[flow] = waiting
        self.size -= 1
        return item


class FairQueue(Generic[T]):
    """Performs requests in a fair order; ``seats`` is how many may be under way."""

    _exempts = True  # whether exempt requests need no seat

    def __init__(self, seats: int, *, now: Callable[[], float] = time.perf_counter) -> None:
        self._seats = seats
        self._longest = seats * WAITING_PER_SEAT
        self._now = now
        self._left = TURN
        self._reads, self._writes, self._lists = _Ring[T](), _Ring[T](), _Ring[T]()
        self.room = Room()
        self._next: asyncio.Handle | None = None
        self.taken = 0

    @property
    def waiting(self) -> int:
        return self._reads.size + self._writes.size + self._lists.size

    def at_once(self, work: Callable[[], T], *, began: float, seat: bool, load: Load | None = None) -> T | None:
        """Perform work if its turn has come; None if it has not.

        ``began`` is when the request was taken up.  ``seat`` says that it needs one of the seats; the caller takes it
        (:meth:`enter`) once it has to wait for the store.  ``load`` is what it takes of the room; the caller releases
        it, unless the work raises an error.
        """
        # Lists that wait for room do not keep others from their turn.
        if self._reads.size or self._writes.size or self._left <= 0 or (seat and self.taken >= self._seats):
            return None
        if load is not None and (self._lists.size or not self.room.fits(load)):
            return None
        return self._perform(work, load, began)

    def wait(
        self, flow: Hashable, work: Callable[[], T], *, seat: bool, load: Load | None = None, exempt: bool = False
    ) -> asyncio.Future[T]:
        """Perform work in its turn; raises :class:`Full`.

        What is exempt needs neither seat nor room, and its flow is never full.
        """
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        if exempt and self._exempts:
            ring = self._reads
        else:
            ring = self._writes if seat else self._reads if load is None else self._lists
        ring.add(flow, (work, future, load), sys.maxsize if exempt else self._longest)
        self._soon()
        return future

    def enter(self) -> None:
        self.taken += 1

    def leave(self) -> None:
        self.taken -= 1
        if self._writes.size:
            self._soon()

    def released(self) -> None:
        """There is more room."""
        if self._lists.size:
            self._soon()

    def _perform(self, work: Callable[[], T], load: Load | None, began: float) -> T:
        if load is not None:
            load.take()
        try:
            return work()
        except BaseException:
            if load is not None:
                load.release()
            raise
        finally:
            self._left -= self._now() - began
            self._soon()

    def _soon(self) -> None:
        if self._next is None:
            self._next = asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        """The event loop has looked at all connections: a new turn begins with those that wait."""
        self._next = None
        self._left = TURN
        if not self.waiting:
            return
        taken = self.taken  # counted here: requests performed below take their seats only when their tasks run
        more = True
        while more and self._left > 0:
            more = False
            if (flow := self._reads.next()) is not None:
                more = True
                self._resolve(*self._reads.pop(flow))
            if taken < self._seats and (flow := self._writes.next()) is not None:
                more = True
                taken += 1
                self._resolve(*self._writes.pop(flow))
            if (flow := self._lists.next(self.room)) is not None:
                more = True
                self._resolve(*self._lists.pop(flow))
        writes = self._writes.size and self.taken < self._seats
        if self._reads.size or writes or self._lists.next(self.room) is not None:
            self._soon()

    def _resolve(self, work: Callable[[], T], future: asyncio.Future[T], load: Load | None) -> None:
        if future.cancelled():
            return
        try:
            future.set_result(self._perform(work, load, self._now()))
        except Exception as error:
            future.set_exception(error)


class CalmQueue(FairQueue[T]):
    """For requests that make millions of objects.

    Python looks for no garbage while one of them is worked on: among so many objects that takes half a second, and all
    other requests wait for it.  What these requests made is freed without such a look, once they are answered.

    No user is exempt from waiting for a seat, because each request may take half a gigabyte.
    """

    _exempts = False

    def __init__(self, seats: int) -> None:
        super().__init__(seats)
        self._longest = LONGEST_LARGE

    def enter(self) -> None:
        super().enter()
        gc.disable()

    def leave(self) -> None:
        super().leave()
        if not self.taken:
            asyncio.get_running_loop().call_soon(self._look_again)

    def _look_again(self) -> None:
        if not self.taken:
            gc.enable()
