"""The slices that one controller manages: what is there, writing what was planned, and slices in foreign hands.

What is there is what the informer shows, or what was just written if that is newer: :class:`Slices` keeps both apart by
the controller's :class:`~seamark.runtime.ledger.Ledger`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from itertools import islice
from typing import Any

import msgspec

from seamark.access.cluster import Cluster
from seamark.access.informer import Informer, key_of, split_key
from seamark.clock import Clock
from seamark.errors import ApiError, Conflict, Forbidden, NotFound
from seamark.kinds.resource import ENDPOINT_SLICES
from seamark.kinds.wellknown import SERVICE_NAME_LABEL, SLICE_MANAGED_BY_LABEL
from seamark.metrics import Registry
from seamark.rules.changes import Changes
from seamark.rules.objects.endpointslice import EndpointSlice
from seamark.rules.objects.metadata import Written
from seamark.runtime.controller import Again, Controller, Expected
from seamark.runtime.ledger import Ledger
from seamark.runtime.queue import Key

# Writes under way at once for one Service.
AT_ONCE = 16

# For how long an absent slice is waited for: in the end the endpoints must be somewhere.
PATIENCE = 60.0

Told = Callable[[str, EndpointSlice | None], None]


class Outrun(Expected):
    """A slice was changed by another writer first.  What is there now has been read; plan again."""


class _NamespaceTerminating(Exception):
    """Nothing can be made there any more, and nothing has to be."""


class Sighting(msgspec.Struct, frozen=True):
    """News of a slice of the Service ``key``: what it is now, None if it is not one of the Service's any more.

    ``taken`` says that it still exists, but was given to another Service or another controller.  ``trifling`` is a
    change that is not a new generation, such as an annotation: it has to be known, but is no reason to plan again.
    """

    key: Key
    name: str
    slice: EndpointSlice | None
    taken: bool = False
    trifling: bool = False


class Slices:
    """The slices of one controller, by Service.  ``managed_by`` is the label that tells them from others."""

    def __init__(
        self,
        cluster: Cluster,
        informer: Informer[EndpointSlice],
        controller: Controller,
        *,
        managed_by: str,
        clock: Clock,
        metrics: Registry,
    ) -> None:
        self._cluster = cluster
        self._managed_by = managed_by
        self._ledger = Ledger(informer, clock=clock, wake=controller.queue.add)
        self._shown = informer.index(f"service of {managed_by}", self._services_of)
        family = ("endpoint_slice_controller_changes", "Slices written.", controller.name)
        labels = ("name", "operation")
        self._created, self._updated, self._deleted = (
            metrics.counter(*family, operation, labels=labels) for operation in ("create", "update", "delete")
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
        """Take in what the informer tells; what is returned was not known before."""
        written = self._ledger.written(key)
        before, known = written if written is not None else (self._service_of(old), old)
        if not self._ledger.news(key, old, new):
            return []
        if written is not None and new is not None and _same(new, written[1]):
            return []
        _, name = split_key(key)
        after = self._service_of(new)
        news = []
        if before is not None and before != after:
            news.append(Sighting(before, name, None, taken=new is not None))
        if after is not None:
            trifling = before == after and known is not None and new is not None and _same_generation(new, known)
            news.append(Sighting(after, name, new, trifling=trifling))
        return news

    def _service_of(self, endpoint_slice: EndpointSlice | None) -> Key | None:
        if endpoint_slice is None or endpoint_slice.managed_by != self._managed_by or not endpoint_slice.service_name:
            return None
        return key_of(endpoint_slice.metadata.namespace, endpoint_slice.service_name)

    def _services_of(self, endpoint_slice: EndpointSlice) -> tuple[Key, ...]:
        service = self._service_of(endpoint_slice)
        return (service,) if service is not None else ()

    # --- being sure --------------------------------------------------------------------------------

    def doubtful(self, service: Key) -> bool:
        """Whether a write may or may not have happened, so that what ``of`` says may be wrong."""
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
        """Write it all: first what adds, then what changes, last what removes.

        ``told`` is called with every slice as it is after its write.  Raises :class:`Outrun` where the plan was made
        from an outdated view; after any other error the rest is simply planned again.
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
            # A refusal is certain; anything else may have come after the write was done.
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
            # Only this very slice, in case another of the same name has come meanwhile.
            await self._cluster.delete(ENDPOINT_SLICES, meta.name, namespace=meta.namespace, uid=meta.uid)
            self._deleted.add()
        self._ledger.deleted(service, gone)
        told(meta.name, None)

    def _wrote(self, service: Key, sent: EndpointSlice, answer: Written, told: Told) -> None:
        # Reading a hundred endpoints back costs more than sending them.  Should the server have made something else of
        # them, the informer will tell.
        written = msgspec.structs.replace(sent, metadata=answer.metadata)
        self._ledger.put(service, written)
        told(answer.metadata.name, self._ledger.latest(answer.metadata.key))


async def _together(writes: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Some at a time, so that a change of many slices takes few round trips.

    All that were begun are done before the first error is raised: nothing may be under way when a plan is made.
    """
    writes = iter(writes)
    while some := list(islice(writes, AT_ONCE)):
        outcomes = await asyncio.gather(*some, return_exceptions=True)
        failures = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
        if failures:
            # What leaves a write in doubt weighs more than a certain refusal.
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
    """Whether only metadata has been written since; a server that counts no generations leaves that open."""
    new, old = seen.metadata, known.metadata
    return (
        new.uid == old.uid
        and new.generation == old.generation > 0
        and new.resource_version != old.resource_version
        and new.deletion_timestamp == old.deletion_timestamp
    )


class AbsentSlices:
    """Slices that still exist, but not in the controller's hands: relabelled by a user, or kept by a finalizer.

    Their endpoints are listed there, so making up for them at once could list everything twice.  Kubernetes takes such
    a slice for one its informer has yet to show and leaves the Service alone until it comes back, for ever if need be.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since: dict[Key, dict[str, float]] = {}

    def miss(self, service: Key, name: str) -> None:
        """The slice is not in our hands any more."""
        self._since.setdefault(service, {}).setdefault(name, self._clock.monotonic())

    def found(self, service: Key, name: str) -> bool:
        """The slice came back, or is gone for good; says whether it was missed."""
        missed = self._since.get(service, {})
        known = missed.pop(name, None) is not None
        if known and not missed:
            del self._since[service]
        return known

    def forget(self, service: Key) -> None:
        """The Service is gone or a new one: slices from before do not matter to it."""
        self._since.pop(service, None)

    def clear(self) -> None:
        self._since.clear()

    def wait(self, service: Key) -> None:
        """Raise :class:`Again` while a slice of the Service is missed."""
        now = self._clock.monotonic()
        missed = {name: since for name, since in self._since.get(service, {}).items() if now - since < PATIENCE}
        if not missed:
            self.forget(service)
            return
        self._since[service] = missed
        raise Again(min(missed.values()) + PATIENCE - now, "a slice was taken out of our hands")
