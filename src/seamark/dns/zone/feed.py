"""Keeps the zone in step with the cluster's objects: applies each change, and reports the facts it touched.

Needs permission to list and watch Services, EndpointSlices (or Endpoints), Namespaces and, with ``pods=verified``,
Pods.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TypeVar

from seamark.access.backoff import Backoff
from seamark.access.cluster import Cluster
from seamark.access.informer import Informer, Key, split_key
from seamark.access.informers import Informers
from seamark.dns.config import ZoneConfig
from seamark.dns.zone.state import ClusterZone, Touched
from seamark.errors import ApiError, NotFound
from seamark.kinds.resource import ENDPOINT_SLICES, ENDPOINTS, NAMESPACES, PODS, SERVICES
from seamark.metrics import Registry
from seamark.rules.objects.endpoints import Endpoints
from seamark.rules.objects.endpointslice import EndpointSlice
from seamark.rules.objects.namespace import Namespace
from seamark.rules.objects.pod import Pod
from seamark.rules.objects.service import Service
from seamark.runtime.following import Derived, Following

T = TypeVar("T")
log = logging.getLogger(__name__)

# A selector that matches nothing: a list with it only shows whether the kind is served.
_NOTHING = "seamark.dev/no-such-label=asked-only-whether-the-kind-is-served"


class ZoneFeed(Derived):
    """Applies a cluster's changes to a zone; ``touched`` is called with the facts that each change touched.

    ``cleared`` is called when the zone is built again from the beginning, before it is told everything anew.
    """

    def __init__(
        self,
        cluster: Cluster,
        informers: Informers,
        zone: ClusterZone,
        config: ZoneConfig,
        *,
        touched: Callable[[Touched], None] = lambda touched: None,
        cleared: Callable[[], None] = lambda: None,
        metrics: Registry | None = None,
    ) -> None:
        super().__init__("dns")
        self._cluster = cluster
        self._informers = informers
        self._zone = zone
        self._config = config
        self._touched = touched
        self._cleared = cleared
        self._following = Following(self, metrics=metrics)
        self.complete = asyncio.Event()

    @property
    def synced(self) -> bool:
        """Whether every kind has been listed once: before that, a missing name may still exist."""
        return self.complete.is_set()

    @property
    def lag(self) -> float:
        """For how many seconds the connection to the API has been lost."""
        return max((informer.lag for informer, _ in self.watches), default=0.0)

    async def try_to_read(self) -> None:
        """Raise the error of the first kind that cannot be listed.

        ``run`` waits until the server answers and allows it, which is right for a server and wrong for a command.
        """
        endpoints = ENDPOINT_SLICES if await self._serves_slices() else ENDPOINTS
        pods = (PODS,) if self._config.pods == "verified" else ()
        for resource in (NAMESPACES, SERVICES, endpoints, *pods):
            await self._cluster.list(resource, labels=_NOTHING)

    async def run(self) -> None:
        """Start to follow the cluster, and return once its state is known; the informers keep it up to date."""
        zone, config, labels = self._zone, self._config, self._config.labels
        self._following.connect()
        self._follow(
            self._informers.of(NAMESPACES, as_=Namespace, labels=config.namespace_labels),
            lambda namespace: zone.put_namespace(namespace.metadata.name),
            lambda _, name: zone.remove_namespace(name),
        )
        self._follow(
            self._informers.of(SERVICES, as_=Service, labels=labels),
            zone.put_service,
            zone.remove_service,
        )
        if config.pods == "verified":
            self._follow(
                self._informers.of(PODS, as_=Pod, labels=labels),
                zone.put_pod,
                zone.remove_pod,
            )
        if await self._has_slices():
            self._follow(
                self._informers.of(ENDPOINT_SLICES, as_=EndpointSlice, labels=labels),
                zone.put_slice,
                zone.remove_slice,
            )
        else:
            self._follow(
                self._informers.of(ENDPOINTS, as_=Endpoints, labels=labels),
                zone.put_endpoints,
                zone.remove_endpoints,
            )
        await self._following.synced()
        self.complete.set()
        log.info("%d Services in %d namespaces are known", len(zone.services), len(zone.namespaces))

    def stop(self) -> None:
        """Follow the cluster no longer; the informers may have other readers."""
        self._following.close()

    def reset(self) -> None:
        self._zone.clear()
        self._cleared()

    def _follow(
        self, informer: Informer[T], put: Callable[[T], Touched], remove: Callable[[str, str], Touched]
    ) -> None:
        def changed(key: Key, old: T | None, new: T | None) -> None:
            self._touched(put(new) if new is not None else remove(*split_key(key)))

        self.watch(informer, changed)

    async def _has_slices(self) -> bool:
        """Whether the cluster serves EndpointSlices; retries until the API answers."""
        backoff = Backoff()
        while True:
            try:
                return await self._serves_slices()
            except ApiError as error:
                log.warning("cannot tell whether there are EndpointSlices: %s", error)
                await asyncio.sleep(backoff.next())

    async def _serves_slices(self) -> bool:
        if self._config.endpoints != "auto":
            return self._config.endpoints == "endpointslices"
        try:
            await self._cluster.list(ENDPOINT_SLICES, labels=_NOTHING)
        except NotFound:
            log.info("this cluster has no EndpointSlices: following Endpoints")
            return False
        return True


class OwnerFed:
    """In place of a feed, for a zone that its owner changes itself: complete from the start, and never behind."""

    synced = True
    lag = 0.0

    def __init__(self) -> None:
        self.complete = asyncio.Event()
        self.complete.set()

    async def run(self) -> None:
        return

    def stop(self) -> None:
        return
