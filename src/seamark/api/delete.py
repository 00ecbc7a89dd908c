"""Deletion: at once, after a grace period, or when the last finalizer lets go.

    DELETE → preconditions → finalizers by propagation policy → grace → mark (deletionTimestamp) or remove

Orphaning and foreground deletion only add their finalizer here; the garbage collector does the rest and takes it away.
"""

from __future__ import annotations

import msgspec

from seamark.api.cache import Cache, Entry, key_of, stored
from seamark.api.cache import entry_of as make_entry
from seamark.api.context import Writing
from seamark.api.options import DeleteOptions
from seamark.api.read import missing
from seamark.api.reserve import Reservations
from seamark.api.write import CONFLICT_ATTEMPTS, conflict
from seamark.errors import Conflict, Object
from seamark.kinds import times
from seamark.kinds.kind import Kind
from seamark.store.protocol import Mismatch, Store, Write

ORPHAN, FOREGROUND = "orphan", "foregroundDeletion"


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
            self._check(kind, obj["metadata"], options, name)
            try:
                return await self._delete(kind, entry, obj, options, how)
            except Mismatch as error:
                await self._cache.reach(error.found)
        raise conflict(kind.resource, name)

    @staticmethod
    def _check(kind: Kind, meta: Object, options: DeleteOptions, name: str) -> None:
        sentence = ""
        if options.uid and options.uid != meta["uid"]:
            sentence = (
                f"the UID in the precondition ({options.uid}) does not match the UID in record ({meta['uid']}). "
                "The object might have been deleted and then recreated"
            )
        elif options.version and options.version != meta["resourceVersion"]:
            sentence = (
                f"the ResourceVersion in the precondition ({options.version}) does not match the ResourceVersion in "
                f"record ({meta['resourceVersion']}). The object might have been modified"
            )
        if sentence:
            # Kubernetes names the kind here, where it otherwise names the resource.
            word = kind.resource.kind
            details: Object = {"name": name, "kind": word}
            if kind.resource.group:
                details["group"] = kind.resource.group
                word = f"{word}.{kind.resource.group}"
            raise Conflict(f'Operation cannot be fulfilled on {word} "{name}": {sentence}', details=details)

    async def _delete(self, kind: Kind, entry: Entry, obj: Object, options: DeleteOptions, how: Writing) -> Deleted:
        meta = obj["metadata"]
        grace = kind.grace_seconds(obj, options.grace_seconds)
        finalizers = _finalizers(meta.get("finalizers") or [], options, already="deletionTimestamp" in meta)
        changed = finalizers != (meta.get("finalizers") or [])
        if finalizers:
            meta["finalizers"] = finalizers
        else:
            meta.pop("finalizers", None)
        stays = grace > 0 or kind.held(obj)
        if (kind.graceful or stays) and self._mark(kind, obj, grace, how.now, changed=changed):
            entry = await self._store_mark(kind, entry, obj, how)
        if stays:
            return Deleted(entry, gone=False)
        return await self._remove(kind, entry, obj, how)

    def _mark(self, kind: Kind, obj: Object, grace: int, now: str, *, changed: bool) -> bool:
        """Begin the deletion, or hurry one that has begun; False if there is nothing to write."""
        meta = obj["metadata"]
        if "deletionTimestamp" in meta:
            if grace >= meta.get("deletionGracePeriodSeconds", 0):
                return changed
        else:
            kind.begin_deletion(obj)
            if meta.get("generation"):
                meta["generation"] += 1
        meta["deletionTimestamp"] = times.text(times.parse(now) + grace)
        meta["deletionGracePeriodSeconds"] = grace
        return True

    async def _store_mark(self, kind: Kind, entry: Entry, obj: Object, how: Writing) -> Entry:
        value = stored(obj)
        if how.dry_run:
            return make_entry(entry.path, value, entry.revision)
        key = key_of(kind.stored_as or kind.resource, entry.namespace, entry.name)
        revision = await self._store.commit([Write(key, value, entry.revision)])
        await self._cache.reach(revision)
        return make_entry(entry.path, value, revision)

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


def _finalizers(present: list[str], options: DeleteOptions, *, already: bool) -> list[str]:
    """What holds the object after this request, by its propagation policy."""
    orphan = options.propagation == "Orphan" or options.orphan is True
    foreground = options.propagation == "Foreground"
    if not (options.propagation or options.orphan is not None) or already:
        # Nothing was said, or a deletion under way keeps to what it began with.
        return present
    kept = [f for f in present if f not in (ORPHAN, FOREGROUND)]
    if orphan:
        kept.append(ORPHAN)
    elif foreground:
        kept.append(FOREGROUND)
    return kept
