"""The ``Cluster`` seam in process: the same reads, watches and write path as over HTTP, without the HTTP.

Nothing is bypassed: objects are conformed, defaulted, admitted, validated and their fields tracked like anybody's.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import msgspec

from seamark import errors
from seamark.access.cluster import Change, Listing, PatchType, Propagation
from seamark.api import subresources
from seamark.api.context import User, Writing
from seamark.api.core import Core
from seamark.api.fields.edits import applied, patched, shown
from seamark.api.http.options import DeleteOptions, ListOptions
from seamark.api.state.cache import Collection, Entry, Event
from seamark.api.state.select import Selection, select
from seamark.api.state.watch import Watches, seen
from seamark.errors import Object
from seamark.kinds.kind import Kind
from seamark.kinds.language import decode
from seamark.kinds.resource import Resource
from seamark.kinds.values import times
from seamark.store.protocol import Compacted, StoreError

# A reader in the same process that lets this many events wait is not coming back.
MAX_WAITING = 100_000


class LocalCluster:
    """Reads and writes the cluster this process serves, in the name of one component."""

    def __init__(self, core: Core, component: str) -> None:
        self._core = core
        self._component = component
        self._user = User(f"system:{component}", ("system:masters", "system:authenticated"))
        self._decoders: dict[tuple[Resource, Any], Callable[[Entry], Any]] = {}

    # --- reading -----------------------------------------------------------------------------------

    async def get(self, resource: Resource, name: str, *, namespace: str = "", as_: Any = dict) -> Any:
        decoded = self._decoder(self._kind(resource), as_)
        await self._core.cache.freshen()
        return decoded(self._core.reader.get(resource, namespace, name))

    async def list(
        self, resource: Resource, *, namespace: str = "", labels: str = "", fields: str = "", as_: Any = dict
    ) -> Listing[Any]:
        await self._core.cache.freshen()
        kind = self._kind(resource)
        options = ListOptions(labels=labels, fields=fields)
        page = self._core.reader.page(select(kind, namespace, "", options), options)
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
        subscription = Subscription(self._core.cache.of(resource), selection)
        now = self._core.cache.revision
        try:
            yield Change("BOOKMARK", None, since)
            async for event in subscription.events(int(since), now, self._core.watches):
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
        if kind.stored_as is not None:
            return lambda entry: msgspec.convert(shown(kind, kind.from_stored(entry.decode())), as_)
        known = self._decoders.get((kind.resource, as_))
        if known is None:
            known = self._decoders[kind.resource, as_] = self._new_decoder(kind.resource, as_)
        return known

    @staticmethod
    def _new_decoder(resource: Resource, as_: Any) -> Callable[[Entry], Any]:
        head = f'{{"kind":"{resource.kind}","apiVersion":"{resource.api_version}",'.encode()
        decoder = msgspec.json.Decoder(dict[str, Any] if as_ is dict else as_)
        return lambda entry: decoder.decode(head + entry.tail)

    def _kind(self, resource: Resource) -> Kind:
        kind = self._core.kinds.by_plural(resource.group, resource.version, resource.plural)
        if kind is None:
            raise errors.NotFound("the server could not find the requested resource", details={})
        return kind

    # --- writing -----------------------------------------------------------------------------------

    def _how(self, manager: str = "") -> Writing:
        return Writing(manager=manager or self._component, now=times.text(self._core.clock()), user=self._user)

    def _conformed(self, kind: Kind, obj: Any) -> Object:
        # Through JSON: the caller keeps its own object, and what it holds may be typed.
        plain = msgspec.json.decode(msgspec.json.encode(obj))
        return decode.conform(plain, kind.shape)[0]

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
            await subresources.bind(self._core.writer, self._core.kinds, namespace, name, object, self._how())
            return {}
        if subresource == "eviction":
            pod, how = (kind, namespace, name), self._how()
            await subresources.evict(self._core.writer, self._core.deleter, pod, DeleteOptions(), how)
            return {}
        obj = self._conformed(kind, object)
        where = namespace or obj["metadata"].get("namespace", "")
        written = await self._core.writer.create(kind, obj, where, self._how())
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

        written = await self._core.writer.change(
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
        # Merging copies what it takes over, and makes it plain; all other ways of patching are given a plain copy.
        merging = type == "merge" and isinstance(patch, dict)
        document = patch if merging else msgspec.json.decode(msgspec.json.encode(patch))
        if type == "apply":
            entry = await self._apply(kind, namespace, name, document, how, subresource=subresource, force=force)
            return self._decoder(kind, as_)(entry)
        make = patched(kind, type, document, subresource=subresource)
        written = await self._core.writer.change(kind, namespace, name, make, how, subresource=subresource)
        return self._decoder(kind, as_)(written.entry)

    async def _apply(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        config: Object,
        how: Writing,
        *,
        subresource: str,
        force: bool,
    ) -> Entry:
        make = applied(kind, config, manager=how.manager, force=force, subresource=subresource, now=how.now)
        try:
            written = await self._core.writer.change(
                kind, namespace, name, make, how, subresource=subresource, tracked=True
            )
        except errors.NotFound:
            if subresource:
                raise
            written = await self._core.writer.create(kind, make(None), namespace, how, tracked=True)
        return written.entry

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
        await self._core.deleter.delete(self._kind(resource), namespace, name, options, self._how())

    async def delete_all(
        self, resource: Resource, *, namespace: str, labels: str = "", options: Mapping[str, Any] | None = None
    ) -> None:
        kind = self._kind(resource)
        chosen = ListOptions(labels=labels)
        given = options or {}
        deleting = DeleteOptions(
            grace_seconds=given.get("gracePeriodSeconds"), propagation=given.get("propagationPolicy", "")
        )
        for entry in self._core.reader.page(select(kind, namespace, "", chosen), chosen).entries:
            try:
                await self._core.deleter.delete(kind, entry.namespace, entry.name, deleting, self._how())
            except errors.NotFound:
                continue  # somebody else was faster: it is gone, as asked


class Subscription:
    """Events of one collection for a reader in the same process, kept until it takes them."""

    def __init__(self, collection: Collection, selection: Selection) -> None:
        self._collection = collection
        self._selection = selection
        self._waiting: deque[Event] = deque()
        self._wake = asyncio.Event()
        self._ended = False
        self._unsubscribe: Callable[[], None] | None = collection.subscribe(self, selection.namespace, selection.name)

    def offer(self, event: Event) -> None:
        self._waiting.append(event)

    def flush(self, revision: int) -> None:
        self._wake.set()

    def end(self) -> None:
        """No more events will come; those that wait can still be read."""
        self._ended = True
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
            if self._ended:
                return
            self._wake.clear()
            if not self._waiting:
                await self._wake.wait()

    def _concerns(self, event: Event) -> bool:
        selection, entry = self._selection, event.entry
        return selection.namespace in ("", entry.namespace) and selection.name in ("", entry.name)
