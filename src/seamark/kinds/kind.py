"""What the API server must know about a kind.  One module per kind (or tight family) derives from :class:`Kind`.

The methods are the kind's rules, called by the write path in ``seamark.api.write`` in this order:

    create   default → admit → prepare_create → allocate → validate → warnings
    update   default → prepare_update → allocate → validate_update → warnings
    status   default_status → prepare_status → validate_status → status_warnings

``default``, ``admit``, ``prepare_*`` and ``allocate`` edit the new object in place; ``validate*`` only collect errors.
``old`` is never edited.  Objects are plain dicts already checked against their shape, so a rule may rely on every
field's type, but nothing else.  All rules are pure: what they need to see of the cluster is handed in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import msgspec

from seamark.errors import Conflict, Object
from seamark.kinds.allocation import Allocation, Pool
from seamark.kinds.inquiry import Inquiry
from seamark.kinds.language import shapes
from seamark.kinds.language.shape import Shape
from seamark.kinds.resource import Resource
from seamark.kinds.subresource import LabelsOf, Part, Subresource, Whole
from seamark.kinds.values import metadata
from seamark.kinds.values.fields import Errors

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


class Column(msgspec.Struct, frozen=True):
    """One column of ``kubectl get``; ``priority`` above 0 shows with ``-o wide`` only."""

    name: str
    type: str = "string"
    format: str = ""
    description: str = ""
    priority: int = 0


class Kind:
    """The rules of one kind; stateless.

    A built-in kind is a class of its own with one instance, listed in :mod:`seamark.kinds.table`.  Kinds that are added
    while the server runs are instances of :class:`seamark.kinds.dynamic.DynamicKind`, made from data.
    """

    resource: Resource
    singular: str
    shape_name: ClassVar[str]  # of a built-in kind: the name of its shape in shapes.json
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    whole: Part = Whole()
    subresources: tuple[Subresource, ...] = ()
    columns: tuple[Column, ...] = (Column("Name", format="name"), Column("Created At", "date"))

    create_on_update: ClassVar[bool] = False  # PUT to a missing object creates it
    unconditional_update: ClassVar[bool] = True  # PUT without a resourceVersion is allowed
    built_in: ClassVar[bool] = True  # part of every server, with a shape that is generated
    strategic_merge: ClassVar[bool] = True  # strategic merge patches are taken
    delete_answers_object: ClassVar[bool] = False  # DELETE answers the object, not a Status
    graceful: ClassVar[bool] = False  # deletion is announced (deletionTimestamp) before the object goes

    request_warning: ClassVar[str] = ""  # said in answer to every request for this kind, reads too

    stored: ClassVar[bool] = True  # False for documents that are answered and forgotten: reviews, Bindings
    # A document that is posted to a subresource of the object it names (a Binding to its Pod); None for all others.
    posts_to: ClassVar[tuple[Resource, str] | None] = None
    # The kind that its objects are stored as, if this one is only a second view of them (events.k8s.io on Events).
    stored_as: Resource | None = None
    # All apiVersions in which objects of this kind are written, if there is more than one.
    sibling_versions: ClassVar[tuple[str, ...]] = ()

    @cached_property
    def shape(self) -> Shape:
        """The fields of its objects; resolved on first use, because a server that starts needs few of them."""
        return shapes.of(self.shape_name)

    @cached_property
    def list_shape(self) -> Shape | None:
        """The fields of a list of its objects; None for a kind that cannot be listed."""
        return shapes.load().get(f"{self.shape_name}List")

    def subresource(self, name: str) -> Subresource | None:
        for sub in self.subresources:
            if sub.name == name:
                return sub
        return None

    def to_stored(self, obj: Object) -> Object:
        """The stored form of an object of this view."""
        return obj

    def from_stored(self, obj: Object) -> Object:
        """This view of a stored object; the stored one is not edited."""
        return obj

    # --- names -------------------------------------------------------------------------------------

    def validate_name(self, name: str, *, prefix: bool) -> list[str]:
        """Sentences about what is wrong with a name (``prefix``: with a generateName)."""
        return metadata.dns_subdomain(name, prefix=prefix)

    # --- create ------------------------------------------------------------------------------------

    def default(self, obj: Object) -> None:
        """Fill in what the user left out."""

    def admit(self, obj: Object, labels_of: LabelsOf) -> None:
        """Add what follows from other objects (a Pod gets the zone of its node)."""

    def prepare_create(self, obj: Object) -> None:
        """Drop what may not be set at creation (status), start the generation."""

    allocates: ClassVar[bool] = False  # whether objects take addresses and ports by the two methods below

    def allocate(self, obj: Object, old: Object | None, pool: Pool, *, dry_run: bool) -> Allocation:
        """Fill in addresses and ports, and say what that takes and frees; ``old`` is None for a creation."""
        raise NotImplementedError

    def release(self, obj: Object) -> Allocation:
        """What an object that goes gives back."""
        raise NotImplementedError

    def validate(self, obj: Object) -> Errors:
        """Everything wrong with the object, its metadata apart."""
        return []

    # --- update ------------------------------------------------------------------------------------

    def prepare_update(self, obj: Object, old: Object) -> None:
        """Carry over what an update may not touch (status), bump the generation."""

    def validate_update(self, obj: Object, old: Object) -> Errors:
        return self.validate(obj)

    # --- the status subresource --------------------------------------------------------------------

    def default_status(self, obj: Object) -> None:
        """As :meth:`default` for a status write, whose spec is that of the old object anyway."""
        self.default(obj)

    def prepare_status(self, obj: Object, old: Object) -> None:
        """Keep everything of ``old`` but status (and labels, annotations, which status updates may set)."""
        for key in [k for k in obj if k not in ("status", "metadata")]:
            del obj[key]
        for key, value in old.items():
            if key not in ("status", "metadata"):
                obj[key] = value

    def validate_status(self, obj: Object, old: Object) -> Errors:
        return []

    # --- documents that are not stored ---------------------------------------------------------------

    def answer(self, obj: Object, namespace: str, inquiry: Inquiry) -> Object:
        """The ``status`` of a review; called only for kinds that are not ``stored`` and post to no other."""
        raise NotImplementedError

    # --- deletion ----------------------------------------------------------------------------------

    has_dependents: ClassVar[bool] = True  # False: deletion needs no garbage collector, so no policy holds the object
    default_propagation: ClassVar[str] = ""  # the policy of a deletion that names none; "" leaves finalizers alone
    propagation_unless_orphaned: ClassVar[str] = "Background"  # what ``orphanDependents: false`` means

    def grace_seconds(self, obj: Object, asked: int | None) -> int:
        """How long the object stays after DELETE until a kubelet removes it for good; 0 for at once."""
        return 0

    def check_deletion(self, name: str) -> None:
        """Raise ``Forbidden`` for an object that may never be deleted."""

    def precondition_failed(self, name: str, what: str, *, asked: str, found: str) -> Conflict:
        """The error for a deletion meant for another uid or version; ``what`` is UID or ResourceVersion."""
        # Kubernetes names the kind here, and that of what is stored, where it otherwise names the resource.
        group, word = (self.stored_as or self.resource).group, self.resource.kind
        details: Object = {"name": name, "kind": word}
        if group:
            details["group"] = group
            word = f"{word}.{group}"
        happened = "deleted and then recreated" if what == "UID" else "modified"
        return Conflict(
            f'Operation cannot be fulfilled on {word} "{name}": the {what} in the precondition ({asked}) does not '
            f"match the {what} in record ({found}). The object might have been {happened}",
            details=details,
        )

    def begin_deletion(self, obj: Object) -> None:
        """Edit the object as its deletion begins (a Namespace's phase becomes Terminating)."""

    def held(self, obj: Object) -> bool:
        """Whether something still keeps an object whose deletion has begun: its finalizers."""
        return bool(obj["metadata"].get("finalizers"))

    def deletion_is_final(self, obj: Object) -> bool:
        """Whether another DELETE of an object whose deletion has begun changes nothing any more."""
        return False

    # --- what people see ---------------------------------------------------------------------------

    def warnings(self, obj: Object, old: Object | None) -> list[str]:
        """Sentences for the ``Warning`` header of a write."""
        return []

    def status_warnings(self, obj: Object) -> list[str]:
        """Sentences for the ``Warning`` header of a write through ``status``."""
        return []

    def fields(self, obj: Object) -> Mapping[str, str]:
        """Values for field selectors, beside ``metadata.name`` and ``metadata.namespace``."""
        return {}

    def fields_in(self, value: bytes) -> Mapping[str, str]:
        """The same from the object as it is stored; worth writing for a kind that is often watched by fields."""
        return self.fields(self.from_stored(msgspec.json.decode(value)))

    field_names: ClassVar[tuple[str, ...]] = ()  # the keys ``fields`` gives

    def row(self, obj: Object, now: float) -> Sequence[Any]:
        """The cells under ``columns``."""
        meta = obj["metadata"]
        return [meta.get("name", ""), meta.get("creationTimestamp")]

    def row_conditions(self, obj: Object) -> Sequence[Object]:
        """The ``conditions`` of the row: what clients may hide it by."""
        return ()
