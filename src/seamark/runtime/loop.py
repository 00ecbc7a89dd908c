"""The work queue and the loop every controller runs in.

A controller reacts to *keys*, not to events: whatever happened to ``default/web``, it is looked at once, as it is now.
To write one, give it a ``name`` and ``reconcile(key)``, build a :class:`Loop`, and let informers add keys:

    loop = Loop(controller, workers=5)
    informer.on_change(lambda old, new: loop.add(key(new or old)))
    await loop.run()

``reconcile`` returns when all is well and raises when it is not; the key then comes again, later each time, and no
other key waits for it.  Raise :class:`Again` to come back at a certain time without anything being wrong.

The loop promises that a key is never in two hands at once, that a key added while it is being handled is handled once
more, and that many additions of a key before its turn are one.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol

import msgspec

from seamark.access.clock import Cancellable, Clock, SteadyClock
from seamark.access.ratelimit import TokenBucket
from seamark.errors import ApiError, Conflict
from seamark.metrics import Registry

log = logging.getLogger(__name__)

Key = str

# From so many conflicts in a row on, a key is worth a line in the log.
MANY_CONFLICTS = 5


# The part of a batch period that is for gathering and writing; the rest is for a busy machine.
GATHERING = 0.8


class Controller(Protocol):
    """Somebody who makes the world as it should be, one key at a time."""

    @property
    def name(self) -> str:
        """As people read it in logs and metrics."""
        ...

    async def reconcile(self, key: Key) -> None:
        """Look at everything this key stands for and do what is needed.  Must be safe to repeat and to interrupt."""
        ...


class Again(Exception):
    """Nothing is wrong, but the key should be looked at again ``after`` so many seconds."""

    def __init__(self, after: float, why: str = "") -> None:
        super().__init__(why or f"again in {after:g} s")
        self.after = after


class Expected(Exception):
    """Base of a controller's own complaints about a key: worth a line in the log, not a traceback."""


class Retry(msgspec.Struct, frozen=True):
    """How long a key that failed waits: twice as long each time, from ``base`` to ``cap`` seconds.

    ``rate`` and ``burst`` bound the retries of all keys together, so that an outage is not followed by a storm.
    """

    base: float = 0.005
    cap: float = 60.0
    rate: float = 10.0
    burst: int = 100

    def delay(self, failures: int) -> float:
        # 2.0 ** 1024 overflows; long before that the cap is reached.
        return min(self.cap, self.base * 2.0 ** min(failures, 64))


class _Timer(msgspec.Struct, frozen=True):
    due: float
    handle: Cancellable


class Queue:
    """Keys that wait for their turn, each once.  Everything but ``get`` returns at once."""

    def __init__(self, *, retry: Retry | None = None, clock: Clock | None = None, batch: float = 0.0) -> None:
        self._retry = retry or Retry()
        self._clock = clock or SteadyClock()
        self._batch = batch
        self._bucket = TokenBucket(rate=self._retry.rate, burst=self._retry.burst, clock=self._clock.now)
        self._ready: asyncio.Queue[Key] = asyncio.Queue()
        self._waiting: dict[Key, float] = {}  # since when
        self._running: set[Key] = set()
        self._again: set[Key] = set()
        self._timers: dict[Key, _Timer] = {}
        self._failures: dict[Key, int] = {}
        self._started: dict[Key, float] = {}  # when it was last taken up
        self._took: dict[Key, float] = {}  # how long that took
        self._longest = batch
        self._sweep_at = 1024

    def __len__(self) -> int:
        """How many keys wait for a free hand, those waiting for a time not counted."""
        return len(self._waiting)

    @property
    def idle(self) -> bool:
        """Nothing waits, nothing is being handled, and nothing comes later by itself."""
        return not (self._waiting or self._running or self._timers)

    def failures(self, key: Key) -> int:
        """How many times in a row the key has failed."""
        return self._failures.get(key, 0)

    def add(self, key: Key) -> None:
        """Handle the key as soon as possible."""
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.handle.cancel()
        if key in self._running:
            self._again.add(key)
        elif key not in self._waiting:
            self._waiting[key] = self._clock.now()
            self._ready.put_nowait(key)

    def add_after(self, key: Key, delay: float) -> None:
        """Handle the key in so many seconds, or earlier if somebody asks for that."""
        if delay <= 0:
            self.add(key)
            return
        if key in self._waiting or key in self._again:
            return
        due = self._clock.now() + delay
        timer = self._timers.get(key)
        if timer is not None:
            if timer.due <= due:
                return
            timer.handle.cancel()
        self._timers[key] = _Timer(due, self._clock.call_later(delay, lambda: self._due(key)))

    def add_batched(self, key: Key, *, at_least: float = 0.0) -> None:
        """Handle the key at once, unless it was taken up less than a batch period ago: then so that it is done, if it
        takes as long as the last time, when that period is over.

        A single change is not kept waiting, a burst of them costs one handling per period, and none of them waits for
        longer than the period.  ``at_least`` is a rest between two handlings for keys that are dear to handle.
        """
        self._longest = max(self._longest, at_least)
        started = self._started.get(key)
        if started is None:
            self.add(key)
            return
        pause = max(self._batch * GATHERING - self._took.get(key, 0.0), at_least)
        self.add_after(key, started + pause - self._clock.now())

    def add_failed(self, key: Key, *, at_least: float = 0.0) -> None:
        """Handle the key again after it failed, later each time it fails in a row."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        delay = max(self._retry.delay(failures - 1), self._bucket.reserve(), at_least)
        self.add_after(key, delay)

    def forget(self, key: Key) -> None:
        """The key is all right: should it fail again, begin with the shortest wait."""
        self._failures.pop(key, None)

    async def get(self) -> tuple[Key, float]:
        """The next key and for how long it has waited; give it back by ``done``."""
        key = await self._ready.get()
        now = self._clock.now()
        waited = now - self._waiting.pop(key)
        self._running.add(key)
        self._started[key] = now
        self._sweep(now)
        return key, waited

    def done(self, key: Key) -> None:
        """The key has been handled."""
        self._running.discard(key)
        if self._batch and key in self._started:
            self._took[key] = self._clock.now() - self._started[key]
        if key in self._again:
            self._again.discard(key)
            self.add(key)

    def close(self) -> None:
        """Nothing comes later any more."""
        for timer in self._timers.values():
            timer.handle.cancel()
        self._timers.clear()

    def _due(self, key: Key) -> None:
        self._timers.pop(key, None)
        self.add(key)

    def _sweep(self, now: float) -> None:
        """Forget keys whose period is over, now and then: most keys never come back."""
        if len(self._started) >= self._sweep_at:
            self._started = {key: at for key, at in self._started.items() if now - at < self._longest}
            self._took = {key: took for key, took in self._took.items() if key in self._started}
            self._sweep_at = 2 * len(self._started) + 1024


class Loop:
    """One controller at work on its queue."""

    def __init__(
        self,
        controller: Controller,
        *,
        workers: int = 5,
        retry: Retry | None = None,
        clock: Clock | None = None,
        metrics: Registry | None = None,
        batch: float = 0.0,
        grace: float = 5.0,
    ) -> None:
        self.controller = controller
        self._workers = workers
        self._clock = clock or SteadyClock()
        self._queue = Queue(retry=retry, clock=self._clock, batch=batch)
        self._grace = grace
        self._stopping = asyncio.Event()
        self._busy: set[asyncio.Task[None]] = set()
        registry, labels = metrics or Registry(), ("name",)
        name = controller.name
        # The names are those of Kubernetes' own controllers, for the dashboards that know them.
        self._adds = registry.counter("workqueue_adds_total", "Keys added.", name, labels=labels)
        self._depth = registry.gauge("workqueue_depth", "Keys waiting.", name, labels=labels)
        self._retries = registry.counter(
            "workqueue_retries_total", "Keys added again after a failure.", name, labels=labels
        )
        self._waited = registry.histogram("workqueue_queue_duration_seconds", "Waiting of keys.", name, labels=labels)
        self._worked = registry.histogram("workqueue_work_duration_seconds", "Handling of keys.", name, labels=labels)

    @property
    def idle(self) -> bool:
        return self._queue.idle

    def add(self, key: Key) -> None:
        self._adds.add()
        self._queue.add(key)
        self._depth.set(len(self._queue))

    def add_after(self, key: Key, delay: float) -> None:
        self._adds.add()
        self._queue.add_after(key, delay)
        self._depth.set(len(self._queue))

    def add_batched(self, key: Key, *, at_least: float = 0.0) -> None:
        self._adds.add()
        self._queue.add_batched(key, at_least=at_least)
        self._depth.set(len(self._queue))

    async def run(self) -> None:
        """Work until cancelled; what is being handled then may finish within ``grace`` seconds."""
        self._stopping.clear()
        tasks = [
            asyncio.create_task(self._work(), name=f"{self.controller.name} worker {number}")
            for number in range(1, self._workers + 1)
        ]
        try:
            # A worker ends by itself only if something is broken beyond one key.
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            self._stopping.set()
            self._queue.close()
            await self._end(tasks)

    async def _end(self, tasks: list[asyncio.Task[None]]) -> None:
        try:
            for task in tasks:
                if task not in self._busy:
                    task.cancel()
            if self._busy:
                await asyncio.wait(tasks, timeout=self._grace)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _work(self) -> None:
        me = asyncio.current_task()
        assert me is not None
        while not self._stopping.is_set():
            key, waited = await self._queue.get()
            self._waited.observe(waited)
            self._depth.set(len(self._queue))
            self._busy.add(me)
            try:
                await self._handle(key)
            finally:
                self._busy.discard(me)

    async def _handle(self, key: Key) -> None:
        began = self._clock.now()
        try:
            await self.controller.reconcile(key)
        except Again as again:
            self._queue.forget(key)
            self._queue.done(key)
            self._queue.add_after(key, again.after)
        except Exception as error:
            self._complain(key, error)
            self._retries.add()
            self._queue.done(key)
            retry_after = error.retry_after if isinstance(error, ApiError) else None
            self._queue.add_failed(key, at_least=float(retry_after or 0))
        else:
            self._queue.forget(key)
            self._queue.done(key)
        finally:
            self._worked.observe(self._clock.now() - began)

    def _complain(self, key: Key, error: Exception) -> None:
        attempt = self._queue.failures(key) + 1
        if isinstance(error, ApiError | Expected):
            # Somebody else was faster: with informers always a little behind, that is how it goes.
            outrun = isinstance(error, Conflict) and attempt < MANY_CONFLICTS
            level = logging.DEBUG if outrun else logging.WARNING
            log.log(level, "%s: %s failed (attempt %d): %s", self.controller.name, key, attempt, error)
        else:
            log.error("%s: %s failed (attempt %d)", self.controller.name, key, attempt, exc_info=error)
