"""The EndpointSlice controller: slices for every Service with a selector.

:mod:`seamark.rules.slices.state` decides what to write; this module follows the cluster and writes it.
"""

from __future__ import annotations

import msgspec

from seamark.access.cluster import Cluster
from seamark.access.correlation import Reference
from seamark.access.informer import Informer, key_of
from seamark.controllers.discovery.members import Members
from seamark.controllers.discovery.slices import AbsentSlices, Outrun, Slices
from seamark.errors import ApiError
from seamark.kinds.resource import SERVICES
from seamark.kinds.values.addresses import Family
from seamark.kinds.values.fields import one_message
from seamark.kinds.wellknown import ENDPOINTS_PER_SLICE, SLICE_CONTROLLER
from seamark.rules import hints
from seamark.rules.changes import Notice, TriggerTimes
from seamark.rules.objects.endpointslice import EndpointSlice
from seamark.rules.objects.node import Node
from seamark.rules.objects.service import Service
from seamark.rules.slices.state import SlicesPlan, SlicesState, Topology
from seamark.runtime.controller import Controller, Expected
from seamark.runtime.manager import Manager
from seamark.runtime.queue import Key, Retry

# A key that stands for a change of the Nodes, not for a Service.
TOPOLOGY = ""

ATTEMPTS = 3

# During a rollout the slices of a Service change continuously.  The controller therefore waits between two writes: a
# twentieth of a second per thousand endpoints.  A single change is written at once.
PAUSE_PER_SLICE = 0.005

# When thousands of nodes come or go, the hints of all Services are not looked at for each node: between two looks there
# are so many seconds for each Service.
PAUSE_PER_SERVICE = 0.0001

# Changes that other clients make to slices are corrected after this many seconds: more may follow, and two controllers
# that manage the same slices should not undo each other's writes one by one.
EDIT_DELAY = 1.0


class NodesMissing(Expected):
    """Pods were left out because their Nodes do not exist; the other Pods have been written."""


class _Kept(msgspec.Struct):
    """The state of a Service that is kept from one ``reconcile`` to the next."""

    state: SlicesState
    times: TriggerTimes
    dirty: set[str] = msgspec.field(default_factory=set)
    zones: dict[Family, hints.Zones] = msgspec.field(default_factory=dict)


class EndpointSlicesController(Controller):
    """Follows Services, Pods, Nodes and slices, and writes slices."""

    def __init__(
        self,
        manager: Manager,
        cluster: Cluster,
        *,
        members: Members,
        nodes: Informer[Node],
        slices: Informer[EndpointSlice],
        limit: int = ENDPOINTS_PER_SLICE,
        workers: int = 5,
        batch: float = 0.0,
    ) -> None:
        super().__init__("endpointslices", manager, workers=workers, retry=Retry(base=1.0, cap=60.0), batch=batch)
        self._members = members
        self._nodes = self.watch(nodes, self._node_changed)
        self.watch(slices, self._slice_changed)
        self._slices = Slices(manager, cluster, slices, self, managed_by=SLICE_CONTROLLER)
        self._absent = AbsentSlices(manager.clock)
        self._recorder = manager.recorder(cluster, "endpoint-slice-controller")
        self._limit = limit
        self._edit_delay = max(EDIT_DELAY, batch)
        self._kept: dict[Key, _Kept] = {}
        self._zones = hints.ZoneCpus()
        members.follow(self)

    # --- following ---------------------------------------------------------------------------------

    def reset(self) -> None:
        self._kept.clear()
        self._absent.clear()
        self._zones = hints.ZoneCpus(self._nodes.objects())

    def service_changed(self, key: Key) -> None:
        self.queue.add(key)

    def pod_changed(self, key: Key, name: str, *, wake: bool) -> None:
        kept = self._kept.get(key)
        if kept is not None:
            kept.dirty.add(name)
            # A Pod that was left out because its Node is missing is checked again on any change of it.
            wake = wake or name in kept.state.nodeless
        if wake:
            slices = len(kept.state) if kept is not None else 0
            self.queue.add_batched(key, at_least=slices * PAUSE_PER_SLICE)

    def _slice_changed(self, key: Key, old: EndpointSlice | None, new: EndpointSlice | None) -> None:
        for sighting in self._slices.see(key, old, new):
            service, name, now = sighting.key, sighting.name, sighting.slice
            if sighting.taken or (now is not None and now.metadata.deletion_timestamp is not None):
                self._absent.miss(service, name)
                ours = False
            else:
                ours = not self._absent.found(service, name)
            kept = self._kept.get(service)
            if kept is not None:
                ours = ours and now is not None and kept.state.planned(now)
                kept.state.see(name, now)
                if ours:
                    continue  # our own write, which the informer showed before the answer came
            if not sighting.trifling:
                self.queue.add_after(service, self._edit_delay)

    def _node_changed(self, key: Key, old: Node | None, new: Node | None) -> None:
        self._zones.put(key, new)
        if old is None or new is None or old.ready != new.ready or old.zone != new.zone:
            self.queue.add_batched(TOPOLOGY, at_least=len(self._kept) * PAUSE_PER_SERVICE)

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
            # The garbage collector deletes the slices of a deleted Service; those of one without a selector stay.
            self._kept.pop(key, None)
            return
        self._absent.wait(key)
        try:
            if self._slices.doubtful(key):
                await self._slices.refresh(key)
                self._kept.pop(key, None)
            plan = await self._settle(key, service)
        except ApiError as error:
            self._complain(service, str(error))
            raise
        if plan.nodeless:
            message = one_message([_missing(service, pod, node) for pod, node in plan.nodeless])
            self._complain(service, message)
            raise NodesMissing(message)

    async def _settle(self, key: Key, service: Service) -> SlicesPlan:
        """Plan and write; plan again after a conflict with another writer."""
        attempt = 1
        while True:
            kept = self._prepare(key, service)
            topology = Topology(self._zones.shares, hinted=bool(kept.zones))
            plan = kept.state.plan(topology=topology, trigger_time=kept.times.earliest(service))
            try:
                await self._slices.carry_out(key, plan.changes, kept.state.see)
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
        """The kept state of the Service, after taking in all changes."""
        kept = self._kept.get(key)
        if kept is None or not kept.state.renew(service):
            kept = self._kept[key] = self._built(key, service, kept)
        dirty, kept.dirty = kept.dirty, set()
        for name in dirty:
            self._put(kept, name)
        return kept

    def _built(self, key: Key, service: Service, before: _Kept | None) -> _Kept:
        """Build the state of the Service from scratch."""
        kept = _Kept(SlicesState(service, limit=self._limit), TriggerTimes())
        if before is not None:
            kept.times, kept.zones = before.times, before.zones
        for endpoint_slice in self._slices.of(key).values():
            kept.state.observe(endpoint_slice)
        kept.dirty = {pod.metadata.name for pod in self._members.pods(service)}
        return kept

    def _put(self, kept: _Kept, name: str) -> None:
        pod = self._members.pod(kept.state.service, name)
        kept.state.put(name, pod, self._members.node_of(pod))
        kept.times.put(name, pod)

    def _look_at_nodes(self) -> None:
        """The capacity of the zones has changed: queue the Services that need new hints."""
        shares = self._zones.shares
        for key, kept in self._kept.items():
            if any(hints.overloaded(given, shares) for given in kept.zones.values()):
                self.queue.add(key)

    # --- Events ------------------------------------------------------------------------------------

    def _tell(self, service: Service, note: Notice) -> None:
        self._recorder.record(
            Reference.of(SERVICES, service.metadata), note.type, reason=note.reason, message=note.message
        )

    def _complain(self, service: Service, message: str) -> None:
        meta = service.metadata
        text = f"Error updating Endpoint Slices for Service {meta.namespace}/{meta.name}: {message}"
        self._recorder.record(
            Reference.of(SERVICES, service.metadata), "Warning", reason="FailedToUpdateEndpointSlices", message=text
        )


def _missing(service: Service, pod: str, node: str) -> str:
    where = key_of(service.metadata.namespace, service.metadata.name)
    return f"skipping Pod {pod} for Service {where}: Node {node} Not Found"
