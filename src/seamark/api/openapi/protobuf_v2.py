"""The OpenAPI v2 document in protobuf (gnostic's ``openapi.v2.Document``): older Go clients ask for nothing else.

Only what our documents contain is written.  Each function turns one JSON object into one message.
"""

from __future__ import annotations

from collections.abc import Mapping

from seamark.api.openapi.messages import as_yaml, extensions, flag, lists, named, texts
from seamark.errors import Object
from seamark.kinds.language.protobuf_writing import member

CONTENT_TYPE = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
# Clients ask by a name with an @, which is not a valid media type; answers have the valid one.
ACCEPTED = (CONTENT_TYPE, "application/com.github.proto-openapi.spec.v2@v1.0+protobuf")

_METHODS = {"get": 2, "put": 3, "post": 4, "delete": 5, "patch": 8}


def document(value: Object) -> bytes:
    info = texts(value["info"], {"title": 1, "version": 2})
    return b"".join(
        (
            member(1, value["swagger"].encode()),
            member(2, info),
            member(8, named(2, {path: _path_item(item) for path, item in value["paths"].items()})),
            member(9, _schemas(value["definitions"])),
            *(member(12, _requirement(item)) for item in value["security"]),
            member(13, _security_definitions(value["securityDefinitions"])),
        )
    )


def _path_item(item: Object) -> bytes:
    out = b"".join(member(_METHODS[key], _operation(part)) for key, part in item.items() if key in _METHODS)
    return out + b"".join(member(9, _parameter(parameter)) for parameter in item.get("parameters", ()))


def _operation(value: Object) -> bytes:
    return b"".join(
        (
            lists(value, {"tags": 1}),
            texts(value, {"description": 3, "operationId": 5}),
            lists(value, {"produces": 6, "consumes": 7}),
            *(member(8, _parameter(parameter)) for parameter in value["parameters"]),
            member(9, named(1, {code: _response(item) for code, item in value["responses"].items()})),
            lists(value, {"schemes": 10}),
            extensions(13, value),
        )
    )


def _parameter(value: Object) -> bytes:
    """A ParametersItem holding a Parameter: for a body, a path or a query."""
    if value["in"] == "body":
        body = texts(value, {"name": 2, "in": 3}) + flag(4, value["required"]) + member(5, _schema(value["schema"]))
        return member(1, member(1, body))
    required = flag(1, value.get("required", False))
    common = texts(value, {"in": 2, "description": 3, "name": 4})
    if value["in"] == "path":
        kind, inner = 4, texts(value, {"type": 5}) + flag(19, value.get("uniqueItems", False))
    else:
        kind, inner = 3, texts(value, {"type": 6}) + flag(20, value.get("uniqueItems", False))
    return member(1, member(2, member(kind, required + common + inner)))


def _response(value: Object) -> bytes:
    """A ResponseValue holding a Response."""
    schema = member(2, member(1, _schema(value["schema"]))) if "schema" in value else b""
    return member(1, texts(value, {"description": 1}) + schema)


def _schemas(values: Mapping[str, Object]) -> bytes:
    return named(1, {name: _schema(value) for name, value in values.items()})


def _schema(value: Object) -> bytes:
    out = [texts(value, {"$ref": 1, "format": 2, "description": 4})]
    if "default" in value:
        out.append(member(5, as_yaml(value["default"])))
    out.append(lists(value, {"required": 19}))
    if "additionalProperties" in value:
        out.append(member(21, member(1, _schema(value["additionalProperties"]))))
    if "type" in value:
        out.append(member(22, member(1, value["type"].encode())))
    if "items" in value:
        out.append(member(23, member(1, _schema(value["items"]))))
    if value.get("properties"):
        out.append(member(25, _schemas(value["properties"])))
    return b"".join((*out, extensions(31, value)))


def _requirement(value: Mapping[str, list[str]]) -> bytes:
    return named(1, {name: lists({"scopes": scopes}, {"scopes": 1}) for name, scopes in value.items()})


def _security_definitions(value: Mapping[str, Object]) -> bytes:
    return named(1, {name: member(2, texts(item, {"type": 1, "name": 2, "in": 3})) for name, item in value.items()})
