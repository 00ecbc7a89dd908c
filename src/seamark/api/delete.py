"""Deletion: at once, after a grace period, or when the last finalizer lets go.

    DELETE → preconditions → finalizers by propagation policy → grace → mark (deletionTimestamp) or remove

Orphaning and foreground deletion only add their finalizer here; the garbage collector does the rest and takes it away.
"""

from __future__ import annotations

import msgspec

from seamark.api.allocation.reserve import Reservations
from seamark.api.context import Writing
from seamark.api.http.options import DeleteOptions
from seamark.api.state.cache import Cache, Entry, key_of, stored
from seamark.api.state.cache import entry_of as make_entry
from seamark.api.state.read import missing
from seamark.api.write import CONFLICT_ATTEMPTS, conflict
from seamark.errors import Conflict, Object
from seamark.kinds.kind import Kind
from seamark.kinds.resource import EVENTS, NAMESPACES, NEW_EVENTS, REPLICATION_CONTROLLERS
from seamark.kinds.values import times
from seamark.store.protocol import Mismatch, Store, Write

ORPHAN, FOREGROUND = "orphan", "foregroundDeletion"
_WITHOUT_DEPENDENTS = (EVENTS, NEW_EVENTS)  # nothing hangs on an Event: no policy holds it


class Deleted(msgspec.Struct):
    """The object as last seen; ``gone`` unless it stays until somebody finishes the deletion."""

    entry: Entry
    gone: bool


class Deleter:
    """Deletes objects of every kind."""

    def __init__(self, cache: Cache, store: Store, reservations: Reservations) -> None:
        self._cache = cache
        self._store = store
        self._reservations = reservations

    async def delete(self, kind: Kind, namespace: str, name: str, options: DeleteOptions, how: Writing) -> Deleted:
        path = f"{namespace}/{name}" if kind.resource.namespaced else name
        kind.check_deletion(name)
        for _ in range(CONFLICT_ATTEMPTS):
            entry = await self._cache.find(kind.resource, path, options.version)
            if entry is None:
                raise missing(kind.resource, name)
            obj = entry.decode()
            self.check(kind, obj["metadata"], options, name)
            try:
                return await self._delete(kind, entry, obj, options, how)
            except Mismatch as error:
                await self._cache.reach(error.found)
        raise conflict(kind.resource, name)

    @staticmethod
    def check(kind: Kind, meta: Object, options: DeleteOptions, name: str) -> None:
        """Raises if the deletion was meant for another object of this name, or for another version of it."""
        if options.uid and options.uid != meta["uid"]:
            asked, found, noun, sentence = options.uid, meta["uid"], "UID", "deleted and then recreated"
        elif options.version and options.version != meta["resourceVersion"]:
            asked, found, noun, sentence = options.version, meta["resourceVersion"], "ResourceVersion", "modified"
        else:
            return
        resource = kind.resource
        if resource == NAMESPACES:
            sentence = f"Precondition failed: {noun} in precondition: {asked}, {noun} in object meta: {found}"
            raise conflict(resource, name, sentence)
        # Kubernetes names the kind here, and that of what is stored, where it otherwise names the resource.
        group, word = (kind.stored_as or resource).group, resource.kind
        details: Object = {"name": name, "kind": word}
        if group:
            details["group"] = group
            word = f"{word}.{group}"
        raise Conflict(
            f'Operation cannot be fulfilled on {word} "{name}": the {noun} in the precondition ({asked}) does not '
            f"match the {noun} in record ({found}). The object might have been {sentence}",
            details=details,
        )

    async def _delete(self, kind: Kind, entry: Entry, obj: Object, options: DeleteOptions, how: Writing) -> Deleted:
        meta = obj["metadata"]
        if kind.resource == NAMESPACES and "deletionTimestamp" in meta and obj["spec"].get("finalizers"):
            return Deleted(entry, gone=False)  # whose contents are being deleted, whatever is asked for now
        asked = options.grace_seconds if options.grace_seconds is None or options.grace_seconds >= 0 else 1
        grace = meta.get("deletionGracePeriodSeconds", 0) if kind.graceful and "deletionTimestamp" in meta else 0
        if grace:
            if asked is None or asked >= grace:
                # Its time is running; a later deletion may only shorten it, and change nothing else.
                return Deleted(entry, gone=False)
            _shorten(meta, grace, asked)
            grace, marked = asked, True
        elif marked := kind.graceful and "deletionTimestamp" not in meta:
            grace = kind.grace_seconds(obj, asked)
            _mark(kind, obj, grace, how.now)
        before = meta.get("finalizers") or []
        finalizers = _finalizers(kind, before, options)
        if finalizers:
            meta["finalizers"] = finalizers
        else:
            meta.pop("finalizers", None)
        stays = grace > 0 or kind.held(obj)
        if stays and "deletionTimestamp" not in meta:
            _mark(kind, obj, 0, how.now)
            marked = True
        if marked or (stays and finalizers != before):
            entry = await self._store_mark(kind, entry, obj, how)
        if stays:
            return Deleted(entry, gone=False)
        return await self._remove(kind, entry, obj, how)

    async def _store_mark(self, kind: Kind, entry: Entry, obj: Object, how: Writing) -> Entry:
        value = stored(obj)
        if how.dry_run:
            return make_entry(entry.path, value, entry.revision)
        key = key_of(kind.stored_as or kind.resource, entry.namespace, entry.name)
        revision = await self._store.commit([Write(key, value, entry.revision)])
        return await self._cache.written(kind.resource, entry.path, value, revision)

    async def _remove(self, kind: Kind, entry: Entry, obj: Object, how: Writing) -> Deleted:
        if how.dry_run:
            return Deleted(entry, gone=True)
        key = key_of(kind.stored_as or kind.resource, entry.namespace, entry.name)
        release = self._reservations.release(kind, obj)
        revision = await self._store.commit([Write(key, None, entry.revision), *release])
        await self._cache.reach(revision)
        if kind.graceful:
            # What was marked is what is shown: its version is that of the mark.
            return Deleted(entry, gone=True)
        return Deleted(make_entry(entry.path, stored(obj), revision), gone=True)


def _mark(kind: Kind, obj: Object, grace: int, now: str) -> None:
    """Begin the deletion."""
    meta = obj["metadata"]
    if meta.get("generation"):
        meta["generation"] += 1
    meta["deletionTimestamp"] = times.text(times.parse(now) + grace)
    meta["deletionGracePeriodSeconds"] = grace
    kind.begin_deletion(obj)


def _shorten(meta: Object, grace: int, asked: int) -> None:
    """Let a deletion under way end sooner, counted from when it began."""
    meta["deletionTimestamp"] = times.text(times.parse(meta["deletionTimestamp"]) - grace + asked)
    meta["deletionGracePeriodSeconds"] = asked


def _finalizers(kind: Kind, present: list[str], options: DeleteOptions) -> list[str]:
    """What holds the object after this request, by its propagation policy."""
    if kind.resource in _WITHOUT_DEPENDENTS:
        return present
    policy = options.propagation
    if options.orphan is not None:
        # A Namespace that orphans nothing waits for what is in it.
        policy = "Orphan" if options.orphan else "Foreground" if kind.resource == NAMESPACES else "Background"
    if not policy and kind.resource == REPLICATION_CONTROLLERS and FOREGROUND not in present:
        policy = "Orphan"  # so it was before there was a garbage collector, and stays
    if not policy:
        return present
    kept = [f for f in present if f not in (ORPHAN, FOREGROUND)]
    if policy == "Orphan":
        kept.append(ORPHAN)
    elif policy == "Foreground":
        kept.append(FOREGROUND)
    return present if set(kept) == set(present) else kept
