"""The ``Cluster`` seam in process: the same operations as over HTTP, without the HTTP.

Callers' objects, which may be typed, become plain values here; entries are decoded straight into the type asked for.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import msgspec

from seamark import errors
from seamark.access.cluster import (
    Change,
    Cluster,
    Listing,
    PatchType,
    Propagation,
    Receipt,
    Unreadable,
)
from seamark.api import intake
from seamark.api.authorization import User
from seamark.api.call import Caller, DeleteOptions, ListOptions, Target, WriteOptions, check_verb, target
from seamark.api.edits import shown
from seamark.api.intake import Document
from seamark.api.operations import FOUND, Operations
from seamark.api.posted import Answered
from seamark.api.state.entries import Entry
from seamark.api.state.failures import unavailable
from seamark.api.state.read import Page
from seamark.api.state.watch import Subscription
from seamark.api.write.values import Written
from seamark.clock import Clock
from seamark.kinds.kind import Kind
from seamark.kinds.resource import Resource
from seamark.kinds.values import times
from seamark.store.protocol import StoreError

Decoder = Callable[[Entry], Any]

# So many objects of a list are decoded before others have their turn: that takes some milliseconds.
DECODED_AT_ONCE = 200


class LocalCluster:
    """Reads and writes the cluster this process serves, with the rights of one user."""

    def __init__(
        self,
        operations: Operations,
        *,
        user: User,
        manager: str,
        clock: Clock,
        elsewhere: Callable[[Resource], Cluster | None] = lambda resource: None,
    ) -> None:
        """``elsewhere`` has the kinds that aggregated servers serve."""
        self._operations = operations
        self._kinds = operations.kinds
        self._user = user
        self._manager = manager
        self._clock = clock
        self._elsewhere = elsewhere

    def _target(self, verb: str, resource: Resource, namespace: str, name: str = "", subresource: str = "") -> Target:
        """What a call is about; raises unless it exists, has this verb and the user may."""
        kind = self._kinds.by_plural(resource.group, resource.version, resource.plural)
        found = target(kind, namespace if resource.namespaced else "", name, subresource)
        self._operations.authorize(self._user, verb, found)
        check_verb("list" if verb == "watch" else verb, found)
        return found

    def _caller(self, manager: str = "") -> Caller:
        # Warnings have no reader here, so unknown fields need not be collected for them.
        return Caller(self._user, times.text(self._clock.time()), manager or self._manager, field_validation="Ignore")

    # --- reading -----------------------------------------------------------------------------------

    async def get(
        self, resource: Resource, name: str, *, namespace: str = "", subresource: str = "", as_: Any = dict
    ) -> Any:
        if (other := self._elsewhere(resource)) is not None:
            return await other.get(resource, name, namespace=namespace, subresource=subresource, as_=as_)
        try:
            where = self._target("get", resource, namespace, name, subresource)
            found = self._operations.get(where, bare=_bare(as_))
            return _decoded(where.kind, found if isinstance(found, FOUND) else await found, as_)
        except StoreError as error:
            raise unavailable(error) from error

    async def list(
        self,
        resource: Resource,
        *,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        metric_labels: str = "",
        as_: Any = dict,
    ) -> Listing[Any]:
        if (other := self._elsewhere(resource)) is not None:
            return await other.list(
                resource, namespace=namespace, labels=labels, fields=fields, metric_labels=metric_labels, as_=as_
            )
        try:
            where = self._target("list", resource, namespace)
            found = self._operations.list(where, ListOptions(labels=labels, fields=fields), bare=_bare(as_))
            page = found if isinstance(found, Page) else await found
            return await _listing(page, _decoder(where.kind, as_))
        except StoreError as error:
            raise unavailable(error) from error

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
        if (other := self._elsewhere(resource)) is not None:
            async for told in other.watch(
                resource, since=since, namespace=namespace, labels=labels, fields=fields, as_=as_
            ):
                yield told
            return
        where = self._target("watch", resource, namespace)
        options = ListOptions(labels=labels, fields=fields, version=since, watch=True)
        subscription = Subscription(self._operations.watch(where, options))
        decoder = _decoder(where.kind, as_)
        try:
            yield Change("BOOKMARK", None, since)
            async for type, entry in subscription.events(bare=_bare(as_)):
                change: Change[Any]
                try:
                    change = Change(type, decoder(entry), str(entry.revision))  # type: ignore[arg-type]  # ADDED …
                except msgspec.DecodeError as error:
                    change = Change(type, None, str(entry.revision), _unreadable(entry, error))  # type: ignore[arg-type]
                yield change
        finally:
            subscription.stop()

    # --- writing -----------------------------------------------------------------------------------

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
        if (other := self._elsewhere(resource)) is not None:
            return await other.create(
                resource, object, namespace=namespace, name=name, subresource=subresource, as_=as_
            )
        try:
            document, meta = _document(object)
            where = self._target("create", resource, namespace or meta.get("namespace", ""), name, subresource)
            made = await self._operations.create(where, document, self._caller())
            return _decoded(where.kind, made, as_)
        except StoreError as error:
            raise unavailable(error) from error

    async def update(
        self, resource: Resource, object: Any, *, namespace: str = "", subresource: str = "", as_: Any = dict
    ) -> Any:
        if (other := self._elsewhere(resource)) is not None:
            return await other.update(resource, object, namespace=namespace, subresource=subresource, as_=as_)
        try:
            document, meta = _document(object)
            name = meta.get("name", "")
            if not name:
                raise errors.BadRequest(f"an update of {resource.qualified} needs metadata.name")
            where = self._target("update", resource, namespace or meta.get("namespace", ""), name, subresource)
            written = await self._operations.update(where, document, self._caller())
            return _decoded(where.kind, written, as_)
        except StoreError as error:
            raise unavailable(error) from error

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
        if (other := self._elsewhere(resource)) is not None:
            return await other.patch(
                resource,
                name,
                patch,
                namespace=namespace,
                type=type,
                subresource=subresource,
                field_manager=field_manager or self._manager,
                force=force,
                as_=as_,
            )
        try:
            where = self._target("patch", resource, namespace, name, subresource)
            if field_manager or force or type == "apply":
                options = WriteOptions(field_manager=field_manager, force=force or None)
                options.check_patch(apply=type == "apply")
            caller = self._caller(field_manager)
            # Merging copies what it takes over, and makes it plain; all other ways of patching are given a plain copy.
            plain = type == "merge" and isinstance(patch, dict)
            document = patch if plain else msgspec.json.decode(msgspec.json.encode(patch))
            if type == "apply":
                written = await self._operations.apply(where, document, caller, force=force)
            else:
                written = await self._operations.patch(where, type, document, caller)
            return _decoded(where.kind, written, as_)
        except StoreError as error:
            raise unavailable(error) from error

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
        if (other := self._elsewhere(resource)) is not None:
            await other.delete(
                resource,
                name,
                namespace=namespace,
                uid=uid,
                version=version,
                grace_seconds=grace_seconds,
                propagation=propagation,
            )
            return
        try:
            where = self._target("delete", resource, namespace, name)
            options = DeleteOptions(
                grace_seconds=grace_seconds, propagation=propagation or "", uid=uid, version=version
            )
            options.check()
            await self._operations.delete(where, options, self._caller())
        except StoreError as error:
            raise unavailable(error) from error

    async def delete_all(
        self, resource: Resource, *, namespace: str, labels: str = "", options: Mapping[str, Any] | None = None
    ) -> None:
        if (other := self._elsewhere(resource)) is not None:
            await other.delete_all(resource, namespace=namespace, labels=labels, options=options)
            return
        try:
            where = self._target("deletecollection", resource, namespace)
            deleting = intake.deleting(msgspec.json.decode(msgspec.json.encode(options or {})))
            await self._operations.delete_all(where, ListOptions(labels=labels), deleting, self._caller())
        except StoreError as error:
            raise unavailable(error) from error


def _document(obj: Any) -> tuple[Document, Mapping[str, Any]]:
    """A caller's object as a plain document, and its metadata as far as that can be read."""
    # Through JSON: the caller keeps its own object, which may be typed.
    body = msgspec.json.encode(obj)
    value = msgspec.json.decode(body)
    meta = value.get("metadata") if isinstance(value, dict) else None
    return Document(value, body), meta if isinstance(meta, dict) else {}


def _decoded(kind: Kind, result: Entry | Written | Answered, as_: Any) -> Any:
    if isinstance(result, Answered):
        return msgspec.convert(result.object, as_)
    entry = result.entry if isinstance(result, Written) else result
    try:
        return _decoder(kind, as_)(entry)
    except msgspec.DecodeError as error:
        name = getattr(as_, "__name__", str(as_))
        raise errors.InternalError(f"{kind.resource.qualified} {entry.path} is not {name}: {error}") from error


async def _listing(page: Page, decoder: Decoder) -> Listing[Any]:
    """What was found, decoded a piece at a time: other tasks run between the pieces of a list of thousands."""
    items, unreadable = [], []
    for at in range(0, len(page.entries), DECODED_AT_ONCE):
        if at:
            await asyncio.sleep(0)
        for entry in page.entries[at : at + DECODED_AT_ONCE]:
            try:
                items.append(decoder(entry))
            except msgspec.DecodeError as error:
                unreadable.append(_unreadable(entry, error))
    return Listing(items, page.listing["resourceVersion"], unreadable)


def _unreadable(entry: Entry, error: Exception) -> Unreadable:
    return Unreadable.of(b"{" + entry.tail, error)


def _decoder(kind: Kind, as_: Any) -> Decoder:
    """What makes the caller's type of an entry; made once and kept with the kind."""
    known = kind.decoders.get(as_)
    if known is None:
        known = kind.decoders[as_] = _new_decoder(kind, as_)
    return known


def _bare(as_: Any) -> bool:
    """Whether a type reads only what is the same in every version of an object, so that none has to be converted."""
    return bool(getattr(as_, "any_version", False))


def _new_decoder(kind: Kind, as_: Any) -> Decoder:
    """Raises ``msgspec.DecodeError`` for an entry that the type cannot hold."""
    if as_ is Receipt:
        return lambda entry: Receipt.of(str(entry.revision))  # nothing has to be decoded for it
    resource = kind.resource
    head = f'{{"kind":"{resource.kind}","apiVersion":"{resource.api_version}",'.encode()
    bare = _bare(as_)
    decoder: msgspec.json.Decoder[Any] | None = None

    def decode(entry: Entry) -> Any:
        nonlocal decoder
        if kind.built_in and not kind.shows_as_stored:
            return msgspec.convert(shown(kind, entry.shown(kind)), as_)
        if decoder is None:  # made for the first object, since many kinds are followed that have none
            decoder = msgspec.json.Decoder(dict[str, Any] if as_ is dict else as_)
        return decoder.decode(head + (entry.tail if bare else entry.tail_of(kind)))

    return decode
