"""The EndpointSlice controller: slices for every Service with a selector.

What to write is :mod:`seamark.rules.slices.state`; this follows the cluster and carries it out.
"""

from __future__ import annotations

import msgspec

from seamark.access.clock import Clock, SteadyClock
from seamark.access.cluster import Cluster
from seamark.access.correlation import Reference
from seamark.access.events import EventRecorder
from seamark.access.informer import Informer, key_of
from seamark.controllers.discovery.members import Members
from seamark.controllers.discovery.slices_absent import AbsentSlices
from seamark.controllers.discovery.slices_store import SliceStore
from seamark.controllers.discovery.slices_writer import Outrun, SliceWriter
from seamark.errors import ApiError
from seamark.kinds.values.addresses import Family
from seamark.kinds.wellknown import ENDPOINTS_PER_SLICE, SLICE_CONTROLLER
from seamark.metrics import Registry
from seamark.rules import hints
from seamark.rules.changes import Notice, TriggerTimes
from seamark.rules.objects.endpointslice import EndpointSlice
from seamark.rules.objects.node import Node
from seamark.rules.objects.service import Service
from seamark.rules.slices.state import SlicesPlan, SlicesState, Topology
from seamark.runtime.confirmations import Confirmations
from seamark.runtime.loop import Expected, Loop, Retry

Key = str

# A key that is no Service's: look at the Nodes again.
TOPOLOGY = ""

ATTEMPTS = 3

# During a rollout every slice of a Service changes all the time.  Many of them rest a little between two writes, a
# twentieth of a second for a thousand endpoints; a change that comes alone is written at once all the same.
PAUSE_PER_SLICE = 0.005

# Slices that others change are put right after this many seconds: several may be on their way, and somebody who does
# the same work should not be answered blow by blow.
EDIT_DELAY = 1.0


class NodesMissing(Expected):
    """Pods were left out because their Nodes do not exist; the rest has been written."""


class _Kept(msgspec.Struct):
    """What is kept per Service between two looks at it."""

    state: SlicesState
    times: TriggerTimes
    dirty: set[str] = msgspec.field(default_factory=set)
    zones: dict[Family, hints.Zones] = msgspec.field(default_factory=dict)


class EndpointSlicesController:
    """Follows Services, Pods, Nodes and slices, keeps slices."""

    name = "endpointslices"

    def __init__(
        self,
        cluster: Cluster,
        *,
        members: Members,
        nodes: Informer[Node],
        slices: Informer[EndpointSlice],
        recorder: EventRecorder,
        limit: int = ENDPOINTS_PER_SLICE,
        workers: int = 5,
        batch: float = 0.0,
        clock: Clock | None = None,
        metrics: Registry | None = None,
    ) -> None:
        self._members = members
        self._nodes = nodes
        self._recorder = recorder
        self._limit = limit
        self._kept: dict[Key, _Kept] = {}
        clock = clock or SteadyClock()
        self._absent = AbsentSlices(clock)
        self._store = SliceStore(SLICE_CONTROLLER, Confirmations(clock, self._missed))
        self._writer = SliceWriter(cluster, self._store, managed_by=SLICE_CONTROLLER, name=self.name, metrics=metrics)
        self._shares: dict[str, float] | None = None
        self._shares_known = False
        self._edit_delay = max(EDIT_DELAY, batch)
        retry = Retry(base=1.0, cap=60.0)
        self.loop = Loop(self, workers=workers, retry=retry, clock=clock, metrics=metrics, batch=batch)
        members.follow(self)
        slices.on_change(self._slice_changed)
        nodes.on_change(self._node_changed)

    # --- following ---------------------------------------------------------------------------------

    def service_changed(self, key: Key) -> None:
        self.loop.add(key)

    def pod_changed(self, key: Key, name: str, *, wake: bool) -> None:
        kept = self._kept.get(key)
        if kept is not None:
            kept.dirty.add(name)
            # A Pod left out for want of its Node is worth looking at as soon as anything about it changes.
            wake = wake or name in kept.state.nodeless
        if wake:
            slices = len(kept.state) if kept is not None else 0
            self.loop.add_batched(key, at_least=slices * PAUSE_PER_SLICE)

    def _slice_changed(self, old: EndpointSlice | None, new: EndpointSlice | None) -> None:
        for sighting in self._store.see(old, new):
            key, name, now = sighting.key, sighting.name, sighting.slice
            if sighting.taken or (now is not None and now.metadata.deletion_timestamp is not None):
                self._absent.miss(key, name)
                ours = False
            else:
                ours = not self._absent.found(key, name)
            kept = self._kept.get(key)
            if kept is not None:
                ours = ours and now is not None and kept.state.planned(now)
                kept.state.see(name, now)
                if ours:
                    continue  # our own write, seen before its answer
            if not sighting.trifling:
                self.loop.add_after(key, self._edit_delay)

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        if old is None or new is None or old.ready != new.ready or old.zone != new.zone:
            self._shares_known = False
            self.loop.add(TOPOLOGY)

    def _missed(self, key: Key) -> None:
        """A slice we made has not been seen since."""
        self._writer.doubt(key)
        self.loop.add(key)

    # --- looking -----------------------------------------------------------------------------------

    async def reconcile(self, key: Key) -> None:
        if key == TOPOLOGY:
            self._look_at_nodes()
            return
        service = self._members.service(key)
        kept = self._kept.get(key)
        if service is None or (kept is not None and kept.state.service.metadata.uid != service.metadata.uid):
            self._absent.forget(key)
        if service is None or not service.managed:
            # Slices of a Service that is gone are the garbage collector's; those of one that lost its selector stay.
            self._kept.pop(key, None)
            return
        self._absent.wait(key)
        try:
            if self._writer.unsure(key):
                await self._reread(key)
            plan = await self._settle(key, service)
        except ApiError as error:
            self._complain(service, str(error))
            raise
        if plan.nodeless:
            missing = [_missing(service, pod, node) for pod, node in plan.nodeless]
            message = missing[0] if len(missing) == 1 else f"[{', '.join(missing)}]"
            self._complain(service, message)
            raise NodesMissing(message)

    async def _settle(self, key: Key, service: Service) -> SlicesPlan:
        """Plan and carry out, and begin anew where somebody else was faster."""
        attempt = 1
        while True:
            kept = self._prepare(key, service)
            topology = Topology(self._zone_shares(), hinted=bool(kept.zones))
            plan = kept.state.plan(topology=topology, trigger_time=kept.times.earliest(service))
            try:
                await self._writer.carry_out(key, plan.changes, kept.state.see)
                break
            except Outrun:
                self._kept[key] = self._built(key, service, kept)
                if attempt == ATTEMPTS:
                    raise
                attempt += 1
        kept.times.written(service)
        kept.zones = dict(plan.zones)
        for note in plan.notes:
            self._tell(service, note)
        return plan

    def _prepare(self, key: Key, service: Service) -> _Kept:
        """What is known of the Service, brought up to date."""
        kept = self._kept.get(key)
        if kept is None or not kept.state.renew(service):
            kept = self._kept[key] = self._built(key, service, kept)
        dirty, kept.dirty = kept.dirty, set()
        for name in dirty:
            self._put(kept, name)
        return kept

    def _built(self, key: Key, service: Service, before: _Kept | None) -> _Kept:
        """Everything about the Service from the beginning."""
        kept = _Kept(SlicesState(service, limit=self._limit), TriggerTimes())
        if before is not None:
            kept.times, kept.zones = before.times, before.zones
        for endpoint_slice in self._store.of(key).values():
            kept.state.observe(endpoint_slice)
        kept.dirty = {pod.metadata.name for pod in self._members.pods(service)}
        return kept

    def _put(self, kept: _Kept, name: str) -> None:
        pod = self._members.pod(kept.state.service, name)
        kept.state.put(name, pod, self._members.node_of(pod))
        kept.times.put(name, pod)

    async def _reread(self, key: Key) -> None:
        """A write of ours may or may not have happened: see for ourselves before anything is written twice."""
        await self._writer.refresh(key)
        self._kept.pop(key, None)

    def _look_at_nodes(self) -> None:
        """The zones' shares have changed: Services whose endpoints no longer fit them get new hints."""
        shares = self._zone_shares()
        for key, kept in self._kept.items():
            if any(hints.overloaded(given, shares) for given in kept.zones.values()):
                self.loop.add(key)

    def _zone_shares(self) -> dict[str, float] | None:
        if not self._shares_known:
            self._shares = hints.zone_shares(self._nodes.objects())
            self._shares_known = True
        return self._shares

    # --- telling -----------------------------------------------------------------------------------

    def _tell(self, service: Service, note: Notice) -> None:
        self._recorder.record(_about(service), note.type, reason=note.reason, message=note.message)

    def _complain(self, service: Service, message: str) -> None:
        meta = service.metadata
        text = f"Error updating Endpoint Slices for Service {meta.namespace}/{meta.name}: {message}"
        self._recorder.record(_about(service), "Warning", reason="FailedToUpdateEndpointSlices", message=text)


def _missing(service: Service, pod: str, node: str) -> str:
    where = key_of(service.metadata.namespace, service.metadata.name)
    return f"skipping Pod {pod} for Service {where}: Node {node} Not Found"


def _about(service: Service) -> Reference:
    meta = service.metadata
    return Reference(
        kind="Service",
        name=meta.name,
        namespace=meta.namespace,
        uid=meta.uid,
        api_version="v1",
        resource_version=meta.resource_version,
    )
