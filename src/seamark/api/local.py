"""The ``Cluster`` seam in process: the same reads, watches and write path as over HTTP, without the HTTP.

Nothing is bypassed: objects are conformed, defaulted, admitted, validated and their fields tracked like anybody's.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import msgspec

from seamark import errors
from seamark.access.cluster import Change, Listing, PatchType, Propagation
from seamark.api import apply, patch, subresources
from seamark.api.body import conform_patched
from seamark.api.cache import Cache, Collection, Entry, Event
from seamark.api.context import User, Writing
from seamark.api.delete import Deleter
from seamark.api.options import DeleteOptions, ListOptions
from seamark.api.read import Reader, missing
from seamark.api.select import Selection, select
from seamark.api.watch import Watches, seen
from seamark.api.write import Writer
from seamark.errors import Object
from seamark.kinds import decode, shapes, times
from seamark.kinds.kind import Kind
from seamark.kinds.resource import Resource
from seamark.kinds.table import Kinds
from seamark.store.protocol import Compacted, StoreError

# A reader in the same process that lets this many events wait is not coming back.
MAX_WAITING = 100_000


class LocalCluster:
    """Reads and writes the cluster this process serves, in the name of one component."""

    def __init__(
        self,
        *,
        kinds: Kinds,
        cache: Cache,
        reader: Reader,
        writer: Writer,
        deleter: Deleter,
        watches: Watches,
        component: str,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._kinds = kinds
        self._cache = cache
        self._reader = reader
        self._writer = writer
        self._deleter = deleter
        self._watches = watches
        self._component = component
        self._clock = clock
        self._user = User(f"system:{component}", ("system:masters", "system:authenticated"))
        self._decoders: dict[tuple[str, Any], Callable[[Entry], Any]] = {}

    # --- reading -----------------------------------------------------------------------------------

    async def get(self, resource: Resource, name: str, *, namespace: str = "", as_: Any = dict) -> Any:
        decoded = self._decoder(self._kind(resource), as_)
        await self._cache.freshen()
        return decoded(self._reader.get(resource, namespace, name))

    async def list(
        self, resource: Resource, *, namespace: str = "", labels: str = "", fields: str = "", as_: Any = dict
    ) -> Listing[Any]:
        await self._cache.freshen()
        kind = self._kind(resource)
        options = ListOptions(labels=labels, fields=fields)
        page = self._reader.page(select(kind, namespace, "", options), options)
        decoded = self._decoder(kind, as_)
        return Listing([decoded(entry) for entry in page.entries], page.listing["resourceVersion"])

    async def watch(
        self,
        resource: Resource,
        *,
        since: str,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        as_: Any = dict,
    ) -> AsyncIterator[Change[Any]]:
        kind = self._kind(resource)
        selection = select(kind, namespace, "", ListOptions(labels=labels, fields=fields))
        decoded = self._decoder(kind, as_)
        subscription = Subscription(self._cache.of(resource), selection)
        now = self._cache.revision
        try:
            yield Change("BOOKMARK", None, since)
            async for event in subscription.events(int(since), now, self._watches):
                view = seen(event, selection)
                if view is not None:
                    type, entry = view
                    yield Change(type, decoded(entry), str(entry.revision))  # type: ignore[arg-type]  # ADDED …
        except Compacted as error:
            raise errors.Expired(f"too old resource version: {error.asked} ({error.oldest})") from error
        except StoreError as error:
            raise errors.ServiceUnavailable(str(error)) from error
        finally:
            subscription.stop()

    def _decoder(self, kind: Kind, as_: Any) -> Callable[[Entry], Any]:
        """What makes the caller's type of an entry; each made once."""
        known = self._decoders.get((kind.shape, as_))
        if known is None:
            known = self._decoders[kind.shape, as_] = self._new_decoder(kind, as_)
        return known

    def _new_decoder(self, kind: Kind, as_: Any) -> Callable[[Entry], Any]:
        resource = kind.resource
        if kind.stored_as is not None:
            return lambda entry: msgspec.convert(self._shown(kind, entry.decode()), as_)
        head = f'{{"kind":"{resource.kind}","apiVersion":"{resource.api_version}",'.encode()
        decoder = msgspec.json.Decoder(dict[str, Any] if as_ is dict else as_)
        return lambda entry: decoder.decode(head + entry.tail)

    def _kind(self, resource: Resource) -> Kind:
        kind = self._kinds.by_plural(resource.group, resource.version, resource.plural)
        if kind is None:
            raise errors.NotFound("the server could not find the requested resource", details={})
        return kind

    # --- writing -----------------------------------------------------------------------------------

    def _how(self, manager: str = "") -> Writing:
        return Writing(manager=manager or self._component, now=times.text(self._clock()), user=self._user)

    def _conformed(self, kind: Kind, obj: Any) -> Object:
        # Through JSON: the caller keeps its own object, and what it holds may be typed.
        plain = msgspec.json.decode(msgspec.json.encode(obj))
        return decode.conform(plain, shapes.of(kind.shape))[0]

    async def create(
        self,
        resource: Resource,
        object: Any,
        *,
        namespace: str = "",
        name: str = "",
        subresource: str = "",
        as_: Any = dict,
    ) -> Any:
        kind = self._kind(resource)
        if subresource == "binding":
            await subresources.bind(self._writer, self._kinds, namespace, name, object, self._how())
            return {}
        if subresource == "eviction":
            await self._deleter.delete(kind, namespace, name, DeleteOptions(), self._how())
            return {}
        obj = self._conformed(kind, object)
        written = await self._writer.create(kind, obj, namespace or obj["metadata"].get("namespace", ""), self._how())
        return self._decoder(kind, as_)(written.entry)

    async def update(
        self, resource: Resource, object: Any, *, namespace: str = "", subresource: str = "", as_: Any = dict
    ) -> Any:
        kind = self._kind(resource)
        fresh = [self._conformed(kind, object)]
        meta = fresh[0]["metadata"]

        def make(_old: Object) -> Object:
            # A write edits what it is given, so a second try begins with what the caller gave.
            return fresh.pop() if fresh else self._conformed(kind, object)

        written = await self._writer.change(
            kind,
            namespace or meta.get("namespace", ""),
            meta["name"],
            make,
            self._how(),
            subresource=subresource,
            expected=meta.get("resourceVersion", ""),
        )
        return self._decoder(kind, as_)(written.entry)

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Any,
        *,
        namespace: str = "",
        type: PatchType = "merge",
        subresource: str = "",
        field_manager: str = "",
        force: bool = False,
        as_: Any = dict,
    ) -> Any:
        kind = self._kind(resource)
        how = self._how(field_manager)
        document = msgspec.json.decode(msgspec.json.encode(patch))
        make = (
            self._applied(kind, document, how, subresource, force)
            if type == "apply"
            else _patched(kind, type, document, subresource)
        )
        try:
            written = await self._writer.change(
                kind, namespace, name, make, how, subresource=subresource, tracked=type == "apply"
            )
        except errors.NotFound:
            if type != "apply" or subresource:
                raise
            written = await self._writer.create(kind, make(None), namespace, how, tracked=True)
        return self._decoder(kind, as_)(written.entry)

    def _applied(
        self, kind: Kind, config: Object, how: Writing, subresource: str, force: bool
    ) -> Callable[[Object | None], Object]:
        shape = shapes.of(kind.shape)

        def make(live: Object | None) -> Object:
            merged = apply.apply(
                config,
                self._shown(kind, live) if live is not None else None,
                shape=shape,
                manager=how.manager,
                force=force,
                api_version=kind.resource.api_version,
                subresource=subresource,
                now=how.now,
            )
            return decode.conform(merged, shape)[0]

        return make

    @staticmethod
    def _shown(kind: Kind, obj: Object) -> Object:
        return {"kind": kind.resource.kind, "apiVersion": kind.resource.api_version, **kind.from_stored(obj)}

    async def delete(
        self,
        resource: Resource,
        name: str,
        *,
        namespace: str = "",
        uid: str = "",
        version: str = "",
        grace_seconds: int | None = None,
        propagation: Propagation | None = None,
    ) -> None:
        options = DeleteOptions(grace_seconds=grace_seconds, propagation=propagation or "", uid=uid, version=version)
        await self._deleter.delete(self._kind(resource), namespace, name, options, self._how())

    async def delete_all(
        self, resource: Resource, *, namespace: str, labels: str = "", options: Mapping[str, Any] | None = None
    ) -> None:
        kind = self._kind(resource)
        chosen = ListOptions(labels=labels)
        given = options or {}
        deleting = DeleteOptions(
            grace_seconds=given.get("gracePeriodSeconds"), propagation=given.get("propagationPolicy", "")
        )
        for entry in self._reader.page(select(kind, namespace, "", chosen), chosen).entries:
            try:
                await self._deleter.delete(kind, entry.namespace, entry.name, deleting, self._how())
            except errors.NotFound:
                continue  # somebody else was faster: it is gone, as asked


def _patched(kind: Kind, type: PatchType, document: Any, subresource: str) -> Callable[[Object | None], Object]:
    shape = shapes.of(kind.shape)

    def make(old: Object | None) -> Object:
        if old is None:
            raise missing(kind.resource, "")
        current = {"kind": kind.resource.kind, "apiVersion": kind.resource.api_version, **old}
        assert type != "apply"
        result = patch.apply_patch(type, document, current, shape)
        return conform_patched(result, kind, "Ignore", [], current, subresource=subresource)

    return make


class Subscription:
    """Events of one collection for a reader in the same process, kept until it takes them."""

    def __init__(self, collection: Collection, selection: Selection) -> None:
        self._collection = collection
        self._selection = selection
        self._waiting: deque[Event] = deque()
        self._wake = asyncio.Event()
        self._unsubscribe: Callable[[], None] | None = collection.subscribe(self, selection.namespace, selection.name)

    def offer(self, event: Event) -> None:
        self._waiting.append(event)

    def flush(self, revision: int) -> None:
        self._wake.set()

    def stop(self) -> None:
        if self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None

    async def events(self, since: int, now: int, watches: Watches) -> AsyncIterator[Event]:
        """Everything after ``since``; ``now`` is the revision at which this subscription began."""
        recent = self._collection.since(since)
        if recent is None:
            async for event in watches.replay(self._collection, since, now):
                if self._concerns(event):
                    yield event
        else:
            for event in list(recent):
                if event.entry.revision <= now and self._concerns(event):
                    yield event
        while True:
            if len(self._waiting) > MAX_WAITING:
                raise errors.Expired("too many events were waiting to be read")
            while self._waiting:
                event = self._waiting.popleft()
                if event.entry.revision > max(now, since):
                    yield event
            self._wake.clear()
            if not self._waiting:
                await self._wake.wait()

    def _concerns(self, event: Event) -> bool:
        selection, entry = self._selection, event.entry
        return selection.namespace in ("", entry.namespace) and selection.name in ("", entry.name)
