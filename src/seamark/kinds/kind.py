"""What the API server must know about a kind.  One module per kind (or close family) derives from :class:`Kind`.

The methods are the kind's rules, called by the write path in ``seamark.api.write`` in this order:

    create   default → prepare_create → allocate → validate → warnings
    update   default → prepare_update → allocate → validate_update → warnings
    status   default_status → prepare_status → validate_status → status_warnings

What depends on other objects is admission's (:mod:`seamark.kinds.admission`): it is asked after ``default`` and again
at the end.  ``default``, ``prepare_*`` and ``allocate`` edit the new object, ``validate*`` only collect errors.
``old`` is never edited.  Objects are plain dicts that were checked against their shape, so a rule may rely on the type
of every field, but on nothing else.  All rules are pure: what they need to know of the cluster is an argument.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import msgspec

from seamark.errors import Conflict, Object
from seamark.kinds.allocation import Allocation, Pool
from seamark.kinds.conversion import Conversion
from seamark.kinds.inquiry import Inquiry
from seamark.kinds.language import decode, shapes
from seamark.kinds.language.shape import Shape
from seamark.kinds.resource import Resource
from seamark.kinds.subresource import Part, Subresource, Whole
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

    name_is_free: ClassVar[bool] = True  # False: a name says something, so generateName is taken for it as it is
    create_on_update: ClassVar[bool] = False  # PUT to a missing object creates it
    unconditional_update: ClassVar[bool] = True  # PUT without a resourceVersion is allowed
    built_in: ClassVar[bool] = True  # part of every server; its shape comes from shapes.json
    strategic_merge: ClassVar[bool] = True  # strategic merge patches are accepted
    delete_answers_object: ClassVar[bool] = False  # DELETE answers with the object, not a Status
    graceful: ClassVar[bool] = False  # DELETE sets deletionTimestamp first and removes the object later

    request_warning: str = ""  # a warning in the answer to every request for this kind, reads too

    stored: ClassVar[bool] = True  # False for documents that are only answered, never stored: reviews, Bindings
    # A document that is posted to a subresource of the object it names (a Binding to its Pod); None for all others.
    posts_to: ClassVar[tuple[Resource, str] | None] = None
    # The kind that its objects are stored as, if this kind only shows them in another form (as events.k8s.io does).
    stored_as: Resource | None = None
    # All apiVersions in which objects of this kind are written, if there is more than one.
    sibling_versions: tuple[str, ...] = ()
    # Older apiVersions in which a document may be sent; their fields are the same.
    older_versions: tuple[str, ...] = ()
    # Asks a webhook for the objects in another version; None for a kind that needs none for that.
    conversion: Conversion | None = None

    @cached_property
    def shape(self) -> Shape:
        """The fields of its objects; loaded on first use, because a server needs few kinds to start."""
        return shapes.of(self.shape_name)

    @cached_property
    def schema_digest(self) -> bytes:
        """Differs when the schema does, for a kind whose shape is not in shapes.json."""
        return b""

    @cached_property
    def list_shape(self) -> Shape | None:
        """The fields of a list of its objects; None for a kind that cannot be listed."""
        return shapes.load().get(f"{self.shape_name}List")

    @cached_property
    def list_kind(self) -> str:
        """The kind of a list of its objects."""
        return f"{self.resource.kind}List"

    @cached_property
    def shows_as_stored(self) -> bool:
        """Whether objects are shown just as they are stored, so that reads need not decode them."""
        return self.stored_as is None

    def conform(self, value: Any) -> tuple[Object, list[str]]:
        """A document in the normal form of this kind, and the paths of its unknown fields, which are dropped."""
        return decode.conform(value, self.shape)

    @cached_property
    def decoders(self) -> dict[Any, Any]:
        """What readers in this process compiled to decode its objects, by type; kept here, to vanish with the kind."""
        return {}

    def subresource(self, name: str) -> Subresource | None:
        for sub in self.subresources:
            if sub.name == name:
                return sub
        return None

    def to_stored(self, obj: Object) -> Object:
        """The stored form of an object of this kind; differs only if ``stored_as`` is set."""
        return obj

    def from_stored(self, obj: Object) -> Object:
        """The object of this kind that shows a stored one, which is not edited."""
        return obj

    def is_current(self, stored: Object) -> bool:
        """Whether a stored object is in the version that objects are stored in now."""
        return True

    # --- names -------------------------------------------------------------------------------------

    def validate_name(self, name: str, *, prefix: bool) -> list[str]:
        """Sentences about what is wrong with a name, or with a generateName if ``prefix``."""
        return metadata.dns_subdomain(name, prefix=prefix)

    # --- create ------------------------------------------------------------------------------------

    def default(self, obj: Object) -> None:
        """Fill in what the user left out."""

    def prepare_create(self, obj: Object) -> None:
        """Remove the fields that a creation cannot set (status), and set the first generation."""

    named_inside: ClassVar[bool] = False  # whether ``prepare_create`` copies the name or uid to other places

    # Whether many are made that differ only in their names, so that what was worked out for one is kept for the next.
    has_twins: ClassVar[bool] = False

    def own_texts(self, status: bytes) -> dict[bytes, str] | None:
        """The texts in the JSON of a status that only this object has, and the form of each; None if one is odd.

        To be given by kinds with twins: nothing but its form is judged of such a text, and equality with others.
        """
        return None

    allocates: ClassVar[bool] = False  # whether objects take addresses and ports by the two methods below

    def allocate(self, obj: Object, old: Object | None, pool: Pool, *, dry_run: bool) -> Allocation:
        """Fill in addresses and ports; returns what this takes and frees.  ``old`` is None for a creation."""
        raise NotImplementedError

    def release(self, obj: Object) -> Allocation:
        """What the removal of an object frees."""
        raise NotImplementedError

    @property
    def costly(self) -> bool:
        """Whether ``validate*`` and ``warnings`` may take long, and then raise Costly (:mod:`seamark.haste`)."""
        return False

    def validate(self, obj: Object) -> Errors:
        """Everything wrong with the object, except in its metadata."""
        return []

    # --- update ------------------------------------------------------------------------------------

    def prepare_update(self, obj: Object, old: Object) -> None:
        """Restore from ``old`` what an update may not change (status), and raise the generation if the spec changed."""

    def validate_update(self, obj: Object, old: Object) -> Errors:
        return self.validate(obj)

    # --- the status subresource --------------------------------------------------------------------

    def default_status(self, obj: Object) -> None:
        """As :meth:`default`, for a write to status; a kind may do less here, because the old object's spec is kept."""
        self.default(obj)

    def prepare_status(self, obj: Object, old: Object) -> None:
        """Restore everything from ``old`` except the status and the metadata (a status write may set labels)."""
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

    has_dependents: ClassVar[bool] = True  # False: deletion ignores the propagation policy, so no finalizer is added
    default_propagation: ClassVar[str] = ""  # the policy of a deletion that names none; "" changes no finalizers
    deletion_warning: ClassVar[str] = ""  # a warning in the answer to a deletion that names no policy
    propagation_unless_orphaned: ClassVar[str] = "Background"  # what ``orphanDependents: false`` means

    def grace_seconds(self, obj: Object, asked: int | None) -> int:
        """How many seconds a kubelet has after DELETE to remove the object; 0: it is removed at once."""
        return 0

    def check_deletion(self, name: str) -> None:
        """Raise ``Forbidden`` for an object that may never be deleted."""

    def precondition_failed(self, name: str, what: str, *, asked: str, found: str) -> Conflict:
        """The error for a deletion that names another uid or version; ``what`` is UID or ResourceVersion."""
        # Here Kubernetes names the kind, where other errors name the resource; the group is that of the stored kind.
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
        """Edit the object when its deletion begins (a Namespace's phase becomes Terminating)."""

    def held(self, obj: Object) -> bool:
        """Whether finalizers still keep an object that is being deleted."""
        return bool(obj["metadata"].get("finalizers"))

    def deletion_is_final(self, obj: Object) -> bool:
        """Whether another DELETE of an object that is being deleted changes nothing."""
        return False

    # --- what people see ---------------------------------------------------------------------------

    def warnings(self, obj: Object, old: Object | None) -> list[str]:
        """Sentences for the ``Warning`` header of a write."""
        return []

    def status_warnings(self, obj: Object) -> list[str]:
        """Sentences for the ``Warning`` header of a write through ``status``."""
        return []

    def fields(self, obj: Object) -> Mapping[str, str]:
        """Values for field selectors, in addition to ``metadata.name`` and ``metadata.namespace``."""
        return {}

    def fields_in(self, value: bytes) -> Mapping[str, str]:
        """As :meth:`fields`, from the stored bytes; a kind that is often watched by fields has a faster one."""
        return self.fields(self.from_stored(msgspec.json.decode(value)))

    field_names: tuple[str, ...] = ()  # the keys that ``fields`` returns

    def row(self, obj: Object, now: float) -> Sequence[Any]:
        """The cells of one row, in the order of ``columns``."""
        meta = obj["metadata"]
        return [meta.get("name", ""), meta.get("creationTimestamp")]

    ranks_rows: ClassVar[bool] = False  # whether the rows of a Table are in the order of ``row_rank``, not of the names

    def row_rank(self, obj: Object) -> Any:
        """What the row's place among others depends on."""
        raise NotImplementedError

    def row_conditions(self, obj: Object) -> Sequence[Object]:
        """The ``conditions`` of the row, by which clients may hide it."""
        return ()
