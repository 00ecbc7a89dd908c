"""The ``Cluster`` protocol over HTTPS, against any Kubernetes API server.

Answers are decoded straight into the requested type.  Lists are read in pages of one version; if that version expires
between two pages, the list is read again in one piece.  All failures, also of connections, raise an error of
:mod:`seamark.errors`.
"""

from __future__ import annotations

import builtins
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Generic, Self, TypeVar

import msgspec

from seamark import errors
from seamark.access.backoff import Random, at_random
from seamark.access.cluster import Change, Listing, PatchType, Propagation, Unreadable
from seamark.access.kubeconfig import Connection
from seamark.access.sending import Request, Sender
from seamark.access.transport import Transport
from seamark.clock import SYSTEM_CLOCK, Clock
from seamark.errors import Object
from seamark.kinds.resource import Resource

T = TypeVar("T")

PAGE = 500

# The server ends a watch after 5 to 10 minutes, at random, so that watches spread over its replicas.
WATCH_SECONDS = 300
_GRACE = 30.0

_PATCHES: Mapping[PatchType, str] = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}


class _Metadata(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class _Versioned(msgspec.Struct):
    metadata: _Metadata


class _Page(msgspec.Struct, Generic[T]):
    metadata: _Metadata
    items: list[T] | None = None


class _Event(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _Decoders(Generic[T]):
    """The decoders for one type, for single objects and for lists."""

    def __init__(self, as_: type[T]) -> None:
        self.name = getattr(as_, "__name__", str(as_))
        self.one = msgspec.json.Decoder(as_)
        self.page = msgspec.json.Decoder(_Page[as_])  # type: ignore[valid-type]  # a type known only at run time


_event = msgspec.json.Decoder(_Event)
_versioned = msgspec.json.Decoder(_Versioned)
_raw_page = msgspec.json.Decoder(_Page[msgspec.Raw])
_SHORT = 250  # bytes; an object has more, an empty list has fewer


class HttpCluster:
    """A cluster whose API server is asked through a ``Sender``; ``server`` names it in sentences."""

    def __init__(self, sender: Sender, server: str, random: Random = at_random) -> None:
        self._sender = sender
        self._server = server
        self._random = random
        self._decoders: dict[type[Any], _Decoders[Any]] = {}

    # --- reading -----------------------------------------------------------------------------------

    async def get(
        self, resource: Resource, name: str, *, namespace: str = "", subresource: str = "", as_: type[Any] = dict
    ) -> Any:
        path = resource.path(namespace=namespace, name=name, subresource=subresource)
        body = await self._sender.send(Request("GET", path))
        decoders = self._of(as_)
        with self._understanding(path, decoders.name):
            return decoders.one.decode(body)

    async def list(
        self,
        resource: Resource,
        *,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        metric_labels: str = "",
        as_: type[Any] = dict,
    ) -> Listing[Any]:
        selection = _selection(labels, fields, metric_labels)
        path = resource.path(namespace=namespace)
        page, unreadable = await self._page(path, (*selection, ("limit", str(PAGE))), as_)
        items, version = page.items or [], page.metadata.resource_version
        try:
            while page.metadata.continue_:
                more = (*selection, ("limit", str(PAGE)), ("continue", page.metadata.continue_))
                page, strange = await self._page(path, more, as_)
                items += page.items or ()
                unreadable += strange
        except (errors.Expired, errors.Gone):
            # Paging took longer than the server keeps the version; a list without pages cannot expire.
            page, unreadable = await self._page(path, selection, as_)
            items, version = page.items or [], page.metadata.resource_version
        if as_ is dict:
            # Items of a list have no kind and apiVersion, but readers of whole objects expect them.
            for item in items:
                item.setdefault("kind", resource.kind)
                item.setdefault("apiVersion", resource.api_version)
        return Listing(items, version, unreadable)

    async def _page(
        self, path: str, query: tuple[tuple[str, str], ...], as_: type[T]
    ) -> tuple[_Page[T], builtins.list[Unreadable]]:
        """One page, and the objects of it that the type cannot hold."""
        body = await self._sender.send(Request("GET", path, query))
        if len(body) < _SHORT and (empty := _empty_page(body)):
            return empty, []
        decoders = self._of(as_)
        with self._understanding(path, f"a list of {decoders.name}"):
            try:
                return decoders.page.decode(body), []
            except msgspec.ValidationError:
                return _one_by_one(body, decoders.one)

    async def watch(
        self,
        resource: Resource,
        *,
        since: str,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        as_: type[Any] = dict,
    ) -> AsyncIterator[Change[Any]]:
        path = resource.path(namespace=namespace)
        seconds = int(WATCH_SECONDS * (1 + self._random()))
        query = (
            *_selection(labels, fields),
            ("watch", "true"),
            ("allowWatchBookmarks", "true"),
            ("resourceVersion", since),
            ("timeoutSeconds", str(seconds)),
        )
        decoders = self._of(as_)
        stream = self._sender.stream(Request("GET", path, query), lifetime=seconds + _GRACE)
        try:
            async for lines in stream:
                if not lines:
                    yield Change("BOOKMARK", None, since)
                for line in lines:
                    try:
                        change = _change(line, decoders.one)
                    except (msgspec.DecodeError, RecursionError) as error:
                        raise self._nonsense(path, decoders.name, error) from error
                    yield change
        finally:
            await stream.aclose()  # type: ignore[attr-defined]  # an async generator, which has it

    # --- writing -----------------------------------------------------------------------------------

    async def create(
        self,
        resource: Resource,
        object: Any,
        *,
        namespace: str = "",
        name: str = "",
        subresource: str = "",
        as_: type[Any] = dict,
    ) -> Any:
        where = namespace or _metadata_of(object, "namespace")
        path = resource.path(namespace=where, name=name, subresource=subresource)
        return await self._write("POST", path, object, as_)

    async def update(
        self, resource: Resource, object: Any, *, namespace: str = "", subresource: str = "", as_: type[Any] = dict
    ) -> Any:
        name = _metadata_of(object, "name")
        if not name:
            raise errors.BadRequest(f"an update of {resource.qualified} needs metadata.name")
        where = namespace or _metadata_of(object, "namespace")
        path = resource.path(namespace=where, name=name, subresource=subresource)
        return await self._write("PUT", path, object, as_)

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
        as_: builtins.type[Any] = dict,
    ) -> Any:
        query = [("fieldManager", field_manager)] if field_manager else []
        if force:
            query.append(("force", "true"))
        path = resource.path(namespace=namespace, name=name, subresource=subresource)
        return await self._write("PATCH", path, patch, as_, query=tuple(query), content_type=_PATCHES[type])

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
        options: Object = {"kind": "DeleteOptions", "apiVersion": "v1"}
        preconditions = {key: value for key, value in (("uid", uid), ("resourceVersion", version)) if value}
        if preconditions:
            options["preconditions"] = preconditions
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        if propagation is not None:
            options["propagationPolicy"] = propagation
        path = resource.path(namespace=namespace, name=name)
        await self._sender.send(Request("DELETE", path, body=msgspec.json.encode(options)))

    async def delete_all(
        self,
        resource: Resource,
        *,
        namespace: str,
        labels: str = "",
        options: Mapping[str, Any] | None = None,
    ) -> None:
        body = msgspec.json.encode({"kind": "DeleteOptions", "apiVersion": "v1", **(options or {})})
        path = resource.path(namespace=namespace)
        await self._sender.send(Request("DELETE", path, _selection(labels, ""), body=body))

    async def _write(
        self,
        method: str,
        path: str,
        content: Any,
        as_: type[T],
        *,
        query: tuple[tuple[str, str], ...] = (),
        content_type: str = "application/json",
    ) -> T:
        body = msgspec.json.encode(content)
        answer = await self._sender.send(Request(method, path, query, body, content_type))
        decoders = self._of(as_)
        with self._understanding(path, decoders.name):
            return decoders.one.decode(answer)

    # --- decoding ----------------------------------------------------------------------------------

    def _of(self, as_: type[T]) -> _Decoders[T]:
        decoders = self._decoders.get(as_)
        if decoders is None:
            decoders = self._decoders[as_] = _Decoders(as_)
        return decoders

    @contextmanager
    def _understanding(self, path: str, what: str) -> Iterator[None]:
        try:
            yield
        except (msgspec.DecodeError, RecursionError) as error:
            raise self._nonsense(path, what, error) from error

    def _nonsense(self, path: str, what: str, error: Exception) -> errors.InternalError:
        return errors.InternalError(f"{self._server} answered {path} with what is not {what}: {error}")


class RemoteCluster(HttpCluster):
    """A cluster behind an API server.  Use it as an async context manager, or call ``close``."""

    def __init__(
        self,
        connection: Connection,
        *,
        agent: str = "seamark",
        clock: Clock = SYSTEM_CLOCK,
        random: Random = at_random,
    ) -> None:
        self.connection = connection
        self._transport = Transport(connection, agent=agent, clock=clock, random=random)
        super().__init__(self._transport, connection.server, random)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._transport.close()

    @property
    def transport(self) -> Transport:
        """For what is not one of the verbs: discovery, and tunnels to Pods."""
        return self._transport


def _selection(labels: str, fields: str, metric_labels: str = "") -> tuple[tuple[str, str], ...]:
    given = {"labelSelector": labels, "fieldSelector": fields, "metricLabelSelector": metric_labels}
    return tuple((key, value) for key, value in given.items() if value)


def _metadata_of(obj: Any, name: str) -> str:
    """A metadata field of an object to be written, which may be a dict or a struct."""
    if isinstance(obj, Mapping):
        return str((obj.get("metadata") or {}).get(name) or "")
    return str(getattr(getattr(obj, "metadata", None), name, None) or "")


def _empty_page(body: bytes) -> _Page[Any] | None:
    """The page, if it has no items.  For that no decoder of items has to be made, and many lists have none."""
    try:
        page = _raw_page.decode(body)
    except msgspec.DecodeError:
        return None
    return None if page.items else page


def _one_by_one(body: bytes, decoder: msgspec.json.Decoder[T]) -> tuple[_Page[T], list[Unreadable]]:
    raw = _raw_page.decode(body)
    items: list[T] = []
    unreadable: list[Unreadable] = []
    for item in raw.items or ():
        try:
            items.append(decoder.decode(item))
        except msgspec.ValidationError as error:
            unreadable.append(Unreadable.of(item, error))
    return _Page(raw.metadata, items), unreadable


def _change(line: bytes, decoder: msgspec.json.Decoder[T]) -> Change[T]:
    event = _event.decode(line)
    match event.type:
        case "ADDED" | "MODIFIED" | "DELETED":
            try:
                obj = decoder.decode(event.object)
            except msgspec.ValidationError as error:
                unreadable = Unreadable.of(event.object, error)
                return Change(event.type, None, unreadable.metadata.resource_version, unreadable)
            return Change(event.type, obj, _version(obj) or _versioned.decode(event.object).metadata.resource_version)
        case "BOOKMARK":
            return Change("BOOKMARK", None, _versioned.decode(event.object).metadata.resource_version)
        case "ERROR":
            raise errors.from_status(msgspec.json.decode(event.object))
        case other:
            raise msgspec.DecodeError(f"a watch event of type {other!r}")


def _version(obj: Any) -> str:
    """The resourceVersion if the decoded object contains it, which saves decoding the event a second time."""
    if isinstance(obj, dict):
        return str(obj["metadata"].get("resourceVersion", ""))
    metadata = getattr(obj, "metadata", None)
    return getattr(metadata, "resource_version", "") or getattr(metadata, "resourceVersion", "")
