"""The kind that one version of a definition defines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import msgspec

from seamark.errors import Forbidden, Object, internal
from seamark.haste import Costly, hurried
from seamark.kinds.dynamic import DynamicKind
from seamark.kinds.extensions import checking, filling, jsonpaths, quick
from seamark.kinds.extensions.names import is_true
from seamark.kinds.extensions.outlines import schema_of, schema_text, top_fields
from seamark.kinds.extensions.schemas import has_rules
from seamark.kinds.extensions.shapes_of_schemas import shape_of
from seamark.kinds.extensions.versions import priority
from seamark.kinds.kind import Column, Kind
from seamark.kinds.language import shapes
from seamark.kinds.language.decode import conform
from seamark.kinds.language.scalars import check_depth
from seamark.kinds.language.shape import Shape
from seamark.kinds.resource import Resource
from seamark.kinds.subresource import CHANGE, Subresource, View, status_of
from seamark.kinds.values.fields import Errors, FieldError, invalid, refuse
from seamark.kinds.values.metadata import keep_accessories
from seamark.kinds.values.refusals import named
from seamark.kinds.values.times import TimeError, age
from seamark.kinds.workloads.scale import SCALES, ScaleKind

if TYPE_CHECKING:
    from seamark.kinds.extensions.rules import Outcome, Run

_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_AGE = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}
STORED_VERSION = "storedVersion"  # in the metadata of stored objects; they have no such field when they are shown
_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")


def kinds_of(definition: Object) -> list[CustomKind]:
    """The kinds that a definition defines, one for every version that is served."""
    return [CustomKind(definition, version) for version in definition["spec"]["versions"] if version.get("served")]


def storage_kind(definition: Object) -> CustomKind:
    """The kind of the version in which instances are stored, whether it is served or not."""
    return CustomKind(definition, next(v for v in definition["spec"]["versions"] if v.get("storage")))


class CustomKind(DynamicKind):
    """Instances of a definition.

    Unknown fields are removed when a document is read (:meth:`conform`); what the schema says of the rest is checked
    when the object is validated.  Objects are stored by the schema of the storage version: its fields are kept, and
    its defaults are filled in when an object is read that is older than they are.

    A stored object says in which version it is (:data:`STORED_VERSION`), unless that is the first of the versions that
    the definition lists as stored.
    """

    terminating = False  # whether the definition is being deleted: no instance can be created any more
    verbs = _VERBS

    def __init__(self, definition: Object, version: Object) -> None:
        spec = definition["spec"]
        names = (definition.get("status") or {}).get("acceptedNames") or spec["names"]
        resource = Resource(
            spec["group"], version["name"], names["plural"], names["kind"], namespaced=spec["scope"] == "Namespaced"
        )
        super().__init__(
            resource,
            singular=names.get("singular", ""),
            short_names=names.get("shortNames") or (),
            categories=names.get("categories") or (),
            subresources=_subresources(version, resource.kind),
            printed=(),
        )
        self.list_kind = names.get("listKind") or f"{resource.kind}List"
        self.request_warning = _deprecation(spec, version)
        printed = version.get("additionalPrinterColumns") or (_AGE,)
        if not all(jsonpaths.is_closed(column["jsonPath"]) for column in printed):
            printed = (_AGE,)  # as Kubernetes does when it cannot read a path of them
        self._printers = [(column, jsonpaths.steps(column["jsonPath"])) for column in printed]
        self.columns = (Column("Name", format="name"), *(_column(column) for column, _ in self._printers))
        selectable = [field["jsonPath"] for field in version.get("selectableFields") or ()]
        self.field_names = tuple(path[1:] for path in selectable)
        self._selectable = [(path[1:], jsonpaths.steps(path)) for path in selectable]
        self._version = version
        self._versions = {each["name"]: each for each in spec["versions"]}
        self.storage_version = next(str(each["name"]) for each in spec["versions"] if each.get("storage"))
        if self.storage_version != version["name"] and self._versions[self.storage_version].get("served"):
            self.stored_as = msgspec.structs.replace(resource, version=self.storage_version)
        self._first_stored = ((definition.get("status") or {}).get("storedVersions") or [self.storage_version])[0]
        self.sibling_versions = tuple(f"{resource.group}/{name}" for name in self._versions)
        self._schemas: dict[str, tuple[filling.Prune, filling.Fill]] = {}
        # What was written by the only schema there ever was needs no change when it is read.
        self.shows_as_stored = len(spec["versions"]) == 1 and definition["metadata"].get("generation", 1) == 1

    # Decoded and compiled on first use: a server may have hundreds of definitions without any object.

    @cached_property
    def _schema(self) -> Object:
        return schema_of(self._version)

    @cached_property
    def schema_digest(self) -> bytes:
        return sha256(schema_text(self._version) + ",".join(self.field_names).encode()).digest()

    @cached_property
    def shape(self) -> Shape:
        resource = self.resource
        reversed_group = ".".join(reversed(resource.group.split(".")))
        shown = self._schema
        if self.field_names:
            shown = {**shown, "x-kubernetes-selectable-fields": [{"fieldPath": path} for path in self.field_names]}
        return shape_of(f"{reversed_group}.{resource.version}.{resource.kind}", shown)

    @cached_property
    def _prune(self) -> filling.Prune:
        return filling.pruner(self._schema)

    @cached_property
    def _fill(self) -> filling.Fill:
        return filling.filler(self._schema) or _nothing

    @cached_property
    def _check(self) -> checking.Check:
        return checking.validator(self._schema)

    @cached_property
    def _test(self) -> quick.Test:
        return quick.tester(self._schema)

    @cached_property
    def _rules(self) -> Run | None:
        if not has_rules(self._schema):
            return None
        from seamark.kinds.extensions import rules

        return rules.runner(self._schema, root=True)

    @cached_property
    def _status_schema(self) -> Object:
        return (self._schema.get("properties") or {}).get("status") or {}

    @cached_property
    def _test_of_status(self) -> quick.Test:
        return quick.tester(self._status_schema)

    def _of_version(self, name: str) -> tuple[filling.Prune, filling.Fill]:
        """What prunes and fills by the schema of a version."""
        if name == self.resource.version:
            return self._prune, self._fill
        found = self._schemas.get(name)
        if found is None:
            schema = schema_of(self._versions[name])
            found = self._schemas[name] = filling.pruner(schema), filling.filler(schema) or _nothing
        return found

    @cached_property
    def list_shape(self) -> Shape:
        made = super().list_shape
        return Shape(f"{self.shape.name.rpartition('.')[0]}.{self.list_kind}", made.fields)

    # --- reading and storing -------------------------------------------------------------------------

    def conform(self, value: Any) -> tuple[Object, list[str]]:
        if not isinstance(value, dict):
            return super().conform(value)
        check_depth(value)
        meta, unknown = conform(value.get("metadata") or {}, shapes.of(_META))
        unknown = [f"metadata.{path}" for path in unknown]
        more: filling.Unknown = []
        obj = self._prune({**value, "metadata": meta}, None, more)
        return obj, unknown + [path for _, path in sorted(more)]

    def to_stored(self, obj: Object) -> Object:
        """``obj`` is in this version, or already converted to the storage version."""
        if self.storage_version != self.resource.version:
            obj = self._of_version(self.storage_version)[0](obj, None, [])
        if self.storage_version != self._first_stored:
            obj = {**obj, "metadata": {STORED_VERSION: self.storage_version, **obj["metadata"]}}
        return obj

    def from_stored(self, obj: Object) -> Object:
        if self.shows_as_stored:
            return obj
        out = self.as_stored(obj)
        return out if self.stored_version(obj) == self.resource.version else self.pruned(out)

    def pruned(self, obj: Object) -> Object:
        """The object without what this version does not know."""
        kept: Object = self._prune(obj, None, [])
        return kept

    def stored_version(self, obj: Object) -> str:
        """The version that a stored object is in."""
        version = obj["metadata"].get(STORED_VERSION) or self._first_stored
        return version if version in self._versions else self.storage_version

    def is_current(self, stored: Object) -> bool:
        return self.shows_as_stored or self.stored_version(stored) == self.storage_version

    def as_stored(self, obj: Object) -> Object:
        """A stored object in the version it is in, by the present schema of that."""
        prune, fill = self._of_version(self.stored_version(obj))
        out: Object = prune(obj, None, [])
        if STORED_VERSION in out["metadata"]:
            out["metadata"] = {key: value for key, value in out["metadata"].items() if key != STORED_VERSION}
        filling.fill_in(fill, out, written=False)
        return out

    # --- writes --------------------------------------------------------------------------------------

    def default(self, obj: Object) -> None:
        filling.fill_in(self._fill, obj, written=True)

    def prepare_create(self, obj: Object) -> None:
        if self.terminating:
            resource, name = self.resource, obj["metadata"].get("name", "")
            raise Forbidden(
                f'{resource.qualified} "{name}" is forbidden: create not allowed while custom resource definition is '
                "terminating",
                details=named(resource, name),
            )
        super().prepare_create(obj)

    @property
    def costly(self) -> bool:
        return True  # rules may cost much, and so may patterns

    def validate(self, obj: Object) -> Errors:
        errors = self._schema_mistakes(obj)
        return errors if self._rules is None else self._with_rules(errors, obj, checking.ABSENT)

    def _schema_mistakes(self, obj: Object) -> Errors:
        errors: Errors = []
        if not self._test(obj):
            self._check(obj, checking.ABSENT, None, errors)
        return errors

    def validate_update(self, obj: Object, old: Object) -> Errors:
        errors = self._schema_mistakes(obj)
        if errors:  # What was wrong before may stay as it was.
            errors = []
            self._check(_without_head(obj), _without_head(old), None, errors)
        return errors if self._rules is None else self._with_rules(errors, obj, old)

    def _with_rules(self, errors: Errors, obj: Object, old: Any) -> Errors:
        """The mistakes with those that rules find, which only look at objects that are in order otherwise."""
        from seamark.kinds.extensions import rules

        return errors + (rules.not_checked(errors) or self._judged(obj, old).errors)

    def _judged(self, obj: Object, old: Any) -> Outcome:
        from seamark.kinds.extensions import rules

        in_haste = hurried.get()
        outcome = rules.Outcome(rules.HURRIED) if in_haste else rules.Outcome()
        assert self._rules is not None
        self._rules(obj, old, "", outcome)
        if in_haste and outcome.budget.left <= 0:
            raise Costly
        return outcome

    def validate_status(self, obj: Object, old: Object) -> Errors:
        errors: Errors = []
        if "status" in obj and not self._test_of_status(obj["status"]):
            check = checking.validator(self._status_schema)
            check(obj["status"], old.get("status", checking.ABSENT), None, errors)
        errors = [FieldError(_in_status(error.field), error.reason, error.message) for error in errors]
        return errors if self._rules is None else self._with_rules(errors, obj, old)

    def prepare_status(self, obj: Object, old: Object) -> None:
        super().prepare_status(obj, old)
        keep_accessories(obj["metadata"], old["metadata"])

    # --- what people see -----------------------------------------------------------------------------

    def warnings(self, obj: Object, old: Object | None) -> list[str]:
        before = () if old is None else old["metadata"].get("finalizers") or ()
        said = [
            f'metadata.finalizers: "{finalizer}": prefer a domain-qualified finalizer name to avoid accidental '
            "conflicts with other finalizer writers"
            for finalizer in obj["metadata"].get("finalizers") or ()
            if "/" not in finalizer and finalizer not in ("orphan", "foregroundDeletion", *before)
        ]
        if old is not None and self._rules is not None:
            # What an update leaves as it was may break a rule that is younger than it.
            said += (f"{error.field}: {error.message}" for error in self._judged(obj, old).tolerated)
        return said

    def fields_in(self, value: bytes) -> Mapping[str, str]:
        return self.fields(msgspec.json.decode(value))  # It is this version's form of the object.

    def fields(self, obj: Object) -> Mapping[str, str]:
        return {name: _field_text(jsonpaths.find(obj, path)) for name, path in self._selectable}

    def row(self, obj: Object, now: float) -> Sequence[Any]:
        cells = [_cell(jsonpaths.find(obj, path), column["type"], now) for column, path in self._printers]
        return [obj["metadata"].get("name", ""), *cells]


def _nothing(value: Any) -> None:
    """A schema without anything to fill in."""


def _without_head(obj: Object) -> Object:
    """The object without what the server itself keeps, so that its parts can be compared with the old ones."""
    return {key: value for key, value in obj.items() if key not in ("apiVersion", "kind")}


def _in_status(field: str) -> str:
    return field if field == "<nil>" else f"status.{field}" if field else "status"


# --- subresources -------------------------------------------------------------------------------------


class CustomScale(View, frozen=True, kw_only=True):
    """An instance as a Scale; the definition says where its numbers are."""

    spec_path: str
    status_path: str
    selector_path: str = ""

    def show(self, kind: Kind, obj: Object) -> Object:
        if jsonpaths.find(obj, jsonpaths.steps(self.spec_path)) is None:
            text = f'the spec replicas field "{self.spec_path}" does not exist'
            raise internal(text)
        return self.start(kind, obj)

    def start(self, kind: Kind, obj: Object) -> Object:
        meta = obj["metadata"]
        kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
        replicas = jsonpaths.find(obj, jsonpaths.steps(self.spec_path))
        selector = jsonpaths.find(obj, jsonpaths.steps(self.selector_path)) if self.selector_path else None
        return {
            "kind": "Scale",
            "apiVersion": SCALES.api_version,
            "metadata": {key: meta[key] for key in kept if key in meta},
            "spec": {"replicas": replicas} if replicas else {},
            "status": {
                "replicas": jsonpaths.find(obj, jsonpaths.steps(self.status_path)) or 0,
                **({"selector": selector} if selector else {}),
            },
        }

    def change(self, kind: Kind, obj: Object, given: Object) -> Object:
        replicas = (given.get("spec") or {}).get("replicas", 0)
        meta, asked = dict(obj["metadata"]), given.get("metadata") or {}
        if replicas < 0:
            wrong = [invalid(self.spec_path, replicas, "should be a non-negative integer")]
            raise refuse(kind.resource, meta.get("name", ""), wrong)
        for key in ("uid", "resourceVersion"):
            if asked.get(key):
                meta[key] = asked[key]
        names = tuple(step for step in jsonpaths.steps(self.spec_path) or () if isinstance(step, str))
        changed: Object = jsonpaths.set_at({**obj, "metadata": meta}, names, replicas)
        return changed


def _subresources(version: Object, kind: str) -> list[Subresource]:
    given = version.get("subresources") or {}
    found: list[Subresource] = []
    if given.get("status") is not None:
        others = [name for name in top_fields(version) if name not in ("status", "metadata")]
        found.append(status_of(kind, reset=tuple((name,) for name in dict.fromkeys(("spec", *others)))))
    if (scale := given.get("scale")) is not None:
        path = tuple(step for step in jsonpaths.steps(scale["specReplicasPath"]) or () if isinstance(step, str))
        found.append(
            CustomScale(
                "scale",
                CHANGE,
                "Scale",
                group="autoscaling",
                version="v1",
                sent=ScaleKind(),
                shares=(path,),
                spec_path=scale["specReplicasPath"],
                status_path=scale["statusReplicasPath"],
                selector_path=scale.get("labelSelectorPath") or "",
            )
        )
    return found


# --- words --------------------------------------------------------------------------------------------


def _deprecation(spec: Object, version: Object) -> str:
    if not version.get("deprecated"):
        return ""
    if (text := version.get("deprecationWarning")) is not None:
        return str(text)
    group, kind, name = spec["group"], spec["names"]["kind"], version["name"]
    better = sorted((v["name"] for v in spec["versions"] if v.get("served") and not v.get("deprecated")), key=priority)
    instead = f"; use {group}/{better[0]} {kind}" if better and priority(better[0]) < priority(name) else ""
    return f"{group}/{name} {kind} is deprecated{instead}"


def _column(column: Object) -> Column:
    text = column.get("description") or ""
    return Column(column["name"], column["type"], column.get("format", ""), text, column.get("priority", 0))


def _cell(value: Any, word: str, now: float) -> Any:
    """A value in a column of this type; None if it is of another."""
    if value is None:
        return None
    match word:
        case "integer":
            return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
        case "number":
            return value if isinstance(value, int | float) and not isinstance(value, bool) else None
        case "boolean":
            return value if isinstance(value, bool) else None
        case "date":
            return _age(value, now) if isinstance(value, str) else None
        case _:
            return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _age(value: str, now: float) -> str:
    try:
        return age(now, value)
    except TimeError:
        return "<invalid>"


def _field_text(value: Any) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case _:
            return str(value)


def is_established(definition: Object) -> bool:
    return is_true(definition, "Established")
