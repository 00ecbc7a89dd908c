"""The slices that one controller manages: reads them, writes plans, and waits for slices taken from the controller.

The current slices are those that the informer shows, or those just written if these are newer: :class:`Slices` learns
that from the controller's :class:`~seamark.runtime.ledger.Ledger`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from functools import cache
from itertools import islice
from typing import Any

import msgspec

from seamark.access.cluster import Cluster
from seamark.access.informer import Informer, key_of, split_key
from seamark.clock import Clock
from seamark.errors import ApiError, Conflict, Forbidden, NotFound
from seamark.kinds.resource import ENDPOINT_SLICES
from seamark.kinds.wellknown import SERVICE_NAME_LABEL, SLICE_MANAGED_BY_LABEL
from seamark.rules.changes import Changes
from seamark.rules.objects.endpointslice import EndpointSlice
from seamark.rules.objects.metadata import Written
from seamark.runtime.controller import Again, Controller, Expected
from seamark.runtime.ledger import Ledger
from seamark.runtime.manager import Manager
from seamark.runtime.queue import Key

# The number of simultaneous writes for one Service.
AT_ONCE = 16

# For how many seconds to wait for an absent slice; after that its endpoints are written to other slices.
PATIENCE = 60.0

Told = Callable[[str, EndpointSlice | None], None]


class Outrun(Expected):
    """Another writer changed a slice first.  The current slices have been read; plan again."""


class _NamespaceTerminating(Exception):
    """Nothing can be created in this namespace any more, and nothing has to be."""


class Sighting(msgspec.Struct, frozen=True):
    """A change of a slice of the Service ``key``: the new slice, or None if it is no longer one of the Service's.

    ``taken`` says that it still exists, but now belongs to another Service or controller.  ``trifling`` is a change
    without a new generation, such as an annotation: it is recorded, but is no reason to plan again.
    """

    key: Key
    name: str
    slice: EndpointSlice | None
    taken: bool = False
    trifling: bool = False


def _service_of(endpoint_slice: EndpointSlice | None, managed_by: str) -> Key | None:
    if endpoint_slice is None or endpoint_slice.managed_by != managed_by or not endpoint_slice.service_name:
        return None
    return key_of(endpoint_slice.metadata.namespace, endpoint_slice.service_name)


@cache
def _services_of(managed_by: str) -> Callable[[EndpointSlice], tuple[Key, ...]]:
    """For an index: always the same function, so that a controller that is started again shares its index."""

    def services(endpoint_slice: EndpointSlice) -> tuple[Key, ...]:
        service = _service_of(endpoint_slice, managed_by)
        return (service,) if service is not None else ()

    return services


class Slices:
    """The slices of one controller, by Service.  ``managed_by`` is the value of the label that marks them."""

    def __init__(
        self,
        manager: Manager,
        cluster: Cluster,
        informer: Informer[EndpointSlice],
        controller: Controller,
        *,
        managed_by: str,
    ) -> None:
        self._cluster = cluster
        self._managed_by = managed_by
        self._ledger = Ledger(informer, clock=manager.clock, wake=controller.queue.add)
        self._shown = informer.index(f"service of {managed_by}", _services_of(managed_by))
        family = ("endpoint_slice_controller_changes", "Slices written.", controller.name)
        labels = ("name", "operation")
        self._created, self._updated, self._deleted = (
            manager.metrics.counter(*family, operation, labels=labels) for operation in ("create", "update", "delete")
        )

    # --- reading -----------------------------------------------------------------------------------

    def of(self, service: Key) -> dict[str, EndpointSlice]:
        """A Service's slices by name."""
        found = {each.metadata.name: each for each in self._shown.objects(service)}
        for key, written in self._ledger.pending(service).items():
            _, name = split_key(key)
            if written is not None:
                found[name] = written
            else:
                found.pop(name, None)
        return found

    def see(self, key: Key, old: EndpointSlice | None, new: EndpointSlice | None) -> list[Sighting]:
        """Take in a change from the informer; returns what was not known before."""
        written = self._ledger.written(key)
        before, known = written if written is not None else (_service_of(old, self._managed_by), old)
        if not self._ledger.news(key, old, new):
            return []
        if written is not None and new is not None and _same(new, written[1]):
            return []
        _, name = split_key(key)
        after = _service_of(new, self._managed_by)
        news = []
        if before is not None and before != after:
            news.append(Sighting(before, name, None, taken=new is not None))
        if after is not None:
            trifling = before == after and known is not None and new is not None and _same_generation(new, known)
            news.append(Sighting(after, name, new, trifling=trifling))
        return news

    # --- doubtful writes ---------------------------------------------------------------------------

    def doubtful(self, service: Key) -> bool:
        """Whether it is unknown if a write happened, so that ``of`` may be wrong."""
        return bool(self._ledger.doubts(service))

    async def refresh(self, service: Key) -> None:
        """Read the Service's slices from the server itself."""
        namespace, name = split_key(service)
        labels = f"{SERVICE_NAME_LABEL}={name},{SLICE_MANAGED_BY_LABEL}={self._managed_by}"
        listing = await self._cluster.list(ENDPOINT_SLICES, namespace=namespace, labels=labels, as_=EndpointSlice)
        found = {each.metadata.name: each for each in listing.items}
        for known in self.of(service).values():
            if known.metadata.name not in found:
                self._ledger.deleted(service, known)
        for each in found.values():
            self._ledger.put(service, each)
        self._ledger.certain(service)

    # --- writing -----------------------------------------------------------------------------------

    async def carry_out(self, service: Key, changes: Changes[EndpointSlice], told: Told) -> None:
        """Write the plan: first creations, then updates, last deletions.

        ``told`` is called with every slice after it was written.  Raises :class:`Outrun` if the plan was made from
        outdated slices; after any other error the key is retried and the rest planned again.
        """
        try:
            await _together(self._create(service, made, told) for made in changes.create)
            await _together(self._update(service, changed, told) for changed in changes.update)
            await _together(self._delete(service, gone, told) for gone in changes.delete)
        except _NamespaceTerminating:
            return
        except (Conflict, NotFound) as error:
            await self.refresh(service)
            raise Outrun(str(error)) from error
        except ApiError as error:
            # A refusal means that nothing was written; after other errors the write may have happened.
            if error.uncertain:
                self._ledger.doubt(service)
            raise

    async def _create(self, service: Key, made: EndpointSlice, told: Told) -> None:
        try:
            answer = await self._cluster.create(ENDPOINT_SLICES, made, namespace=made.metadata.namespace, as_=Written)
        except Forbidden as error:
            if error.namespace_terminating:
                raise _NamespaceTerminating from error
            raise
        self._wrote(service, made, answer, told)
        self._created.add()

    async def _update(self, service: Key, changed: EndpointSlice, told: Told) -> None:
        answer = await self._cluster.update(ENDPOINT_SLICES, changed, namespace=changed.metadata.namespace, as_=Written)
        self._wrote(service, changed, answer, told)
        self._updated.add()

    async def _delete(self, service: Key, gone: EndpointSlice, told: Told) -> None:
        meta = gone.metadata
        with suppress(NotFound):
            # The uid is given so that a new slice of the same name is not deleted.
            await self._cluster.delete(ENDPOINT_SLICES, meta.name, namespace=meta.namespace, uid=meta.uid)
            self._deleted.add()
        self._ledger.deleted(service, gone)
        told(meta.name, None)

    def _wrote(self, service: Key, sent: EndpointSlice, answer: Written, told: Told) -> None:
        # Keep what we sent: decoding a hundred endpoints costs more than sending them.  If the server changed them, the
        # informer will show it.
        written = msgspec.structs.replace(sent, metadata=answer.metadata)
        self._ledger.put(service, written)
        told(answer.metadata.name, self._ledger.latest(answer.metadata.key))


async def _together(writes: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Run some writes at a time, so that a change of many slices takes few round trips.

    All writes that were started finish before the first error is raised: none may be under way during planning.
    """
    writes = iter(writes)
    while some := list(islice(writes, AT_ONCE)):
        outcomes = await asyncio.gather(*some, return_exceptions=True)
        failures = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
        if failures:
            # An error that leaves a write in doubt takes precedence over a refusal.
            raise max(failures, key=lambda error: error.code if isinstance(error, ApiError) else 1000)


def _same(seen: EndpointSlice, written: EndpointSlice) -> bool:
    """Whether the informer shows our own write, and the server changed nothing of what was sent."""
    version = written.metadata.resource_version
    return (
        seen.metadata.resource_version == version
        and seen.endpoints == written.endpoints
        and seen.ports == written.ports
    )


def _same_generation(seen: EndpointSlice, known: EndpointSlice) -> bool:
    """Whether only metadata has changed since; False if the server does not count generations."""
    new, old = seen.metadata, known.metadata
    return (
        new.uid == old.uid
        and new.generation == old.generation > 0
        and new.resource_version != old.resource_version
        and new.deletion_timestamp == old.deletion_timestamp
    )


class AbsentSlices:
    """Slices that still exist but that the controller no longer manages: relabelled by a user, or kept by a finalizer.

    They still list their endpoints, so replacing them at once could list endpoints twice.  Kubernetes assumes that its
    informer has yet to show such a slice, and does not handle the Service until the slice comes back.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since: dict[Key, dict[str, float]] = {}

    def miss(self, service: Key, name: str) -> None:
        """Record a slice that the controller no longer manages."""
        self._since.setdefault(service, {}).setdefault(name, self._clock.monotonic())

    def found(self, service: Key, name: str) -> bool:
        """Record a slice that came back or was deleted; returns whether it was absent."""
        missed = self._since.get(service, {})
        known = missed.pop(name, None) is not None
        if known and not missed:
            del self._since[service]
        return known

    def forget(self, service: Key) -> None:
        """Drop the absent slices of a Service that is gone or was replaced."""
        self._since.pop(service, None)

    def clear(self) -> None:
        self._since.clear()

    def wait(self, service: Key) -> None:
        """Raise :class:`Again` while a slice of the Service is absent."""
        now = self._clock.monotonic()
        missed = {name: since for name, since in self._since.get(service, {}).items() if now - since < PATIENCE}
        if not missed:
            self.forget(service)
            return
        self._since[service] = missed
        raise Again(min(missed.values()) + PATIENCE - now, "a slice was taken out of our hands")
