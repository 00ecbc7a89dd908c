"""Time in a test's hands: nothing happens until it is told to pass, and then everything in order."""

import asyncio
import heapq
import itertools

from turns import turns as settle


class VirtualClock:
    def __init__(self):
        self.time = 1000.0
        self._heap = []
        self._count = itertools.count()

    def now(self):
        return self.time

    def call_later(self, delay, call):
        timer = _Timer(call)
        heapq.heappush(self._heap, (self.time + delay, next(self._count), timer))
        return timer

    async def sleep(self, seconds):
        woken = asyncio.get_running_loop().create_future()
        self.call_later(seconds, lambda: woken.done() or woken.set_result(None))
        await woken

    async def advance(self, seconds):
        """Let so much time pass, and everything run that it sets off."""
        until = self.time + seconds
        await settle()
        while self._heap and self._heap[0][0] <= until:
            due, _, timer = heapq.heappop(self._heap)
            self.time = max(self.time, due)
            if timer.call is not None:
                timer.call()
                await settle()
        self.time = until
        await settle()

    def next_due(self):
        """In how many seconds the next thing happens; None if nothing does."""
        while self._heap and self._heap[0][2].call is None:
            heapq.heappop(self._heap)
        return self._heap[0][0] - self.time if self._heap else None


class _Timer:
    def __init__(self, call):
        self.call = call

    def cancel(self):
        self.call = None
