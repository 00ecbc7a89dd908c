"""The history of a StatefulSet or DaemonSet: its earlier templates, kept as ControllerRevisions for rollbacks.

Each holds a patch that restores its template; ``kubectl rollout undo`` sends this patch unchanged.  The revision with
the highest number is the current template: a rollback gives the old revision a new number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Generic, TypeVar

from seamark.access.cluster import Cluster
from seamark.controllers.workloads.owners import Claims, Dependants, Owners, claim
from seamark.controllers.workloads.templates import short_hash, sorted_fields
from seamark.errors import AlreadyExists, Forbidden, NotFound, Object
from seamark.kinds.language import shapes
from seamark.kinds.language.decode import DecodeError, conform
from seamark.kinds.resource import CONTROLLER_REVISIONS, Resource
from seamark.rules.objects.metadata import ObjectView
from seamark.rules.objects.workloads import Template, Workload, owner_reference
from seamark.runtime.controller import Expected
from seamark.runtime.ledger import Ledger
from seamark.runtime.queue import Key

W = TypeVar("W", bound=Workload)

_LONGEST_NAME = 223
_TEMPLATE = "io.k8s.api.core.v1.PodTemplateSpec"


class Collision(Expected):
    """The name of a new revision is taken by another; the next attempt uses another name."""


class Revision(ObjectView, frozen=True):
    data: Any = None  # ours are patches; users may write anything
    revision: int = 0


def recorded(template: Template) -> Object:
    """The patch that restores this template."""
    return {"spec": {"template": {**template, "$patch": "replace"}}}


def restored(revision: Revision) -> Template:
    """The template that a revision holds; empty if it holds none, or one that is no template."""
    found = revision.data
    for field in ("spec", "template"):
        found = found.get(field) if isinstance(found, dict) else None
    if not (isinstance(found, dict) and isinstance(found.get("spec"), dict)):
        return {}
    template = {field: value for field, value in found.items() if field != "$patch"}
    try:
        conform(template, shapes.of(_TEMPLATE))
    except DecodeError:  # a user wrote it, and Pods cannot be made of it
        return {}
    return template


def in_order(revisions: Sequence[Revision]) -> list[Revision]:
    """The oldest first."""
    return sorted(revisions, key=lambda r: (r.revision, r.metadata.creation_timestamp or "", r.metadata.name))


def numbered(revisions: Sequence[Revision], data: Object) -> tuple[Revision | None, int]:
    """The revision with this content, if there is one, and the number it needs to be the current one."""
    same = [revision for revision in in_order(revisions) if revision.data == data]
    highest = max((revision.revision for revision in revisions), default=0)
    if same and same[-1].revision == highest:
        return same[-1], highest
    return (same[-1] if same else None), highest + 1


class History(Generic[W]):
    """Keeps the revisions of workloads of one kind; ``hash_label`` is the label with the short hash."""

    def __init__(self, cluster: Cluster, owner: Resource, revisions: Dependants[Revision], *, hash_label: str) -> None:
        self._cluster = cluster
        self._owner = owner
        self._revisions = revisions
        self._hash_label = hash_label
        self._claims: Claims[Revision] = Claims(cluster, owner, CONTROLLER_REVISIONS)
        self._written = Ledger(revisions.informer)

    def follow(self, owners: Owners[W], wake: Callable[[Key], None]) -> None:
        """Queue a workload when its history changes, also when the informer shows the workload's own write."""

        def told(key: Key, old: Revision | None, new: Revision | None) -> None:
            wake(key)

        self._revisions.follow(owners, told)

    def caught_up(self, key: Key) -> bool:
        """Whether the informer shows everything that was written to the workload's history."""
        return self._written.caught_up(key)

    def forget(self, key: Key) -> None:
        self._written.forget(key)

    async def of(self, workload: W) -> list[Revision]:
        """All revisions of a workload, the oldest first; adopts orphans that it selects."""
        meta = workload.metadata
        orphans = self._revisions.orphans(meta.namespace, workload.selector)
        owned = self._revisions.of(meta.uid)
        return in_order(await self._claims.make(workload, claim(workload, owned, orphans)))

    async def current(
        self, key: Key, workload: W, template: Template, revisions: Sequence[Revision], *, collisions: int | None
    ) -> Revision | None:
        """The revision of this template, found, renumbered or created; raises ``Collision`` if its name is taken.

        None if the namespace is being deleted, so that nothing can be created.
        """
        data = recorded(template)
        found, number = numbered(revisions, data)
        if found is None:
            try:
                return await self._create(key, workload, data, number, collisions)
            except Forbidden as error:
                if error.namespace_terminating:
                    return None
                raise
        if found.revision == number:
            return found
        meta = found.metadata
        patch = {"metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version}, "revision": number}
        renumbered = await self._cluster.patch(
            CONTROLLER_REVISIONS, meta.name, patch, namespace=meta.namespace, as_=Revision
        )
        self._written.wrote(key, renumbered.metadata.resource_version)
        return renumbered

    async def delete(self, revisions: Sequence[Revision]) -> None:
        for revision in revisions:
            meta = revision.metadata
            with suppress(NotFound):
                await self._cluster.delete(CONTROLLER_REVISIONS, meta.name, namespace=meta.namespace, uid=meta.uid)

    async def _create(self, key: Key, workload: W, data: Object, number: int, collisions: int | None) -> Revision:
        meta = workload.metadata
        unique = short_hash(data, collisions)
        labels: Mapping[str, str] = (data["spec"]["template"].get("metadata") or {}).get("labels") or {}
        name = f"{meta.name[:_LONGEST_NAME]}-{unique}"
        made = {
            "apiVersion": CONTROLLER_REVISIONS.api_version,
            "kind": CONTROLLER_REVISIONS.kind,
            "metadata": {
                "name": name,
                "namespace": meta.namespace,
                "labels": {**labels, self._hash_label: unique},
                "annotations": dict(meta.annotations),
                "ownerReferences": [owner_reference(self._owner, meta)],
            },
            # Clients that look for the revision of a template compare bytes.
            "data": sorted_fields(data),
            "revision": number,
        }
        try:
            there = await self._cluster.create(CONTROLLER_REVISIONS, made, namespace=meta.namespace, as_=Revision)
        except AlreadyExists:
            there = await self._cluster.get(CONTROLLER_REVISIONS, name, namespace=meta.namespace, as_=Revision)
            owner = there.metadata.controller
            if owner is None or owner.uid != meta.uid or there.data != data:
                raise Collision(f"the ControllerRevision {meta.namespace}/{name} belongs to another owner") from None
        self._written.wrote(key, there.metadata.resource_version)
        return there
