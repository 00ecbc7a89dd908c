"""Subresources: the paths below an object (``pods/status``), and what the API server does there.

    Part      a part of the object that is written on its own: status, finalize, resize
    View      the object read and written as another kind: scale
    Action    a document that is posted to the object and does something to it: binding, eviction
    Question  a document that is posted to the object and comes back filled in: token

A plain :class:`Subresource` is listed by discovery but not available here: log, exec and port-forward need a kubelet.
All of them are pure: they say what is to be done, and :mod:`seamark.api.operations` does it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

import msgspec

from seamark.errors import Object
from seamark.kinds.inquiry import Inquiry
from seamark.kinds.resource import Resource
from seamark.kinds.values.fields import Errors
from seamark.kinds.values.metadata import keep_accessories

if TYPE_CHECKING:
    from seamark.kinds.admission import Others
    from seamark.kinds.kind import Kind

CHANGE = ("get", "patch", "update")
STREAM = ("create", "get")

Paths = tuple[tuple[str, ...], ...]  # fields of an object; "*" stands for any element of a list

# Objects that are written in one transaction, each provided that it still has the version it names.
Together = Sequence[tuple[Resource, Object]]


class Subresource(msgspec.Struct, frozen=True):
    """What discovery says of a path below an object.  ``kind`` is the kind of the documents sent and answered there."""

    name: str
    verbs: tuple[str, ...]
    kind: str
    group: str | None = None
    version: str | None = None
    goes_on: bool = False  # whether a request's path may have more segments after this one


def proxy(kind: str) -> Subresource:
    """The subresource that forwards requests to the Pod, Service or node itself."""
    return Subresource("proxy", ("create", "delete", "get", "patch", "update"), kind, goes_on=True)


class Part(Subresource, frozen=True):
    """Part of an object.  Clients send the whole object; only this part of it is used.

    ``reset`` are the fields that a write here cannot change, so its field manager never owns them.  If ``edits`` is
    given, those are the only fields that it can change.
    """

    reset: Paths = (("status",),)
    edits: Paths = ()

    allocates: ClassVar[bool] = False  # whether a write here may take and free addresses and ports
    touches: ClassVar[frozenset[str]] = frozenset()  # the only top-level fields a write here changes; empty: any

    def default(self, kind: Kind, obj: Object) -> None:
        kind.default(obj)

    def prepare(self, kind: Kind, obj: Object, old: Object) -> None:
        """Restore from ``old`` what this write may not change."""
        kind.prepare_update(obj, old)

    def validate(self, kind: Kind, obj: Object, old: Object) -> Errors:
        return kind.validate_update(obj, old)

    def warnings(self, kind: Kind, obj: Object, old: Object) -> list[str]:
        return []


class Whole(Part, frozen=True):
    """The object itself, written without a subresource."""

    name: str = ""
    verbs: tuple[str, ...] = ()
    kind: str = ""

    allocates: ClassVar[bool] = True

    def warnings(self, kind: Kind, obj: Object, old: Object) -> list[str]:
        return kind.warnings(obj, old)


class Status(Part, frozen=True):
    """The status.  A write here changes the status, and labels and annotations unless ``keeps_metadata``."""

    reset: Paths = (("spec",),)
    keeps_metadata: bool = False

    touches: ClassVar[frozenset[str]] = frozenset({"metadata", "status"})

    def default(self, kind: Kind, obj: Object) -> None:
        kind.default_status(obj)

    def prepare(self, kind: Kind, obj: Object, old: Object) -> None:
        kind.prepare_status(obj, old)
        if self.keeps_metadata:
            keep_accessories(obj["metadata"], old["metadata"])

    def validate(self, kind: Kind, obj: Object, old: Object) -> Errors:
        return kind.validate_status(obj, old)

    def warnings(self, kind: Kind, obj: Object, old: Object) -> list[str]:
        return kind.status_warnings(obj)


def status_of(kind: str, *, reset: Paths = (("spec",),), keeps_metadata: bool = False) -> Status:
    """The status subresource of a kind."""
    return Status("status", CHANGE, kind, reset=reset, keeps_metadata=keeps_metadata)


def bare_status_of(kind: str) -> Status:
    """The status subresource of a kind, where it can change nothing but the status: so it is for younger kinds."""
    return status_of(kind, reset=(("metadata",), ("spec",)), keeps_metadata=True)


class View(Part, frozen=True, kw_only=True):
    """The object shown as an object of the kind ``sent``; a write to the view updates the object.

    ``shares`` are the fields that both have: a field manager that owns one in the view owns it in the object too.
    """

    sent: Kind
    shares: Paths = ()

    def show(self, kind: Kind, obj: Object) -> Object:
        """What a reader of the view sees."""
        raise NotImplementedError

    def start(self, kind: Kind, obj: Object) -> Object:
        """What a patch of the view starts from."""
        return self.show(kind, obj)

    def change(self, kind: Kind, obj: Object, given: Object) -> Object:
        """A copy of the object, changed as the view ``given`` asks."""
        raise NotImplementedError


class Effect(msgspec.Struct, frozen=True):
    """What an action does: ``edit`` returns the new object, given the present one, which it must not change.

    ``also`` returns the other objects that change with it, given the present one, and raises if they do not allow it.
    If ``delete`` is given, the edited object is then deleted with these DeleteOptions.
    """

    edit: Callable[[Object], Object]
    delete: Object | None = None
    also: Callable[[Object], Together] = lambda _: ()


class Action(Subresource, frozen=True, kw_only=True):
    """A document of the kind ``sent`` that is posted to an object; the answer is a Status that says Success."""

    sent: Kind

    def plan(self, name: str, document: Object, *, now: str, others: Others) -> Effect:
        """What the document asks of the object called ``name``; raises if the document is invalid."""
        raise NotImplementedError


class Question(Subresource, frozen=True, kw_only=True):
    """A document of the kind ``sent`` that is posted to an object, and answered by the same document, filled in."""

    sent: Kind

    def answer(self, name: str, namespace: str, document: Object, inquiry: Inquiry) -> tuple[Object, list[str]]:
        """The answer about the object called ``name``, and warnings; raises if the document is invalid."""
        raise NotImplementedError
