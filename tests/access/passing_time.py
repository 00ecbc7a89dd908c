"""Time that passes only when everybody sleeps."""

import asyncio
import heapq
import itertools


class VirtualTime:
    def __init__(self, now=0.0):
        self.now = now
        self._sleepers = []
        self._order = itertools.count()

    def __call__(self):
        return self.now

    async def sleep(self, seconds):
        woken = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self.now + seconds, next(self._order), woken))
        await woken

    async def pass_(self, seconds):
        """Let this much time pass, waking sleepers when theirs has come."""
        end = self.now + seconds
        while True:
            await self.settle()
            if not self._sleepers or self._sleepers[0][0] > end:
                break
            self.now, _, woken = heapq.heappop(self._sleepers)
            if not woken.done():
                woken.set_result(None)
        self.now = end

    async def settle(self):
        """Let everything run that can run without time passing."""
        for _ in range(50):
            await asyncio.sleep(0)
