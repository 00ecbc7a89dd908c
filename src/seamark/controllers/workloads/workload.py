"""What the controllers of all workloads have in common: the base class, and writing a workload's status."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Generic, TypeVar

import msgspec

from seamark.access.cluster import Cluster, Receipt
from seamark.access.informer import Informer
from seamark.controllers.workloads.owners import Owners
from seamark.errors import NotFound
from seamark.kinds.resource import Resource
from seamark.rules.objects.workloads import Workload
from seamark.runtime.controller import Controller
from seamark.runtime.ledger import Ledger
from seamark.runtime.manager import Manager
from seamark.runtime.queue import Key

W = TypeVar("W", bound=Workload)

BATCH_SECONDS = 0.05


class Workplace(msgspec.Struct, frozen=True):
    """What every workload controller needs: its manager, the cluster for its name, and how long to gather changes.

    During a burst of Pod changes a workload is handled once per ``batch`` seconds; a single change does not wait.
    """

    manager: Manager
    cluster_for: Callable[[str], Cluster]
    batch: float = BATCH_SECONDS


class WorkloadController(Controller, Generic[W]):
    """A controller of one kind of workload.  It handles a workload only when the informers show all earlier writes."""

    def __init__(self, name: str, resource: Resource, workloads: Informer[W], place: Workplace) -> None:
        manager = place.manager
        super().__init__(name, manager, batch=place.batch)
        self.resource = resource
        self.owners = Owners(resource, workloads)
        self._cluster = place.cluster_for(name)
        self._recorder = manager.recorder(self._cluster, name)
        self._clock = manager.clock
        self._workloads = self.watch(workloads, self._changed)
        self._written = Ledger(workloads)

    def _changed(self, key: Key, old: W | None, new: W | None) -> None:
        self.queue.add(key)

    async def _report(
        self,
        key: Key,
        workload: W,
        before: msgspec.Struct,
        after: msgspec.Struct,
        *,
        always: Collection[str] = (),
        annotations: Mapping[str, str] | None = None,
    ) -> None:
        """Write a new status and new annotations, if they differ from the current ones."""
        status = difference(before, after, always=always)
        if status or annotations:
            try:
                await self._patch_status(key, workload, status, annotations)
            except NotFound:
                return  # deleted meanwhile: there is nothing to report on

    async def _patch_status(
        self, key: Key, workload: W, status: Mapping[str, Any], annotations: Mapping[str, str] | None = None
    ) -> None:
        """Patch the status of exactly this version of the workload; raises ``Conflict`` if it has changed since."""
        meta = workload.metadata
        about: dict[str, Any] = {"uid": meta.uid, "resourceVersion": meta.resource_version}
        if annotations:
            about["annotations"] = dict(annotations)
        patch: dict[str, Any] = {"metadata": about}
        if status:
            patch["status"] = dict(status)
        written = await self._cluster.patch(
            self.resource, meta.name, patch, namespace=meta.namespace, subresource="status", as_=Receipt
        )
        self._written.wrote(key, written.version)


def difference(old: msgspec.Struct, new: msgspec.Struct, *, always: Collection[str] = ()) -> dict[str, Any]:
    """The merge patch from one status to the other; fields that are zero or empty are omitted from objects.

    Fields named in ``always`` are written even if they are zero.
    """
    before, after = msgspec.to_builtins(old), msgspec.to_builtins(new)
    for field in always:
        before.setdefault(field, 0)
        after.setdefault(field, 0)
    changed = {field: value for field, value in after.items() if before.get(field) != value}
    return changed | {field: None for field in before if field not in after}
