"""One call of the API as plain values: its target, its caller and its options.

Both ways in (HTTP and components of this process) turn what they are given into these values; the checks here make both
refuse the same options with the same words.
"""

from __future__ import annotations

import msgspec

from seamark import errors
from seamark.api.authorization import User
from seamark.haste import Patience
from seamark.kinds.admission import Notes
from seamark.kinds.kind import Kind
from seamark.kinds.resource import Resource
from seamark.kinds.subresource import Action, Part, Question, Subresource, View
from seamark.kinds.values.fields import Errors, forbidden, invalid, not_supported, refuse, required, too_long
from seamark.kinds.values.refusals import missing

NOT_AVAILABLE = 501
FIELD_VALIDATIONS = ("", "Ignore", "Strict", "Warn")

_OF_OBJECTS = frozenset({"update", "patch", "delete"})
_OF_COLLECTIONS = frozenset({"create", "deletecollection"})
_AVAILABLE = (Part, Action, Question)  # the subresources that do something here


class Target(msgspec.Struct, frozen=True, gc=False):
    """An object, a subresource of it or a collection."""

    kind: Kind
    namespace: str = ""
    name: str = ""
    subresource: Subresource | None = None

    @property
    def path(self) -> str:
        """Where the object is below its kind."""
        return f"{self.namespace}/{self.name}" if self.kind.resource.namespaced else self.name

    @property
    def sent(self) -> Kind:
        """The kind of what is sent to it."""
        return self.subresource.sent if isinstance(self.subresource, View | Action | Question) else self.kind


def target(kind: Kind | None, namespace: str = "", name: str = "", subresource: str = "") -> Target:
    """Raises NotFound for what no path leads to."""
    if kind is None or (kind.resource.namespaced and name and not namespace):
        raise not_found()
    if not subresource:
        return Target(kind, namespace, name)
    found = kind.subresource(subresource)
    if found is None:
        raise not_found() if kind.built_in else missing(kind.resource, name)
    return Target(kind, namespace, name, found)


def not_found() -> errors.NotFound:
    """No such resource is served here."""
    return errors.NotFound("the server could not find the requested resource", details={})


def not_allowed() -> errors.MethodNotAllowed:
    return errors.MethodNotAllowed("the server does not allow this method on the requested resource", details={})


def not_available(target: Target) -> errors.ApiError:
    """What discovery lists as in every cluster, but needs a kubelet: log, exec, port-forward."""
    path = f"{target.kind.resource.plural}/{target.subresource.name if target.subresource else ''}"
    sentence = f"{path} is not available, because no container runs there: see seamark up --pods processes"
    return errors.ApiError(sentence, code=NOT_AVAILABLE, reason="NotImplemented", details={})


def check_verb(verb: str, target: Target) -> None:
    """Raises MethodNotAllowed for a verb that the target does not have, NotImplemented for one that we do not."""
    kind, sub = target.kind, target.subresource
    if sub is not None:
        if verb not in sub.verbs:
            raise not_allowed()
        if not isinstance(sub, _AVAILABLE):
            raise not_available(target)
        return
    if not kind.built_in and verb in ("update", "patch") and not target.name:
        raise errors.BadRequest("name must be provided")
    if verb in _OF_OBJECTS:
        misplaced = not target.name
    elif verb == "create" and not kind.built_in:
        misplaced = kind.resource.namespaced and not target.namespace
    elif verb in _OF_COLLECTIONS:
        misplaced = bool(target.name) or (kind.resource.namespaced and not target.namespace)
    else:
        misplaced = False
    if misplaced or verb not in kind.verbs:
        raise not_allowed()


class Caller(msgspec.Struct, frozen=True):
    """The user who makes a call, and the options that every write has.

    ``manager`` is the field manager of a write.  ``now`` is the moment of the call as RFC 3339: all timestamps of one
    write agree.
    """

    user: User
    now: str
    manager: str = ""
    dry_run: bool = False
    field_validation: str = ""
    options: WriteOptions | None = None  # as they were sent; None for components of this process
    notes: Notes | None = None  # where admission leaves warnings for the user
    patience: Patience | None = None  # does the work on a large document; None for all others


# --- options ---------------------------------------------------------------------------------------


def _options(kind: str) -> Resource:
    """Options are refused as if they were an object of their own kind."""
    return Resource("meta.k8s.io", "v1", "", kind)


class ListOptions(msgspec.Struct, frozen=True):
    """For list, watch and deletecollection."""

    labels: str = ""
    fields: str = ""
    limit: int = 0
    continue_: str = ""
    version: str = ""
    match: str = ""
    watch: bool = False
    bookmarks: bool = False
    initial_events: bool | None = None
    timeout_seconds: int | None = None

    def check(self) -> None:
        wrong = _watch_mistakes(self) if self.watch else _list_mistakes(self)
        if wrong:
            raise refuse(_options("ListOptions"), "", wrong)


def _list_mistakes(options: ListOptions) -> Errors:
    wrong: Errors = []
    if options.match:
        path = "resourceVersionMatch"
        if not options.version:
            wrong.append(forbidden(path, "resourceVersionMatch is forbidden unless resourceVersion is provided"))
        if options.continue_:
            wrong.append(forbidden(path, "resourceVersionMatch is forbidden when continue is provided"))
        if options.match not in ("Exact", "NotOlderThan"):
            wrong.append(not_supported(path, options.match, ("Exact", "NotOlderThan", "")))
        if options.match == "Exact" and options.version == "0":
            wrong.append(forbidden(path, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'))
    if options.initial_events is not None:
        wrong.append(forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    return wrong


def _watch_mistakes(options: ListOptions) -> Errors:
    wrong: Errors = []
    path = "resourceVersionMatch"
    if options.initial_events is not None:
        if options.match != "NotOlderThan":
            wrong.append(forbidden(path, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"))
            if options.match:
                wrong.append(not_supported(path, options.match, ("NotOlderThan",)))
    elif options.match:
        sentence = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        wrong.append(forbidden(path, sentence))
    return wrong


class WriteOptions(msgspec.Struct, frozen=True):
    """For create, update and patch; ``dry_run`` is empty or names the stages to be left out: only ``All`` exists."""

    dry_run: tuple[str, ...] = ()
    field_manager: str = ""
    field_validation: str = ""
    force: bool | None = None

    def check(self, kind: str) -> None:
        """``kind`` is CreateOptions, UpdateOptions or PatchOptions."""
        wrong: Errors = []
        if set(self.dry_run) - {"All"}:
            wrong.append(not_supported("dryRun", self.dry_run, ("All",)))
        if len(self.field_manager.encode()) > 128:
            wrong.append(too_long("fieldManager", 128))
        if not self.field_manager.isprintable():
            wrong.append(invalid("fieldManager", self.field_manager, "should only contain printable characters"))
        if self.field_validation not in FIELD_VALIDATIONS:
            wrong.append(not_supported("fieldValidation", self.field_validation, FIELD_VALIDATIONS))
        if wrong:
            raise refuse(_options(kind), "", wrong)

    def check_patch(self, *, apply: bool) -> None:
        """As :meth:`check`, and what only apply may or must have."""
        wrong: Errors = []
        if apply and not self.field_manager:
            wrong.append(required("fieldManager", "is required for apply patch"))
        if not apply and self.force is not None:
            wrong.append(forbidden("force", "may not be specified for non-apply patch"))
        if wrong:
            raise refuse(_options("PatchOptions"), "", wrong)
        self.check("PatchOptions")


class DeleteOptions(msgspec.Struct, frozen=True):
    """For delete and deletecollection; ``uid`` and ``version`` are preconditions."""

    dry_run: tuple[str, ...] = ()
    grace_seconds: int | None = None
    propagation: str = ""
    orphan: bool | None = None
    uid: str = ""
    version: str = ""

    def check(self) -> None:
        wrong: Errors = []
        if self.orphan is not None and self.propagation:
            sentence = "orphanDependents and deletionPropagation cannot be both set"
            wrong.append(invalid("propagationPolicy", self.propagation, sentence))
        elif self.propagation not in ("", "Foreground", "Background", "Orphan"):
            known = ("Foreground", "Background", "Orphan", "nil")
            wrong.append(not_supported("propagationPolicy", self.propagation, known))
        if set(self.dry_run) - {"All"}:
            wrong.append(not_supported("dryRun", self.dry_run, ("All",)))
        if wrong:
            raise refuse(_options("DeleteOptions"), "", wrong)


def delete_options(document: errors.Object) -> DeleteOptions:
    """The options that a ``DeleteOptions`` object, already in its normal form, asks for."""
    preconditions = document.get("preconditions") or {}
    options = DeleteOptions(
        dry_run=tuple(document.get("dryRun") or ()),
        grace_seconds=document.get("gracePeriodSeconds"),
        propagation=document.get("propagationPolicy") or "",
        orphan=document.get("orphanDependents"),
        uid=preconditions.get("uid") or "",
        version=preconditions.get("resourceVersion") or "",
    )
    options.check()
    return options
