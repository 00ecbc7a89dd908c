"""The ``Cluster`` protocol: Kubernetes' verbs as async Python.

``seamark.api`` implements it in process, :mod:`seamark.access.remote` over HTTPS against any Kubernetes API server.
Controllers, DNS, nodes and ``why`` use only this protocol, so they run against either.

Objects are decoded into the type given as ``as_``: ``dict`` by default, or a ``msgspec.Struct`` that names only the
fields its reader needs, decoded straight from the wire.  Such a struct must accept ``null`` for lists and maps that Go
writes without ``omitempty`` (``endpoints`` of an EndpointSlice).  Errors are those of :mod:`seamark.errors`.

A list or a watch passes over an object that the type cannot hold, and says so: one strange object must not hide all
others from a reader.
"""

from __future__ import annotations

import builtins
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Generic, Literal, Protocol, Self, TypeVar, overload

import msgspec

from seamark.errors import Object
from seamark.kinds.resource import Resource

T = TypeVar("T")

ChangeType = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
PatchType = Literal["json", "merge", "strategic", "apply"]
Propagation = Literal["Background", "Foreground", "Orphan"]


class Identity(msgspec.Struct, frozen=True, rename="camel"):
    """The metadata that every object has, in any view."""

    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] | None = None


class Unreadable(msgspec.Struct, frozen=True):
    """An object that the requested type cannot hold, and the reason."""

    metadata: Identity
    reason: str

    @classmethod
    def of(cls, encoded: bytes | msgspec.Raw, error: Exception) -> Self:
        """Decode the metadata of an object that raised this error; raises ``DecodeError`` if that fails, too."""
        return cls(_identified.decode(encoded).metadata, str(error))


class _Identified(msgspec.Struct):
    metadata: Identity


_identified = msgspec.json.Decoder(_Identified)


class Listing(msgspec.Struct, Generic[T], frozen=True):
    """A complete list, and the resourceVersion to watch from; ``unreadable`` objects are not among the items."""

    items: Sequence[T]
    version: str
    unreadable: Sequence[Unreadable] = ()


class Change(msgspec.Struct, Generic[T], frozen=True):
    """One watch event.  In a BOOKMARK only ``version`` is meaningful; ``object`` may be None.

    ``object`` is also None if it is ``unreadable``.
    """

    type: ChangeType
    object: T | None
    version: str
    unreadable: Unreadable | None = None


class _ReceiptMetadata(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str


class Receipt(msgspec.Struct, frozen=True):
    """For ``as_``: the resourceVersion of the written object, which is all that most writers need of the answer."""

    metadata: _ReceiptMetadata

    @classmethod
    def of(cls, version: str) -> Self:
        return cls(_ReceiptMetadata(version))

    @property
    def version(self) -> str:
        return self.metadata.resource_version


class Cluster(Protocol):
    """Read and write a cluster.  For ``list`` and ``watch``, ``namespace=""`` means all namespaces."""

    @overload
    async def get(self, resource: Resource, name: str, *, namespace: str = "", subresource: str = "") -> Object: ...
    @overload
    async def get(
        self, resource: Resource, name: str, *, namespace: str = "", subresource: str = "", as_: type[T]
    ) -> T: ...

    @overload
    async def list(
        self, resource: Resource, *, namespace: str = "", labels: str = "", fields: str = "", metric_labels: str = ""
    ) -> Listing[Object]: ...
    @overload
    async def list(
        self,
        resource: Resource,
        *,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        metric_labels: str = "",
        as_: type[T],
    ) -> Listing[T]:
        """The complete list; an implementation over the network fetches the pages by itself.

        ``metric_labels`` selects among the values of a metric, which only aggregated servers of metrics have.
        """
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
        """Changes after version ``since``, bookmarks included.  It is one watch: it does not restart by itself.

        The first event is a BOOKMARK at ``since``, sent as soon as the server has accepted the watch: a reader that
        had lost the connection learns from it that the server is back.  The watch ends when the server ends it, and
        raises ``errors.Expired`` (or ``Gone``) if ``since`` is too old.
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
        """``name`` and ``subresource`` are for creating subresources such as ``pods/binding``."""
        ...

    @overload
    async def update(
        self, resource: Resource, object: Any, *, namespace: str = "", subresource: str = ""
    ) -> Object: ...
    @overload
    async def update(
        self, resource: Resource, object: Any, *, namespace: str = "", subresource: str = "", as_: type[T]
    ) -> T:
        """Replace an object; if it has a ``metadata.resourceVersion``, that must be the current one."""
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
