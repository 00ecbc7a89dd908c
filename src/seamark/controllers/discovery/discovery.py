"""The three controllers that make Services findable, over one set of informers.

``run`` is all that is needed against any cluster; a process with more controllers builds :class:`Discovery` itself and
gives it the informers it shares.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection

from seamark.access.clock import Clock
from seamark.access.cluster import Cluster
from seamark.access.events import EventRecorder
from seamark.access.informers import Informers
from seamark.controllers.discovery.endpoints_controller import EndpointsController
from seamark.controllers.discovery.endpointslices_controller import EndpointSlicesController
from seamark.controllers.discovery.members import Members
from seamark.controllers.discovery.mirroring_controller import MirroringController
from seamark.controllers.settings import ALL, DiscoverySettings, Name
from seamark.kinds.resource import ENDPOINT_SLICES, ENDPOINTS, NODES, PODS, SERVICES
from seamark.kinds.wellknown import ENDPOINTS_CONTROLLER
from seamark.metrics import Registry
from seamark.rules.objects.endpoints import Endpoints
from seamark.rules.objects.endpointslice import EndpointSlice
from seamark.rules.objects.node import Node
from seamark.rules.objects.pod import Pod
from seamark.rules.objects.service import Service
from seamark.runtime.loop import Loop

log = logging.getLogger(__name__)


class Discovery:
    """The discovery controllers of one process."""

    def __init__(
        self,
        cluster: Cluster,
        informers: Informers,
        *,
        which: Collection[Name] = ALL,
        settings: DiscoverySettings | None = None,
        clock: Clock | None = None,
        metrics: Registry | None = None,
    ) -> None:
        unknown = set(which) - set(ALL)
        if unknown:
            raise ValueError(f"no such controller: {', '.join(sorted(unknown))}; there are {', '.join(ALL)}")
        self._informers = informers
        self._synced = False
        self._recorders: list[EventRecorder] = []
        self._loops: list[Loop] = []
        self._endpoints: EndpointsController | None = None
        self._build(cluster, which, settings or DiscoverySettings(), clock=clock, metrics=metrics or Registry())

    def _build(
        self,
        cluster: Cluster,
        which: Collection[Name],
        settings: DiscoverySettings,
        *,
        clock: Clock | None,
        metrics: Registry,
    ) -> None:
        informers = self._informers
        services = informers.of(SERVICES, as_=Service)
        nodes = informers.of(NODES, as_=Node)
        members = Members(services=services, pods=informers.of(PODS, as_=Pod), nodes=nodes)
        workers, batch = settings.workers, settings.batch
        if "endpoints" in which:
            self._endpoints = EndpointsController(
                cluster,
                members=members,
                endpoints=informers.of(ENDPOINTS, as_=Endpoints),
                recorder=self._recorder(cluster, ENDPOINTS_CONTROLLER),
                workers=workers,
                batch=batch,
                clock=clock,
                metrics=metrics,
            )
            self._loops.append(self._endpoints.loop)
        if "endpointslices" in which:
            slices = EndpointSlicesController(
                cluster,
                members=members,
                nodes=nodes,
                slices=informers.of(ENDPOINT_SLICES, as_=EndpointSlice),
                recorder=self._recorder(cluster, "endpoint-slice-controller"),
                limit=settings.max_endpoints_per_slice,
                workers=workers,
                batch=batch,
                clock=clock,
                metrics=metrics,
            )
            self._loops.append(slices.loop)
        if "endpointslicemirroring" in which:
            mirroring = MirroringController(
                cluster,
                services=services,
                endpoints=informers.of(ENDPOINTS, as_=Endpoints),
                slices=informers.of(ENDPOINT_SLICES, as_=EndpointSlice),
                recorder=self._recorder(cluster, "endpoint-slice-mirroring-controller"),
                workers=workers,
                batch=batch,
                clock=clock,
                metrics=metrics,
            )
            self._loops.append(mirroring.loop)

    def _recorder(self, cluster: Cluster, component: str) -> EventRecorder:
        recorder = EventRecorder(cluster, component=component)
        self._recorders.append(recorder)
        return recorder

    @property
    def ready(self) -> bool:
        """Whether everything has been listed once and the controllers are at work."""
        return self._synced

    @property
    def lag(self) -> float:
        """For how many seconds the controllers have not seen the server: what they know may be that old."""
        return self._informers.lag

    @property
    def idle(self) -> bool:
        """Whether there is nothing to do just now, as far as anybody here knows."""
        return self._synced and all(loop.idle for loop in self._loops)

    async def run(self) -> None:
        """Work until cancelled.  The informers must be running, or be started meanwhile."""
        try:
            async with asyncio.TaskGroup() as tasks:
                for recorder in self._recorders:
                    tasks.create_task(recorder.run(), name="event recorder")
                # Before everything is known, what is missing would be taken for deleted.
                await self._informers.synced()
                if self._endpoints is not None:
                    self._endpoints.queue_leftovers()
                self._synced = True
                for loop in self._loops:
                    tasks.create_task(loop.run(), name=f"{loop.controller.name} controller")
                log.info("controllers at work: %s", ", ".join(loop.controller.name for loop in self._loops))
        finally:
            self._synced = False


async def run(
    cluster: Cluster,
    *,
    which: Collection[Name] = ALL,
    settings: DiscoverySettings | None = None,
    metrics: Registry | None = None,
) -> None:
    """Run the controllers against a cluster until cancelled."""
    informers = Informers(cluster)
    discovery = Discovery(cluster, informers, which=which, settings=settings, metrics=metrics)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(informers.run(), name="informers")
        tasks.create_task(discovery.run(), name="discovery controllers")
