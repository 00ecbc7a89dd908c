"""Kubernetes' protobuf encoding → the value JSON would have had, so that everything after is the same.

Go clients like to write in it (``kubectl create deployment`` does).  A message is read by its shape, whose fields know
their numbers; what comes out still has to be conformed.  A body is an envelope: a magic prefix, then a message with the
apiVersion, the kind and the object's bytes.
"""

from __future__ import annotations

import binascii
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import msgspec

from seamark.errors import Object
from seamark.kinds import shapes, times
from seamark.kinds.shape import ListOf, MapOf, Scalar, Shape, Type

MAGIC = b"k8s\x00"

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_FIXED = {_FIXED64: 8, _FIXED32: 4}
_NUMBERS = {"int32", "int64", "bool"}

# The steps of a message: its fields by number, or the steps of a message that JSON flattens.
Steps = dict[int, "tuple[str, Type] | Steps"]


class ProtobufError(ValueError):
    """The bytes are not the message they should be."""


def unwrap(body: bytes) -> tuple[str, str, bytes]:
    """The apiVersion, the kind and the message in a body."""
    if not body.startswith(MAGIC):
        expected = " ".join(map(str, MAGIC))
        raise ProtobufError(f"provided data does not appear to be a protobuf message, expected prefix [{expected}]")
    api_version = kind = ""
    message = b""
    for number, value in members(body[len(MAGIC) :]):
        if number == 1:
            for inner, text in members(_bytes(value)):
                if inner == 1:
                    api_version = _text(text)
                elif inner == 2:
                    kind = _text(text)
        elif number == 2:
            message = _bytes(value)
    return api_version, kind, message


def read(message: bytes, shape: Shape) -> Object:
    """The object in a message of this shape, not yet conformed to it."""
    out: Object = {}
    _read_into(out, message, _steps(shape.name), shape.go_name)
    return out


@cache
def _steps(name: str) -> Steps:
    steps: Steps = {}
    for field, facts in shapes.of(name).fields.items():
        if facts.numbers:
            at = steps
            for number in facts.numbers[:-1]:
                inner = at.setdefault(number, {})
                assert isinstance(inner, dict)
                at = inner
            at[facts.numbers[-1]] = (field, facts.type)
    return steps


def _read_into(out: Object, message: bytes, steps: Steps, name: str) -> None:
    for number, value in members(message):
        step = steps.get(number)
        if step is None:
            # Go writes plain fields even if they are empty; only what would be lost is refused.
            if value and any(value if isinstance(value, bytes) else (1,)):
                raise ProtobufError(f"field {number} of {name} is not known in protobuf here: send the object as JSON")
        elif isinstance(step, dict):
            _read_into(out, _bytes(value), step, name)
        else:
            field, type_ = step
            if isinstance(type_, ListOf):
                out.setdefault(field, []).extend(_elements(value, type_.of))
            elif isinstance(type_, MapOf):
                key, item = _entry(_bytes(value), type_.of)
                out.setdefault(field, {})[key] = item
            else:
                out[field] = _value(value, type_)


def _elements(value: int | bytes, of: Type) -> list[Any]:
    """One element, or several numbers packed into one field."""
    if isinstance(value, bytes) and isinstance(of, Scalar) and of.name in _NUMBERS:
        numbers, position = [], 0
        while position < len(value):
            number, position = _varint(value, position)
            numbers.append(_value(number, of))
        return numbers
    return [_value(value, of)]


def _entry(message: bytes, of: Type) -> tuple[str, Any]:
    """One key and value of a map; either is left out when it is empty."""
    key = ""
    item: Any = None
    for number, value in members(message):
        if number == 1:
            key = _text(value)
        elif number == 2:
            # A list inside a map is a message with its elements as field 1.
            item = (
                [_value(e, of.of) for _, e in members(_bytes(value))] if isinstance(of, ListOf) else _value(value, of)
            )
    return key, item


def _value(value: int | bytes, type_: Type) -> Any:
    if isinstance(type_, Shape):
        return read(_bytes(value), type_)
    if not isinstance(type_, Scalar):
        raise ProtobufError("lists of lists do not exist")
    match type_.name:
        case "string":
            return _text(value)
        case "int32" | "int64":
            return _signed(value)
        case "bool":
            return bool(_signed(value))
        case "bytes":
            return binascii.b2a_base64(_bytes(value), newline=False).decode()
        case "time" | "microtime":
            return _time(dict(members(_bytes(value))), micro=type_.name == "microtime")
        case "quantity":
            return _text(dict(members(_bytes(value))).get(1, b"")) or "0"
        case "int-or-string":
            parts = dict(members(_bytes(value)))
            return _text(parts.get(3, b"")) if parts.get(1) else _signed(parts.get(2, 0))
        case "any":
            return _json(_bytes(dict(members(_bytes(value))).get(1, b"null")))
        case other:
            raise ProtobufError(f"{other} does not travel in protobuf")


def _time(parts: dict[int, int | bytes], *, micro: bool) -> str | None:
    if not parts:
        return None
    try:
        moment = datetime.fromtimestamp(_signed(parts.get(1, 0)), UTC)
        moment += timedelta(microseconds=_signed(parts.get(2, 0)) // 1000)
        return times.micro_text_of(moment) if micro else times.text_of(moment)
    except (ValueError, OverflowError, OSError) as error:
        raise ProtobufError("time out of range") from error


def _json(raw: bytes) -> Any:
    try:
        return msgspec.json.decode(raw)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise ProtobufError("a free-form value is not JSON") from error


# --- the wire --------------------------------------------------------------------------------------


def members(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Every field's number and raw value."""
    position, end = 0, len(message)
    while position < end:
        tag, position = _varint(message, position)
        number, wire_type = tag >> 3, tag & 7
        if wire_type == _VARINT:
            value, position = _varint(message, position)
            yield number, value
            continue
        if wire_type == _BYTES:
            size, position = _varint(message, position)
        elif wire_type in _FIXED:
            size = _FIXED[wire_type]
        else:
            raise ProtobufError(f"proto: illegal wireType {wire_type}")
        if size > end - position:
            raise ProtobufError("unexpected EOF")
        yield number, message[position : position + size]
        position += size


def _varint(message: bytes, position: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        if position >= len(message):
            raise ProtobufError("unexpected EOF")
        byte = message[position]
        position += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result & 0xFFFFFFFFFFFFFFFF, position
        shift += 7
        if shift >= 64:
            raise ProtobufError("proto: integer overflow")


def _signed(value: int | bytes) -> int:
    if isinstance(value, bytes):
        raise ProtobufError("proto: wrong wireType")
    return value - 2**64 if value >= 2**63 else value


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise ProtobufError("proto: wrong wireType")
    return value


def _text(value: int | bytes) -> str:
    try:
        return _bytes(value).decode()
    except UnicodeDecodeError as error:
        raise ProtobufError("a text is not UTF-8") from error
