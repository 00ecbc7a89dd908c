"""Deletes Events, by default an hour after they last changed, because no other part removes them."""

from __future__ import annotations

from seamark import errors
from seamark.access.cluster import Cluster
from seamark.kinds.resource import EVENTS
from seamark.kinds.values import times
from seamark.rules.objects.metadata import ObjectView, View
from seamark.runtime.controller import Again, Controller
from seamark.runtime.manager import Manager
from seamark.runtime.queue import Key, Retry

# After so many deletions there is a pause, so that thousands of them at once do not delay other writers.  As many are
# under way at once: one after the other, they would fall behind the writers of Events on a busy machine.
STEP = 20
PAUSE_SECONDS = 0.05


class Series(View, frozen=True):
    last_observed_time: str | None = None


class AgingEvent(ObjectView, frozen=True):
    last_timestamp: str | None = None
    event_time: str | None = None
    series: Series | None = None


def last_change(event: AgingEvent) -> float:
    """When an Event was last written, according to its own fields."""
    said = [event.metadata.creation_timestamp, event.last_timestamp, event.event_time]
    if event.series is not None:
        said.append(event.series.last_observed_time)
    return max((times.parse(moment) for moment in said if moment), default=0.0)


class EventExpiry(Controller):
    """Deletes Events ``keep`` seconds after they last changed."""

    def __init__(self, manager: Manager, cluster: Cluster, *, keep: float) -> None:
        retry = Retry(base=1.0, cap=60.0)
        super().__init__("event-expiry", manager, workers=STEP, retry=retry)
        self._cluster = cluster
        self._keep = keep
        self._clock = manager.clock
        self._due: dict[Key, float] = {}
        self._events = self.watch(manager.informers.of(EVENTS, as_=AgingEvent), self._changed)
        self._expired = manager.metrics.counter("seamark_events_expired_total", "Events deleted for their age.")
        self._deletions = 0
        self._go_on_at = 0.0

    def reset(self) -> None:
        self._due.clear()

    def _changed(self, key: Key, old: AgingEvent | None, new: AgingEvent | None) -> None:
        if new is None:
            self._due.pop(key, None)
            return
        # An Event that changes now was written now; for one that existed before, only its fields can tell.
        now = self._clock.time()
        written = now if old is not None else min(now, last_change(new))
        self._due[key] = written + self._keep
        self.queue.add_after(key, written + self._keep - now)

    async def reconcile(self, key: Key) -> None:
        event, due = self._events.by_key(key), self._due.get(key)
        if event is None or due is None:
            return
        left = due - self._clock.time()
        if left > 0:
            raise Again(left, "it has changed since")
        await self._turn()
        meta = event.metadata
        try:
            await self._cluster.delete(
                EVENTS, meta.name, namespace=meta.namespace, uid=meta.uid, version=meta.resource_version
            )
        except errors.NotFound:
            return
        except errors.Conflict:
            # It has just changed, as the informer will show: its time starts again.
            self._due[key] = self._clock.time() + self._keep
            raise Again(self._keep) from None
        self._expired.add()

    async def _turn(self) -> None:
        """Wait until another deletion may begin."""
        while (pause := self._go_on_at - self._clock.monotonic()) > 0:
            await self._clock.sleep(pause)
        self._deletions += 1
        if self._deletions % STEP == 0:
            self._go_on_at = self._clock.monotonic() + PAUSE_SECONDS
