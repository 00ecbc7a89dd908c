"""How an object in the store is replaced by a newer version of it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import msgspec

from seamark.api.call import Caller, Target
from seamark.api.fields import managed
from seamark.api.state.entries import Entry, key_of
from seamark.api.state.forms import converted
from seamark.api.state.versions import of_write_or_watch
from seamark.api.turns import Turn, aside
from seamark.api.write.path import Judgement, WritePath
from seamark.api.write.repeats import Repeats, Report, occasion
from seamark.api.write.values import CONFLICT_ATTEMPTS, Written, check_size, fitting, unstored, writes_of
from seamark.errors import Object
from seamark.haste import LARGE_STORED
from seamark.kinds.kind import Kind
from seamark.kinds.subresource import Part, Together
from seamark.kinds.values import metadata
from seamark.kinds.values.fields import invalid, refuse
from seamark.kinds.values.refusals import conflict, missing, other_uid
from seamark.store.protocol import Mismatch, Write


class Changes:
    """Changes objects of every kind."""

    def __init__(self, path: WritePath) -> None:
        self._path = path
        self._cache, self._store, self._turns = path.cache, path.store, path.turns
        self._admission, self._reservations = path.admission, path.reservations
        self._repeats = Repeats()

    async def change(
        self,
        target: Target,
        part: Part,
        make: Callable[[Object], Object],
        caller: Caller,
        *,
        tracked: bool = False,
        expected: str = "",
        said: Callable[[], Report | None] | None = None,
    ) -> Written:
        """Replace an object by what ``make`` returns for the current one; try again if another write came first.

        ``make`` may not edit its argument.  If its result names a resourceVersion, that must be the current one;
        ``expected`` is that version if the caller knows it beforehand.
        ``tracked`` says that the result's managedFields are already right (server-side apply sets them itself).
        ``said`` returns the patch by which ``make`` changes the object, if it can be like others.
        """
        kind, path = target.kind, target.path
        async with self._turns.take(kind.resource.plural, path) as turn:
            for _ in range(CONFLICT_ATTEMPTS):
                entry = await self._cache.find(kind.resource, path, expected)
                if entry is None:
                    raise missing(kind.resource, target.name)
                if kind.conversion is not None:
                    await aside(caller.notes, converted(kind, [entry]), turn)
                try:
                    return await self._attempt(kind, part, entry, make, caller, turn, tracked=tracked, said=said)
                except Mismatch as error:
                    # Now a write that names a version is refused, and a patch starts again from the new object.
                    await self._cache.reach(error.found)
        raise conflict(kind.resource, target.name)

    async def _attempt(
        self,
        kind: Kind,
        part: Part,
        entry: Entry,
        make: Callable[[Object], Object],
        caller: Caller,
        turn: Turn,
        *,
        tracked: bool,
        said: Callable[[], Report | None] | None,
    ) -> Written:
        repeat = None
        if said is not None and self._repeats.promising() and self._admission.idle(kind, "UPDATE", part.name):
            report = said()
            repeat = occasion(report, entry) if report is not None else None
        if repeat is not None and (value := self._repeats.find(repeat)) is not None:
            return Written(await self._commit(kind, entry, value, []))
        large = caller.patience is not None or len(entry.tail) >= LARGE_STORED
        if large:
            remade = partial(self._remade, kind, part, entry, make, caller, tracked)
            old, new = await self._path.apart(remade, caller)
        else:
            old, new = self._remade(kind, part, entry, make, caller, tracked)
        written = await self._change(kind, part, entry, old, new, caller, turn, large=large)
        if repeat is not None and written.entry is not entry and not written.warnings:
            self._repeats.came(repeat, written.entry)
        return written

    def _remade(
        self, kind: Kind, part: Part, entry: Entry, make: Callable[[Object], Object], caller: Caller, tracked: bool
    ) -> tuple[Object, Object]:
        """The object as it is, and as it shall be."""
        old = entry.shown(kind)
        new = make(old)
        self._check_preconditions(kind, new["metadata"], entry, old["metadata"])
        checked = caller.patience is not None and not part.name
        if checked:
            check_size(kind, new)
        part.default(kind, new)
        if not tracked:
            managed.track(new, old, kind, part, manager=caller.manager, now=caller.now)
        self._carry_over(new["metadata"], old["metadata"])
        if checked:  # again, with the defaults
            check_size(kind, new)
        return old, new

    async def edit(
        self, target: Target, make: Callable[[Object], Object], also: Callable[[Object], Together], caller: Caller
    ) -> Written:
        """As :meth:`change`, but without defaults and validation: for edits by the server (a Pod gets its node).

        ``also`` returns the other objects that change in the same transaction, given the current one.
        """
        try:
            return await self._edit(target, make, also, caller)
        except Mismatch as error:
            key, found = error.key, error.found
        async with self._turns.take(key):  # so that those that lost to another write do not lose again to each other
            for _ in range(CONFLICT_ATTEMPTS):
                await self._cache.reach(found)
                try:
                    return await self._edit(target, make, also, caller)
                except Mismatch as error:
                    found = error.found
        raise conflict(target.kind.resource, target.name)

    async def _edit(
        self, target: Target, make: Callable[[Object], Object], also: Callable[[Object], Together], caller: Caller
    ) -> Written:
        kind = target.kind
        entry = await self._cache.find(kind.resource, target.path)
        if entry is None:
            raise missing(kind.resource, target.name)
        old = entry.decode()
        new = make(old)
        return await self._put(kind, entry, old, new, caller, writes_of(also(old)), [])

    @staticmethod
    def _check_preconditions(kind: Kind, meta: Object, entry: Entry, old: Object) -> None:
        """Raise if the write names a version or uid that is not the object's."""
        if (uid := meta.get("uid")) and uid != old["uid"]:
            raise other_uid(kind.resource, entry.namespace, entry.name, asked=uid, found=old["uid"])
        version = meta.get("resourceVersion", "")
        if not version or version == "0":
            if not kind.unconditional_update:
                wrong = [invalid("metadata.resourceVersion", 0, "must be specified for an update")]
                resource = kind.stored_as or kind.resource
                raise refuse(msgspec.structs.replace(resource, kind=resource.plural), entry.name, wrong)
            return
        if version != str(entry.revision) and of_write_or_watch(version) != entry.revision:
            raise conflict(kind.resource, entry.name)

    async def _change(
        self,
        kind: Kind,
        part: Part,
        entry: Entry,
        old: Object,
        new: Object,
        caller: Caller,
        turn: Turn,
        *,
        large: bool,
    ) -> Written:
        request = self._admission.request(kind, part, new, old, caller)
        await self._admission.mutate(request, turn)
        if request.changed:
            new = request.obj
            self._carry_over(new["metadata"], old["metadata"])
        part.prepare(kind, new, old)
        reserved = self._reservations.plan(kind, part, new, old, dry_run=caller.dry_run)
        if kind.costly or large:
            judge = partial(self._judge, kind, part, new, old)
            wrong, twice, warnings = await self._path.judged(judge, caller, large=large)
        else:
            wrong, twice, warnings = self._judge(kind, part, new, old)
        if wrong:
            raise refuse(kind.stored_as or kind.resource, entry.name, wrong, twice)
        await self._admission.validate(request, turn)
        managed.keep_times(new, old)
        writes = reserved.writes + writes_of(request.also)
        if kind.conversion is None:
            return await self._put(kind, entry, old, new, caller, writes, warnings)
        inner = await self._path.stored_by_webhook(request, turn)
        return await self._put(kind, entry, old, new, caller, writes, warnings, inner)

    @staticmethod
    def _judge(kind: Kind, part: Part, new: Object, old: Object) -> Judgement:
        wrong = metadata.validate_update(new["metadata"], old["metadata"], plain=not kind.built_in)
        # Kubernetes checks the metadata of a custom resource twice when it is changed, and says so.
        twice = [] if kind.built_in else wrong.copy()
        wrong += part.validate(kind, new, old)
        return wrong, twice, [] if wrong else part.warnings(kind, new, old)

    @staticmethod
    def _carry_over(meta: Object, old: Object) -> None:
        """Restore the fields that no update may set."""
        meta["resourceVersion"] = old["resourceVersion"]
        for key in ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "namespace"):
            if key in old:
                meta[key] = old[key]
            else:
                meta.pop(key, None)
        meta.pop("selfLink", None)
        if "generation" in old:
            meta["generation"] = old["generation"]

    async def _put(
        self,
        kind: Kind,
        entry: Entry,
        old: Object,
        new: Object,
        caller: Caller,
        writes: list[Write],
        warnings: list[str],
        inner: Object | None = None,
    ) -> Written:
        """Commit an object: nothing is written if it is unchanged, and it is deleted if it lost its last finalizer.

        ``inner`` is its stored form if that was asked for.
        """
        inner = kind.to_stored(new) if inner is None else inner
        if not writes and _same(new, old) and (kind.built_in or kind.is_current(entry.decode())):
            return Written(entry, warnings=warnings)
        if caller.dry_run:
            return Written(unstored(entry.path, inner, entry.revision), warnings=warnings)
        meta = new["metadata"]
        if "deletionTimestamp" in meta and not meta.get("deletionGracePeriodSeconds") and not kind.held(new):
            key = key_of(kind.stored_as or kind.resource, entry.namespace, entry.name)
            release = self._reservations.release(kind, new)
            revision = await self._store.commit([Write(key, None, entry.revision), *release])
            await self._cache.show(revision)
            return Written(unstored(entry.path, inner, entry.revision), warnings=warnings)
        return Written(await self._commit(kind, entry, fitting(inner), writes), warnings=warnings)

    async def _commit(self, kind: Kind, entry: Entry, value: bytes, writes: list[Write]) -> Entry:
        """Replace an entry by a new value, together with other writes."""
        key = key_of(kind.stored_as or kind.resource, entry.namespace, entry.name)
        revision = await self._store.commit([Write(key, value, entry.revision), *writes])
        return await self._cache.written(kind.resource, entry.path, value, revision)


def _same(new: Object, old: Object) -> bool:
    """Whether both are equal, apart from apiVersion and kind, which stored objects do not contain."""
    return {k: v for k, v in new.items() if k not in ("apiVersion", "kind")} == old
