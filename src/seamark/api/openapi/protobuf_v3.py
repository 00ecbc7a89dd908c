"""Documents of OpenAPI v3 in protobuf (gnostic's ``openapi.v3.Document``): kubectl asks for them before a dry run.

Only what our documents contain is written, and all that schemas of custom resources may.  Each function turns one JSON
object into one message.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

from seamark.api.openapi.messages import as_yaml, extensions, flag, lists, named, texts
from seamark.errors import Object
from seamark.kinds.language.protobuf_writing import member, varint

CONTENT_TYPE = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"
# Clients ask by a name with an @, which is not a valid media type; answers have the valid one.
ACCEPTED = (CONTENT_TYPE, "application/com.github.proto-openapi.spec.v3@v1.0+protobuf")

_METHODS = {"get": 4, "put": 5, "post": 6, "delete": 7, "patch": 10}
_TEXTS = {"title": 9, "pattern": 17, "type": 25, "description": 34, "format": 35}
_FLAGS = {"nullable": 1, "exclusiveMaximum": 12, "exclusiveMinimum": 14, "uniqueItems": 20}
_NUMBERS = {"multipleOf": 10, "maximum": 11, "minimum": 13}
_SIZES = {"maxLength": 15, "minLength": 16, "maxItems": 18, "minItems": 19, "maxProperties": 21, "minProperties": 22}
_ALTERNATIVES = {"allOf": 26, "oneOf": 27, "anyOf": 28}


def document(value: Object) -> bytes:
    components = value["components"]
    numbers = {"type": 1, "name": 3, "in": 4}
    schemes = {name: member(1, texts(item, numbers)) for name, item in components["securitySchemes"].items()}
    return b"".join(
        (
            member(1, value["openapi"].encode()),
            member(2, texts(value["info"], {"title": 1, "version": 6})),
            member(4, named(1, {path: _path_item(item) for path, item in value["paths"].items()})),
            member(5, member(1, _schemas(components["schemas"])) + member(7, named(1, schemes))),
            *(member(6, named(1, dict.fromkeys(item, b""))) for item in value["security"]),
        )
    )


def _path_item(item: Object) -> bytes:
    out = b"".join(member(_METHODS[key], _operation(part)) for key, part in item.items() if key in _METHODS)
    return out + b"".join(member(13, _parameter(parameter)) for parameter in item.get("parameters", ()))


def _operation(value: Object) -> bytes:
    body = value.get("requestBody")
    return b"".join(
        (
            lists(value, {"tags": 1}),
            texts(value, {"description": 3, "operationId": 5}),
            *(member(6, _parameter(parameter)) for parameter in value.get("parameters", ())),
            b"" if body is None else member(7, member(1, _content(2, body) + flag(3, body.get("required", False)))),
            member(8, named(2, {code: _response(item) for code, item in value["responses"].items()})),
            extensions(13, value),
        )
    )


def _parameter(value: Object) -> bytes:
    """A ParameterOrReference."""
    common = texts(value, {"name": 1, "in": 2, "description": 3}) + flag(4, value.get("required", False))
    return member(1, common + member(10, _schema_or_reference(value["schema"])))


def _response(value: Object) -> bytes:
    """A ResponseOrReference."""
    return member(1, texts(value, {"description": 1}) + (_content(3, value) if "content" in value else b""))


def _content(number: int, value: Object) -> bytes:
    """What there is for each media type."""
    types = {name: member(1, _schema_or_reference(item["schema"])) for name, item in value["content"].items()}
    return member(number, named(1, types))


# --- schemas ---------------------------------------------------------------------------------------


def _schemas(values: Mapping[str, Object]) -> bytes:
    return named(1, {name: _schema_or_reference(value) for name, value in values.items()})


def _schema_or_reference(value: Object) -> bytes:
    return member(2, texts(value, {"$ref": 1})) if "$ref" in value else member(1, schema(value))


def schema(value: Object) -> bytes:
    out = [texts(value, _TEXTS), lists(value, {"required": 23})]
    out += [flag(number, value.get(name, False)) for name, number in _FLAGS.items()]
    out += [_double(number, value[name]) for name, number in _NUMBERS.items() if value.get(name)]
    out += [varint(number << 3) + varint(value[name]) for name, number in _SIZES.items() if value.get(name)]
    for name, number in _ALTERNATIVES.items():
        out += [member(number, _schema_or_reference(each)) for each in value.get(name, ())]
    out += [member(24, as_yaml(each)) for each in value.get("enum", ())]
    if "externalDocs" in value:
        out.append(member(6, texts(value["externalDocs"], {"description": 1, "url": 2})))
    if "example" in value:
        out.append(member(7, as_yaml(value["example"])))
    if "not" in value:
        out.append(member(29, schema(value["not"])))
    if "items" in value:
        out.append(member(30, member(1, _schema_or_reference(value["items"]))))
    if "properties" in value:
        out.append(member(31, _schemas(value["properties"])))
    if "additionalProperties" in value:
        out.append(member(32, _additional(value["additionalProperties"])))
    if "default" in value:
        out.append(member(33, _default(value["default"])))
    return b"".join((*out, extensions(36, value)))


def _additional(value: Object | bool) -> bytes:
    return varint(2 << 3) + varint(value) if isinstance(value, bool) else member(1, _schema_or_reference(value))


def _default(value: Any) -> bytes:
    """Empty for what is neither a number, a bool nor a text: gnostic has no place for others."""
    if isinstance(value, bool):
        return varint(2 << 3) + varint(value)
    if isinstance(value, str):
        return member(3, value.encode())
    return _double(1, value) if isinstance(value, int | float) else b""


def _double(number: int, value: float) -> bytes:
    return varint(number << 3 | 1) + struct.pack("<d", value)
