"""Decodes Kubernetes' protobuf encoding into the value that JSON would have given, so that the rest is the same.

Many Go clients send protobuf (``kubectl create deployment`` does).  A body is an envelope: a magic prefix, then a
message with the apiVersion, the kind and the object's bytes.  A message is read with a table made from its shape, which
has the protobuf numbers of its fields.  Times, quantities and the entries of maps are small messages with their own
tables.  The result must still be conformed (``decode``).

Unknown fields are skipped, as Kubernetes does: they come from a newer client.  Only JSON schemas contain themselves;
those nested deeper than Python can recurse are refused.  Kinds that are added while the server runs have no protobuf
encoding.
"""

from __future__ import annotations

import binascii
import struct
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

import msgspec

from seamark.errors import Object
from seamark.kinds.language.shape import ListOf, MapOf, Scalar, Shape, Type, Zero
from seamark.kinds.values import times

MAGIC = b"k8s\x00"


class ProtobufError(ValueError):
    """The bytes are not a valid message; the text is Go's where Go has such an error."""


def unwrap(body: bytes) -> tuple[str, str, bytes]:
    """The apiVersion, the kind and the object's message of a body."""
    if not body:
        raise ProtobufError("empty data")
    if not body.startswith(MAGIC):
        expected = " ".join(map(str, MAGIC))
        raise ProtobufError(f"provided data does not appear to be a protobuf message, expected prefix [{expected}]")
    if len(body) == len(MAGIC):
        raise ProtobufError("empty body")
    envelope = _decode(body, len(MAGIC), _ENVELOPE)
    meta = envelope.get("typeMeta", {})
    return meta.get("apiVersion", ""), meta.get("kind", ""), envelope.get("raw", b"")


def read(message: bytes, shape: Shape) -> Object:
    """The object in a message of this shape, not yet conformed to it."""
    table = shape.form(_table)
    if not table:
        # Go's message for custom resources, which have no protobuf encoding either.
        raise ProtobufError(
            "object *unstructured.Unstructured does not implement the protobuf marshalling interface and cannot be "
            "encoded to a protobuf message"
        )
    return _decode(message, 0, table)


# --- tables ----------------------------------------------------------------------------------------

# How to decode a field.  The first three are varints, all others begin with their length.
_INTEGER = 0  # with a number of bits
_BOOL = 1
_INTEGERS = 2  # one element of a list; with a number of bits
_TEXT = 3
_MESSAGE = 4  # with this table
_MESSAGES = 5  # one element of a list; with this table
_TEXTS = 6  # one element of a list
_ENTRY = 7  # one entry of a map: a message with this table
_VALUE = 8  # a message with this table, and the function that makes a value from its fields
_BYTES = 9  # with the function to pass them to
_FLATTENED = 10  # a message with this table; in JSON its fields are those of the enclosing object
_PACKED = 11  # all integers of a list; with a number of bits
_VALUES = 12  # one element of a list: a message with this table, and the function that makes a value from its fields
_DOUBLE = 13  # eight bytes

# How to decode, the field's JSON name, the argument (see above), and whether an empty value is kept: Go writes plain
# fields even if they are empty, so an empty value is only meaningful for pointers.
_Step = tuple[int, str, Any, bool]

# By tag: the field's number and, in the last three bits, its wire type.  The few fields of eight bytes are under the
# negative tag, so that all others need not ask for them.
_Table = dict[int, _Step]

_VARINT, _FIXED64, _DELIMITED = 0, 1, 2
_FIXED = {1: 8, 5: 4}  # the sizes of these wire types

_BITS = {"int32": 32, "int64": 64}


def _tag(number: int, wire_type: int) -> int:
    return number << 3 | wire_type


def _table(shape: Shape) -> _Table:
    table: _Table = {}
    shape._forms[_table,] = table  # a shape may contain itself
    for field, facts in shape.fields.items():
        if facts.numbers:
            *outer, number = facts.numbers
            inner = table
            for step in outer:
                inner = inner.setdefault(_tag(step, _DELIMITED), (_FLATTENED, "", {}, True))[2]
            inner.update(_steps(number, field, facts.type, kept=facts.zero in (Zero.KEEP, Zero.NULL)))
    if shape.name == _JSON_SCHEMA:
        table.update(_fields_of_several_types(table))
    return table


def _steps(number: int, name: str, type_: Type, *, kept: bool = True) -> _Table:
    varint, delimited = _tag(number, _VARINT), _tag(number, _DELIMITED)
    if isinstance(type_, Shape):
        return {delimited: (_MESSAGE, name, type_.form(_table), True)}
    if isinstance(type_, MapOf):
        value = _VALUE_LIST if isinstance(type_.of, ListOf) else _steps(2, "value", type_.of)
        return {delimited: (_ENTRY, name, _steps(1, "key", _STRING) | value, True)}
    if isinstance(type_, ListOf):
        return _list_steps(number, name, type_.of)
    match type_.name:
        case "string":
            return {delimited: (_TEXT, name, None, kept)}
        case "int32" | "int64":
            return {varint: (_INTEGER, name, _BITS[type_.name], kept)}
        case "bool":
            return {varint: (_BOOL, name, None, kept)}
        case "float64":
            return {-_tag(number, _FIXED64): (_DOUBLE, name, None, True)}
        case "bytes":
            return {delimited: (_BYTES, name, _base64, True)}
        case special:
            return {delimited: (_VALUE, name, _SPECIAL[special], True)}


def _list_steps(number: int, name: str, of: Type) -> _Table:
    varint, delimited = _tag(number, _VARINT), _tag(number, _DELIMITED)
    if isinstance(of, Shape):
        return {delimited: (_MESSAGES, name, of.form(_table), True)}
    if isinstance(of, Scalar) and of.name in _BITS:
        bits = _BITS[of.name]
        return {varint: (_INTEGERS, name, bits, True), delimited: (_PACKED, name, bits, True)}
    if of == _STRING:
        return {delimited: (_TEXTS, name, None, True)}
    if isinstance(of, Scalar) and of.name in _SPECIAL:
        return {delimited: (_VALUES, name, _SPECIAL[of.name], True)}
    raise TypeError(f"no list in Kubernetes is like {name}")


_JSON_SCHEMA = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"


def _fields_of_several_types(schema: _Table) -> _Table:
    """The fields of a JSON schema that are a schema or something else; each is a message with a field for either."""
    first = {_tag(1, _DELIMITED): (_MESSAGE, "schema", schema, True)}
    several = first | {_tag(2, _DELIMITED): (_MESSAGES, "schemas", schema, True)}
    texts = first | _list_steps(2, "texts", _STRING)
    allowed = _steps(1, "allows", Scalar("bool")) | {_tag(2, _DELIMITED): (_MESSAGE, "schema", schema, True)}

    def steps(number: int, name: str, table: _Table, make: Callable[[Object], Any]) -> _Table:
        return {_tag(number, _DELIMITED): (_VALUE, name, (table, make), True)}

    def either(parts: Object) -> Any:
        return parts.get("schema", parts.get("allows", False))

    dependency = steps(2, "value", texts, lambda parts: parts.get("texts") or parts.get("schema"))
    return {
        **steps(24, "items", several, lambda parts: parts.get("schemas") or parts.get("schema")),
        **steps(30, "additionalProperties", allowed, either),
        **steps(33, "additionalItems", allowed, either),
        _tag(32, _DELIMITED): (_ENTRY, "dependencies", _steps(1, "key", _STRING) | dependency, True),
    }


# --- values that are small messages ----------------------------------------------------------------


def _base64(raw: bytes) -> str:
    return binascii.b2a_base64(raw, newline=False).decode()


def _time(parts: Object) -> str | None:
    # The fraction is ignored, as in Kubernetes, because JSON would not have it either.
    return _second(parts.get("seconds", 0)) if parts else None


@lru_cache(maxsize=1024)
def _second(seconds: int) -> str:
    """Cached, because the conditions of an object mostly have the same time."""
    return times.text_of(_moment(seconds))


def _micro_time(parts: Object) -> str | None:
    return times.micro_text_of(_moment(parts.get("seconds", 0), parts.get("nanos", 0))) if parts else None


def _moment(seconds: int, nanoseconds: int = 0) -> datetime:
    try:
        return datetime.fromtimestamp(seconds, UTC) + timedelta(microseconds=nanoseconds // 1000)
    except (ValueError, OverflowError, OSError) as error:
        raise ProtobufError("time out of range") from error


def _int_or_string(parts: Object) -> int | str:
    value: int | str = parts.get("strVal", "") if parts.get("type") == 1 else parts.get("intVal", 0)
    return value


def _free_form(parts: Object) -> Any:
    try:
        return msgspec.json.decode(parts.get("raw") or b"null")
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ProtobufError("a free-form value is not JSON") from error


_STRING, _INT32, _INT64 = Scalar("string"), Scalar("int32"), Scalar("int64")

_TIMESTAMP = _steps(1, "seconds", _INT64) | _steps(2, "nanos", _INT32)

_SPECIAL: dict[str, tuple[_Table, Callable[[Object], Any]]] = {
    "time": (_TIMESTAMP, _time),
    "microtime": (_TIMESTAMP, _micro_time),
    "quantity": (_steps(1, "text", _STRING), lambda parts: parts.get("text", "0")),
    "int-or-string": (
        _steps(1, "type", _INT64) | _steps(2, "intVal", _INT32) | _steps(3, "strVal", _STRING),
        _int_or_string,
    ),
    "any": ({_tag(1, _DELIMITED): (_BYTES, "raw", bytes, True)}, _free_form),
}

# In protobuf a map's value cannot be a list, so it is a message that contains the list.
_VALUE_LIST: _Table = {
    _tag(2, _DELIMITED): (
        _VALUE,
        "value",
        (_list_steps(1, "items", _STRING), lambda parts: parts.get("items")),
        True,
    )
}

_ENVELOPE: _Table = {
    _tag(1, _DELIMITED): (_MESSAGE, "typeMeta", _steps(1, "apiVersion", _STRING) | _steps(2, "kind", _STRING), True),
    _tag(2, _DELIMITED): (_BYTES, "raw", bytes, True),
}


# --- the wire --------------------------------------------------------------------------------------


def _decode(data: bytes, position: int, table: _Table) -> Object:
    out: Object = {}
    try:
        _read_into(out, data, position, len(data), table)
    except IndexError as error:
        raise ProtobufError("unexpected EOF") from error
    except UnicodeDecodeError as error:
        raise ProtobufError("a text is not UTF-8") from error
    except RecursionError as error:
        raise ProtobufError("nested too deeply") from error
    return out


def _read_into(out: Object, data: bytes, position: int, end: int, table: _Table) -> None:
    """Read one message; written for speed, because every write of a Go client passes through here."""
    find = table.get
    while position < end:
        tag = data[position]
        position += 1
        if tag > 127:
            more = data[position]
            if more < 128:
                tag += (more - 1) << 7
                position += 1
            else:
                tag, position = _varint(data, position - 1)
        step = find(tag)
        if step is None:
            position = _read_double(out, data, position, tag, table)
            continue
        number = data[position]  # a varint's value, or the length of what follows
        position += 1
        if number > 127:
            number, position = _varint(data, position - 1)
        op, name, needed, kept = step
        if not number and not kept:
            if name in out:
                del out[name]
            continue
        if op < _TEXT:
            if op == _INTEGER:
                out[name] = number if number < 0x80000000 else _signed(number, needed)
            elif op == _BOOL:
                out[name] = number != 0
            else:
                out.setdefault(name, []).append(_signed(number, needed))
            continue
        stop = position + number
        if stop > end:
            raise ProtobufError("unexpected EOF")
        if op == _TEXT:
            out[name] = data[position:stop].decode()
        elif op == _MESSAGE:
            part = out.get(name)
            if part is None:
                part = out[name] = {}
            if number:
                _read_into(part, data, position, stop, needed)
        elif op == _MESSAGES:
            part = {}
            _read_into(part, data, position, stop, needed)
            if name in out:
                out[name].append(part)
            else:
                out[name] = [part]
        else:
            _read_rarer(out, data, position, stop, step)
        position = stop
    if position != end:
        raise ProtobufError("unexpected EOF")


def _read_rarer(out: Object, data: bytes, position: int, stop: int, step: _Step) -> None:
    op, name, needed, _ = step
    if op == _ENTRY:
        entry: Object = {}
        _read_into(entry, data, position, stop, needed)
        out.setdefault(name, {})[entry.get("key", "")] = entry.get("value")
    elif op in (_VALUE, _VALUES):
        table, make = needed
        parts: Object = {}
        _read_into(parts, data, position, stop, table)
        if op == _VALUE:
            out[name] = make(parts)
        else:
            out.setdefault(name, []).append(make(parts))
    elif op == _TEXTS:
        out.setdefault(name, []).append(data[position:stop].decode())
    elif op == _FLATTENED:
        _read_into(out, data, position, stop, needed)
    elif op == _BYTES:
        out[name] = needed(data[position:stop])
    elif op == _PACKED:
        numbers = out.setdefault(name, [])
        while position < stop:
            number, position = _varint(data, position)
            numbers.append(_signed(number, needed))
        if position != stop:
            raise ProtobufError("unexpected EOF")


def _read_double(out: Object, data: bytes, position: int, tag: int, table: _Table) -> int:
    """The position after a field of eight bytes that the table contains, or after a field that it does not contain."""
    step = table.get(-tag)
    if step is None:
        return _skip(data, position, tag, table)
    if position + 8 > len(data):
        raise ProtobufError("unexpected EOF")
    (value,) = struct.unpack_from("<d", data, position)
    out[step[1]] = int(value) if value.is_integer() else value  # as Go writes it in JSON
    return position + 8


def _varint(data: bytes, position: int) -> tuple[int, int]:
    result = 0
    for shift in range(0, 64, 7):
        byte = data[position]
        position += 1
        result |= (byte & 127) << shift
        if byte < 128:
            return result & 0xFFFFFFFFFFFFFFFF, position
    raise ProtobufError("proto: integer overflow")


def _signed(number: int, bits: int) -> int:
    number &= (1 << bits) - 1
    return number - (1 << bits) if number >> (bits - 1) else number


def _skip(data: bytes, position: int, tag: int, table: _Table) -> int:
    """The position after a field that the table does not contain."""
    number, wire_type = tag >> 3, tag & 7
    if not number:
        raise ProtobufError(f"proto: illegal tag 0 (wire type {wire_type})")
    for known in (_VARINT, _DELIMITED):
        if step := table.get(_tag(number, known)):
            raise ProtobufError(f"proto: wrong wireType = {wire_type} for field {step[1]}")
    if wire_type == _VARINT:
        return _varint(data, position)[1]
    size = _FIXED.get(wire_type)
    if wire_type == _DELIMITED:
        size, position = _varint(data, position)
    if size is None:
        raise ProtobufError(f"proto: illegal wireType {wire_type}")
    return position + size
