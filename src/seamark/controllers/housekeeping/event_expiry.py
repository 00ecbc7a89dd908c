"""Events are gone an hour after they last changed: nobody else would ever remove them.

The first to expire is known without looking at the others: they wait in a heap, and one that changed meanwhile is
put back when its old time comes.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
import time
from collections.abc import Awaitable, Callable

from seamark import errors
from seamark.access.cluster import Cluster
from seamark.access.informer import Key, key_of
from seamark.access.informers import Informers
from seamark.kinds.resource import EVENTS
from seamark.kinds.values import times
from seamark.metrics import Registry
from seamark.rules.objects.metadata import Metadata, View

log = logging.getLogger(__name__)

KEEP_SECONDS = 3600.0

# So many are deleted in a row; then everybody else gets their turn.
STEP = 20
PAUSE_SECONDS = 0.05
# After a failure, and at most: the clock of the machine may be put forward meanwhile.
LONGEST_SLEEP = 60.0


class Series(View, frozen=True):
    last_observed_time: str | None = None


class AgingEvent(View, frozen=True):
    metadata: Metadata
    last_timestamp: str | None = None
    event_time: str | None = None
    series: Series | None = None


def last_change(event: AgingEvent) -> float:
    """When an Event was last written, as far as it says so itself."""
    said = [event.metadata.creation_timestamp, event.last_timestamp, event.event_time]
    if event.series is not None:
        said.append(event.series.last_observed_time)
    return max((times.parse(moment) for moment in said if moment), default=0.0)


class EventExpiry:
    """Deletes Events ``keep`` seconds after they last changed."""

    def __init__(
        self,
        cluster: Cluster,
        informers: Informers,
        *,
        keep: float = KEEP_SECONDS,
        metrics: Registry | None = None,
        now: Callable[[], float] = time.time,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._cluster = cluster
        self._keep = keep
        self._now = now
        self._sleep = sleep
        self._expired = (metrics or Registry()).counter("seamark_events_expired_total", "Events deleted for their age.")
        self._due: dict[Key, float] = {}
        self._heap: list[tuple[float, Key]] = []
        self._events = informers.of(EVENTS, as_=AgingEvent)
        self._events.on_change(self._changed)

    def _changed(self, old: AgingEvent | None, new: AgingEvent | None) -> None:
        present = new if new is not None else old
        assert present is not None
        key = key_of(present.metadata.namespace, present.metadata.name)
        if new is None:
            self._due.pop(key, None)
            return
        # What changes now was written now; of what was there before we came, only the Event itself can tell.
        now = self._now()
        written = now if self._events.synced.is_set() else min(now, last_change(new))
        if key not in self._due:
            heapq.heappush(self._heap, (written + self._keep, key))
        self._due[key] = written + self._keep

    async def run(self) -> None:
        """Work until cancelled."""
        await self._events.synced.wait()
        while True:
            # Whatever comes meanwhile is due after ``keep`` seconds at the earliest.
            await self._sleep(min(await self._step(), LONGEST_SLEEP, self._keep))

    async def _step(self) -> float:
        """Delete a few that are due; in how many seconds to come again."""
        for _ in range(STEP):
            if not self._heap:
                return LONGEST_SLEEP
            filed, key = heapq.heappop(self._heap)
            due = self._due.get(key)
            if due is None:
                continue  # gone already
            if due > self._now():
                heapq.heappush(self._heap, (due, key))
                if filed > self._now():
                    return filed - self._now()
            elif not await self._delete(key):
                heapq.heappush(self._heap, (filed, key))
                return LONGEST_SLEEP
        return PAUSE_SECONDS

    async def _delete(self, key: Key) -> bool:
        """Whether the Event is gone, or should stay after all."""
        event = self._events.by_key(key)
        if event is None:
            return True
        meta = event.metadata
        try:
            await self._cluster.delete(
                EVENTS, meta.name, namespace=meta.namespace, uid=meta.uid, version=meta.resource_version
            )
        except errors.NotFound:
            return True
        except errors.Conflict:
            # It has just changed, which the informer is about to tell: it starts anew from then.
            self._due[key] = self._now() + self._keep
            heapq.heappush(self._heap, (self._due[key], key))
            return True
        except errors.ApiError as error:
            log.warning("an old Event could not be deleted: %s", error)
            return False
        self._expired.add()
        return True
