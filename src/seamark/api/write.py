"""The write path: how a request's object becomes state.  Two functions to read downward, ``create`` and ``change``.

    create   default → track fields → admit → stamp → prepare → allocate → validate → commit
    change   read → make the new object → default → track → carry over → prepare → allocate → validate → commit

Fields are tracked before the cluster adds its own: what it allocates or carries over belongs to nobody.

Everything up to the commit is plain computation on the event loop, so nothing can come between a check and what relies
on it in this process; the commit's expectations guard against everyone else.  What is allocated (addresses, node ports)
is committed in the object's own transaction: there is nothing to take back when a write fails.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from os import urandom

import msgspec

from seamark import errors
from seamark.api.admission import Admission
from seamark.api.allocation.reserve import Reservations
from seamark.api.context import Writing
from seamark.api.fields import managed
from seamark.api.http.options import unsigned
from seamark.api.identity import check_namespace
from seamark.api.state.cache import Cache, Entry, entry_of, key_of, stored
from seamark.api.state.read import missing, named
from seamark.api.turns import Turns
from seamark.errors import Object
from seamark.kinds.kind import Kind
from seamark.kinds.resource import NAMESPACES, Resource
from seamark.kinds.values import metadata
from seamark.kinds.values.fields import refuse, required
from seamark.store.protocol import Mismatch, Store, Write

SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
SUFFIX_LENGTH = 5
LONGEST_BASE = 63 - SUFFIX_LENGTH
GENERATE_ATTEMPTS = 8
CONFLICT_ATTEMPTS = 10

# Subresources written as the whole object; all others (scale) are made of it and written like an update.
EDITED_IN_FULL = frozenset({"finalize", "ephemeralcontainers", "resize"})

MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


class Written(msgspec.Struct):
    """What a write came to: the object as it is now, and what the user should be warned about."""

    entry: Entry
    created: bool = False
    warnings: list[str] = []


def new_uid() -> str:
    """A random UUID; what :func:`uuid.uuid4` gives, at a fifth of its cost."""
    text = urandom(16).hex()
    return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-{'89ab'[int(text[16], 16) & 3]}{text[17:20]}-{text[20:]}"


def conflict(resource: Resource, name: str, sentence: str = MODIFIED) -> errors.Conflict:
    return errors.Conflict(
        f'Operation cannot be fulfilled on {resource.qualified} "{name}": {sentence}', details=named(resource, name)
    )


def other_uid(kind: Kind, namespace: str, name: str, *, asked: str, found: str) -> errors.Conflict:
    """A write meant for another object of the same name: one gone by now, or made since."""
    path = f"{namespace}/{name}" if kind.resource.namespaced else name
    return conflict(
        kind.resource,
        name,
        f"StorageError: invalid object, Code: 4, Key: /registry/{kind.resource.plural}/{path}, ResourceVersion: 0, "
        f"AdditionalErrorMsg: Precondition failed: UID in precondition: {asked}, UID in object meta: {found}",
    )


def already_exists(resource: Resource, name: str, *, going: bool) -> errors.AlreadyExists:
    prefix = "object is being deleted: " if going else ""
    return errors.AlreadyExists(f'{prefix}{resource.qualified} "{name}" already exists', details=named(resource, name))


def no_unique_name(error: errors.AlreadyExists) -> errors.AlreadyExists:
    """The name was to be the server's choice, so another try may do better."""
    return errors.AlreadyExists(
        f"{error.message}, the server was not able to generate a unique name for the object",
        details=error.details,
        retry_after=1,
    )


class Writer:
    """Creates and changes objects of every kind."""

    def __init__(self, cache: Cache, store: Store, reservations: Reservations, chance: random.Random) -> None:
        self._cache = cache
        self._store = store
        self._reservations = reservations
        self._random = chance
        self._turns = Turns()
        self.admission = Admission(cache)

    # --- create ------------------------------------------------------------------------------------

    async def create(self, kind: Kind, obj: Object, namespace: str, how: Writing, *, tracked: bool = False) -> Written:
        """A new object, from one already checked against its shape; ``obj`` is edited.

        ``tracked`` says that its managedFields are already right (server-side apply does its own).
        """
        meta = obj["metadata"]
        self._place(kind, meta, namespace)
        kind.default(obj)
        if not tracked:
            meta.pop("managedFields", None)
            self._track(kind, obj, None, how, "")
        generated = not meta.get("name") and bool(meta.get("generateName"))
        for attempt in range(GENERATE_ATTEMPTS):
            if generated:
                meta["name"] = meta["generateName"][:LONGEST_BASE] + self._suffix()
            try:
                return await self._create(kind, obj, how)
            except errors.AlreadyExists as error:
                if not generated or attempt == GENERATE_ATTEMPTS - 1:
                    if meta.get("generateName"):
                        raise no_unique_name(error) from None
                    raise
        raise AssertionError("the loop above returns or raises")

    async def _create(self, kind: Kind, obj: Object, how: Writing) -> Written:
        resource, meta = kind.resource, obj["metadata"]
        if resource.namespaced:
            await self._cache.find(NAMESPACES, meta["namespace"])  # a namespace made elsewhere a moment ago
        self.admission.create(kind, obj)
        self._stamp(meta, how.now)
        kind.prepare_create(obj)
        name = meta.get("name", "")
        while True:
            reserved = self._reservations.plan(kind, obj, None, dry_run=how.dry_run)
            wrong = metadata.validate(meta, kind.validate_name, namespaced=resource.namespaced) + kind.validate(obj)
            if wrong:
                raise refuse(kind.stored_as or resource, name, wrong)
            warnings = kind.warnings(obj, None)
            inner = kind.to_stored(obj)
            path = f"{meta['namespace']}/{name}" if resource.namespaced else name
            if how.dry_run:
                self._must_be_absent(kind, path, name)
                return Written(_unstored(path, inner), True, warnings)
            key = key_of(kind.stored_as or resource, meta.get("namespace", ""), name)
            value = stored(inner)
            try:
                revision = await self._store.commit([Write(key, value, 0), *reserved.writes])
            except Mismatch as error:
                await self._cache.reach(error.found)
                if error.key == key:
                    self._must_be_absent(kind, path, name)
                # Otherwise somebody took the same address at the same moment: look again.
                reserved.take_back(obj)
                continue
            return Written(await self._cache.written(resource, path, value, revision), True, warnings)

    def _place(self, kind: Kind, meta: Object, namespace: str) -> None:
        if meta.get("resourceVersion"):
            raise errors.ApiError("resourceVersion should not be set on objects to be created")
        if kind.resource.namespaced:
            check_namespace(meta, namespace)
            meta["namespace"] = namespace

    def _suffix(self) -> str:
        return "".join(self._random.choices(SUFFIX_LETTERS, k=SUFFIX_LENGTH))

    @staticmethod
    def _stamp(meta: Object, now: str) -> None:
        meta["uid"] = new_uid()
        meta["creationTimestamp"] = now
        for key in ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"):
            meta.pop(key, None)

    def _must_be_absent(self, kind: Kind, path: str, name: str) -> None:
        entry = self._cache.of(kind.resource).get(path)
        if entry is not None:
            raise already_exists(kind.resource, name, going="deletionTimestamp" in entry.decode()["metadata"])

    def _track(self, kind: Kind, obj: Object, old: Object | None, how: Writing, subresource: str) -> None:
        managed.track(
            obj,
            old,
            shape=kind.shape,
            api_version=kind.resource.api_version,
            manager=how.manager,
            subresource=subresource,
            now=how.now,
        )

    # --- change ------------------------------------------------------------------------------------

    async def change(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        make: Callable[[Object], Object],
        how: Writing,
        *,
        subresource: str = "",
        tracked: bool = False,
        expected: str = "",
    ) -> Written:
        """Replace an object by what ``make`` makes of the current one, again if somebody else was faster.

        ``make`` may not edit what it is given.  If its result names a resourceVersion, that must be the current one;
        ``expected`` is that version where it is known beforehand.
        ``tracked`` says that the result's managedFields are already right (server-side apply does its own).
        """
        path = f"{namespace}/{name}" if kind.resource.namespaced else name
        async with self._turns.take(kind.resource.plural, path):
            for _ in range(CONFLICT_ATTEMPTS):
                entry = await self._cache.find(kind.resource, path, expected)
                if entry is None:
                    raise missing(kind.resource, name)
                old = kind.from_stored(entry.decode())
                new = make(old)
                self._check_preconditions(kind, new["metadata"], entry, old["metadata"])
                try:
                    return await self._change(kind, entry, old, new, how, subresource, tracked)
                except Mismatch as error:
                    # Whoever insists on a version is refused by the next check; a patch has taken over the new one.
                    await self._cache.reach(error.found)
        raise conflict(kind.resource, name)

    async def edit(
        self, kind: Kind, namespace: str, name: str, make: Callable[[Object], Object], how: Writing
    ) -> Written:
        """As :meth:`change`, for an edit the server itself makes and knows to be right (a Pod gets its node)."""
        path = f"{namespace}/{name}" if kind.resource.namespaced else name
        for _ in range(CONFLICT_ATTEMPTS):
            entry = await self._cache.find(kind.resource, path)
            if entry is None:
                raise missing(kind.resource, name)
            old = entry.decode()
            try:
                return await self.put(kind, entry, old, make(old), how, [], [])
            except Mismatch as error:
                await self._cache.reach(error.found)
        raise conflict(kind.resource, name)

    @staticmethod
    def _check_preconditions(kind: Kind, meta: Object, entry: Entry, old: Object) -> None:
        """Raises if the write names a version or uid that is not the object's."""
        if (uid := meta.get("uid")) and uid != old["uid"]:
            raise other_uid(kind, entry.namespace, entry.name, asked=uid, found=old["uid"])
        version = meta.get("resourceVersion", "")
        if not version or version == "0":
            if not kind.unconditional_update:
                wrong = [required("metadata.resourceVersion", "must be specified for an update")]
                raise refuse(kind.stored_as or kind.resource, entry.name, wrong)
            return
        try:
            asked = unsigned(version)
        except ValueError as error:
            # Kubernetes answers a bare 500 here, without a reason.
            raise errors.ApiError(str(error)) from None
        if asked != entry.revision:
            raise conflict(kind.resource, entry.name)

    async def _change(
        self, kind: Kind, entry: Entry, old: Object, new: Object, how: Writing, subresource: str, tracked: bool
    ) -> Written:
        if subresource == "status":
            kind.default_status(new)
        else:
            kind.default(new)
        if not tracked:
            self._track(kind, new, old, how, subresource)
        self._carry_over(new["metadata"], old["metadata"])
        reserved = self._reservations.none()
        if subresource == "status":
            kind.prepare_status(new, old)
            wrong = kind.validate_status(new, old)
        elif subresource in EDITED_IN_FULL:
            kind.prepare_subresource(subresource, new, old)
            wrong = kind.validate_subresource(subresource, new, old)
        else:
            kind.prepare_update(new, old)
            reserved = self._reservations.plan(kind, new, old, dry_run=how.dry_run)
            wrong = kind.validate_update(new, old)
        wrong = metadata.validate_update(new["metadata"], old["metadata"]) + wrong
        if wrong:
            raise refuse(kind.stored_as or kind.resource, entry.name, wrong)
        warnings: list[str] = []
        if not subresource:
            warnings = kind.warnings(new, old)
        elif subresource == "status":
            warnings = kind.status_warnings(new)
        managed.keep_times(new, old)
        return await self.put(kind, entry, old, new, how, reserved.writes, warnings)

    @staticmethod
    def _carry_over(meta: Object, old: Object) -> None:
        """What no update may set, whatever it says."""
        meta["resourceVersion"] = old["resourceVersion"]
        for key in ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "namespace"):
            if key in old:
                meta[key] = old[key]
            else:
                meta.pop(key, None)
        meta.pop("selfLink", None)
        if "generation" in old:
            meta["generation"] = old["generation"]

    async def put(
        self,
        kind: Kind,
        entry: Entry,
        old: Object,
        new: Object,
        how: Writing,
        writes: list[Write],
        warnings: list[str],
    ) -> Written:
        """Commit a changed object: nothing if it is the same, a removal if it was only waiting for this change."""
        inner = kind.to_stored(new)
        if _same(new, old):
            return Written(entry, warnings=warnings)
        if how.dry_run:
            return Written(_unstored(entry.path, inner, entry.revision), warnings=warnings)
        key = key_of(kind.stored_as or kind.resource, entry.namespace, entry.name)
        meta = new["metadata"]
        if "deletionTimestamp" in meta and not meta.get("deletionGracePeriodSeconds") and not kind.held(new):
            release = self._reservations.release(kind, new)
            revision = await self._store.commit([Write(key, None, entry.revision), *release])
            await self._cache.reach(revision)
            return Written(_unstored(entry.path, inner, entry.revision), warnings=warnings)
        value = stored(inner)
        revision = await self._store.commit([Write(key, value, entry.revision), *writes])
        return Written(await self._cache.written(kind.resource, entry.path, value, revision), warnings=warnings)


def _same(new: Object, old: Object) -> bool:
    """Equal but for apiVersion and kind, which the stored form leaves to its key."""
    return {k: v for k, v in new.items() if k not in ("apiVersion", "kind")} == old


def _unstored(path: str, obj: Object, revision: int = 0) -> Entry:
    """An entry for an answer about something that was not written: a dry run, or the last sight of an object."""
    value = stored(obj)
    if revision:
        return entry_of(path, value, revision)
    namespace, _, name = path.rpartition("/")
    return Entry(path, namespace, name, 0, value[1:])
