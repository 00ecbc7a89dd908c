"""The mirroring controller: slices for Endpoints that a user wrote by hand.

:mod:`seamark.rules.mirroring` decides what to write; this module follows the cluster and writes it.
"""

from __future__ import annotations

from seamark.access.cluster import Cluster
from seamark.access.correlation import Reference
from seamark.access.informer import Informer
from seamark.controllers.discovery.slices import AbsentSlices, Outrun, Slices
from seamark.kinds.resource import ENDPOINTS
from seamark.kinds.wellknown import MIRROR_CONTROLLER
from seamark.rules import mirroring
from seamark.rules.objects.endpoints import Endpoints
from seamark.rules.objects.endpointslice import EndpointSlice
from seamark.rules.objects.service import Service
from seamark.runtime.controller import Controller
from seamark.runtime.manager import Manager
from seamark.runtime.queue import Key, Retry

ATTEMPTS = 3


class MirroringController(Controller):
    """Follows Services, Endpoints and slices, and writes mirrored slices."""

    def __init__(
        self,
        manager: Manager,
        cluster: Cluster,
        *,
        services: Informer[Service],
        endpoints: Informer[Endpoints],
        slices: Informer[EndpointSlice],
        workers: int,
        batch: float,
    ) -> None:
        retry = Retry(base=1.0, cap=60.0)
        super().__init__("endpointslicemirroring", manager, workers=workers, retry=retry, batch=batch)
        self._services = self.watch(services, self._service_changed)
        self._endpoints = self.watch(endpoints, self._endpoints_changed)
        self.watch(slices, self._slice_changed)
        self._slices = Slices(manager, cluster, slices, self, managed_by=MIRROR_CONTROLLER)
        self._absent = AbsentSlices(manager.clock)
        self._recorder = manager.recorder(cluster, "endpoint-slice-mirroring-controller")
        self._batch = batch

    # --- following ---------------------------------------------------------------------------------

    def reset(self) -> None:
        self._absent.clear()

    def _service_changed(self, key: Key, old: Service | None, new: Service | None) -> None:
        """Only Endpoints of Services without a selector are mirrored, so only a change of that matters."""
        if _hand_made(old) != _hand_made(new):
            self.queue.add(key)

    def _endpoints_changed(self, key: Key, old: Endpoints | None, new: Endpoints | None) -> None:
        if any(each is not None and mirroring.mirrorable(each) for each in (old, new)):
            self.queue.add_batched(key)

    def _slice_changed(self, key: Key, old: EndpointSlice | None, new: EndpointSlice | None) -> None:
        for sighting in self._slices.see(key, old, new):
            if sighting.taken:
                self._absent.miss(sighting.key, sighting.name)
            else:
                self._absent.found(sighting.key, sighting.name)
            if not sighting.trifling:
                self.queue.add_after(sighting.key, self._batch)

    # --- looking -----------------------------------------------------------------------------------

    async def reconcile(self, key: Key) -> None:
        if self._slices.doubtful(key):
            await self._slices.refresh(key)
        for attempt in range(1, ATTEMPTS + 1):
            service, endpoints = self._services.by_key(key), self._endpoints.by_key(key)
            if mirroring.mirrors(service, endpoints):
                self._absent.wait(key)
            else:
                self._absent.forget(key)
            plan = mirroring.plan(service, endpoints, self._slices.of(key).values())
            if endpoints is not None and attempt == 1:
                about = Reference.of(ENDPOINTS, endpoints.metadata)
                for note in plan.notes:
                    self._recorder.record(about, note.type, reason=note.reason, message=note.message)
            try:
                await self._slices.carry_out(key, plan.changes, lambda name, now: None)
                return
            except Outrun:
                if attempt == ATTEMPTS:
                    raise


def _hand_made(service: Service | None) -> bool:
    return service is not None and not service.spec.selector
