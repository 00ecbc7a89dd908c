"""Encodes objects in Kubernetes' protobuf encoding, which Go clients ask for first.

The counterpart of :mod:`seamark.kinds.language.protobuf`, made from the same shapes.  A field that JSON leaves out is
left out here too: Go reads it as its zero value either way.
"""

from __future__ import annotations

import binascii
import struct
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from typing import Any

import msgspec

from seamark.errors import Object
from seamark.kinds.language import shapes
from seamark.kinds.language.protobuf import MAGIC
from seamark.kinds.language.shape import Field, ListOf, MapOf, Shape, Type, Zero
from seamark.remembering import remembered

Write = Callable[[Any], bytes]

_VARINT, _FIXED64, _DELIMITED = 0, 1, 2
_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def envelope(api_version: str, kind: str, message: bytes) -> bytes:
    """A whole answer: the object's message with its apiVersion and kind."""
    meta = _text(1)(api_version) + _text(2)(kind)
    # Go writes the two empty texts at the end (content encoding and type) as well.
    return MAGIC + member(1, meta) + member(2, message) + b"\x1a\x00\x22\x00"


def document(value: Object) -> bytes:
    """A whole answer, by the apiVersion and kind that it says."""
    return envelope(value["apiVersion"], value["kind"], write(value, _shape(value["apiVersion"], value["kind"])))


def listed(listing: Object, messages: Iterable[bytes]) -> bytes:
    """The message of a list; ``listing`` is its metadata, ``messages`` are its items."""
    return member(1, write(listing, shapes.of(_META + "ListMeta"))) + b"".join([member(2, one) for one in messages])


def event(type: str, whole: bytes) -> bytes:
    """One event of a watch; ``whole`` is the object in its envelope.  The length comes first, in four bytes."""
    message = _text(1)(type) + member(2, member(1, whole))
    return len(message).to_bytes(4, "big") + message


def write(obj: Object, shape: Shape) -> bytes:
    """The message of an object that was conformed to its shape."""
    return shape.form(_message)(obj)


def writable(shape: Shape) -> bool:
    """Whether every field that objects of this shape can have has a protobuf number.

    Kinds that are added while the server runs have none, and those of a few new fields are not known.
    """
    seen = {shape}
    unread = [shape]
    while unread:
        for name, facts in unread.pop().fields.items():
            if not facts.numbers and name not in ("apiVersion", "kind"):
                return False
            inner = facts.type
            while isinstance(inner, ListOf | MapOf):
                inner = inner.of
            if isinstance(inner, Shape) and inner not in seen:
                seen.add(inner)
                unread.append(inner)
    return True


def member(number: int, message: bytes) -> bytes:
    """A field that is a message."""
    return _delimited(number)(message)


@cache
def _shape(api_version: str, kind: str) -> Shape:
    built_in = shapes.load()
    if kind.startswith("PartialObjectMetadata"):
        one = Shape(f"{_META}PartialObjectMetadata", {"metadata": _numbered(1, built_in[_META + "ObjectMeta"])})
        if not kind.endswith("List"):
            return one
        listing = {"metadata": _numbered(1, built_in[_META + "ListMeta"]), "items": _numbered(2, ListOf(one))}
        return Shape(f"{_META}PartialObjectMetadataList", listing)
    return built_in[built_in.kinds[api_version, kind]]


def _numbered(number: int, type_: Type) -> Field:
    return Field(type_, Zero.FILL, numbers=(number,))


# --- what is made of a shape -----------------------------------------------------------------------


class _Message:
    """Writes the fields of one message: those JSON has in the same object, and messages that JSON flattens into it."""

    __slots__ = ("_fields", "_flattened", "_numbered")

    def __init__(self) -> None:
        self._numbered: list[tuple[int, str, Write]] = []
        self._flattened: dict[int, _Message] = {}
        self._fields: list[tuple[str, Write]] = []

    def add(self, numbers: tuple[int, ...], name: str, type_: Type) -> None:
        number, *inner = numbers
        if inner:
            self._flattened.setdefault(number, _Message()).add(tuple(inner), name, type_)
        else:
            self._numbered.append((number, name, _writer(number, type_)))

    def __call__(self, obj: Object) -> bytes:
        if not self._fields:
            # Only now, because shapes refer to each other in circles.
            self._fields = [(name, write_field) for _, name, write_field in sorted(self._numbered, key=lambda f: f[0])]
        find = obj.get
        parts = [write_field(value) for name, write_field in self._fields if (value := find(name)) is not None]
        for number, inner in self._flattened.items():
            if message := inner(obj):
                parts.append(member(number, message))
        return b"".join(parts)


def _message(shape: Shape) -> _Message:
    made = _Message()
    shape._forms[_message,] = made  # a shape may contain itself
    for name, facts in shape.fields.items():
        if facts.numbers:
            made.add(facts.numbers, name, facts.type)
    return made


def _writer(number: int, type_: Type) -> Write:
    if isinstance(type_, Shape):
        return _nested(number, type_.form(_message))
    if isinstance(type_, ListOf):
        one = _writer(number, type_.of)
        return lambda items: b"".join(map(one, items))
    if isinstance(type_, MapOf):
        return _map(number, type_)
    match type_.name:
        case "string":
            return _text(number)
        case "int32" | "int64":
            return _integer(number)
        case "bool":
            true, false = (_tag(number, _VARINT) + bytes([value]) for value in (1, 0))
            return lambda value: true if value else false
        case "float64":
            tag = _tag(number, _FIXED64)
            return lambda value: tag + struct.pack("<d", value)
        case "bytes":
            return _nested(number, binascii.a2b_base64)
        case special:
            return _nested(number, _SPECIAL[special])


def _map(number: int, type_: MapOf) -> Write:
    key, whole = _text(1), _delimited(number)
    if isinstance(type_.of, ListOf):
        # A map's value cannot be a list, so it is a message that contains the list.
        value = _nested(2, _writer(1, type_.of))
    else:
        value = _writer(2, type_.of)

    def write_entries(entries: Object) -> bytes:
        parts = []
        for name in sorted(entries):
            item = entries[name]
            parts.append(whole(key(name) if item is None else key(name) + value(item)))
        return b"".join(parts)

    return write_entries


def _nested(number: int, make: Write) -> Write:
    whole = _delimited(number)
    return lambda value: whole(make(value))


def _text(number: int) -> Write:
    whole = _delimited(number)
    return lambda value: whole(value.encode())


def _integer(number: int) -> Write:
    tag = _tag(number, _VARINT)
    return lambda value: tag + varint(value)


def _delimited(number: int) -> Write:
    tag = _tag(number, _DELIMITED)

    def whole(message: bytes) -> bytes:
        size = len(message)
        return b"%b%c%b" % (tag, size, message) if size < 128 else b"%b%b%b" % (tag, varint(size), message)

    return whole


@lru_cache(maxsize=1024)
def _tag(number: int, wire_type: int) -> bytes:
    return varint(number << 3 | wire_type)


def varint(number: int) -> bytes:
    """An integer, seven bits to a byte; a negative one takes ten bytes."""
    if 0 <= number < 128:
        return bytes((number,))
    number &= 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


# --- values that are small messages ----------------------------------------------------------------


@remembered(1024)
def _time(text: str) -> bytes:
    """Seconds and nanoseconds.  Cached, because the conditions of an object mostly have the same time."""
    moment = datetime.fromisoformat(text)
    seconds = (moment - _EPOCH) // timedelta(seconds=1)
    return _integer(1)(seconds) + _integer(2)(moment.microsecond * 1000)


def _int_or_string(value: int | str) -> bytes:
    if isinstance(value, str):
        return _integer(1)(1) + _integer(2)(0) + _text(3)(value)
    return _integer(1)(0) + _integer(2)(value) + _text(3)("")


_SPECIAL: dict[str, Write] = {
    "time": _time,
    "microtime": _time,
    "quantity": _text(1),
    "int-or-string": _int_or_string,
    "any": lambda value: member(1, msgspec.json.encode(value)),
}
