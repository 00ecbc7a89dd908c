"""Garbage collection by ownerReferences: deletes an object when the last of its owners is gone.

An object is queued when it changes, when an owner of it changes or may be of a kind that is new, or when a dependant of
it is deleted or drops or changes its reference.  ``reconcile`` then checks, in this order:

- it is being deleted with the ``orphan`` finalizer: remove the references from its dependants, then the finalizer
- it is being deleted with ``foregroundDeletion``: delete its dependants; once no blocking one is left, remove the
  finalizer.  A dependant that waits for this object itself, in a circle of owners, does not block
- it has owners: if all are gone, delete it; if only some are gone, remove the references to these

An owner is in the namespace of its dependant, or in none.  One in another namespace counts as gone.  What is in no
namespace cannot have an owner in one: such a reference says nothing, and its object is never deleted for it.

Objects of aggregated servers are not followed.  Where one is an owner, its server is asked, and again after a while.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum

import msgspec

from seamark import errors
from seamark.access.cluster import Cluster, Propagation
from seamark.access.correlation import Reference
from seamark.access.informer import key_of as path_of
from seamark.access.informer import split_key
from seamark.controllers.housekeeping.everything import AnyMetadata, AnyObject, Bare, Everything, Foreign
from seamark.errors import Object
from seamark.kinds.resource import Resource
from seamark.rules.objects.metadata import OwnerReference
from seamark.runtime.controller import Again, Controller
from seamark.runtime.manager import Manager
from seamark.runtime.queue import Key
from seamark.runtime.turns import Steps

ORPHAN, FOREGROUND = "orphan", "foregroundDeletion"
ASK_AGAIN_SECONDS = 15.0  # whether an owner of an aggregated server still exists


class Standing(Enum):
    """The state of an owner."""

    ALIVE = "alive"
    WAITING = "waiting for its dependants"  # being deleted in the foreground
    GONE = "gone"


class Duty(msgspec.Struct, frozen=True):
    """What to do with an owned object; nothing if both are empty."""

    delete: Propagation | None = None
    forget: tuple[str, ...] = ()  # uids of owners that are gone


def duty(owners: Sequence[tuple[OwnerReference, Standing]], *, has_dependants: bool) -> Duty:
    """Decide from the state of each owner."""
    alive = [o for o, standing in owners if standing is Standing.ALIVE]
    waiting = [o for o, standing in owners if standing is Standing.WAITING]
    gone = [o for o, standing in owners if standing is Standing.GONE]
    if alive:
        dropped = (*gone, *waiting)
        return Duty(forget=tuple(owner.uid for owner in dropped))
    if waiting:
        # Foreground, because the owner waits for everything below it, so these dependants have to go first.
        return Duty(delete="Foreground" if has_dependants else "Background")
    return Duty(delete="Background") if gone else Duty()


def lost(old: Sequence[OwnerReference], new: Sequence[OwnerReference]) -> list[OwnerReference]:
    """The references that an object had and has no more; there may be ten thousand, so they are looked up."""
    kept = frozenset(new)
    return [owner for owner in old if owner not in kept]


class GarbageCollector(Controller):
    """Deletes objects when all their owners are gone.  A key is a kind and the key of an object."""

    def __init__(self, manager: Manager, cluster: Cluster, everything: Everything, foreign: Foreign | None) -> None:
        super().__init__("garbage-collector", manager)
        self._cluster = cluster
        self._everything = everything
        self._foreign = foreign
        self._recorder = manager.recorder(cluster, "garbage-collector-controller")
        self._dependants: dict[str, set[Key]] = {}  # by the owner's uid
        self._keys: dict[str, Key] = {}  # by uid
        everything.follow(self._changed)
        everything.on_new_kind(self._judge_again)

    def reset(self) -> None:
        self._dependants.clear()
        self._keys.clear()

    # --- following ---------------------------------------------------------------------------------

    def _changed(self, resource: Resource, path: Key, old: AnyObject | None, new: AnyObject | None) -> None:
        if old is not None and new is not None and _same(old.metadata, new.metadata):
            return
        key = f"{resource.qualified}|{path}"
        if old is not None:
            for owner in old.metadata.owner_references:
                self._disown(owner.uid, key)
            for owner in lost(old.metadata.owner_references, () if new is None else new.metadata.owner_references):
                if waiting := self._keys.get(owner.uid):
                    self.queue.add(waiting)
        if new is not None:
            self._keys[new.metadata.uid] = key
            for owner in new.metadata.owner_references:
                self._dependants.setdefault(owner.uid, set()).add(key)
            if set(new.metadata.finalizers) & {ORPHAN, FOREGROUND} or not self._is_owned(new.metadata):
                self.queue.add(key)
        if old is not None and new is None:
            self._gone(old.metadata)
        elif (
            old is not None
            and new is not None
            and new.metadata.deletion_timestamp
            and not old.metadata.deletion_timestamp
        ):
            self._wake_dependants(new.metadata.uid)

    def _is_owned(self, meta: AnyMetadata) -> bool:
        """Whether all its owners are there and stay: then it is judged only when one of them changes."""
        owners = [self._known(owner, meta.namespace) for owner in meta.owner_references]
        return all(owner is not None and not owner.metadata.deletion_timestamp for owner in owners)

    def _disown(self, uid: str, key: Key) -> None:
        """The object is no dependant of this owner any more; the last one may go long after its owner."""
        dependants = self._dependants.get(uid, set())
        dependants.discard(key)
        if not dependants:
            self._dependants.pop(uid, None)

    def _gone(self, gone: AnyMetadata) -> None:
        self._keys.pop(gone.uid, None)
        self._wake_dependants(gone.uid)

    def _judge_again(self) -> None:
        """An owner that was not found may be of the kind that is served now, and be gone."""
        for uid in self._dependants.keys() - self._keys.keys():
            self._wake_dependants(uid)

    def _wake_dependants(self, uid: str) -> None:
        for key in self._dependants.get(uid, ()):
            self.queue.add(key)

    # --- one object --------------------------------------------------------------------------------

    def _find(self, key: Key) -> tuple[Resource, AnyObject] | None:
        qualified, _, path = key.partition("|")
        resource = self._everything.named(qualified)
        thing = None if resource is None else self._everything.find(resource, path)
        return None if resource is None or thing is None else (resource, thing)

    async def reconcile(self, key: Key) -> None:
        # Only when the objects of every kind have been listed are all dependants known.
        await self._everything.synced()
        found = self._find(key)
        if found is None:
            return
        resource, thing = found
        meta = thing.metadata
        try:
            if meta.deletion_timestamp and ORPHAN in meta.finalizers:
                await self._orphan_dependants(resource, thing)
            elif meta.deletion_timestamp and FOREGROUND in meta.finalizers:
                await self._delete_dependants(resource, thing)
            elif meta.owner_references and not meta.deletion_timestamp:
                await self._judge(resource, thing)
        except errors.NotFound:
            return  # already deleted

    async def _judge(self, resource: Resource, thing: AnyObject) -> None:
        meta = thing.metadata
        self._tell_of_misplaced_owners(resource, meta)
        standings = [(owner, await self._standing(owner, meta.namespace)) for owner in meta.owner_references]
        decided = duty(standings, has_dependants=bool(self._dependants.get(meta.uid)))
        if decided.delete:
            await self._cluster.delete(
                resource,
                meta.name,
                namespace=meta.namespace,
                uid=meta.uid,
                version=meta.resource_version,
                propagation=decided.delete,
            )
        elif decided.forget:
            await self._forget_owners(resource, thing, decided.forget)
        elif any(self._elsewhere(owner) for owner in meta.owner_references):
            raise Again(ASK_AGAIN_SECONDS, f"the owner of {meta.name} is of an aggregated server")

    def _tell_of_misplaced_owners(self, resource: Resource, meta: AnyMetadata) -> None:
        """An owner that exists, but in another namespace, is likely a mistake of the author."""
        here = meta.namespace
        for owner in meta.owner_references:
            _, _, path = self._keys.get(owner.uid, "").partition("|")
            if (there := split_key(path)[0]) and there != here:
                name = f"[{owner.api_version}/{owner.kind}, namespace: {here}, name: {owner.name}, uid: {owner.uid}]"
                message = f'ownerRef {name} does not exist in namespace "{here}"'
                about = Reference(resource.kind, meta.name, here, meta.uid, resource.api_version)
                self._recorder.record(about, "Warning", reason="OwnerRefInvalidNamespace", message=message)

    def _elsewhere(self, owner: OwnerReference) -> Resource | None:
        """The resource of an owner that an aggregated server has."""
        if self._foreign is None or self._everything.by_kind(owner.api_version, owner.kind) is not None:
            return None
        for resource, verbs in self._foreign.resources().items():
            if (resource.api_version, resource.kind) == (owner.api_version, owner.kind) and "get" in verbs:
                return resource
        return None

    def _known(self, owner: OwnerReference, namespace: str) -> AnyObject | None:
        """The owner, if an informer shows it."""
        resource = self._everything.by_kind(owner.api_version, owner.kind)
        if resource is None:
            return None
        found = self._everything.find(resource, path_of(namespace if resource.namespaced else "", owner.name))
        return found if found is not None and found.metadata.uid == owner.uid else None

    async def _standing(self, owner: OwnerReference, namespace: str) -> Standing:
        found = self._known(owner, namespace)
        if found is None:
            # The informer may be behind: ask the server before deleting anything.
            resource = self._everything.by_kind(owner.api_version, owner.kind) or self._elsewhere(owner)
            if resource is None:
                # A kind that is not served now may be served again, so the owner may still exist.
                return Standing.ALIVE
            if resource.namespaced and not namespace:
                return Standing.ALIVE
            place = namespace if resource.namespaced else ""
            try:
                found = await self._cluster.get(resource, owner.name, namespace=place, as_=Bare)
            except errors.NotFound:
                return Standing.GONE
            if found.metadata.uid != owner.uid:
                return Standing.GONE
        if found.metadata.deletion_timestamp and FOREGROUND in found.metadata.finalizers:
            return Standing.WAITING if owner.block_owner_deletion else Standing.ALIVE
        return Standing.ALIVE

    async def _delete_dependants(self, resource: Resource, thing: AnyObject) -> None:
        uid, steps = thing.metadata.uid, Steps()
        blocked = False
        waiting: frozenset[str] | None = None
        for key in list(self._dependants.get(uid, ())):
            found = self._find(key)
            if found is None:
                continue
            kind, dependant = found
            await steps.take(1 + len(dependant.metadata.owner_references))
            if not blocked and _blocks(dependant, uid):
                if waiting is None and _waits(dependant):
                    waiting = await self._waiting_for(thing, steps)
                blocked = dependant.metadata.uid not in (waiting or ())
            if not dependant.metadata.deletion_timestamp:
                await self._delete_below(kind, dependant)
        if not blocked:
            await self._drop_finalizer(resource, thing, FOREGROUND)

    async def _waiting_for(self, thing: AnyObject, steps: Steps) -> frozenset[str]:
        """The uids of the objects that, being deleted in the foreground, wait for this one, or will by others."""
        waiting: set[str] = set()
        line = [thing]
        while line:
            owners = line.pop().metadata.owner_references
            for owner in owners:
                found = self._find(self._keys.get(owner.uid, "")) if owner.uid not in waiting else None
                if owner.block_owner_deletion and found is not None and _waits(found[1]):
                    waiting.add(owner.uid)
                    line.append(found[1])
                await steps.take(1)
        return frozenset(waiting)

    async def _delete_below(self, resource: Resource, thing: AnyObject) -> None:
        meta = thing.metadata
        standings = [(owner, await self._standing(owner, meta.namespace)) for owner in meta.owner_references]
        if any(standing is Standing.ALIVE for _, standing in standings):
            return
        below: Propagation = "Foreground" if self._dependants.get(meta.uid) else "Background"
        try:
            await self._cluster.delete(resource, meta.name, namespace=meta.namespace, uid=meta.uid, propagation=below)
        except errors.NotFound:
            return  # gone already

    async def _orphan_dependants(self, resource: Resource, thing: AnyObject) -> None:
        for key in list(self._dependants.get(thing.metadata.uid, ())):
            found = self._find(key)
            if found is not None:
                await self._forget_owners(*found, (thing.metadata.uid,))
        await self._drop_finalizer(resource, thing, ORPHAN)

    async def _forget_owners(self, resource: Resource, thing: AnyObject, uids: tuple[str, ...]) -> None:
        gone = frozenset(uids)

        def without(meta: Object) -> Object:
            return {"ownerReferences": [o for o in meta.get("ownerReferences") or () if o["uid"] not in gone]}

        removal = {"ownerReferences": [{"$patch": "delete", "uid": uid} for uid in uids]}
        try:
            await self._patch(resource, thing, removal, without)
        except errors.NotFound:
            return  # the dependant is gone, its reference with it

    async def _drop_finalizer(self, resource: Resource, thing: AnyObject, finalizer: str) -> None:
        def without(meta: Object) -> Object:
            return {"finalizers": [name for name in meta.get("finalizers") or () if name != finalizer]}

        await self._patch(resource, thing, {"$deleteFromPrimitiveList/finalizers": [finalizer]}, without)

    async def _patch(
        self, resource: Resource, thing: AnyObject, strategic: Object, edited: Callable[[Object], Object]
    ) -> None:
        """Patch an object's metadata; if the kind accepts only merge patches, to the result of ``edited``."""
        name, namespace, uid = thing.metadata.name, thing.metadata.namespace, thing.metadata.uid
        try:
            patch = {"metadata": {"uid": uid, **strategic}}
            await self._cluster.patch(resource, name, patch, namespace=namespace, type="strategic")
        except errors.UnsupportedMediaType:
            meta = (await self._cluster.get(resource, name, namespace=namespace))["metadata"]
            # A merge patch replaces whole lists, so it names the version that they were read from.
            patch = {"metadata": {"uid": uid, "resourceVersion": meta["resourceVersion"], **edited(meta)}}
            await self._cluster.patch(resource, name, patch, namespace=namespace)


def _waits(thing: AnyObject) -> bool:
    """Whether an object is being deleted in the foreground."""
    return bool(thing.metadata.deletion_timestamp) and FOREGROUND in thing.metadata.finalizers


def _blocks(dependant: AnyObject, uid: str) -> bool:
    """Whether the owner with this uid, deleted in the foreground, has to wait for its dependant."""
    return any(owner.uid == uid and owner.block_owner_deletion for owner in dependant.metadata.owner_references)


def _same(old: AnyMetadata, new: AnyMetadata) -> bool:
    """Whether a change leaves ownership as it was, as most changes do."""
    return (
        old.owner_references == new.owner_references
        and old.finalizers == new.finalizers
        and old.deletion_timestamp == new.deletion_timestamp
    )
