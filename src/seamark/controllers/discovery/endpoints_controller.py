"""The Endpoints controller: one Endpoints per Service with a selector, for clients that do not read EndpointSlices.

:mod:`seamark.rules.endpoints` decides what to write; this module follows the cluster and writes it.
"""

from __future__ import annotations

from contextlib import suppress

import msgspec

from seamark.access.cluster import Cluster
from seamark.access.correlation import Reference
from seamark.access.informer import Informer, split_key
from seamark.controllers.discovery.members import Members
from seamark.errors import ApiError, Conflict, NotFound
from seamark.kinds.resource import ENDPOINTS
from seamark.kinds.wellknown import ENDPOINTS_CONTROLLER
from seamark.rules.changes import Changes, TriggerTimes
from seamark.rules.endpoints import EndpointsState
from seamark.rules.objects.endpoints import Endpoints
from seamark.rules.objects.metadata import Written
from seamark.rules.objects.service import Service
from seamark.runtime.controller import Controller
from seamark.runtime.ledger import Ledger
from seamark.runtime.manager import Manager
from seamark.runtime.queue import Key

# How often a plan is made again at once after a conflict with another writer, before the key fails and waits.
ATTEMPTS = 3

# An Endpoints is always written as a whole, even for a small change.  During a rollout the controller therefore waits
# between two writes of a large one: half a second per thousand addresses.  A single change is written at once.
PAUSE_PER_ADDRESS = 0.0005


class _Kept(msgspec.Struct):
    """The state of a Service that is kept from one ``reconcile`` to the next."""

    state: EndpointsState
    times: TriggerTimes
    dirty: set[str] = msgspec.field(default_factory=set)


class EndpointsController(Controller):
    """Follows Services, Pods and Endpoints, and writes Endpoints."""

    def __init__(
        self,
        manager: Manager,
        cluster: Cluster,
        *,
        members: Members,
        endpoints: Informer[Endpoints],
        workers: int = 5,
        batch: float = 0.0,
    ) -> None:
        super().__init__("endpoints", manager, workers=workers, batch=batch)
        self._cluster = cluster
        self._members = members
        self._endpoints = self.watch(endpoints, self._endpoints_changed)
        self._recorder = manager.recorder(cluster, ENDPOINTS_CONTROLLER)
        self._kept: dict[Key, _Kept] = {}
        self._ledger = Ledger(endpoints, clock=manager.clock, wake=self.queue.add)
        self._canonical: dict[Key, str] = {}  # the version we wrote: it is in canonical form already
        members.follow(self)

    # --- following ---------------------------------------------------------------------------------

    def reset(self) -> None:
        self._kept.clear()

    def look_around(self) -> None:
        """Handle every Endpoints once: the Service of some may have gone before this process started.

        Leader election may use an Endpoints without a Service as its lock; such an Endpoints must not be deleted.
        """
        for found in self._endpoints.objects():
            if not found.leader_lock:
                self.queue.add(found.metadata.key)

    def service_changed(self, key: Key) -> None:
        self.queue.add(key)

    def pod_changed(self, key: Key, name: str, *, wake: bool) -> None:
        kept = self._kept.get(key)
        if kept is not None:
            kept.dirty.add(name)
        if wake:
            size = len(kept.state) if kept is not None else 0
            self.queue.add_batched(key, at_least=size * PAUSE_PER_ADDRESS)

    def _endpoints_changed(self, key: Key, old: Endpoints | None, new: Endpoints | None) -> None:
        # As in Kubernetes, a manual edit stays until the Service or a Pod changes; only a deletion is undone at once.
        if self._ledger.news(key, old, new) and new is None:
            self.queue.add(key)

    # --- looking -----------------------------------------------------------------------------------

    async def reconcile(self, key: Key) -> None:
        service = self._members.service(key)
        if service is None:
            await self._remove(key)
            return
        if not service.managed:
            self._kept.pop(key, None)
            return
        if self._ledger.doubts(key):
            await self._look(key)
        kept = self._prepare(key, service)
        for attempt in range(1, ATTEMPTS + 1):
            trigger_time = kept.times.earliest(service)
            current = self._ledger.latest(key)
            canonical = current is not None and current.metadata.resource_version == self._canonical.get(key)
            changes = kept.state.plan(current, trigger_time=trigger_time, canonical=canonical)
            try:
                await self._write(key, changes)
                break
            except (Conflict, NotFound) as error:
                # Our earlier creation succeeded and its answer was lost, or another writer was first: read, plan again.
                await self._look(key)
                if attempt == ATTEMPTS:
                    self._complain(service, changes, error)
                    raise
            except ApiError as error:
                if changes.create and error.namespace_terminating:
                    return
                self._complain(service, changes, error)
                raise
        kept.times.written(service)

    def _prepare(self, key: Key, service: Service) -> _Kept:
        """The kept state of the Service, after taking in all changes."""
        kept = self._kept.get(key)
        if kept is None or not kept.state.renew(service):
            times = kept.times if kept is not None else TriggerTimes()
            kept = self._kept[key] = _Kept(EndpointsState(service), times)
            for pod in self._members.pods(service):
                kept.state.put(pod.metadata.name, pod)
                kept.times.put(pod.metadata.name, pod)
            return kept
        dirty, kept.dirty = kept.dirty, set()
        for name in dirty:
            found = self._members.pod(service, name)
            kept.state.put(name, found)
            kept.times.put(name, found)
        return kept

    # --- writing -----------------------------------------------------------------------------------

    async def _write(self, key: Key, changes: Changes[Endpoints]) -> None:
        for made in changes.create:
            answer = await self._cluster.create(ENDPOINTS, made, namespace=made.metadata.namespace, as_=Written)
            self._wrote(key, made, answer)
        for changed in changes.update:
            answer = await self._cluster.update(ENDPOINTS, changed, namespace=changed.metadata.namespace, as_=Written)
            self._wrote(key, changed, answer)

    def _wrote(self, key: Key, sent: Endpoints, answer: Written) -> None:
        # Keep what we sent: decoding a thousand addresses from the answer costs more than sending them.
        self._ledger.put(key, msgspec.structs.replace(sent, metadata=answer.metadata))
        self._canonical[key] = answer.metadata.resource_version

    async def _look(self, key: Key) -> None:
        """Read the Endpoints from the server itself."""
        namespace, name = split_key(key)
        try:
            self._ledger.put(key, await self._cluster.get(ENDPOINTS, name, namespace=namespace, as_=Endpoints))
        except NotFound:
            known = self._ledger.latest(key)
            if known is not None:
                self._ledger.deleted(key, known)
        self._ledger.certain(key)

    async def _remove(self, key: Key) -> None:
        """Delete the Endpoints of a Service that is gone, even if a user created them."""
        self._kept.pop(key, None)
        self._canonical.pop(key, None)
        known = self._ledger.latest(key)
        if known is None:
            return
        namespace, name = split_key(key)
        with suppress(NotFound):
            await self._cluster.delete(ENDPOINTS, name, namespace=namespace)
        self._ledger.deleted(key, known)

    def _complain(self, service: Service, changes: Changes[Endpoints], error: ApiError) -> None:
        meta = service.metadata
        if changes.create:
            reason, message = (
                "FailedToCreateEndpoint",
                f"Failed to create endpoint for service {meta.namespace}/{meta.name}",
            )
        else:
            reason, message = "FailedToUpdateEndpoint", f"Failed to update endpoint {meta.namespace}/{meta.name}"
        current = self._endpoints.get(meta.name, meta.namespace)
        about = Reference(
            kind="Endpoints",
            name=meta.name,
            namespace=meta.namespace,
            uid=current.metadata.uid if current is not None else "",
            api_version="v1",
        )
        self._recorder.record(about, "Warning", reason=reason, message=f"{message}: {error}")
