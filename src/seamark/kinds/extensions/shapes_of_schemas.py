"""A schema as a shape, for server-side apply, field ownership and OpenAPI."""

from __future__ import annotations

from typing import Literal, cast

from seamark.errors import Object
from seamark.kinds.extensions.schemas import (
    EMBEDDED,
    INT_OR_STRING,
    LIST_KEYS,
    LIST_TYPE,
    MAP_TYPE,
    PRESERVE,
    extra,
    items,
)
from seamark.kinds.language import shapes
from seamark.kinds.language.shape import ANYTHING, Field, ListOf, MapOf, Scalar, ScalarName, Shape, Type, Zero

_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_SCALARS: dict[str, ScalarName] = {
    "string": "string",
    "integer": "int64",
    "number": "float64",
    "boolean": "bool",
}


def shape_of(name: str, schema: Object) -> Shape:
    """The shape of whole instances; ``name`` is the one that OpenAPI has for it."""
    shape = Shape(name, {}, description=schema.get("description", ""), schema=schema, open=bool(schema.get(PRESERVE)))
    text = Scalar("string")
    shape.fields["apiVersion"] = Field(text, Zero.DROP)
    shape.fields["kind"] = Field(text, Zero.DROP)
    shape.fields["metadata"] = Field(shapes.of(_META), Zero.FILL)
    for field, inner in (schema.get("properties") or {}).items():
        if field not in shape.fields:
            shape.fields[field] = _field(f"{name}.{field}", inner)
    return shape


def _field(name: str, schema: Object) -> Field:
    default = schema.get("default")
    simple = default if isinstance(default, str | int | bool) else None
    return Field(_type(name, schema), Zero.KEEP, default=simple, description=schema.get("description", ""))


def _type(name: str, schema: Object) -> Type:
    if schema.get(INT_OR_STRING):
        return Scalar("int-or-string")
    atomic = schema.get(MAP_TYPE) == "atomic"
    others, elements = extra(schema), items(schema)
    if others is not None:
        return MapOf(_type(name, others), atomic)
    if elements is not None:
        list_type = cast(Literal["atomic", "set", "map"], schema.get(LIST_TYPE) or "atomic")
        return ListOf(_type(name, elements), list_type, tuple(schema.get(LIST_KEYS) or ()))
    keeps = bool(schema.get(PRESERVE))
    if (keeps or schema.get(EMBEDDED)) and not schema.get("properties"):
        return Scalar("any") if atomic else ANYTHING
    if schema.get("type") == "object":
        shape = Shape(name, {}, atomic=atomic, description=schema.get("description", ""), open=keeps)
        for field, inner in (schema.get("properties") or {}).items():
            shape.fields[field] = _field(f"{name}.{field}", inner)
        return shape
    return Scalar(_SCALARS.get(schema.get("type", ""), "any"))
