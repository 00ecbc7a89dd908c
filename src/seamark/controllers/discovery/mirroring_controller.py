"""The mirroring controller: slices for Endpoints that somebody wrote by hand.

What to write is :mod:`seamark.rules.mirroring`; this follows the cluster and carries it out.
"""

from __future__ import annotations

from seamark.access.clock import Clock, SteadyClock
from seamark.access.cluster import Cluster
from seamark.access.correlation import Reference
from seamark.access.events import EventRecorder
from seamark.access.informer import Informer, key_of
from seamark.controllers.discovery.slices_absent import AbsentSlices
from seamark.controllers.discovery.slices_store import SliceStore
from seamark.controllers.discovery.slices_writer import Outrun, SliceWriter
from seamark.kinds.wellknown import MIRROR_CONTROLLER
from seamark.metrics import Registry
from seamark.rules import mirroring
from seamark.rules.objects.endpoints import Endpoints
from seamark.rules.objects.endpointslice import EndpointSlice
from seamark.rules.objects.service import Service
from seamark.runtime.confirmations import Confirmations
from seamark.runtime.loop import Loop, Retry

Key = str

ATTEMPTS = 3


class MirroringController:
    """Follows Services, Endpoints and slices, keeps mirrored slices."""

    name = "endpointslicemirroring"

    def __init__(
        self,
        cluster: Cluster,
        *,
        services: Informer[Service],
        endpoints: Informer[Endpoints],
        slices: Informer[EndpointSlice],
        recorder: EventRecorder,
        workers: int = 5,
        batch: float = 0.0,
        clock: Clock | None = None,
        metrics: Registry | None = None,
    ) -> None:
        self._services = services
        self._endpoints = endpoints
        self._recorder = recorder
        self._batch = batch
        clock = clock or SteadyClock()
        self._absent = AbsentSlices(clock)
        self._store = SliceStore(MIRROR_CONTROLLER, Confirmations(clock, self._missed))
        self._writer = SliceWriter(cluster, self._store, managed_by=MIRROR_CONTROLLER, name=self.name, metrics=metrics)
        retry = Retry(base=1.0, cap=60.0)
        self.loop = Loop(self, workers=workers, retry=retry, clock=clock, metrics=metrics, batch=batch)
        services.on_change(self._service_changed)
        endpoints.on_change(self._endpoints_changed)
        slices.on_change(self._slice_changed)

    # --- following ---------------------------------------------------------------------------------

    def _service_changed(self, old: Service | None, new: Service | None) -> None:
        """Only whether there is a selector matters, and only where there is none can there be anything to mirror."""
        was, is_ = _hand_made(old), _hand_made(new)
        if was != is_:
            present = new if new is not None else old
            assert present is not None
            self.loop.add(key_of(present.metadata.namespace, present.metadata.name))

    def _endpoints_changed(self, old: Endpoints | None, new: Endpoints | None) -> None:
        for each in (old, new):
            if each is not None and mirroring.mirrorable(each):
                self.loop.add_batched(key_of(each.metadata.namespace, each.metadata.name))
                return

    def _slice_changed(self, old: EndpointSlice | None, new: EndpointSlice | None) -> None:
        for sighting in self._store.see(old, new):
            if sighting.taken:
                self._absent.miss(sighting.key, sighting.name)
            else:
                self._absent.found(sighting.key, sighting.name)
            if not sighting.trifling:
                self.loop.add_after(sighting.key, self._batch)

    def _missed(self, key: Key) -> None:
        """A slice we made has not been seen since."""
        self._writer.doubt(key)
        self.loop.add(key)

    # --- looking -----------------------------------------------------------------------------------

    async def reconcile(self, key: Key) -> None:
        if self._writer.unsure(key):
            await self._writer.refresh(key)
        for attempt in range(1, ATTEMPTS + 1):
            service, endpoints = self._services.by_key(key), self._endpoints.by_key(key)
            if mirroring.mirrors(service, endpoints):
                self._absent.wait(key)
            else:
                self._absent.forget(key)
            plan = mirroring.plan(service, endpoints, self._store.of(key).values())
            if endpoints is not None and attempt == 1:
                for note in plan.notes:
                    self._recorder.record(_about(endpoints), note.type, reason=note.reason, message=note.message)
            try:
                await self._writer.carry_out(key, plan.changes, lambda name, now: None)
                return
            except Outrun:
                if attempt == ATTEMPTS:
                    raise


def _hand_made(service: Service | None) -> bool:
    return service is not None and not service.spec.selector


def _about(endpoints: Endpoints) -> Reference:
    meta = endpoints.metadata
    return Reference(
        kind="Endpoints",
        name=meta.name,
        namespace=meta.namespace,
        uid=meta.uid,
        api_version="v1",
        resource_version=meta.resource_version,
    )
