"""The type of a schema in expressions: its fields under escaped names, its bounds, and how its values are read."""

from __future__ import annotations

import base64
import re
from typing import Any

from seamark.cel.errors import EvaluationError
from seamark.cel.types import Convert, Field, Type
from seamark.cel.values import parse_date, parse_duration, parse_timestamp
from seamark.errors import Object

LARGEST_REQUEST = 3 * 1024 * 1024
_RESERVED = frozenset(
    (
        "true",
        "false",
        "null",
        "in",
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
    )
) | {"loop", "package", "namespace", "return", "var", "void", "while"}
_ESCAPES = (("__", "__underscores__"), (".", "__dot__"), ("-", "__dash__"), ("/", "__slash__"))
_part = re.compile(r"__|[.\-/]")
_name = re.compile(r"[a-zA-Z_.\-/][a-zA-Z0-9_.\-/]*", re.ASCII)
_TEXT = {"type": "string"}
_NAMES = {"apiVersion": _TEXT, "kind": _TEXT}
_META = {"type": "object", "properties": {"name": _TEXT, "generateName": _TEXT}}


def escaped(name: str) -> str | None:
    """What a field is called in expressions; None if it cannot be named there."""
    if name in _RESERVED:
        return f"__{name}__"
    if not _name.fullmatch(name):
        return None
    return _part.sub(lambda match: dict(_ESCAPES)[match[0]], name)


def type_of_schema(schema: Object, *, root: bool = False, name: str = "object") -> Type | None:
    """The type of a schema's values, or None if expressions cannot see them.

    A ``root`` is a whole object, whose apiVersion, kind and names are there without being in the schema.
    """
    if schema.get("x-kubernetes-int-or-string"):
        return Type("dyn", most=LARGEST_REQUEST - 2)
    root = root or bool(schema.get("x-kubernetes-embedded-resource"))
    match schema.get("type"):
        case "array":
            return _list(schema, name)
        case "object":
            return _object(schema, name, root=root)
        case "string":
            return _text(schema)
        case "boolean":
            return Type("bool", most=0, least_size=4)
        case "integer":
            return Type("int", most=0, convert=_whole)
        case "number":
            return Type("double", most=0, convert=_double)
    return None


def _list(schema: Object, name: str) -> Type | None:
    items = schema.get("items")
    element = type_of_schema(items, name=f"{name}.@idx") if isinstance(items, dict) else None
    if element is None:
        return None
    most = schema.get("maxItems")
    most = (LARGEST_REQUEST - 2) // (element.least_size + 1) if most is None else max(most, 0)
    list_type, keys = schema.get("x-kubernetes-list-type") or "", tuple(schema.get("x-kubernetes-list-map-keys") or ())
    return Type(
        "list",
        params=(element,),
        most=most,
        least_size=2,
        convert=_each(element.convert),
        list_type=list_type,
        keys=keys,
    )


def _object(schema: Object, name: str, *, root: bool) -> Type | None:
    others = schema.get("additionalProperties")
    if isinstance(others, dict):
        value = type_of_schema(others, name=f"{name}.@prop")
        if value is None:
            return None
        most = schema.get("maxProperties")
        most = (LARGEST_REQUEST - 2) // (value.least_size + 6) if most is None else max(most, 0)
        key = Type("string", most=0)
        convert = _each_value(value.convert)
        return Type("map", params=(key, value), most=most, least_size=2, convert=convert)
    properties = dict(schema.get("properties") or {})
    if root:
        properties |= _NAMES | {"metadata": _META}
    needed = schema.get("required") or ()
    fields: dict[str, Field] = {}
    least = 2
    for key, inner in properties.items():
        made = type_of_schema(inner, name=f"{name}.{key}")
        if made is None:
            continue
        if (word := escaped(key)) is not None:
            fields[word] = Field(key, made)
        if key in needed and inner.get("default") is None:
            least += len(key) + made.least_size + 4
    return Type("object", name, fields=fields, most=0, least_size=least)


def _text(schema: Object) -> Type:
    longest = schema.get("maxLength")
    match schema.get("format"):
        case "byte":
            most = LARGEST_REQUEST - 2 if longest is None else max(longest, 0)
            return Type("bytes", most=most, least_size=2, convert=_bytes)
        case "duration":
            return Type("duration", most=32, least_size=3, convert=parse_duration)
        case "date":
            return Type("timestamp", most=12, least_size=12, convert=parse_date)
        case "date-time":
            return Type("timestamp", most=32, least_size=21, convert=parse_timestamp)
    if longest is not None:
        most = max(longest, 0) * 4
    elif choices := schema.get("enum"):
        most = max((len(choice.encode()) for choice in choices if isinstance(choice, str)), default=0)
    else:
        most = LARGEST_REQUEST - 2
    return Type("string", most=most, least_size=2)


# --- values of documents ----------------------------------------------------------------------------------


def _whole(value: Any) -> Any:
    return int(value) if value.__class__ is float and value.is_integer() else value


def _double(value: Any) -> Any:
    return float(value) if value.__class__ is int else value


def _bytes(value: Any) -> Any:
    try:
        return base64.b64decode(value, validate=True)
    except ValueError:
        raise EvaluationError("invalid base64") from None


def _each(convert: Convert | None) -> Convert | None:
    if convert is None or convert is _whole:
        return None
    return lambda given: [None if item is None else convert(item) for item in given]


def _each_value(convert: Convert | None) -> Convert | None:
    if convert is None or convert is _whole:
        return None
    return lambda given: {key: None if item is None else convert(item) for key, item in given.items()}
