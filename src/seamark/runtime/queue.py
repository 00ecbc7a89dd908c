"""The queue of one controller: keys to be handled now, later, or again after a failure.

A key waits in the queue at most once, however often it is added.  A key that is added while it is being handled is
handled once more afterwards, never at the same time.  All keys that are due later share one timer.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable

import msgspec

from seamark.access.ratelimit import TokenBucket
from seamark.clock import SYSTEM_CLOCK, Cancellable, Clock, doubling
from seamark.metrics import Registry

Key = str

# The part of a batch period that is spent gathering; the rest is left for handling the key on a busy machine.
GATHERING = 0.8

# Old start times are removed when there are this many more than were kept the last time, and times at which keys were
# due when there are this many more than keys.
SWEEP = 1024


class Retry(msgspec.Struct, frozen=True):
    """How long a key waits after a failure: twice as long each time, from ``base`` to ``cap`` seconds.

    ``rate`` and ``burst`` limit the retries of all keys together, so that an outage is not followed by a burst of them.
    """

    base: float = 0.005
    cap: float = 60.0
    rate: float = 10.0
    burst: int = 100

    def delay(self, failures: int) -> float:
        return doubling(self.base, self.cap, failures)


class Queue:
    """Keys that wait.  ``wake`` is called when one can be taken; return each by ``done``, ``again`` or ``failed``.

    ``batch`` is for how many seconds :meth:`add_batched` may gather changes of a key.
    """

    def __init__(
        self,
        name: str,
        *,
        retry: Retry | None = None,
        batch: float = 0.0,
        clock: Clock = SYSTEM_CLOCK,
        metrics: Registry | None = None,
    ) -> None:
        self.wake: Callable[[], None] = _nothing
        self._retry = retry or Retry()
        self._batch = batch
        self._clock = clock
        self._bucket = TokenBucket(rate=self._retry.rate, burst=self._retry.burst, clock=clock)
        self._ready: deque[Key] = deque()
        self._waiting: dict[Key, float] = {}  # the keys in _ready, with the time they were added
        self._running: set[Key] = set()
        self._again: set[Key] = set()
        self._due: dict[Key, float] = {}
        self._heap: list[tuple[float, Key]] = []
        self._timer: tuple[float, Cancellable] | None = None
        self._failures: dict[Key, int] = {}
        self._started: dict[Key, float] = {}
        self._took: dict[Key, float] = {}
        self._longest_pause = batch
        self._sweep_at = SWEEP
        registry, labels = metrics or Registry(), ("name",)
        # The metrics have the names that Kubernetes' controllers use, so that existing dashboards work.
        self._adds = registry.counter("workqueue_adds_total", "Keys added.", name, labels=labels)
        registry.measured("workqueue_depth", "Keys waiting.", lambda: float(len(self)), name, labels=labels)
        self._retries = registry.counter(
            "workqueue_retries_total", "Keys added again after a failure.", name, labels=labels
        )
        self._waited = registry.histogram("workqueue_queue_duration_seconds", "Waiting of keys.", name, labels=labels)
        self._worked = registry.histogram("workqueue_work_duration_seconds", "Handling of keys.", name, labels=labels)

    def __len__(self) -> int:
        """How many keys could be taken now."""
        return len(self._waiting)

    def __contains__(self, key: Key) -> bool:
        """Whether the key could be taken now, or is being handled."""
        return key in self._waiting or key in self._running

    @property
    def idle(self) -> bool:
        """Whether nothing waits and nothing is being handled; keys may still be due later."""
        return not (self._waiting or self._running)

    @property
    def empty(self) -> bool:
        """Whether it is idle and no key is due later either."""
        return self.idle and not self._due

    def failures(self, key: Key) -> int:
        """How many times in a row the key has failed."""
        return self._failures.get(key, 0)

    # --- adding ------------------------------------------------------------------------------------

    def add(self, key: Key) -> None:
        """Handle the key as soon as possible."""
        self._adds.add()
        self._add(key)

    def add_after(self, key: Key, delay: float) -> None:
        """Handle the key after ``delay`` seconds, or earlier if it is also added for an earlier time."""
        self._adds.add()
        self._add_after(key, delay)

    def add_batched(self, key: Key, *, at_least: float = 0.0) -> None:
        """Handle a single change at once, and gather the changes of a burst.

        A key that was started less than a batch period ago waits.  The wait ends early enough that handling is finished
        when the period is over, if it takes as long as the last time.  ``at_least`` is the minimum of seconds between
        two starts, for keys that are expensive to handle.
        """
        self._adds.add()
        self._longest_pause = max(self._longest_pause, at_least)
        started = self._started.get(key)
        if started is None:
            self._add(key)
            return
        pause = max(self._batch * GATHERING - self._took.get(key, 0.0), at_least)
        self._add_after(key, started + pause - self._clock.monotonic())

    def _add(self, key: Key) -> None:
        if key in self._waiting:
            return
        if key in self._running:
            self._again.add(key)
            return
        self._enqueue(key)
        self.wake()

    def _enqueue(self, key: Key) -> None:
        self._due.pop(key, None)
        self._waiting[key] = self._clock.monotonic()
        self._ready.append(key)

    def _add_after(self, key: Key, delay: float) -> None:
        if delay <= 0:
            self._add(key)
            return
        when = self._clock.monotonic() + delay
        if key in self._waiting or key in self._again or self._due.get(key, when + 1) <= when:
            return
        self._due[key] = when
        heapq.heappush(self._heap, (when, key))
        if len(self._heap) > 2 * len(self._due) + SWEEP:
            # Most are of keys that were handled before their time, which may be far off.
            self._heap = [(when, key) for key, when in self._due.items()]
            heapq.heapify(self._heap)
        self._arm()

    # --- handling ----------------------------------------------------------------------------------

    def take(self) -> Key | None:
        """The next key to handle, None if none is ready."""
        if not self._ready:
            return None
        key, now = self._ready.popleft(), self._clock.monotonic()
        self._waited.observe(now - self._waiting.pop(key))
        self._running.add(key)
        self._started[key] = now
        if len(self._started) >= self._sweep_at:
            self._forget_starts(now)
        return key

    def done(self, key: Key) -> None:
        """The key was handled successfully: after its next failure it waits for the shortest delay again."""
        if self._failures:
            self._failures.pop(key, None)
        self._give_back(key)

    def again(self, key: Key, delay: float) -> None:
        """The key was handled successfully; handle it again after ``delay`` seconds."""
        self.done(key)
        self._add_after(key, delay)

    def failed(self, key: Key, *, at_least: float = 0.0) -> None:
        """Handling the key failed: retry it after a growing delay of at least ``at_least`` seconds."""
        self._retries.add()
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        self._give_back(key)
        self._add_after(key, max(self._retry.delay(failures), self._bucket.reserve(), at_least))

    def _give_back(self, key: Key) -> None:
        took = self._clock.monotonic() - self._started[key]
        self._worked.observe(took)
        self._running.discard(key)
        if self._batch:
            self._took[key] = took
        if key in self._again:
            self._again.discard(key)
            self._enqueue(key)  # no wake: the worker that returns a key takes the next one anyway

    def _forget_starts(self, now: float) -> None:
        """Keep only start times that may still delay a batched key, because most keys never come again."""
        self._started = {
            key: at for key, at in self._started.items() if now - at < self._longest_pause or key in self._running
        }
        self._took = {key: took for key, took in self._took.items() if key in self._started}
        self._sweep_at = 2 * len(self._started) + SWEEP

    # --- time --------------------------------------------------------------------------------------

    def close(self) -> None:
        """Stop the timer; keys that are due later stay in the queue."""
        if self._timer is not None:
            self._timer[1].cancel()
            self._timer = None

    def _arm(self) -> None:
        """Set the timer to when the first key is due."""
        while self._heap and self._due.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)  # handled since, or now due earlier
        if not self._heap:
            return
        when = self._heap[0][0]
        if self._timer is not None:
            if self._timer[0] <= when:
                return
            self._timer[1].cancel()
        self._timer = (when, self._clock.call_later(max(0.0, when - self._clock.monotonic()), self._ring))

    def _ring(self) -> None:
        self._timer = None
        now = self._clock.monotonic()
        while self._heap and self._heap[0][0] <= now:
            when, key = heapq.heappop(self._heap)
            if self._due.get(key) == when:
                del self._due[key]
                self._add(key)
        self._arm()


def _nothing() -> None:
    """The ``wake`` of a queue without workers."""
