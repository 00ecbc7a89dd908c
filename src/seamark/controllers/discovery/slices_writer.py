"""Carrying out what was planned for a Service's slices, and being sure of what became of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from itertools import islice
from typing import Any

import msgspec

from seamark.access.cluster import Cluster
from seamark.access.informer import split_key
from seamark.controllers.discovery.slices_store import SliceStore
from seamark.errors import ApiError, Conflict, Forbidden, NotFound
from seamark.kinds.resource import ENDPOINT_SLICES
from seamark.kinds.wellknown import SERVICE_NAME_LABEL, SLICE_MANAGED_BY_LABEL
from seamark.metrics import Registry
from seamark.rules.changes import Changes
from seamark.rules.objects.endpointslice import EndpointSlice
from seamark.rules.objects.metadata import Written
from seamark.runtime.loop import Expected

# Writes under way at once for one Service.
AT_ONCE = 16

Key = str
Told = Callable[[str, EndpointSlice | None], None]


class Outrun(Expected):
    """Somebody else changed a slice first.  What is there now has been read; plan again."""


class _NamespaceTerminating(Exception):
    """Nothing can be made there any more, and nothing has to be."""


class SliceWriter:
    """Writes for one controller and keeps its store true."""

    def __init__(
        self, cluster: Cluster, store: SliceStore, *, managed_by: str, name: str, metrics: Registry | None = None
    ) -> None:
        self._cluster = cluster
        self._store = store
        self._managed_by = managed_by
        self._unsure: set[Key] = set()
        registry, labels = metrics or Registry(), ("name", "operation")
        family = ("endpoint_slice_controller_changes", "Slices written.", name)
        self._created, self._updated, self._deleted = (
            registry.counter(*family, operation, labels=labels) for operation in ("create", "update", "delete")
        )

    def doubt(self, key: Key) -> None:
        """The store may be wrong about this Service: have it read before the next plan."""
        self._unsure.add(key)

    def unsure(self, key: Key) -> bool:
        """Whether an earlier write may or may not have happened, so that the store may be wrong."""
        return key in self._unsure

    async def refresh(self, key: Key) -> None:
        """Read the Service's slices from the server itself."""
        namespace, service = split_key(key)
        labels = f"{SERVICE_NAME_LABEL}={service},{SLICE_MANAGED_BY_LABEL}={self._managed_by}"
        found = await self._cluster.list(ENDPOINT_SLICES, namespace=namespace, labels=labels, as_=EndpointSlice)
        self._store.replace(key, {each.metadata.name: each for each in found.items})
        self._unsure.discard(key)

    async def carry_out(self, key: Key, changes: Changes[EndpointSlice], told: Told) -> None:
        """Write it all: first what adds, then what changes, last what removes.

        ``told`` hears of every slice as it is after its write.  Raises :class:`Outrun` where the plan was made from an
        outdated view; after any other error the rest is simply planned again.
        """
        try:
            await self._together(self._create(key, made, told) for made in changes.create)
            await self._together(self._update(key, changed, told) for changed in changes.update)
            await self._together(self._delete(gone, told) for gone in changes.delete)
        except _NamespaceTerminating:
            return
        except (Conflict, NotFound) as error:
            await self.refresh(key)
            raise Outrun(str(error)) from error
        except ApiError as error:
            # A refusal is certain; anything else may have come after the write was done.
            if error.code >= 500:
                self.doubt(key)
            raise

    @staticmethod
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

    async def _create(self, key: Key, made: EndpointSlice, told: Told) -> None:
        try:
            answer = await self._cluster.create(ENDPOINT_SLICES, made, namespace=made.metadata.namespace, as_=Written)
        except Forbidden as error:
            if namespace_terminating(error):
                raise _NamespaceTerminating from error
            raise
        self._wrote(key, made, answer, told)
        self._created.add()

    async def _update(self, key: Key, changed: EndpointSlice, told: Told) -> None:
        answer = await self._cluster.update(ENDPOINT_SLICES, changed, namespace=changed.metadata.namespace, as_=Written)
        self._wrote(key, changed, answer, told)
        self._updated.add()

    async def _delete(self, gone: EndpointSlice, told: Told) -> None:
        meta = gone.metadata
        with suppress(NotFound):
            # Only this very slice, should another of the same name have come meanwhile.
            await self._cluster.delete(ENDPOINT_SLICES, meta.name, namespace=meta.namespace, uid=meta.uid)
            self._deleted.add()
        self._store.deleted(gone)
        told(meta.name, None)

    def _wrote(self, key: Key, sent: EndpointSlice, answer: Written, told: Told) -> None:
        # Reading a hundred endpoints back costs more than sending them.  Should the server have made something else of
        # them, the informer will tell.
        view = msgspec.structs.replace(sent, metadata=answer.metadata)
        self._store.wrote(key, view)
        told(view.metadata.name, view)


def namespace_terminating(error: ApiError) -> bool:
    """Whether nothing can be created because the namespace is going away, and everything in it with it."""
    return any(cause.reason == "NamespaceTerminating" for cause in error.causes)
