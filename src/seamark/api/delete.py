"""Deletion: at once, after a grace period, or when the last finalizer lets go.

    DELETE → preconditions → admission → finalizers by propagation policy → grace → mark (deletionTimestamp) or remove

Orphaning and foreground deletion only add their finalizer here; the garbage collector does the rest and takes it away.
"""

from __future__ import annotations

import msgspec

from seamark.api.admission import Admission
from seamark.api.allocation.reserve import Reservations
from seamark.api.call import Caller, DeleteOptions, Target
from seamark.api.state.cache import Cache
from seamark.api.state.entries import Entry, entry_of, key_of, stored
from seamark.api.state.forms import converted
from seamark.api.turns import aside
from seamark.api.write.values import CONFLICT_ATTEMPTS
from seamark.errors import Object
from seamark.kinds.kind import Kind
from seamark.kinds.values import times
from seamark.kinds.values.refusals import conflict, missing
from seamark.store.protocol import Mismatch, Store, Write

ORPHAN, FOREGROUND = "orphan", "foregroundDeletion"


class Deleted(msgspec.Struct):
    """The object as last seen; ``gone`` unless it stays until its finalizers or its grace period end."""

    entry: Entry
    gone: bool


class Deleter:
    """Deletes objects of every kind."""

    def __init__(self, cache: Cache, store: Store, reservations: Reservations, admission: Admission) -> None:
        self._cache = cache
        self._store = store
        self._reservations = reservations
        self._admission = admission

    async def delete(
        self, target: Target, options: DeleteOptions, caller: Caller, *, admitted: bool = False
    ) -> Deleted:
        """``admitted`` says that admission was asked already, or is not to be asked."""
        kind = target.kind
        if options.dry_run:
            caller = msgspec.structs.replace(caller, dry_run=True)
        kind.check_deletion(target.name)
        for _ in range(CONFLICT_ATTEMPTS):
            entry = await self._cache.find(kind.resource, target.path, options.version)
            if entry is None:
                raise missing(kind.resource, target.name)
            obj = entry.decode()
            check_preconditions(kind, obj["metadata"], options)
            if not admitted:
                if kind.conversion is not None:
                    await aside(caller.notes, converted(kind, [entry]))
                await self._admission.admit_deletion(kind, entry, options, caller)
            try:
                return await self._delete(kind, entry, obj, options, caller)
            except Mismatch as error:
                await self._cache.reach(error.found)
        raise conflict(kind.resource, target.name)

    async def _delete(self, kind: Kind, entry: Entry, obj: Object, options: DeleteOptions, caller: Caller) -> Deleted:
        meta = obj["metadata"]
        if "deletionTimestamp" in meta and kind.deletion_is_final(obj):
            return Deleted(entry, gone=False)
        asked = options.grace_seconds if options.grace_seconds is None or options.grace_seconds >= 0 else 1
        grace = meta.get("deletionGracePeriodSeconds", 0) if kind.graceful and "deletionTimestamp" in meta else 0
        if grace:
            if asked is None or asked >= grace:
                # Its grace period is running; a later deletion may only shorten it, and change nothing else.
                return Deleted(entry, gone=False)
            _shorten(meta, grace, asked)
            grace, marked = asked, True
        elif marked := kind.graceful and "deletionTimestamp" not in meta:
            grace = kind.grace_seconds(obj, asked)
            _mark(kind, obj, grace, caller.now)
        before = meta.get("finalizers") or []
        finalizers = _finalizers(kind, before, options)
        if finalizers:
            meta["finalizers"] = finalizers
        else:
            meta.pop("finalizers", None)
        stays = grace > 0 or kind.held(obj)
        if stays and "deletionTimestamp" not in meta:
            _mark(kind, obj, 0, caller.now)
            marked = True
        if marked or (stays and finalizers != before):
            entry = await self._store_mark(kind, entry, obj, caller)
        if stays:
            return Deleted(entry, gone=False)
        try:
            return await self._remove(kind, entry, obj, caller)
        except Mismatch as error:
            # Its node deletes what is marked too, and may be faster.
            if marked and await self._has_gone(kind, entry, meta["uid"], error.found):
                return Deleted(entry, gone=True)
            raise

    async def _has_gone(self, kind: Kind, entry: Entry, uid: str, found: int) -> bool:
        """Whether an object was deleted; ``found`` is the revision under its key now, which may be a successor's."""
        if not found:
            return True
        await self._cache.reach(found)
        successor = await self._cache.find(kind.resource, entry.path)
        return successor is None or successor.decode()["metadata"]["uid"] != uid

    async def _store_mark(self, kind: Kind, entry: Entry, obj: Object, caller: Caller) -> Entry:
        value = stored(obj)
        if caller.dry_run:
            return entry_of(entry.path, value, entry.revision)
        key = key_of(kind.stored_as or kind.resource, entry.namespace, entry.name)
        revision = await self._store.commit([Write(key, value, entry.revision)])
        return await self._cache.written(kind.resource, entry.path, value, revision)

    async def _remove(self, kind: Kind, entry: Entry, obj: Object, caller: Caller) -> Deleted:
        if caller.dry_run:
            return Deleted(entry, gone=True)
        key = key_of(kind.stored_as or kind.resource, entry.namespace, entry.name)
        release = self._reservations.release(kind, obj)
        revision = await self._store.commit([Write(key, None, entry.revision), *release])
        await self._cache.show(revision)
        if kind.graceful:
            # The answer is the object with the mark, under the mark's version.
            return Deleted(entry, gone=True)
        return Deleted(entry_of(entry.path, stored(obj), revision), gone=True)


def check_preconditions(kind: Kind, meta: Object, options: DeleteOptions) -> None:
    """Raises if the deletion was meant for another object of this name, or for another version of it."""
    for what, asked, found in (
        ("UID", options.uid, meta["uid"]),
        ("ResourceVersion", options.version, meta["resourceVersion"]),
    ):
        if asked and asked != found:
            raise kind.precondition_failed(meta["name"], what, asked=asked, found=found)


def _mark(kind: Kind, obj: Object, grace: int, now: str) -> None:
    """Begin the deletion."""
    meta = obj["metadata"]
    if meta.get("generation"):
        meta["generation"] += 1
    meta["deletionTimestamp"] = times.later(now, grace)
    meta["deletionGracePeriodSeconds"] = grace
    kind.begin_deletion(obj)


def _shorten(meta: Object, grace: int, asked: int) -> None:
    """Let a deletion under way end sooner, counted from when it began."""
    meta["deletionTimestamp"] = times.later(times.later(meta["deletionTimestamp"], -grace), asked)
    meta["deletionGracePeriodSeconds"] = asked


def _finalizers(kind: Kind, present: list[str], options: DeleteOptions) -> list[str]:
    """The finalizers that hold the object after this request, by its propagation policy."""
    if not kind.has_dependents:
        return present
    policy = options.propagation
    if options.orphan is not None:
        policy = "Orphan" if options.orphan else kind.propagation_unless_orphaned
    if not policy and FOREGROUND not in present:
        policy = kind.default_propagation
    if not policy:
        return present
    kept = [f for f in present if f not in (ORPHAN, FOREGROUND)]
    if policy == "Orphan":
        kept.append(ORPHAN)
    elif policy == "Foreground":
        kept.append(FOREGROUND)
    return present if set(kept) == set(present) else kept
