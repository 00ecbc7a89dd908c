"""Telling people what happened, as Events they see with ``kubectl describe`` and ``kubectl get events``.

``record`` returns at once whatever the server does; ``run`` writes.  What is told, and what is only counted or left
out, is :mod:`seamark.access.correlation`.
"""

from __future__ import annotations

import asyncio
import logging
import random as _random
import time
from collections.abc import Awaitable, Callable
from typing import Any, Literal

import msgspec

from seamark.access.backoff import Random
from seamark.access.cluster import Cluster
from seamark.access.correlation import Correlator, Occurrence, Reference, Telling
from seamark.errors import (
    AlreadyExists,
    ApiError,
    Forbidden,
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
    """The reference to a whole object."""
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
    """Events of one component."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        component: str,
        host: str = "",
        now: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        random: Random = _random.random,
    ) -> None:
        self.dropped = 0  # how many found the queue full
        self._cluster = cluster
        self._component = component
        self._host = host
        self._now = now
        self._sleep = sleep
        self._random = random
        self._correlator = Correlator(clock=clock)
        self._queue: asyncio.Queue[Occurrence] = asyncio.Queue(QUEUE)

    def record(self, about: Reference, type: Literal["Normal", "Warning"], *, reason: str, message: str) -> None:
        """Something worth telling happened to an object.  Never waits: with too much waiting already, it is dropped."""
        try:
            self._queue.put_nowait(Occurrence(about, type, reason, message, self._now()))
        except asyncio.QueueFull:
            self.dropped += 1

    async def run(self) -> None:
        """Write what is recorded, until cancelled."""
        while True:
            telling = self._correlator.consider(await self._queue.get())
            try:
                if telling is not None:
                    await self._tell(telling)
            finally:
                self._queue.task_done()

    async def written(self) -> None:
        """Return when everything recorded so far has been dealt with."""
        await self._queue.join()

    async def _tell(self, telling: Telling) -> None:
        """Write one; while the server is out of reach, hold everything and keep trying for a while."""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                await self._write(telling)
                return
            except (ServiceUnavailable, Timeout, ServerTimeout) as error:
                failure: ApiError = error
            except ApiError as error:
                # The server will not change its mind about this one.
                level = logging.DEBUG if _expected(error) else logging.WARNING
                log.log(level, "the server rejected an event: %s", error)
                return
            if attempt < ATTEMPTS:
                # The first pause is a random part, so that not everyone comes back at once.
                await self._sleep(PAUSE * self._random() if attempt == 1 else PAUSE)
        log.error("gave up on an event about %s: %s", telling.occurrence.about.name, failure)

    async def _write(self, telling: Telling) -> None:
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
                # Events live for an hour or so; the first of these is gone, and a new one tells the whole count.
                log.debug("event %s/%s is gone, making it anew", namespace, telling.name)
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
    """Whether a rejection is nobody's mistake: written already, its answer lost, or in a namespace going away."""
    ending = isinstance(error, Forbidden) and any(cause.reason == "NamespaceTerminating" for cause in error.causes)
    return ending or isinstance(error, AlreadyExists)
