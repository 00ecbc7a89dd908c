"""The write path: how an object gets into the store.  ``create`` and ``change`` call these steps in order:

    create   default → track fields → mutate → stamp → prepare → allocate → validate → admit → commit
    change   read → make the new object → default → track → carry over → mutate → prepare → allocate → validate →
             admit → commit

Admission edits the object early (mutate) and judges it last (admit).  Fields are tracked before the server sets its
own, so that no field manager owns what is allocated or carried over.

From the read to the commit no step awaits, unless a step of admission does, so no other write of this process comes
between a check and the commit that relies on it; the commit's expectations guard against other servers, and against
what happened while a step waited.  What is allocated (addresses, node ports) is
committed in the object's own transaction, so nothing has to be undone when a write fails.

Large objects take long.  Their steps that look at nothing but the object (make, default, track, validate) are done in a
thread (:mod:`seamark.haste`), for which the write waits as it does for a step of admission.  Steps that look at the
state (admission, allocation, commit) never leave the event loop, and nothing is awaited between the last of them.
"""

from __future__ import annotations

import asyncio
import copy
import random
from collections.abc import Callable
from functools import partial
from os import urandom
from typing import TypeVar

import msgspec

from seamark import errors
from seamark.api.admission import Admission
from seamark.api.allocation.reserve import Reservations
from seamark.api.call import Caller, Target
from seamark.api.fields import managed
from seamark.api.intake import check_namespace
from seamark.api.state.cache import Cache
from seamark.api.state.entries import Entry, entry_of, key_of, stored
from seamark.api.state.forms import converted
from seamark.api.state.versions import number_or_zero, of_write_or_watch
from seamark.api.turns import Turn, Turns, aside
from seamark.api.twins import Likeness, Twins
from seamark.errors import Object
from seamark.haste import LARGE_STORED, Costly, Patience, at_length, at_once
from seamark.kinds.admission import Request
from seamark.kinds.kind import Kind
from seamark.kinds.resource import NAMESPACES
from seamark.kinds.subresource import Part, Together
from seamark.kinds.values import metadata
from seamark.kinds.values.fields import Errors, FieldError, TooManyMistakes, invalid, limited, refuse
from seamark.kinds.values.refusals import TOO_LARGE, already_exists, conflict, missing, no_unique_name, other_uid
from seamark.store.protocol import Mismatch, Store, Write

T = TypeVar("T")

SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
SUFFIX_LENGTH = 5
LONGEST_BASE = 63 - SUFFIX_LENGTH
GENERATE_ATTEMPTS = 8
CONFLICT_ATTEMPTS = 100
# etcd takes requests of 1.5 MiB; the key and the rest of a transaction need some of it.
LARGEST_OBJECT = 1536 * 1024 - 1024
MORE_MISTAKES = "there are many more mistakes, which are not listed; correct these first"
TOO_COSTLY = "its rules and patterns take too long to check"
NAMESPACE_SECONDS = 0.05  # how long a write waits for a namespace that is not there, as in Kubernetes


# What is wrong with an object, what of that is told twice, and warnings if nothing is wrong.
Judgement = tuple[Errors, Errors, list[str]]


class Written(msgspec.Struct):
    """The result of a write: the object as it is now, and warnings for the user."""

    entry: Entry
    created: bool = False
    warnings: list[str] = []


def new_uid() -> str:
    """A random UUID as :func:`uuid.uuid4` makes it, in a fifth of the time."""
    text = urandom(16).hex()
    return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-{'89ab'[int(text[16], 16) & 3]}{text[17:20]}-{text[20:]}"


class Writer:
    """Creates and changes objects of every kind."""

    def __init__(
        self,
        cache: Cache,
        store: Store,
        admission: Admission,
        reservations: Reservations,
        chance: random.Random,
        patience: Patience,
    ) -> None:
        self._cache = cache
        self._store = store
        self._admission = admission
        self._reservations = reservations
        self._random = chance
        self._turns = Turns()
        self._twins = Twins()
        self._patience = patience

    # --- create ------------------------------------------------------------------------------------

    async def create(
        self,
        kind: Kind,
        obj: Object,
        namespace: str,
        caller: Caller,
        *,
        tracked: bool = False,
        like: Likeness | None = None,
    ) -> Written:
        """Store a new object that was already checked against its shape; edits ``obj``.

        ``tracked`` says that its managedFields are already right (server-side apply sets them itself); ``like`` what it
        has in common with its twins, if it can have any.
        """
        meta = obj["metadata"]
        self._place(kind, meta, namespace, caller)
        if caller.patience is None:
            self._begin(kind, obj, caller, tracked)
        else:
            await caller.patience.hear(self._begin, kind, obj, caller, tracked)
        if kind.resource.namespaced and await self._cache.find(NAMESPACES, namespace) is None:
            # Its creation may be under way: clients that send a namespace and its contents together do not wait.
            await asyncio.sleep(NAMESPACE_SECONDS)
            await self._cache.find(NAMESPACES, namespace)
        request = self._admission.request(kind, kind.whole, obj, None, caller)
        for needed in self._admission.awaits(request):
            path = f"{needed.namespace}/{needed.name}" if needed.namespace else needed.name
            await self._cache.arrival(needed.resource, path, needed.seconds)
        noticing = self._admission.noticing(request) if like is not None and self._twins.expects(like) else None
        await self._admission.mutate(request)
        request.others = self._admission.others
        if request.changed:
            meta = self._edited(request, namespace)
        obj = request.obj
        generated = not meta.get("name") and bool(meta.get("generateName"))
        unprepared = copy.deepcopy(obj) if generated and kind.named_inside else None
        for attempt in range(GENERATE_ATTEMPTS):
            if generated:
                meta["name"] = meta["generateName"][:LONGEST_BASE] + self._suffix()
            try:
                written = await self._create(request, caller)
            except errors.AlreadyExists as error:
                if not generated or attempt == GENERATE_ATTEMPTS - 1:
                    raise _taken(meta, error) from None
                if unprepared is not None:
                    obj.update(copy.deepcopy(unprepared))
                    meta = obj["metadata"]
            else:
                if like is not None:
                    special = request.changed or written.warnings
                    self._twins.came(like, obj, None if special or noticing is None else noticing.seen)
                return written
        raise AssertionError("the loop above returns or raises")

    @staticmethod
    def _begin(kind: Kind, obj: Object, caller: Caller, tracked: bool) -> None:
        if caller.patience is not None:
            _check_size(kind, obj)
        kind.default(obj)
        if not tracked:
            obj["metadata"].pop("managedFields", None)
            managed.track(obj, None, kind, kind.whole, manager=caller.manager, now=caller.now)
        if caller.patience is not None:
            _check_size(kind, obj)

    async def create_twin(self, kind: Kind, like: Likeness, name: str, caller: Caller) -> Written | None:
        """Store an object of which only the name is new; None if it has to be made from its document."""
        twin = self._twins.find(like)
        if twin is None or await self._cache.find(NAMESPACES, like.namespace) is None:
            return None
        obj = twin.named(name, new_uid(), caller.now)
        request = self._admission.request(kind, kind.whole, obj, None, caller)
        self._admission.check_namespace(request)
        if self._admission.singles_out(request) or self._admission.contends(request):
            return None
        await self._admission.validate(request)
        key, path = key_of(kind.resource, like.namespace, name), f"{like.namespace}/{name}"
        try:
            return await self._commit_new(request, key, path, twin.value(obj), [])
        except errors.AlreadyExists as error:
            raise _taken(obj["metadata"], error) from None
        except Mismatch:
            return None

    async def _create(self, request: Request, caller: Caller) -> Written:
        kind, obj = request.kind, request.obj
        self._stamp(obj["metadata"], caller.now)
        kind.prepare_create(obj)
        if not caller.dry_run and self._admission.contends(request):
            # Of all that use the same quota at once, only one could be written at the first try.
            async with self._turns.take("contended", request.namespace) as turn:
                return await self._create_patiently(request, caller, turn)
        return await self._create_patiently(request, caller)

    async def _create_patiently(self, request: Request, caller: Caller, *held: Turn) -> Written:
        try:
            return await self._try_create(request, caller, *held)
        except Mismatch as error:
            # Another write took the same address or port, or used up some of a quota.  Those that lost queue here, so
            # that they do not all lose again to each other.
            key, found = error.key, error.found
        async with self._turns.take(key) as turn:
            while True:
                await self._cache.reach(found)
                try:
                    return await self._try_create(request, caller, *held, turn)
                except Mismatch as error:
                    found = error.found

    async def _try_create(self, request: Request, caller: Caller, *held: Turn) -> Written:
        """Raises Mismatch if something that the object takes or changes is no longer as it was; then try again."""
        kind, obj = request.kind, request.obj
        resource, meta = kind.resource, obj["metadata"]
        name = meta.get("name", "")
        reserved = self._reservations.plan(kind, kind.whole, obj, None, dry_run=caller.dry_run)
        if kind.costly or caller.patience is not None:
            judge = partial(self._judge_new, kind, obj)
            wrong, _, warnings = await self._judged(judge, caller, large=caller.patience is not None)
        else:
            wrong, _, warnings = self._judge_new(kind, obj)
        if wrong:
            raise refuse(kind.stored_as or resource, name, wrong)
        await self._admission.validate(request, *held)
        inner = kind.to_stored(obj) if kind.conversion is None else await self._converted(request, *held)
        path = f"{meta['namespace']}/{name}" if resource.namespaced else name
        if caller.dry_run:
            self._must_be_absent(kind, path, name)
            return Written(_unstored(path, inner), True, warnings)
        key = key_of(kind.stored_as or resource, meta.get("namespace", ""), name)
        value = _fitting(inner)
        try:
            written = await self._commit_new(request, key, path, value, reserved.writes)
        except (Mismatch, errors.AlreadyExists):
            reserved.take_back(obj)
            raise
        written.warnings = warnings
        return written

    async def _commit_new(self, request: Request, key: str, path: str, value: bytes, writes: list[Write]) -> Written:
        resource = request.kind.resource
        try:
            revision = await self._store.commit([Write(key, value, 0), *writes, *_writes(request.also)])
        except Mismatch as error:
            if error.key == key:
                await self._cache.reach(error.found)
                self._must_be_absent(request.kind, path, request.name)
            raise
        return Written(await self._cache.written(resource, path, value, revision), True)

    async def _converted(self, request: Request, *held: Turn) -> Object:
        """The stored form of an object that a webhook has to convert; it is asked once for each write."""
        conversion, obj = request.kind.conversion, request.obj
        assert conversion is not None
        memory = request.memory = request.memory or {}
        uid, inner = memory.get("stored", ("", None))
        if uid != obj["metadata"]["uid"]:
            uid, inner = obj["metadata"]["uid"], await aside(request.notes, conversion.to_stored(obj), *held)
            memory["stored"] = uid, inner
        stored_form: Object = inner
        return stored_form

    @staticmethod
    def _judge_new(kind: Kind, obj: Object) -> Judgement:
        meta, namespaced = obj["metadata"], kind.resource.namespaced
        wrong = metadata.validate(meta, kind.validate_name, namespaced=namespaced, plain=not kind.built_in)
        wrong += kind.validate(obj)
        return wrong, [], [] if wrong else kind.warnings(obj, None)

    async def _judged(self, judge: Callable[[], Judgement], caller: Caller, *, large: bool) -> Judgement:
        """What rules say that may take long."""
        if not large:
            try:
                return at_once(judge)
            except Costly:
                pass
        return await self._apart(partial(_judge_at_length, judge), caller)

    async def _apart(self, step: Callable[[], T], caller: Caller) -> T:
        """Do a step in a thread.  Meanwhile others use the seat, but the object is not written.

        A request with a large body keeps its seat, which is one of a few for such requests.
        """
        hearing = self._patience.hear(step)
        return await hearing if caller.patience is not None else await aside(caller.notes, hearing)

    def _place(self, kind: Kind, meta: Object, namespace: str, caller: Caller) -> None:
        # As in Kubernetes: a version that is no number counts as none, and a dry run does not check it.
        version = meta.pop("resourceVersion", "")
        if version and number_or_zero(version) and not caller.dry_run:
            raise errors.ApiError("resourceVersion should not be set on objects to be created")
        check_namespace(meta, namespace)
        if kind.resource.namespaced:
            meta["namespace"] = namespace

    @staticmethod
    def _edited(request: Request, namespace: str) -> Object:
        """The metadata of a new object that an outsider has edited."""
        meta: Object = request.obj["metadata"]
        check_namespace(meta, namespace)
        if request.kind.resource.namespaced:
            meta["namespace"] = namespace
        meta.pop("resourceVersion", None)
        return meta

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

    # --- change ------------------------------------------------------------------------------------

    async def change(
        self,
        target: Target,
        part: Part,
        make: Callable[[Object], Object],
        caller: Caller,
        *,
        tracked: bool = False,
        expected: str = "",
    ) -> Written:
        """Replace an object by what ``make`` returns for the current one; try again if another write came first.

        ``make`` may not edit its argument.  If its result names a resourceVersion, that must be the current one;
        ``expected`` is that version if the caller knows it beforehand.
        ``tracked`` says that the result's managedFields are already right (server-side apply sets them itself).
        """
        kind, path = target.kind, target.path
        async with self._turns.take(kind.resource.plural, path) as turn:
            for _ in range(CONFLICT_ATTEMPTS):
                entry = await self._cache.find(kind.resource, path, expected)
                if entry is None:
                    raise missing(kind.resource, target.name)
                if kind.conversion is not None:
                    await aside(caller.notes, converted(kind, [entry]), turn)
                large = caller.patience is not None or len(entry.tail) >= LARGE_STORED
                if large:
                    remade = partial(self._remade, kind, part, entry, make, caller, tracked)
                    old, new = await self._apart(remade, caller)
                else:
                    old, new = self._remade(kind, part, entry, make, caller, tracked)
                try:
                    return await self._change(kind, part, entry, old, new, caller, turn, large=large)
                except Mismatch as error:
                    # Now a write that names a version is refused, and a patch starts again from the new object.
                    await self._cache.reach(error.found)
        raise conflict(kind.resource, target.name)

    def _remade(
        self, kind: Kind, part: Part, entry: Entry, make: Callable[[Object], Object], caller: Caller, tracked: bool
    ) -> tuple[Object, Object]:
        """The object as it is, and as it shall be."""
        old = entry.shown(kind)
        new = make(old)
        self._check_preconditions(kind, new["metadata"], entry, old["metadata"])
        checked = caller.patience is not None and not part.name
        if checked:
            _check_size(kind, new)
        part.default(kind, new)
        if not tracked:
            managed.track(new, old, kind, part, manager=caller.manager, now=caller.now)
        self._carry_over(new["metadata"], old["metadata"])
        if checked:  # again, with the defaults
            _check_size(kind, new)
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
        return await self._put(kind, entry, old, new, caller, _writes(also(old)), [])

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
            wrong, twice, warnings = await self._judged(judge, caller, large=large)
        else:
            wrong, twice, warnings = self._judge(kind, part, new, old)
        if wrong:
            raise refuse(kind.stored_as or kind.resource, entry.name, wrong, twice)
        await self._admission.validate(request, turn)
        managed.keep_times(new, old)
        writes = reserved.writes + _writes(request.also)
        if kind.conversion is None:
            return await self._put(kind, entry, old, new, caller, writes, warnings)
        inner = await self._converted(request, turn)
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
            return Written(_unstored(entry.path, inner, entry.revision), warnings=warnings)
        key = key_of(kind.stored_as or kind.resource, entry.namespace, entry.name)
        meta = new["metadata"]
        if "deletionTimestamp" in meta and not meta.get("deletionGracePeriodSeconds") and not kind.held(new):
            release = self._reservations.release(kind, new)
            revision = await self._store.commit([Write(key, None, entry.revision), *release])
            await self._cache.show(revision)
            return Written(_unstored(entry.path, inner, entry.revision), warnings=warnings)
        value = _fitting(inner)
        revision = await self._store.commit([Write(key, value, entry.revision), *writes])
        return Written(await self._cache.written(kind.resource, entry.path, value, revision), warnings=warnings)


def _writes(together: Together) -> list[Write]:
    """The writes of the other objects that change with this one, each if it is still as admission saw it."""
    return [
        Write(
            key_of(resource, obj["metadata"].get("namespace", ""), obj["metadata"]["name"]),
            stored(obj),
            int(obj["metadata"]["resourceVersion"]),
        )
        for resource, obj in together
    ]


def _taken(meta: Object, error: errors.AlreadyExists) -> errors.AlreadyExists:
    """The error for a name that another object has, given that of the name itself."""
    return no_unique_name(error) if meta.get("generateName") else error


def _fitting(obj: Object) -> bytes:
    """An object as the store keeps it.  None is larger than etcd would take, whatever the store is."""
    value = stored(obj)
    if len(value) > LARGEST_OBJECT:
        raise errors.ApiError(TOO_LARGE)
    return value


def _check_size(kind: Kind, obj: Object) -> None:
    """Refuse an object that can never be stored, before it is looked at for long.

    Status and managedFields are not counted, because many writes cannot set them; nor is an object whose stored form a
    webhook makes.
    """
    if kind.conversion is None:
        meta = {key: value for key, value in obj["metadata"].items() if key != "managedFields"}
        _fitting(kind.to_stored({key: value for key, value in obj.items() if key != "status"} | {"metadata": meta}))


def _judge_at_length(judge: Callable[[], Judgement]) -> Judgement:
    try:
        return limited(partial(at_length, judge))
    except TooManyMistakes as error:
        wrong, sentence = error.first, MORE_MISTAKES
    except Costly:
        wrong, sentence = [], TOO_COSTLY
    return [*wrong, FieldError("<nil>", "FieldValueInvalid", f"Invalid value: null: {sentence}")], [], []


def _same(new: Object, old: Object) -> bool:
    """Whether both are equal, apart from apiVersion and kind, which stored objects do not contain."""
    return {k: v for k, v in new.items() if k not in ("apiVersion", "kind")} == old


def _unstored(path: str, obj: Object, revision: int = 0) -> Entry:
    """An entry for an answer that is not in the store: the result of a dry run, or a deleted object's last state."""
    value = stored(obj)
    if revision:
        return entry_of(path, value, revision)
    namespace, _, name = path.rpartition("/")
    return Entry(path, namespace, name, 0, value[1:])
