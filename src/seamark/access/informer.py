"""A local copy of one resource, kept up to date: it lists once and watches from there, without polling.

A reader names the type it needs (``as_``, a frozen ``msgspec.Struct`` of a few fields with ``metadata``), and the
informer keeps only these fields.  Handlers are called in the order of the changes, with the key and the old and new
object: ``(key, None, new)``, ``(key, old, new)``, ``(key, old, None)``.  A change to other fields is not reported.
An object that the type cannot hold is left out as if it did not exist, and logged once; ``unreadable`` has these.

When the connection is lost the informer keeps its objects, reports the loss (``connected``, ``lag``), and resumes from
the last version it saw.  When the server no longer has that version, the informer lists again and reports the
differences, including deletions that it missed.
"""

from __future__ import annotations

import asyncio
import logging
import random as _random
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from typing import Any, Generic, TypeVar

from seamark.access.backoff import Backoff, Random
from seamark.access.cluster import Change, Cluster, Unreadable
from seamark.clock import SYSTEM_CLOCK, Clock
from seamark.errors import (
    ApiError,
    Expired,
    Gone,
    InternalError,
    ServerTimeout,
    ServiceUnavailable,
    Timeout,
    TooManyRequests,
)
from seamark.kinds.resource import Resource

T = TypeVar("T")
Key = str
Handler = Callable[[Key, T | None, T | None], None]
Failed = Callable[[Exception], None]
IndexFunction = Callable[[T], Iterable[Hashable]]

log = logging.getLogger(__name__)

# After these errors the version we are at is still valid: the watch resumes from it.
_TRANSIENT = (ServiceUnavailable, Timeout, ServerTimeout, TooManyRequests)

# A watch that lasted this many seconds counts as successful, even if nothing changed meanwhile.
_LONG_WATCH = 30.0

# How many objects of a list are processed before other tasks may run.
_BATCH = 1000


def key_of(namespace: str, name: str) -> Key:
    """``default/web``, or ``node-a`` for an object without a namespace."""
    return f"{namespace}/{name}" if namespace else name


def split_key(key: Key) -> tuple[str, str]:
    """The namespace (empty if none) and the name in a key."""
    namespace, _, name = key.rpartition("/")
    return namespace, name


class Index(Generic[T]):
    """The objects by each value that a function returns for them."""

    def __init__(self, function: IndexFunction[T]) -> None:
        self.function = function
        self._filed: dict[Hashable, dict[Key, T]] = {}

    def keys(self, value: Hashable) -> Sequence[Key]:
        return list(self._filed.get(value, ()))

    def objects(self, value: Hashable) -> Sequence[T]:
        found = self._filed.get(value)
        return list(found.values()) if found else ()

    def values(self) -> Sequence[Hashable]:
        """Every value that has objects."""
        return list(self._filed)

    def change(self, key: Key, old: T | None, new: T | None) -> None:
        after: Collection[Hashable] = ()
        if new is not None:
            after = tuple(self.function(new))
            for value in after:
                self._filed.setdefault(value, {})[key] = new
        if old is None:
            return
        if len(after) > 8:
            after = set(after)
        for value in self.function(old):
            if value not in after and (filed := self._filed.get(value)) is not None:
                filed.pop(key, None)
                if not filed:
                    del self._filed[value]


class Informer(Generic[T]):
    """Follows one resource.  ``run`` does the work until cancelled; the other methods read."""

    def __init__(
        self,
        cluster: Cluster,
        resource: Resource,
        *,
        as_: type[T],
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        clock: Clock = SYSTEM_CLOCK,
        random: Random = _random.random,
    ) -> None:
        self.resource = resource
        self.synced = asyncio.Event()
        self.connected = False
        self.last_version = ""
        self.last_error: ApiError | None = None
        self.unreadable: dict[Key, Unreadable] = {}
        self._cluster = cluster
        self._as = as_
        self._query = {"namespace": namespace, "labels": labels, "fields": fields}
        self._clock = clock
        self._backoff = Backoff(random=random)
        self._metadata = _reader_of_metadata(as_)
        self._objects: dict[Key, T] = {}
        self._handlers: list[tuple[Handler[T], Failed]] = []
        self._indexes: dict[str, Index[T]] = {}
        self._lost_at = clock.monotonic()
        self._progress = False

    # --- reading -----------------------------------------------------------------------------------

    @property
    def lag(self) -> float:
        """For how many seconds the connection has been lost: 0 while connected."""
        return 0.0 if self.connected else self._clock.monotonic() - self._lost_at

    def get(self, name: str, namespace: str = "") -> T | None:
        return self._objects.get(key_of(namespace, name))

    def by_key(self, key: Key) -> T | None:
        return self._objects.get(key)

    def keys(self) -> Sequence[Key]:
        return list(self._objects)

    def objects(self) -> Sequence[T]:
        return list(self._objects.values())

    def __len__(self) -> int:
        return len(self._objects)

    def on_change(self, handler: Handler[T], failed: Failed | None = None) -> None:
        """Call ``handler`` now for every object, and for every change from now on.

        If it raises, ``failed`` is called with the error, and the other handlers are still called.
        """
        failed = failed or self._log
        self.replay(handler, failed)
        self._handlers.append((handler, failed))

    def forget(self, handler: Handler[T]) -> None:
        """Call ``handler`` no longer."""
        self._handlers = [each for each in self._handlers if each[0] != handler]

    def replay(self, handler: Handler[T], failed: Failed) -> None:
        """Call ``handler`` for every object, as if it were new."""
        for key, obj in list(self._objects.items()):
            try:
                handler(key, None, obj)
            except Exception as error:
                failed(error)

    def index(self, name: str, function: IndexFunction[T]) -> Index[T]:
        """Index objects by the values that ``function`` returns; readers that use the same name share the index."""
        known = self._indexes.get(name)
        if known is not None:
            if known.function is not function:
                raise ValueError(f"{self.resource.qualified} have an index {name!r} of another function already")
            return known
        index = Index(function)
        for key, obj in self._objects.items():
            index.change(key, None, obj)
        self._indexes[name] = index
        return index

    # --- following ---------------------------------------------------------------------------------

    def clear(self) -> None:
        """Report all objects as deleted, because the server no longer has this resource."""
        for key, obj in list(self._objects.items()):
            self._tell(key, obj, None)

    async def run(self) -> None:
        """Follow the server until cancelled."""
        try:
            while True:
                self._progress = False
                began = self._clock.monotonic()
                error: ApiError | None = None
                try:
                    if not self.last_version:
                        await self._list()
                    await self._watch()
                except ApiError as raised:
                    error = raised
                    self._lost(raised)
                except Exception as raised:
                    # A defect: starting over may help, and ending would leave every reader with old objects for good.
                    log.error("%s: an event could not be handled", self.resource.qualified, exc_info=raised)
                    self._lost(InternalError(f"{type(raised).__name__}: {raised}"))
                delay = 0.0
                if self._progress or self._clock.monotonic() - began >= _LONG_WATCH:
                    self._backoff.reset()
                else:
                    delay = self._backoff.next()
                if error is not None and error.retry_after:
                    delay = max(delay, float(error.retry_after))
                if delay:
                    await self._clock.sleep(delay)
        finally:
            self._disconnected()

    async def _list(self) -> None:
        listing = await self._cluster.list(self.resource, as_=self._as, **self._query)
        gone = set(self._objects)
        again = self.synced.is_set()
        for number, obj in enumerate(listing.items, start=1):
            key = self._key(obj)
            gone.discard(key)
            if not (again and self._same_version(key, obj)):
                self._take(key, obj)
            # Listing again does not yield to other tasks, so that readers never see new objects with the old version.
            if number % _BATCH == 0 and not again:
                await asyncio.sleep(0)
        for key in gone:
            self._take(key, None)
        left_out = {_key_of(each): each for each in listing.unreadable}
        for key in self.unreadable.keys() - left_out:
            del self.unreadable[key]
        for each in left_out.values():
            self._leave_out(each)
        self.last_version = listing.version
        self._heard()
        self.synced.set()

    async def _watch(self) -> None:
        since = self.last_version
        stream = self._cluster.watch(self.resource, since=since, as_=self._as, **self._query)
        try:
            async for change in stream:
                self._heard()
                self._apply(change)
                if change.version != since:
                    self._progress = True
        finally:
            if hasattr(stream, "aclose"):
                await stream.aclose()

    def _apply(self, change: Change[T]) -> None:
        obj = change.object
        self.last_version = change.version
        if change.type != "BOOKMARK" and obj is not None:
            key = self._key(obj)
            if self.unreadable:
                self.unreadable.pop(key, None)
            self._take(key, None if change.type == "DELETED" else obj)
        elif change.unreadable is not None:
            if change.type == "DELETED":
                key = _key_of(change.unreadable)
                self.unreadable.pop(key, None)
                self._take(key, None)
            else:
                self._leave_out(change.unreadable)

    def _leave_out(self, strange: Unreadable) -> None:
        """Treat an object that cannot be decoded as absent, and log it unless that was done before."""
        key = _key_of(strange)
        known = self.unreadable.get(key)
        if known is None or (known.metadata.uid, known.reason) != (strange.metadata.uid, strange.reason):
            what, where = self._as.__name__, self.resource.qualified
            log.warning("%s: %s is left out, because it cannot be read as %s: %s", where, key, what, strange.reason)
        self.unreadable[key] = strange
        self._take(key, None)

    def _same_version(self, key: Key, new: T) -> bool:
        old = self._objects.get(key)
        version = self._metadata(new, "resource_version")
        return bool(version) and old is not None and self._metadata(old, "resource_version") == version

    def _key(self, obj: T) -> Key:
        return key_of(self._metadata(obj, "namespace"), self._metadata(obj, "name"))

    def _take(self, key: Key, new: T | None) -> None:
        """Store the object at this key, and call indexes and handlers if it changed."""
        old = self._objects.get(key)
        if old == new:
            return
        if old is not None and new is not None and self._metadata(old, "uid") != self._metadata(new, "uid"):
            # Another object of the same name: the deletion of the first was missed.
            self._tell(key, old, None)
            old = None
        self._tell(key, old, new)

    def _tell(self, key: Key, old: T | None, new: T | None) -> None:
        # The indexes first: if one fails, the object is still the old one, and listing again reports the change again.
        for index in self._indexes.values():
            index.change(key, old, new)
        if new is None:
            del self._objects[key]
        else:
            self._objects[key] = new
        for handler, failed in self._handlers:
            try:
                handler(key, old, new)
            except Exception as error:
                failed(error)

    def _log(self, error: Exception) -> None:
        log.error("%s: a handler failed", self.resource.qualified, exc_info=error)

    # --- the state of the connection ---------------------------------------------------------------

    def _heard(self) -> None:
        if not self.connected:
            self.connected = True
            if self.last_error is not None:
                log.info("%s: following the server again", self.resource.qualified)
                self.last_error = None

    def _disconnected(self) -> None:
        if self.connected:
            self.connected = False
            self._lost_at = self._clock.monotonic()

    def _lost(self, error: ApiError) -> None:
        if isinstance(error, Expired | Gone):
            # The server answers, but it no longer has our version.
            self.last_version = ""
            return
        if not isinstance(error, _TRANSIENT):
            self.last_version = ""
        self._disconnected()
        if self.last_error is None or self.last_error.message != error.message:
            log.warning("%s: cannot follow the server, keeping what is known: %s", self.resource.qualified, error)
        self.last_error = error


def _key_of(strange: Unreadable) -> Key:
    return key_of(strange.metadata.namespace, strange.metadata.name)


def _reader_of_metadata(as_: type[Any]) -> Callable[[Any, str], str]:
    """A function that reads a metadata field of this type; a field that the type lacks reads as empty."""
    if as_ is dict:
        return lambda obj, name: str(obj["metadata"].get(name, ""))
    if "metadata" not in getattr(as_, "__struct_fields__", ()):
        raise TypeError(f"{as_.__name__} cannot be followed: it needs a field `metadata` with at least a `name`")
    return lambda obj, name: getattr(obj.metadata, name, "")
