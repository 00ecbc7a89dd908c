"""Serves the kinds that CustomResourceDefinitions define, as definitions come, change and go.

Every server follows the definitions in the store by itself: it judges their names, serves the kinds of established
ones, and deletes the instances of those that are being deleted.  Servers that share a store come to the same result,
and a write that another server has already made changes nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import msgspec

from seamark import errors
from seamark.api.authorization import User, component
from seamark.api.call import Caller, DeleteOptions, Target
from seamark.api.delete import Deleter
from seamark.api.state.cache import Cache
from seamark.api.state.entries import Event
from seamark.api.write.change import Changes
from seamark.clock import Clock
from seamark.errors import Object
from seamark.kinds.extensions.definition import DEFINITION
from seamark.kinds.extensions.names import FINALIZER, Taken, is_true, judged
from seamark.kinds.extensions.outlines import outline
from seamark.kinds.kind import Kind
from seamark.kinds.resource import DEFINITIONS, Resource
from seamark.kinds.subresource import Part
from seamark.kinds.values import times
from seamark.store.protocol import StoreError

if TYPE_CHECKING:
    from seamark.kinds.extensions.custom import CustomKind

_log = logging.getLogger(__name__)

MANAGER = "kube-apiserver"
RETRY_SECONDS = 1.0

_USER: User = component("apiextensions")


class _Noticing:
    """A watcher that only says that something changed."""

    def __init__(self, notice: Callable[[], None], look: Callable[[Event], None] | None = None) -> None:
        self._notice = notice
        self._look = look

    def offer(self, event: Event) -> None:
        if self._look is not None:
            self._look(event)
        self._notice()

    def flush(self, revision: int) -> None:
        return

    def end(self) -> None:
        self._notice()


class _Served(msgspec.Struct):
    """What is served of one definition: which of its states it was made from, and its kinds."""

    state: tuple[Any, ...]
    kinds: list[Kind]


class _Condition(msgspec.Struct):
    type: str
    status: str


class _Accepted(msgspec.Struct):
    acceptedNames: dict[str, Any] | None = None  # noqa: N815  # the field's name
    conditions: list[_Condition] | None = None


class _Named(msgspec.Struct):
    """What of a definition tells which names it has, and whether its kinds may be served."""

    status: _Accepted | None = None

    @property
    def accepted(self) -> Object | None:
        return None if self.status is None else self.status.acceptedNames

    @property
    def is_established(self) -> bool:
        conditions = (self.status.conditions if self.status is not None else None) or ()
        return any(each.type == "Established" and each.status == "True" for each in conditions)


_named = msgspec.json.Decoder(_Named)


class Definitions:
    """Follows the definitions of one server; :meth:`run` for as long as the server lives."""

    def __init__(
        self,
        cache: Cache,
        changes: Changes,
        deleter: Deleter,
        clock: Clock,
        *,
        load: Callable[[Kind], Awaitable[None]],
        show: Callable[[Kind], None],
        remove: Callable[[Resource], Awaitable[None]],
        prepare: Callable[[CustomKind, Object], None],
    ) -> None:
        """``prepare`` sees each kind that a definition defines before it is served.

        ``load`` reads its instances, and ``show`` serves it.
        """
        self._cache = cache
        self._changes = changes
        self._deleter = deleter
        self._clock = clock
        self._load = load
        self._show = show
        self._remove = remove
        self._prepare = prepare
        self._served: dict[str, _Served] = {}
        self._ready: dict[str, _Served] = {}  # loaded, and to be served once the definition says that it is established
        self._seen: dict[str, int] = {}  # the version of each definition that was looked at last
        self._again: set[str] = set()  # definitions to look at once more, though they did not change
        self._told: dict[str, str] = {}  # why definitions cannot be served, as it was told last
        self._gone: set[str] = set()  # deleted since the last look
        self._taken = Taken()
        self._refused: set[str] = set()  # definitions that want a name which another one has
        self._news = asyncio.Event()
        self._calm = asyncio.Event()  # cleared while an established definition waits to be served
        self._calm.set()
        self.caught_up = asyncio.Event()  # set once every definition was looked at

    async def run(self) -> None:
        while True:
            # Subscribed anew each time: a watch ends when the cache had to start over.
            stop = self._cache.of(DEFINITIONS).subscribe(_Noticing(self._news.set, self._follow), "", "")
            try:
                await self._look()
                self.caught_up.set()
                if not self._news.is_set():
                    self._calm.set()
                await self._news.wait()
                self._news.clear()
            finally:
                stop()

    @property
    def settled(self) -> bool:
        """Whether the kinds of every definition that is known to be established are served, by whichever server."""
        return self._calm.is_set() and self._cache.revision >= self._cache.known

    async def settle(self) -> None:
        """Wait until they are, as of now; not for definitions that cannot be served, or a store that went away."""
        await self._cache.show(self._cache.known)
        await self._calm.wait()

    async def _look(self) -> None:
        """Look at every definition that changed."""
        entries = self._cache.of(DEFINITIONS).entries
        names = [name for name in self._seen if name not in entries]  # first, because others may have their names now
        names += [name for name, entry in entries.items() if self._seen.get(name) != entry.revision]
        for name in names:  # All of them before the first is judged.
            entry = entries.get(name)
            self._note(name, None if entry is None else _named.decode(b"{" + entry.tail).accepted)
        waiting = self._again
        self._again = set()
        for name in dict.fromkeys([*names, *waiting]):
            try:
                await self._look_at(name)
                self._told.pop(name, None)
            except (errors.ApiError, StoreError) as error:
                if self._is_news(name, error):
                    _log.warning("cannot serve the definition %s yet: %s", name, error)
                self._later(name)
            except Exception as error:  # a mistake of ours with one definition must not end the service of all others
                if self._is_news(name, error):
                    _log.exception("cannot serve the definition %s", name)
                self._later(name)

    def _is_news(self, name: str, error: Exception) -> bool:
        """Whether this was not told of the definition yet; it is tried again every second, maybe for ever."""
        before, self._told[name] = self._told.get(name), repr(error)
        return before != self._told[name]

    def _later(self, name: str) -> None:
        self._again.add(name)
        asyncio.get_running_loop().call_later(RETRY_SECONDS, self._news.set)

    def _soon(self, name: str) -> None:
        self._again.add(name)
        self._news.set()

    async def _look_at(self, name: str) -> None:
        entry = self._cache.of(DEFINITIONS).get(name)
        if entry is None:
            self._seen.pop(name, None)
            self._gone.discard(name)
            self._refused.discard(name)
            self._ready.pop(name, None)
            await self._forget(name)
            return
        definition = outline(b"{" + entry.tail)
        self._seen[name] = entry.revision
        if "deletionTimestamp" in definition["metadata"]:
            await self._finish(name, definition)
            return
        while self._gone:  # they may have had the kind of this one
            await self._look_at(self._gone.pop())
        before, status = definition.get("status"), judged(definition, self._taken, self._now())
        definition["status"] = status
        await self._serve(name, definition)
        self._note(name, status["acceptedNames"])
        (self._refused.discard if is_true(definition, "NamesAccepted") else self._refused.add)(name)
        if status != before:
            target = Target(DEFINITION, "", name, DEFINITION.subresource("status"))
            await self._write(target, lambda old: {**old, "status": judged(old, self._taken, self._now())})

    async def _write(self, target: Target, make: Callable[[Object], Object]) -> None:
        part = target.subresource or DEFINITION.whole
        assert isinstance(part, Part), "the status is a part of the definition"
        caller = Caller(_USER, self._now(), MANAGER)
        try:
            await self._changes.change(target, part, lambda old: _copy(make(old)), caller)
        except errors.NotFound:
            return  # It went in the meantime, which is another change.

    def _now(self) -> str:
        return times.text(self._clock.time())

    def _note(self, name: str, accepted: Object | None) -> None:
        """Keep which names a definition has; if one became free, look again at those that may want it."""
        if self._taken.set(name, accepted or {}):
            for other in self._refused - {name}:
                self._soon(other)

    # --- kinds ---------------------------------------------------------------------------------------

    async def _serve(self, name: str, definition: Object) -> None:
        from seamark.kinds.extensions.custom import is_established, kinds_of

        meta = definition["metadata"]
        status = definition["status"]
        state = (meta["uid"], meta.get("generation"), status.get("acceptedNames"), status.get("storedVersions"))
        served = self._served.get(name)
        if not is_established(definition) or (served is not None and served.state == state):
            return
        kinds: list[Kind] = []
        for made in kinds_of(definition):
            self._prepare(made, definition)
            await self._load(made)
            kinds.append(made)
        self._ready[name] = _Served(state, kinds)
        entry = self._cache.of(DEFINITIONS).get(name)
        if entry is not None and _named.decode(b"{" + entry.tail).is_established:
            self._serve_ready(name)
        wanted = {kind.resource for kind in kinds}
        for kind in served.kinds if served is not None else ():
            if kind.resource not in wanted:
                await self._remove(kind.resource)

    def _follow(self, event: Event) -> None:
        """Follow which names are taken, without delay: else another server's judgement might be taken back for a while.

        Serve the kinds of a definition from the moment on in which clients can see that it is established.
        """
        name = event.entry.path
        found = _Named() if event.type == "DELETED" else _named.decode(b"{" + event.entry.tail)
        self._note(name, found.accepted)
        if event.type == "DELETED":
            self._gone.add(name)
        if name in self._served and name not in self._ready:
            return
        if found.is_established:
            if name in self._ready:
                self._serve_ready(name)
            else:
                self._calm.clear()  # another server was faster

    def _serve_ready(self, name: str) -> None:
        served = self._served[name] = self._ready.pop(name)
        for kind in served.kinds:
            self._show(kind)

    async def _forget(self, name: str) -> None:
        """Serve a definition's kinds no longer."""
        served = self._served.pop(name, None)
        for kind in served.kinds if served is not None else ():
            await self._remove(kind.resource)

    # --- the end of a definition -----------------------------------------------------------------------

    async def _finish(self, name: str, definition: Object) -> None:
        """Delete the instances of a definition; when they are gone, let it go."""
        from seamark.kinds.extensions.custom import is_established, storage_kind

        if FINALIZER not in (definition["metadata"].get("finalizers") or ()):
            return
        if is_established(definition):
            if name not in self._served:  # after a restart: instances must be served to be deleted
                await self._serve(name, definition)
            served = self._served.get(name)
            for kind in served.kinds if served is not None else ():
                kind.terminating = True  # type: ignore[attr-defined]  # they are CustomKinds
            if not await self._delete_instances(name, storage_kind(definition)):
                return
        target = Target(DEFINITION, "", name)
        await self._write(target, _released)

    async def _delete_instances(self, name: str, kind: Kind) -> bool:
        """Delete what can be deleted; returns whether nothing is left.  If not, it is tried again when one changes."""
        served = self._served.get(name)
        if served is not None and served.kinds:
            kind = served.kinds[0]
        else:
            await self._cache.add(kind)
        instances = self._cache.of(kind.resource)
        caller = Caller(_USER, self._now(), MANAGER)
        for path, entry in list(instances.entries.items()):
            if "deletionTimestamp" in entry.decode()["metadata"]:
                continue
            namespace, _, own = path.rpartition("/")
            try:
                await self._deleter.delete(Target(kind, namespace, own), DeleteOptions(), caller, admitted=True)
            except errors.NotFound:
                continue
        if not instances.entries:
            if served is None or not served.kinds:
                self._cache.remove(kind)
            return True
        stop: list[Callable[[], None]] = []

        def changed() -> None:
            if stop:
                stop.pop()()
                self._soon(name)

        stop.append(instances.subscribe(_Noticing(changed), "", ""))
        return False


def _released(definition: Object) -> Object:
    """The definition without the finalizer that waits for its instances."""
    meta = definition["metadata"]
    left = [finalizer for finalizer in meta.get("finalizers") or () if finalizer != FINALIZER]
    return {**definition, "metadata": {**meta, "finalizers": left}}


def _copy(obj: Object) -> Object:
    """A copy that a write may edit."""
    copied: Object = msgspec.json.decode(msgspec.json.encode(obj))
    return copied
