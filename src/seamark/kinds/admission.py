"""Admission: what a write must satisfy, or gets added, because of *other* objects (limits, quotas, classes).

A :class:`Plugin` is one such rule.  :mod:`seamark.api.admission` lists the plug-ins in Kubernetes' order and asks them
on every write, first to edit the object (``mutate``), later, when it is complete and valid, to judge it (``validate``).
Plug-ins are pure: what they need to know of the cluster they ask :class:`Others`, and what has to change together with
the object they put on :attr:`Request.also`.  Only those that ask outsiders (webhooks) wait for an answer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

import msgspec

from seamark.errors import Forbidden, Object
from seamark.kinds.resource import Resource
from seamark.kinds.values.refusals import forbidden
from seamark.metrics import Registry

if TYPE_CHECKING:
    from seamark.kinds.kind import Kind
    from seamark.kinds.subresource import Subresource

Operation = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]


class Who(Protocol):
    """The user who writes."""

    @property
    def name(self) -> str: ...

    @property
    def groups(self) -> tuple[str, ...]: ...

    @property
    def uid(self) -> str: ...

    @property
    def extra(self) -> tuple[tuple[str, tuple[str, ...]], ...]: ...


class Others(Protocol):
    """The other objects of the cluster as they are now.  A kind that is not served has none."""

    def get(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        """One object, decoded; None if there is none."""
        ...

    def all(self, resource: Resource, namespace: str = "", *, containing: bytes = b"") -> Iterable[Object]:
        """The objects of a namespace, or all of them, decoded one by one; cheap if there are none.

        ``containing`` is part of the JSON of all that matter, to decode fewer; others may be among the result.
        """
        ...

    def count(self, resource: Resource, namespace: str) -> int:
        """How many objects of the kind a namespace has, without decoding them."""
        ...

    def labels_of(self, resource: Resource, name: str) -> Mapping[str, str] | None:
        """The labels of a cluster-wide object, without decoding the rest; None if there is none."""
        ...


class Seats(Protocol):
    """The places of those whose requests are being worked on."""

    def enter(self) -> None: ...

    def leave(self) -> None: ...


class Notes(msgspec.Struct):
    """What admission says beside its decision: warnings for the user, and annotations for the audit log.

    ``seats`` is where the request has a place, which it gives up while an outsider is asked about it.
    """

    warnings: list[str] | None = None
    annotations: dict[str, str] | None = None
    seats: Seats | None = None

    def warn(self, sentences: Iterable[str]) -> None:
        self.warnings = [*(self.warnings or ()), *sentences]

    def annotate(self, key: str, value: str) -> None:
        """Say something in the audit log; what was said before under the key stays."""
        self.annotations = {key: value, **(self.annotations or {})}


class Request(msgspec.Struct):
    """One write, as plug-ins see it.

    ``obj`` is the new object, which ``mutate`` may edit or replace; ``old`` the one it replaces, None for a creation.
    ``part`` names the subresource written to, "" for the object itself; ``sub`` is what that is.  In a deletion both
    objects are the one that is deleted.  What is posted to a subresource (an Eviction) and the options of a CONNECT are
    documents of their own kind, so ``place`` says the namespace and name of the object that they are for.

    A step that edits the object for an outsider sets ``changed``; then all steps edit it once more, in ``round`` 1.
    """

    kind: Kind
    operation: Operation
    obj: Object
    old: Object | None
    part: str
    user: Who
    now: str  # the moment of the write, RFC 3339
    dry_run: bool
    others: Others
    # Objects that are written in the same transaction, each provided that it still has the version it names.
    also: list[tuple[Resource, Object]] = []
    sub: Subresource | None = None
    options: Any = None  # the WriteOptions or DeleteOptions that were sent; None if there were none
    notes: Notes | None = None  # None for components, which do not read them
    place: tuple[str, str] | None = None
    changed: bool = False
    round: int = 0
    memory: dict[object, Any] | None = None  # what a step remembers from one call to the next

    @property
    def namespace(self) -> str:
        return self.place[0] if self.place is not None else str(self.obj["metadata"].get("namespace", ""))

    @property
    def name(self) -> str:
        """The object's name; while the server has not chosen one yet, what it will begin with."""
        if self.place is not None:
            return self.place[1]
        meta = self.obj["metadata"]
        return meta.get("name") or meta.get("generateName") or "Unknown"

    def forbidden(self, reason: str) -> Forbidden:
        """The error for a write that a plug-in does not allow."""
        return forbidden(self.kind.resource, self.name, reason)


class Awaited(msgspec.Struct, frozen=True):
    """An object without which a write is refused.  It may be about to come: wait so many ``seconds`` for it."""

    resource: Resource
    name: str
    namespace: str
    seconds: float = 0.0


class Plugin:
    """One rule of admission; stateless.  A subclass has ``mutate``, ``validate`` or both.

    ``concerns`` is asked once per kind, operation and subresource: writes of other kinds do not even call the plug-in.
    """

    resources: ClassVar[frozenset[Resource]] = frozenset()  # the kinds it is about, for the usual ``concerns``
    operations: ClassVar[tuple[Operation, ...]] = ("CREATE",)

    def concerns(self, kind: Kind, operation: Operation, part: str) -> bool:
        """Whether it looks at such writes; by default at the listed kinds and operations, not at subresources."""
        return not part and operation in self.operations and kind.resource in self.resources

    def measured(self, metrics: Registry) -> Plugin:
        """The plug-in for one server, which counts there what it does; most have nothing to count."""
        return self

    def awaits(self, request: Request) -> Awaited | None:
        """The object that ``mutate`` will need; asked for creations only."""
        return None

    def mutate(self, request: Request) -> Awaitable[None] | None:
        """Edit ``request.obj``, or raise; the object has its defaults but is not validated yet.

        A plug-in that has to wait for an answer returns an awaitable; this goes for ``validate`` too.
        """
        return None

    def singles_out(self, request: Request) -> bool:
        """Whether ``mutate`` may look at the object's name, or at more than the object, its user and ``others``."""
        return False

    @property
    def idle(self) -> bool:
        """Whether it has nothing to say about any write now: there are no webhooks, or no policies."""
        return False

    def contends(self, request: Request) -> bool:
        """Whether ``validate`` changes an object that other creations in the namespace change too."""
        return False

    def validate(self, request: Request) -> Awaitable[None] | None:
        """Raise if the object may not be written; the object is complete and valid, and must not be edited."""
        return None
