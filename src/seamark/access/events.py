"""Writes Kubernetes Events, which people see with ``kubectl describe`` and ``kubectl get events``.

``record`` only queues and never waits for the server.  A task writes; it starts with the first event and ends when none
is left.  :mod:`seamark.access.correlation` decides which events are written and which are only counted.
"""

from __future__ import annotations

import asyncio
import logging
import random as _random
from collections import deque
from typing import Any, Literal

import msgspec

from seamark.access.backoff import Random
from seamark.access.cluster import Cluster
from seamark.access.correlation import Correlator, Occurrence, Reference, Telling
from seamark.clock import SYSTEM_CLOCK, Clock
from seamark.errors import (
    AlreadyExists,
    ApiError,
    NotFound,
    Object,
    ServerTimeout,
    ServiceUnavailable,
    Timeout,
)
from seamark.kinds.resource import EVENTS
from seamark.kinds.values.times import text

__all__ = ["EventRecorder", "Reference", "reference"]

log = logging.getLogger(__name__)

QUEUE = 1000
ATTEMPTS = 12
PAUSE = 10.0


def reference(obj: Object) -> Reference:
    """A reference to an object as a whole, without a field path."""
    metadata = obj["metadata"]
    return Reference(
        kind=obj.get("kind", ""),
        name=metadata["name"],
        namespace=metadata.get("namespace", ""),
        uid=metadata.get("uid", ""),
        api_version=obj.get("apiVersion", ""),
        resource_version=metadata.get("resourceVersion", ""),
    )


class EventRecorder:
    """Records the Events of one component."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        component: str,
        host: str = "",
        clock: Clock = SYSTEM_CLOCK,
        random: Random = _random.random,
    ) -> None:
        self.dropped = 0  # events lost because the queue was full
        self._cluster = cluster
        self._component = component
        self._host = host
        self._clock = clock
        self._random = random
        self._correlator = Correlator(clock=clock)
        self._waiting: deque[Occurrence] = deque()
        self._writing: asyncio.Task[None] | None = None

    def record(self, about: Reference, type: Literal["Normal", "Warning"], *, reason: str, message: str) -> None:
        """Queue an event about an object.  Never waits: if the queue is full, the event is dropped."""
        if len(self._waiting) >= QUEUE:
            self.dropped += 1
            return
        self._waiting.append(Occurrence(about, type, reason, message, self._clock.time()))
        if self._writing is None:
            self._writing = asyncio.create_task(self._write_all(), name=f"events of {self._component}")

    async def written(self) -> None:
        """Return when all events recorded so far have been written or given up."""
        if self._writing is not None:
            await asyncio.wait([self._writing])

    async def stop(self) -> None:
        """Give up the events that are not written yet."""
        if self._writing is not None:
            self._writing.cancel()
            await asyncio.wait([self._writing])
            self._writing = None  # in case it was cancelled before it began

    async def _write_all(self) -> None:
        try:
            while self._waiting:
                telling = self._correlator.consider(self._waiting.popleft())
                if telling is not None:
                    await self._tell(telling)
        finally:
            self._writing = None

    async def _tell(self, telling: Telling) -> None:
        """Write one Event; while the server cannot be reached, retry for about two minutes, and let the others wait."""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                await self._write(telling, again=attempt > 1)
                return
            except (ServiceUnavailable, Timeout, ServerTimeout) as error:
                failure: ApiError = error
            except ApiError as error:
                # A retry would be rejected again.
                level = logging.DEBUG if _expected(error) else logging.WARNING
                log.log(level, "the server rejected an event: %s", error)
                return
            except Exception:
                # A lost Event is no reason to lose those that wait behind it.
                log.exception("could not write an event about %s", telling.occurrence.about.name)
                return
            if attempt < ATTEMPTS:
                # The first pause is random, so that the clients of a server do not all come back at once.
                await self._clock.sleep(PAUSE * self._random() if attempt == 1 else PAUSE)
        log.error("gave up on an event about %s: %s", telling.occurrence.about.name, failure)

    async def _write(self, telling: Telling, *, again: bool) -> None:
        namespace = telling.occurrence.about.namespace or "default"
        if telling.count > 1:
            change = {
                "count": telling.count,
                "lastTimestamp": text(telling.occurrence.at),
                "message": telling.message,
            }
            try:
                await self._cluster.patch(EVENTS, telling.name, change, namespace=namespace, type="strategic")
                return
            except NotFound:
                # The Event has expired (after about an hour): create it anew, with the whole count.
                log.debug("event %s/%s is gone, making it anew", namespace, telling.name)
        try:
            await self._cluster.create(EVENTS, self._event(telling, namespace), namespace=namespace)
        except AlreadyExists:
            if again:
                raise  # the earlier attempt may have written it
            self._correlator.rename(telling)
            await self._cluster.create(EVENTS, self._event(telling, namespace), namespace=namespace)

    def _event(self, telling: Telling, namespace: str) -> Object:
        occurrence = telling.occurrence
        source: dict[str, Any] = {"component": self._component}
        if self._host:
            source["host"] = self._host
        return {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": {"name": telling.name, "namespace": namespace},
            "involvedObject": msgspec.to_builtins(occurrence.about),
            "type": occurrence.type,
            "reason": occurrence.reason,
            "message": telling.message,
            "count": telling.count,
            "firstTimestamp": text(telling.first),
            "lastTimestamp": text(occurrence.at),
            "source": source,
            "reportingComponent": self._component,
            "reportingInstance": self._host,
        }


def _expected(error: ApiError) -> bool:
    """Whether a rejection is normal: an earlier attempt was written but its answer lost, or the namespace is ending."""
    return error.namespace_terminating or isinstance(error, AlreadyExists)
