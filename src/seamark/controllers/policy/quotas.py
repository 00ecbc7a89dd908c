"""Counts anew what is used of ResourceQuotas, and takes over what their ``spec.hard`` says.

The API server charges a quota for every new object (:mod:`seamark.kinds.policy.charging`), but gives nothing back when
an object goes, ends or shrinks.  This controller does, by counting all objects of the namespace.  It reads the quota
first, then lists the objects, and writes only if the quota is still the one it read: an object that is made meanwhile
charges the quota, so the count is repeated.  Nothing is charged before the status says what is limited: when it first
does, objects made during that count may be missing from it, so they are counted once more.

What an object uses is worked out once for each of its versions, and kept for the next count.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from typing import Any, ClassVar

import msgspec

from seamark import errors
from seamark.access.cluster import Cluster, Receipt
from seamark.access.informer import split_key
from seamark.controllers.housekeeping.everything import AnyObject, Everything
from seamark.errors import Object
from seamark.kinds.policy.usage import Use, counted_by, in_scope, total, used_by
from seamark.kinds.resource import PERSISTENT_VOLUME_CLAIMS, PODS, RESOURCE_CLAIMS, RESOURCE_QUOTAS, SERVICES, Resource
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

# So many objects are looked at before others have their turn.
LOOKED_AT = 100

_SHRINKING = (PODS, SERVICES, PERSISTENT_VOLUME_CLAIMS)  # kinds whose objects may use less without going
_DIFFERENT = (*_SHRINKING, RESOURCE_CLAIMS)  # kinds whose objects use more than being there


class QuotaSpec(View, frozen=True):
    hard: dict[str, str] = msgspec.field(default_factory=dict)
    scopes: tuple[str, ...] = ()
    scope_selector: Object | None = None


class Quota(ObjectView, frozen=True):
    spec: QuotaSpec = QuotaSpec()


class Stamp(View, frozen=True):
    uid: str = ""
    resource_version: str = ""
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    annotations: dict[str, str] = msgspec.field(default_factory=dict)


class Bare(View, frozen=True):
    """An object that only has to be there."""

    any_version: ClassVar[bool] = True


class Counted(View, frozen=True):
    """An object that may have to be looked into."""

    metadata: Stamp
    spec: msgspec.Raw = msgspec.Raw(b"{}")
    status: msgspec.Raw = msgspec.Raw(b"{}")

    def document(self) -> Object:
        """What the rules of usage read."""
        metadata: Any = msgspec.to_builtins(self.metadata)
        return {
            "metadata": metadata,
            "spec": msgspec.json.decode(self.spec),
            "status": msgspec.json.decode(self.status),
        }


class Known(msgspec.Struct):
    """What the last count of a quota found: by uid, the version of an object and what it uses of the quota."""

    spec: Object
    uses: dict[str, tuple[str, Use]] = {}


class QuotaController(Controller):
    """One key is one quota."""

    def __init__(self, manager: Manager, cluster: Cluster, everything: Everything) -> None:
        super().__init__(NAME, manager, batch=BATCH_SECONDS)
        self._cluster = cluster
        self._everything = everything
        self._clock = manager.clock
        self._quotas = self.watch(manager.informers.of(RESOURCE_QUOTAS, as_=Quota), self._quota_changed)
        self._by_namespace = self._quotas.index("namespace", namespace_of)
        self._known: dict[Key, Known] = {}
        everything.follow(self._changed)

    def _quota_changed(self, key: Key, old: Quota | None, new: Quota | None) -> None:
        # As in Kubernetes, a status that another client writes stays until the next count.
        if old is None or new is None or old.spec != new.spec:
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
            self._known.pop(key, None)
            return
        hard = (quota.get("spec") or {}).get("hard") or {}
        status: Object = {"hard": hard, "used": await self._count(key, quota, hard)} if hard else {}
        limited = quota["status"].get("hard") or {}
        if status != quota["status"]:
            quota["status"] = status
            await self._cluster.update(RESOURCE_QUOTAS, quota, namespace=namespace, subresource="status", as_=Receipt)
        if hard.keys() - limited.keys():
            raise Again(BATCH_SECONDS, "what was made during the first count was not charged")
        raise Again(RESYNC_SECONDS, "counted now and then")

    async def _count(self, key: Key, quota: Object, hard: dict[str, str]) -> dict[str, str]:
        used: dict[str, str] = {}
        before = self._known.get(key)
        known = before.uses if before is not None and before.spec == quota["spec"] else {}
        now = Known(quota["spec"])
        for resource in self._everything.resources:
            names = counted_by(resource, hard) if resource.namespaced else ()
            if names:
                with suppress(errors.NotFound):  # the kind is gone
                    uses = await self._uses(resource, quota, known, now)
                    used |= total(uses, names)
        self._known[key] = now
        return {name: used[name] for name in sorted(used)}

    async def _uses(
        self, resource: Resource, quota: Object, known: dict[str, tuple[str, Use]], now: Known
    ) -> Counter[Use]:
        """How many objects of a kind have each use of the quota; adds them to what is known ``now``."""
        namespace, time = quota["metadata"]["namespace"], times.text(self._clock.time())
        if resource not in _DIFFERENT:  # all are alike
            there = (await self._cluster.list(resource, namespace=namespace, as_=Bare)).items
            counts = bool(there) and in_scope(quota, resource, {})
            return Counter({tuple(used_by(resource, {}, time).items()): len(there)} if counts else {})
        found: Counter[Use] = Counter()
        for number, each in enumerate((await self._cluster.list(resource, namespace=namespace, as_=Counted)).items, 1):
            if not number % LOOKED_AT:
                await asyncio.sleep(0)
            meta = each.metadata
            version, use = known.get(meta.uid, ("", ()))
            # What an object uses that is being deleted changes with time.
            if version != meta.resource_version or meta.deletion_timestamp is not None:
                document = each.document()
                use = tuple(used_by(resource, document, time).items()) if in_scope(quota, resource, document) else ()
            now.uses[meta.uid] = (meta.resource_version, use)
            found[use] += 1
        return found


def _uses_less(resource: Resource, old: AnyObject, new: AnyObject) -> bool:
    """Whether a change of an object may free something; an end or a deletion of a Pod, any change of the others."""
    if resource not in _SHRINKING:
        return False
    if isinstance(old, Pod) and isinstance(new, Pod):
        return (
            old.finished != new.finished
            or msgspec.structs.replace(old.spec, node_name=new.spec.node_name) != new.spec
            or old.metadata.deletion_timestamp != new.metadata.deletion_timestamp
        )
    return True
