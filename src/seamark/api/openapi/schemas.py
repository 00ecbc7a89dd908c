"""Shapes as JSON schemas, in the dialects of OpenAPI v2 and v3."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from seamark.api.openapi.field_docs import describe
from seamark.errors import Object
from seamark.kinds.kind import Kind
from seamark.kinds.language import shapes
from seamark.kinds.language.shape import Field, ListOf, MapOf, Scalar, Shape, Type

Dialect = Literal["v2", "v3"]

META = "io.k8s.apimachinery.pkg.apis.meta.v1."
DELETE_OPTIONS = META + "DeleteOptions"
STATUS = META + "Status"
PATCH = META + "Patch"
WATCH_EVENT = META + "WatchEvent"

_TIME = META + "Time"
_MICRO_TIME = META + "MicroTime"
_FIELDS = META + "FieldsV1"
_RAW = "io.k8s.apimachinery.pkg.runtime.RawExtension"
_QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_INT_OR_STRING = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"

# Scalars that are definitions of their own.
_NAMED = {"time": _TIME, "microtime": _MICRO_TIME, "quantity": _QUANTITY, "int-or-string": _INT_OR_STRING, "any": _RAW}

_PLAIN: dict[str, Object] = {
    "string": {"type": "string"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "float64": {"type": "number", "format": "double"},
    "bool": {"type": "boolean"},
    "bytes": {"type": "string", "format": "byte"},
}

# The group, version and kind of shapes that are whole objects, as OpenAPI writes them, by the shape's name.
WholeObjects = Mapping[str, list[Object]]

_ROOT = {"v2": "#/definitions/", "v3": "#/components/schemas/"}


def definitions(wanted: Iterable[Shape], dialect: Dialect, whole_objects: WholeObjects) -> Object:
    """These shapes and all they refer to."""
    found: Object = {}
    waiting = list(wanted)
    while waiting:
        shape = waiting.pop()
        if shape.name not in found:
            found[shape.name] = _struct(shape, dialect, whole_objects)
            waiting += references(shape)
    if found:
        found |= _named_scalars(dialect)
    return dict(sorted(found.items()))


def whole_objects(kinds: Iterable[Kind]) -> WholeObjects:
    """All built-in ones and those of these kinds.  Every built-in group version served has its own DeleteOptions."""
    known = {name: api_version_and_kind for api_version_and_kind, name in shapes.load().kinds.items()}
    versions: dict[str, None] = {}
    for kind in kinds:
        resource = kind.resource
        if kind.built_in:
            versions[resource.api_version] = None
        known[kind.shape.name] = resource.api_version, resource.kind
        if kind.list_shape is not None:
            known[kind.list_shape.name] = resource.api_version, kind.list_kind
    found = {name: [_group_version_kind(*whole)] for name, whole in known.items()}
    return found | {DELETE_OPTIONS: [_group_version_kind(version, "DeleteOptions") for version in versions]}


def _group_version_kind(api_version: str, kind: str) -> Object:
    group, _, version = api_version.rpartition("/")
    return {"group": group, "kind": kind, "version": version}


def references(shape: Shape) -> Iterator[Shape]:
    """The shapes that this one's fields have."""
    if shape.schema is not None:  # it is shown as it is, and refers to the metadata only
        yield shapes.of(META + "ObjectMeta")
        return
    for field in shape.fields.values():
        of = field.type
        while isinstance(of, ListOf | MapOf):
            of = of.of
        if isinstance(of, Shape):
            yield of


def reference(name: str, dialect: Dialect) -> Object:
    return {"$ref": _ROOT[dialect] + name}


def _with_company(reference: Object, dialect: Dialect) -> Object:
    """A reference that is to have other properties beside it: in v3 these count only if it is inside allOf."""
    return reference if dialect == "v2" else {"allOf": [reference]}


def _struct(shape: Shape, dialect: Dialect, whole_objects: WholeObjects) -> Object:
    if shape.schema is not None:
        return _given(shape, shape.schema, dialect, whole_objects)
    words = describe(shape)
    schema: Object = {"description": words.text, "type": "object"}
    required = [name for name, field in shape.fields.items() if field.required]
    if required:
        schema["required"] = required
    schema["properties"] = {
        name: _field(name, field, words.fields.get(name, ""), dialect) for name, field in shape.fields.items()
    }
    if shape.atomic:
        schema["x-kubernetes-map-type"] = "atomic"
    if kinds := whole_objects.get(shape.name):
        schema["x-kubernetes-group-version-kind"] = kinds
    return schema


def _given(shape: Shape, schema: Object, dialect: Dialect, whole_objects: WholeObjects) -> Object:
    """A schema that a definition gives, with the fields that every object has."""
    if dialect == "v2" and schema.get(_PRESERVE):
        # Clients of v2 would take other fields for mistakes if there were any here.
        shown: Object = {"type": "object"} | {word: schema[word] for word in (_SELECTABLE,) if word in schema}
    else:
        shown = _shown(schema, dialect)
        shown["properties"] = {**(shown.get("properties") or {}), **_of_every_object(dialect)}
    if kinds := whole_objects.get(shape.name):
        shown["x-kubernetes-group-version-kind"] = kinds
    return shown


_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_SELECTABLE = "x-kubernetes-selectable-fields"
_METADATA = (
    "Standard object's metadata. More info: "
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata"
)


def _of_every_object(dialect: Dialect) -> Object:
    words = describe(shapes.of(META + "Status")).fields
    meta = reference(META + "ObjectMeta", dialect)
    return {
        **{name: {"type": "string", "description": words.get(name, "")} for name in ("apiVersion", "kind")},
        "metadata": {"description": _METADATA, **_with_company(meta, dialect)},
    }


def _shown(schema: Object, dialect: Dialect) -> Object:
    """A part of a given schema as this dialect has it.  Objects inside have the fields of every object, too."""
    shown = _in_v2(schema) if dialect == "v2" else dict(schema)
    if isinstance(inner := shown.get("properties"), dict):
        shown["properties"] = {name: _shown(field, dialect) for name, field in inner.items()}
    for word in ("items", "additionalProperties"):
        if isinstance(inner := shown.get(word), dict):
            shown[word] = _shown(inner, dialect)
    if schema.get("x-kubernetes-embedded-resource") and not (dialect == "v2" and schema.get(_PRESERVE)):
        shown["properties"] = {**(shown.get("properties") or {}), **_of_every_object(dialect)}
        shown["required"] = list(dict.fromkeys([*(shown.get("required") or ()), "kind", "apiVersion"]))
    return shown


def _in_v2(schema: Object) -> Object:
    """The schema without what v2 has no word for, or what its clients would take for more than it is."""
    nullable, keeps = schema.get("nullable"), schema.get(_PRESERVE)
    left_out = {"allOf", "anyOf", "oneOf", "not", "nullable"}
    if nullable or keeps:
        left_out |= {"items", "properties"}
    if nullable or (keeps and schema.get("type") in ("object", "array")):
        left_out.add("type")
    shown = {word: value for word, value in schema.items() if word not in left_out}
    if required := _required_in_v2(shown):
        return {**shown, "required": required}
    shown.pop("required", None)
    return shown


def _required_in_v2(schema: Object) -> list[str]:
    """Nullable fields are not required: v2 cannot tell null from absent."""
    others = schema.get("additionalProperties")
    if isinstance(others, dict) and others.get("nullable"):
        return []
    fields = schema.get("properties") or {}
    return [name for name in schema.get("required") or () if not fields.get(name, {}).get("nullable")]


def _field(name: str, field: Field, description: str, dialect: Dialect) -> Object:
    schema = _schema(field.type, dialect)
    if name == "fieldsV1":
        schema = reference(_FIELDS, dialect)
    if "$ref" in schema:
        schema = _with_company(schema, dialect)
    schema = {"description": description, **schema}
    if field.default is not None:
        schema["default"] = field.default
    if isinstance(field.type, ListOf):
        schema["x-kubernetes-list-type"] = field.type.type
        if field.type.keys:
            schema["x-kubernetes-list-map-keys"] = list(field.type.keys)
    if isinstance(field.type, MapOf) and field.type.atomic:
        schema["x-kubernetes-map-type"] = "atomic"
    if field.merge_key:
        schema["x-kubernetes-patch-merge-key"] = field.merge_key
    if field.patch_strategy:
        schema["x-kubernetes-patch-strategy"] = field.patch_strategy
    return schema


def _schema(type_: Type, dialect: Dialect) -> Object:
    if isinstance(type_, ListOf):
        return {"type": "array", "items": _schema(type_.of, dialect)}
    if isinstance(type_, MapOf):
        return {"type": "object", "additionalProperties": _schema(type_.of, dialect)}
    if isinstance(type_, Scalar):
        if type_.name in _NAMED:
            return reference(_NAMED[type_.name], dialect)
        return dict(_PLAIN[type_.name])
    return reference(type_.name, dialect)


def _named_scalars(dialect: Dialect) -> Object:
    number_or_text: dict[str, Any]
    if dialect == "v3":
        quantity: Object = {"oneOf": [{"type": "string"}, {"type": "number"}]}
        number_or_text = {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]}
    else:
        quantity = {"type": "string"}
        number_or_text = {"type": "string", "format": "int-or-string"}
    time = {"type": "string", "format": "date-time"}
    return {
        _TIME: {"description": "A moment in RFC 3339, in whole seconds.", **time},
        _MICRO_TIME: {"description": "A moment in RFC 3339, in microseconds.", **time},
        _QUANTITY: {"description": "A number with an optional suffix, such as 100m, 1.5Gi or 1e3.", **quantity},
        _INT_OR_STRING: {"description": "A number or a text.", **number_or_text},
        _FIELDS: {"description": "A set of fields, in the format of managedFields.", "type": "object"},
        _RAW: {"description": "Any value.", "type": "object"},
        PATCH: {"description": "Changes to an object, in the format its media type says.", "type": "object"},
        WATCH_EVENT: {
            "description": "One event of a watch.",
            "type": "object",
            "required": ["type", "object"],
            "properties": {
                "object": {
                    "description": "The object as it is now, or a Status.",
                    **_with_company(reference(_RAW, dialect), dialect),
                },
                "type": {"description": "ADDED, MODIFIED, DELETED, BOOKMARK or ERROR.", "type": "string"},
            },
        },
    }
