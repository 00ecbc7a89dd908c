"""A clock in a test's hands: no time passes until the test lets it, and then everything happens in order."""

import asyncio
import heapq
import itertools

from turns import turns


class VirtualClock:
    """A :class:`seamark.clock.Clock`.  Both kinds of time are ``now``, which a test may also set."""

    def __init__(self, now=1_800_000_000.0):
        self.now = now
        self.asleep = set()  # the tasks that wait for time to pass
        self._heap = []
        self._count = itertools.count()

    def time(self):
        return self.now

    def monotonic(self):
        return self.now

    def call_later(self, delay, call):
        timer = _Timer(call)
        heapq.heappush(self._heap, (self.now + delay, next(self._count), timer))
        return timer

    async def sleep(self, seconds):
        woken = asyncio.get_running_loop().create_future()
        self.call_later(seconds, lambda: woken.done() or woken.set_result(None))
        task = asyncio.current_task()
        self.asleep.add(task)
        try:
            await woken
        finally:
            self.asleep.discard(task)

    # --- letting it pass ---------------------------------------------------------------------------

    async def advance(self, seconds, settle=turns):
        """Let so much time pass; ``settle`` waits for what that sets off, each time something is due."""
        until = self.now + seconds
        await settle()
        while (due := self.next_due()) is not None and due <= until:
            self._ring()
            await settle()
        self.now = until
        await settle()

    def pass_without_tasks(self, seconds):
        """Let so much time pass where nothing but timers depends on it."""
        until = self.now + seconds
        while (due := self.next_due()) is not None and due <= until:
            self._ring()
        self.now = until

    def next_due(self):
        """When the next thing happens; None if nothing does."""
        while self._heap and self._heap[0][2].call is None:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def _ring(self):
        due, _, timer = heapq.heappop(self._heap)
        self.now = max(self.now, due)
        timer.call()


class HastyClock(VirtualClock):
    """Time that passes only by sleeping, and then at once."""

    def __init__(self, now=0.0):
        super().__init__(now)
        self.slept = []

    async def sleep(self, seconds):
        self.slept.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)


class _Timer:
    def __init__(self, call):
        self.call = call

    def cancel(self):
        self.call = None
