"""The Endpoints controller: one Endpoints per Service with a selector, for those who do not read EndpointSlices yet.

What to write is :mod:`seamark.rules.endpoints`; this follows the cluster and carries it out.
"""

from __future__ import annotations

from contextlib import suppress

import msgspec

from seamark.access.clock import Clock, SteadyClock
from seamark.access.cluster import Cluster
from seamark.access.correlation import Reference
from seamark.access.events import EventRecorder
from seamark.access.informer import Informer, key_of, split_key
from seamark.controllers.discovery.members import Members
from seamark.controllers.discovery.slices_writer import namespace_terminating
from seamark.errors import ApiError, Conflict, Forbidden, NotFound
from seamark.kinds.resource import ENDPOINTS
from seamark.metrics import Registry
from seamark.rules.changes import Changes, TriggerTimes
from seamark.rules.endpoints import EndpointsState
from seamark.rules.objects.endpoints import Endpoints
from seamark.rules.objects.metadata import Written
from seamark.rules.objects.service import Service
from seamark.runtime.confirmations import Confirmations
from seamark.runtime.loop import Loop, Retry

Key = str

# How often a plan outrun by somebody else is made again at once, before the key takes its turn like any failed one.
ATTEMPTS = 3


# An Endpoints is written whole, however little changed.  During a rollout a large one therefore rests between two
# writes: half a second for a thousand addresses.  A change that comes alone is written at once all the same.
PAUSE_PER_ADDRESS = 0.0005


class _Written(msgspec.Struct, frozen=True):
    """What we wrote last, and the versions it replaced, by which an informer that is behind is recognised.

    ``canonical`` is False for what was merely read from the server, and may be laid out in any way.
    """

    endpoints: Endpoints
    replaced: frozenset[str] = frozenset()
    canonical: bool = True


class _Kept(msgspec.Struct):
    """What is kept per Service between two looks at it."""

    state: EndpointsState
    times: TriggerTimes
    dirty: set[str] = msgspec.field(default_factory=set)


class EndpointsController:
    """Follows Services and Pods, keeps Endpoints."""

    name = "endpoints"

    def __init__(
        self,
        cluster: Cluster,
        *,
        members: Members,
        endpoints: Informer[Endpoints],
        recorder: EventRecorder,
        workers: int = 5,
        batch: float = 0.0,
        clock: Clock | None = None,
        metrics: Registry | None = None,
    ) -> None:
        self._cluster = cluster
        self._members = members
        self._endpoints = endpoints
        self._recorder = recorder
        self._kept: dict[Key, _Kept] = {}
        self._written: dict[Key, _Written] = {}
        self._unsure: set[Key] = set()
        self._confirmations = Confirmations(clock or SteadyClock(), self._missed)
        self.loop = Loop(self, workers=workers, retry=Retry(), clock=clock, metrics=metrics, batch=batch)
        members.follow(self)
        endpoints.on_change(self._endpoints_changed)

    def queue_leftovers(self) -> None:
        """Look at every Endpoints once: the Service of some may have gone while nobody was watching.

        A leader's lock is an Endpoints without a Service too, and must not be taken away from under it.
        """
        for found in self._endpoints.objects():
            if not found.leader_lock:
                self.loop.add(key_of(found.metadata.namespace, found.metadata.name))

    # --- following ---------------------------------------------------------------------------------

    def service_changed(self, key: Key) -> None:
        self.loop.add(key)

    def pod_changed(self, key: Key, name: str, *, wake: bool) -> None:
        kept = self._kept.get(key)
        if kept is not None:
            kept.dirty.add(name)
        if wake:
            size = len(kept.state) if kept is not None else 0
            self.loop.add_batched(key, at_least=size * PAUSE_PER_ADDRESS)

    def _endpoints_changed(self, old: Endpoints | None, new: Endpoints | None) -> None:
        present = new if new is not None else old
        assert present is not None  # an informer never tells nothing about nothing
        key = key_of(present.metadata.namespace, present.metadata.name)
        self._confirmations.settle(key)
        # An edit by hand stays until the Service or a Pod changes; only a deletion is made up for at once.
        if new is None:
            self._written.pop(key, None)
            self.loop.add(key)

    def _missed(self, key: Key) -> None:
        """An Endpoints we made has not been seen since."""
        self._unsure.add(key)
        self.loop.add(key)

    # --- looking -----------------------------------------------------------------------------------

    async def reconcile(self, key: Key) -> None:
        service = self._members.service(key)
        if service is None:
            await self._remove(key)
            return
        if not service.managed:
            self._kept.pop(key, None)
            return
        if key in self._unsure:
            await self._look(key)
        kept = self._prepare(key, service)
        for attempt in range(1, ATTEMPTS + 1):
            trigger_time = kept.times.earliest(service)
            current, canonical = self._current(key)
            changes = kept.state.plan(current, trigger_time=trigger_time, canonical=canonical)
            try:
                await self._write(key, changes)
                break
            except (Conflict, NotFound) as error:
                # Created by an earlier attempt whose answer was lost, changed or deleted by somebody else: look again.
                await self._look(key)
                if attempt == ATTEMPTS:
                    self._complain(service, changes, error)
                    raise
            except ApiError as error:
                if changes.create and isinstance(error, Forbidden) and namespace_terminating(error):
                    return
                self._complain(service, changes, error)
                raise
        kept.times.written(service)

    def _prepare(self, key: Key, service: Service) -> _Kept:
        """What is known of the Service, brought up to date."""
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

    def _current(self, key: Key) -> tuple[Endpoints | None, bool]:
        """The Endpoints as they are (as written, if the informer has seen nothing newer), and whether we wrote them."""
        seen = self._endpoints.by_key(key)
        written = self._written.get(key)
        if written is None:
            return seen, False
        version = seen.metadata.resource_version if seen is not None else ""
        if seen is None or version in written.replaced or version == written.endpoints.metadata.resource_version:
            return written.endpoints, written.canonical
        del self._written[key]
        return seen, False

    # --- writing -----------------------------------------------------------------------------------

    async def _write(self, key: Key, changes: Changes[Endpoints]) -> None:
        for made in changes.create:
            answer = await self._cluster.create(ENDPOINTS, made, namespace=made.metadata.namespace, as_=Written)
            self._remember(key, made, answer)
            if self._endpoints.by_key(key) is None:
                self._confirmations.expect(key, key)
        for changed in changes.update:
            answer = await self._cluster.update(ENDPOINTS, changed, namespace=changed.metadata.namespace, as_=Written)
            self._remember(key, changed, answer)

    def _remember(self, key: Key, sent: Endpoints, answer: Written) -> None:
        meta = answer.metadata
        before = self._written.get(key)
        versions = {*(before.replaced if before is not None else ()), sent.metadata.resource_version}
        # A write that changed nothing keeps its version, which then is not an old one.
        versions -= {"", meta.resource_version}
        # Reading a thousand addresses back costs more than sending them, and they are ours.
        self._written[key] = _Written(msgspec.structs.replace(sent, metadata=meta), frozenset(versions))

    async def _look(self, key: Key) -> None:
        """Read the Endpoints from the server itself."""
        namespace, name = split_key(key)
        try:
            found = await self._cluster.get(ENDPOINTS, name, namespace=namespace, as_=Endpoints)
        except NotFound:
            self._unsure.discard(key)
            self._written.pop(key, None)
            return
        self._unsure.discard(key)
        seen = self._endpoints.by_key(key)
        replaced = {seen.metadata.resource_version} if seen is not None else set()
        self._written[key] = _Written(found, frozenset(replaced - {found.metadata.resource_version}), canonical=False)

    async def _remove(self, key: Key) -> None:
        """The Service is gone: so are its Endpoints, whoever made them."""
        self._kept.pop(key, None)
        if self._endpoints.by_key(key) is None and key not in self._written:
            return
        namespace, name = split_key(key)
        with suppress(NotFound):
            await self._cluster.delete(ENDPOINTS, name, namespace=namespace)
        self._written.pop(key, None)

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
