"""Counts anew what is used of ResourceQuotas, and takes over what their ``spec.hard`` says.

The API server charges a quota for every new object (:mod:`seamark.kinds.policy.charging`), but gives nothing back when
an object goes, ends or shrinks.  This controller does, by counting all objects of the namespace.  It reads the quota
first, then lists the objects, and writes only if the quota is still the one it read: an object that is made meanwhile
charges the quota, so the count is repeated.  Nothing is charged before the status says what is limited: when it first
does, objects made during that count may be missing from it, so they are counted once more.
"""

from __future__ import annotations

from contextlib import suppress

import msgspec

from seamark import errors
from seamark.access.cluster import Cluster, Receipt
from seamark.access.informer import split_key
from seamark.controllers.housekeeping.everything import AnyObject, Everything
from seamark.errors import Object
from seamark.kinds.policy.usage import counted_by, in_scope, total, used_by
from seamark.kinds.resource import PERSISTENT_VOLUME_CLAIMS, PODS, RESOURCE_QUOTAS, SERVICES, Resource
from seamark.kinds.values import times
from seamark.rules.objects.metadata import ObjectView, View, namespace_of
from seamark.rules.objects.pod import Pod
from seamark.runtime.controller import Again, Controller
from seamark.runtime.manager import Manager
from seamark.runtime.queue import Key

NAME = "resourcequota-controller"

# How many seconds pass before a quota is counted without a reason: for what ends without a change (a grace period).
RESYNC_SECONDS = 300.0
# Counting takes time in proportion to the objects, so that a burst of deletions is counted a few times only.
BATCH_SECONDS = 0.5

_SHRINKING = (PODS, SERVICES, PERSISTENT_VOLUME_CLAIMS)  # kinds whose objects may use less without going


class QuotaSpec(View, frozen=True):
    hard: dict[str, str] = msgspec.field(default_factory=dict)
    scopes: tuple[str, ...] = ()
    scope_selector: Object | None = None


class Quota(ObjectView, frozen=True):
    spec: QuotaSpec = QuotaSpec()


class QuotaController(Controller):
    """One key is one quota."""

    def __init__(self, manager: Manager, cluster: Cluster, everything: Everything) -> None:
        super().__init__(NAME, manager, batch=BATCH_SECONDS)
        self._cluster = cluster
        self._everything = everything
        self._clock = manager.clock
        self._quotas = self.watch(manager.informers.of(RESOURCE_QUOTAS, as_=Quota), self._quota_changed)
        self._by_namespace = self._quotas.index("namespace", namespace_of)
        everything.follow(self._changed)

    def _quota_changed(self, key: Key, old: Quota | None, new: Quota | None) -> None:
        # As in Kubernetes, a status that somebody else writes stays until the next count.
        if new is not None and (old is None or old.spec != new.spec):
            self.queue.add(key)

    def _changed(self, resource: Resource, key: Key, old: AnyObject | None, new: AnyObject | None) -> None:
        """An object that appears is charged already."""
        if not resource.namespaced or old is None or (new is not None and not _uses_less(resource, old, new)):
            return
        for quota in self._by_namespace.objects(old.metadata.namespace):
            if counted_by(resource, quota.spec.hard):
                self.queue.add_batched(quota.metadata.key)

    async def reconcile(self, key: Key) -> None:
        namespace, name = split_key(key)
        try:
            quota = await self._cluster.get(RESOURCE_QUOTAS, name, namespace=namespace)
        except errors.NotFound:
            return
        hard = (quota.get("spec") or {}).get("hard") or {}
        status: Object = {"hard": hard, "used": await self._count(quota, hard)} if hard else {}
        limited = quota["status"].get("hard") or {}
        if status != quota["status"]:
            quota["status"] = status
            await self._cluster.update(RESOURCE_QUOTAS, quota, namespace=namespace, subresource="status", as_=Receipt)
        if hard.keys() - limited.keys():
            raise Again(BATCH_SECONDS, "what was made during the first count was not charged")
        raise Again(RESYNC_SECONDS, "counted now and then")

    async def _count(self, quota: Object, hard: dict[str, str]) -> dict[str, str]:
        used: dict[str, str] = {}
        now, namespace = times.text(self._clock.time()), quota["metadata"]["namespace"]
        for resource in self._everything.resources:
            names = counted_by(resource, hard) if resource.namespaced else ()
            if names:
                with suppress(errors.NotFound):  # the kind is gone
                    listed = (await self._cluster.list(resource, namespace=namespace)).items
                    counted = (obj for obj in listed if in_scope(quota, resource, obj))
                    used |= total((used_by(resource, obj, now) for obj in counted), names)
        return {name: used[name] for name in sorted(used)}


def _uses_less(resource: Resource, old: AnyObject, new: AnyObject) -> bool:
    """Whether a change of an object may free something; an end or a deletion of a Pod, any change of the others."""
    if resource not in _SHRINKING:
        return False
    if isinstance(old, Pod) and isinstance(new, Pod):
        return (
            old.finished != new.finished
            or old.spec != new.spec
            or old.metadata.deletion_timestamp != new.metadata.deletion_timestamp
        )
    return True
