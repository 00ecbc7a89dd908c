"""How a new object gets into the store."""

from __future__ import annotations

import asyncio
import copy
import random
from functools import partial

from seamark import errors
from seamark.api.call import Caller
from seamark.api.fields import managed
from seamark.api.intake import check_namespace
from seamark.api.state.entries import key_of
from seamark.api.state.versions import number_or_zero
from seamark.api.turns import Turn
from seamark.api.write.path import Judgement, WritePath
from seamark.api.write.twins import Likeness, Twins
from seamark.api.write.values import Written, check_size, fitting, new_uid, unstored, writes_of
from seamark.errors import Object
from seamark.kinds.admission import Request
from seamark.kinds.kind import Kind
from seamark.kinds.resource import NAMESPACES
from seamark.kinds.values import metadata
from seamark.kinds.values.fields import refuse
from seamark.kinds.values.refusals import already_exists, no_unique_name
from seamark.store.protocol import Mismatch, Write

SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
SUFFIX_LENGTH = 5
LONGEST_BASE = 63 - SUFFIX_LENGTH
GENERATE_ATTEMPTS = 8
NAMESPACE_SECONDS = 0.05  # how long a write waits for a namespace that is not there, as in Kubernetes


class Creations:
    """Creates objects of every kind."""

    def __init__(self, path: WritePath, chance: random.Random) -> None:
        self._path = path
        self._cache, self._store, self._turns = path.cache, path.store, path.turns
        self._admission, self._reservations = path.admission, path.reservations
        self._random = chance
        self._twins = Twins()

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
        attempts = GENERATE_ATTEMPTS if generated and kind.name_is_free else 1
        for attempt in range(attempts):
            if generated:
                base = meta["generateName"]
                meta["name"] = base[:LONGEST_BASE] + self._suffix() if kind.name_is_free else base
            try:
                written = await self._create(request, caller)
            except errors.AlreadyExists as error:
                if attempt == attempts - 1:
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
            check_size(kind, obj)
        kind.default(obj)
        if not tracked:
            obj["metadata"].pop("managedFields", None)
            managed.track(obj, None, kind, kind.whole, manager=caller.manager, now=caller.now)
        if caller.patience is not None:
            check_size(kind, obj)

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
            wrong, _, warnings = await self._path.judged(judge, caller, large=caller.patience is not None)
        else:
            wrong, _, warnings = self._judge_new(kind, obj)
        if wrong:
            raise refuse(kind.stored_as or resource, name, wrong)
        await self._admission.validate(request, *held)
        inner = kind.to_stored(obj) if kind.conversion is None else await self._path.stored_by_webhook(request, *held)
        path = f"{meta['namespace']}/{name}" if resource.namespaced else name
        if caller.dry_run:
            self._must_be_absent(kind, path, name)
            return Written(unstored(path, inner), True, warnings)
        key = key_of(kind.stored_as or resource, meta.get("namespace", ""), name)
        value = fitting(inner)
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
            revision = await self._store.commit([Write(key, value, 0), *writes, *writes_of(request.also)])
        except Mismatch as error:
            if error.key == key:
                await self._cache.reach(error.found)
                self._must_be_absent(request.kind, path, request.name)
            raise
        return Written(await self._cache.written(resource, path, value, revision), True)

    @staticmethod
    def _judge_new(kind: Kind, obj: Object) -> Judgement:
        meta, namespaced = obj["metadata"], kind.resource.namespaced
        wrong = metadata.validate(meta, kind.validate_name, namespaced=namespaced, plain=not kind.built_in)
        wrong += kind.validate(obj)
        return wrong, [], [] if wrong else kind.warnings(obj, None)

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


def _taken(meta: Object, error: errors.AlreadyExists) -> errors.AlreadyExists:
    """The error for a name that another object has, given that of the name itself."""
    return no_unique_name(error) if meta.get("generateName") else error
