"""The ``Cluster`` seam: Kubernetes' verbs as async Python.

``seamark.api`` implements it in process, :mod:`seamark.access.remote` over HTTPS against any Kubernetes API server.
Controllers, DNS, proxy, nodes and ``why`` are written against it and cannot tell which they have.

Objects come back decoded into the type the caller asks for: ``dict`` by default, or a ``msgspec.Struct`` that names
just the fields it needs, decoded straight from the wire.  Such a struct must take ``null`` for lists and maps that Go
writes without ``omitempty`` (``endpoints`` of an EndpointSlice).  Errors are those of :mod:`seamark.errors`.
"""

from __future__ import annotations

import builtins
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Generic, Literal, Protocol, TypeVar, overload

import msgspec

from seamark.errors import Object
from seamark.kinds.resource import Resource

T = TypeVar("T")

ChangeType = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
PatchType = Literal["json", "merge", "strategic", "apply"]
Propagation = Literal["Background", "Foreground", "Orphan"]


class Listing(msgspec.Struct, Generic[T], frozen=True):
    """A whole list and the version to watch from."""

    items: Sequence[T]
    version: str


class Change(msgspec.Struct, Generic[T], frozen=True):
    """One watch event.  Of a BOOKMARK only the version means anything; its object may be missing."""

    type: ChangeType
    object: T | None
    version: str


class _ReceiptMetadata(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str


class Receipt(msgspec.Struct, frozen=True):
    """What most writers want to know of what they wrote: which version it is."""

    metadata: _ReceiptMetadata

    @property
    def version(self) -> str:
        return self.metadata.resource_version


class Cluster(Protocol):
    """Read and write a cluster.  ``namespace=""`` means all of them for ``list`` and ``watch``."""

    @overload
    async def get(self, resource: Resource, name: str, *, namespace: str = "") -> Object: ...
    @overload
    async def get(self, resource: Resource, name: str, *, namespace: str = "", as_: type[T]) -> T: ...

    @overload
    async def list(
        self, resource: Resource, *, namespace: str = "", labels: str = "", fields: str = ""
    ) -> Listing[Object]: ...
    @overload
    async def list(
        self, resource: Resource, *, namespace: str = "", labels: str = "", fields: str = "", as_: type[T]
    ) -> Listing[T]:
        """All of it: an implementation over the network pages through by itself."""
        ...

    @overload
    def watch(
        self, resource: Resource, *, since: str, namespace: str = "", labels: str = "", fields: str = ""
    ) -> AsyncIterator[Change[Object]]: ...
    @overload
    def watch(
        self,
        resource: Resource,
        *,
        since: str,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        as_: type[T],
    ) -> AsyncIterator[Change[T]]:
        """Changes after version ``since``, bookmarks included; one watch, not a loop of them.

        First comes a BOOKMARK at ``since`` as soon as the server has accepted the watch: a reader who had lost the
        server knows by it that it is back, though nothing has changed.  The watch ends when the server ends it, and
        raises ``errors.Expired`` (or ``Gone``) when ``since`` is too old.
        """
        ...

    @overload
    async def create(
        self, resource: Resource, object: Any, *, namespace: str = "", name: str = "", subresource: str = ""
    ) -> Object: ...
    @overload
    async def create(
        self,
        resource: Resource,
        object: Any,
        *,
        namespace: str = "",
        name: str = "",
        subresource: str = "",
        as_: type[T],
    ) -> T:
        """``name`` and ``subresource`` are for such as ``pods/binding``."""
        ...

    @overload
    async def update(
        self, resource: Resource, object: Any, *, namespace: str = "", subresource: str = ""
    ) -> Object: ...
    @overload
    async def update(
        self, resource: Resource, object: Any, *, namespace: str = "", subresource: str = "", as_: type[T]
    ) -> T:
        """Replace; the object's own ``metadata.resourceVersion``, if it has one, must be the current one."""
        ...

    @overload
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
    ) -> Object: ...
    @overload
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
        as_: builtins.type[T],
    ) -> T: ...

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
    ) -> None: ...

    async def delete_all(
        self,
        resource: Resource,
        *,
        namespace: str,
        labels: str = "",
        options: Mapping[str, Any] | None = None,
    ) -> None:
        """``deletecollection`` in one namespace."""
        ...
