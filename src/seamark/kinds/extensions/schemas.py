"""Small questions about schemas.  A schema is the plain dict of a JSONSchemaProps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from seamark.errors import Object
from seamark.kinds.language import shapes
from seamark.kinds.language.decode import conform

PRESERVE = "x-kubernetes-preserve-unknown-fields"
EMBEDDED = "x-kubernetes-embedded-resource"
INT_OR_STRING = "x-kubernetes-int-or-string"
LIST_TYPE = "x-kubernetes-list-type"
LIST_KEYS = "x-kubernetes-list-map-keys"
MAP_TYPE = "x-kubernetes-map-type"
RULES = "x-kubernetes-validations"

T = TypeVar("T")

_SHAPE = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"


def normal(schema: Object) -> None:
    """Bring the schemas of items and of additional properties into their normal form, as decoding does with others."""
    for word in ("items", "additionalProperties"):
        if isinstance(inner := schema.get(word), dict):
            schema[word] = conform(inner, shapes.of(_SHAPE))[0]
    for _, inner in below(schema):
        normal(inner)


def below(schema: Object) -> Iterator[tuple[str, Object]]:
    """The schemas directly inside this one, with their paths relative to it."""
    for name, inner in (schema.get("properties") or {}).items():
        yield f"properties[{name}]", inner
    if isinstance(inner := schema.get("additionalProperties"), dict):
        yield "additionalProperties", inner
    if isinstance(inner := schema.get("items"), dict):
        yield "items", inner
    for word in ("allOf", "anyOf", "oneOf"):
        for index, inner in enumerate(schema.get(word) or ()):
            yield f"{word}[{index}]", inner
    if isinstance(inner := schema.get("not"), dict):
        yield "not", inner


def extra(schema: Object) -> Object | None:
    """The schema of properties that have no schema of their own, if there is one."""
    inner = schema.get("additionalProperties")
    return inner if isinstance(inner, dict) else None


def items(schema: Object) -> Object | None:
    """The schema of a list's elements, if there is one."""
    inner = schema.get("items")
    return inner if isinstance(inner, dict) else None


def has_rules(schema: Object) -> bool:
    """Whether a schema or anything in it has rules."""
    return bool(schema.get(RULES)) or any(has_rules(inner) for _, inner in below(schema))


def word_of(value: Any) -> str:
    """The JSON type of a value, as schemas call it."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "integer" if value.is_integer() else "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"


class Made(dict[str, T]):
    """What is made of the schemas of properties by name, each when it is first asked for.

    A schema may be half a megabyte, of which instances use a few fields.  ``other`` is for all other names.
    """

    def __init__(self, schemas: Object, make: Callable[[Object], T], other: T) -> None:
        super().__init__()
        self._schemas, self._make, self._other = schemas, make, other

    def __missing__(self, name: str) -> T:
        if name not in self._schemas:
            return self._other
        self[name] = made = self._make(self._schemas[name])
        return made
