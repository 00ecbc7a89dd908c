"""Converts a JSON value to the scalar that Go would read from it, or raises Go's error.

Each entry of :data:`CONVERTERS` makes a converter for one scalar type; it takes the name of the field's Go type, empty
for the usual one.  A converter has the signature of all converters in ``language.decode``; it ignores the position and
the list of unknown fields, which only structs need.
"""

from __future__ import annotations

import binascii
from collections.abc import Callable
from typing import Any

from seamark.kinds.values import quantity, times

Converter = Callable[[Any, Any, list[str]], Any]

_INT32 = (-(2**31), 2**31 - 1)
_INT64 = (-(2**63), 2**63 - 1)

# Python encodes nested values recursively, so values nested deeper than this could not be written again.
DEEPEST = 200

GO_NAMES = {
    "time": "v1.Time",
    "microtime": "v1.MicroTime",
    "quantity": "resource.Quantity",
    "bytes": "[]uint8",
    "int-or-string": "intstr.IntOrString",
    "any": "runtime.RawExtension",
}

ZERO_VALUES: dict[str, Any] = {
    "string": "",
    "int32": 0,
    "int64": 0,
    "float64": 0,
    "bool": False,
    "bytes": "",
    "quantity": "0",
    "int-or-string": 0,
}


class DecodeError(ValueError):
    """A value has the wrong type; the text is that of Go's decoder.

    ``restoring`` is what Kubernetes says where it makes an object of maps instead, after a strategic merge patch.
    """

    def __init__(self, text: str, restoring: str = "") -> None:
        super().__init__(text)
        self.restoring = restoring or text


class Mismatch(Exception):
    """A value has the wrong type; the caller adds the field's name and raises :class:`DecodeError`.

    ``kind`` is what Go's type is: ``struct``, ``map``, ``slice``, or the name of a plain type.
    """

    def __init__(self, value: Any, go_type: str, kind: str) -> None:
        super().__init__(value)
        self.value, self.go_type, self.kind = value, go_type, kind

    @property
    def found(self) -> str:
        what = found(self.value)
        # Go accepts neither 80.5 nor 80.0 for an integer.
        integer = self.kind.startswith("int") or self.go_type == "int32"
        return f"number {self.value}" if what == "number" and integer else what

    @property
    def restoring(self) -> str:
        given = _GO_KINDS[type(self.value)]
        if self.kind in ("map", "slice"):
            return f"cannot restore {self.kind} from {given}"
        if self.kind == "struct":
            return f"cannot restore struct from: {given}"
        if self.kind == "custom":  # a type with a decoder of its own
            return f"json: cannot unmarshal {self.found} into Go value of type {self.go_type}"
        # Go's types can be converted between these, but not so that the value would stay what it is.
        if (given, self.kind) in (("int64", "string"), ("int64", "int32"), ("float64", "int32"), ("float64", "int64")):
            return f"cannot convert {given} to {self.go_type}"
        return f"unrecognized type: {self.kind}"


_GO_KINDS = {bool: "bool", str: "string", int: "int64", float: "float64", list: "slice", dict: "map"}


def found(value: Any) -> str:
    """Go's name for the type of a JSON value."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "string"
    if isinstance(value, int | float):
        return "number"
    return "array" if isinstance(value, list) else "object"


def _of_class(kind: type, name: str) -> Callable[[str], Converter]:
    def make(go_type: str) -> Converter:
        def convert(value: Any, at: Any, unknown: list[str]) -> Any:
            if value.__class__ is not kind:
                raise Mismatch(value, go_type or name, name)
            return value

        return convert

    return make


def _integer(name: str, limits: tuple[int, int]) -> Callable[[str], Converter]:
    smallest, largest = limits

    def make(go_type: str) -> Converter:
        def convert(value: Any, at: Any, unknown: list[str]) -> Any:
            if value.__class__ is int and smallest <= value <= largest:
                return value
            raise Mismatch(value, go_type or name, name)

        return convert

    return make


def _float(go_type: str) -> Converter:
    def convert(value: Any, at: Any, unknown: list[str]) -> Any:
        if found(value) != "number":
            raise Mismatch(value, go_type or "float64", "float64")
        return value

    return convert


def _int_or_string(go_type: str) -> Converter:
    smallest, largest = _INT32

    def convert(value: Any, at: Any, unknown: list[str]) -> Any:
        if value.__class__ is str or (value.__class__ is int and smallest <= value <= largest):
            return value
        raise Mismatch(value, "int32", "custom")

    return convert


def _bytes(go_type: str) -> Converter:
    def convert(value: Any, at: Any, unknown: list[str]) -> str:
        if value.__class__ is not str:
            raise Mismatch(value, "[]uint8", "slice")
        text: str = value.replace("\r", "").replace("\n", "")
        try:
            return binascii.b2a_base64(binascii.a2b_base64(text, strict_mode=True), newline=False).decode()
        except ValueError:
            raise DecodeError(f"illegal base64 data at input byte {_illegal_base64(value)}") from None

    return convert


_BASE64 = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")


def _illegal_base64(text: str) -> int:
    """The offset in Go's message: the first misplaced byte, or the start of an unfinished group of four."""
    data = text.encode()
    offsets = [offset for offset, byte in enumerate(data) if byte not in b"\r\n"]
    for count, offset in enumerate(offsets):
        if data[offset] in _BASE64:
            continue
        if data[offset] != ord("=") or count % 4 < 2:
            return offset
        end = count - count % 4 + 4  # where the padding should be over
        if end > len(offsets):
            return len(data)
        return offset if data[offsets[end - 1]] != ord("=") else offsets[end - 1] + 1
    return len(data) - len(offsets) % 4


def _timestamp(canonical: Callable[[str], str | None]) -> Callable[[str], Converter]:
    def convert(value: Any, at: Any, unknown: list[str]) -> str | None:
        if value.__class__ is not str:
            raise Mismatch(value, "string", "custom")
        try:
            return canonical(value)
        except times.TimeError as error:
            raise DecodeError(str(error)) from None

    return lambda go_type: convert


def _quantity(go_type: str) -> Converter:
    def convert(value: Any, at: Any, unknown: list[str]) -> str:
        try:
            return quantity.canonical(value if value.__class__ is str else str(value))
        except quantity.QuantityError as error:
            raise DecodeError(str(error)) from None

    return convert


def check_depth(value: Any) -> None:
    """Raise :class:`DecodeError` for a value that is nested too deep for recursive functions."""
    level = [value]
    for _ in range(DEEPEST):
        level = [
            child
            for parent in level
            if parent.__class__ is dict or parent.__class__ is list
            for child in (parent.values() if parent.__class__ is dict else parent)
        ]
        if not level:
            return
    raise DecodeError("exceeded max depth")


def _any(go_type: str) -> Converter:
    def convert(value: Any, at: Any, unknown: list[str]) -> Any:
        check_depth(value)
        return value

    return convert


CONVERTERS: dict[str, Callable[[str], Converter]] = {
    "string": _of_class(str, "string"),
    "int32": _integer("int32", _INT32),
    "int64": _integer("int64", _INT64),
    "float64": _float,
    "bool": _of_class(bool, "bool"),
    "bytes": _bytes,
    "time": _timestamp(times.canonical),
    "microtime": _timestamp(times.canonical_micro),
    "quantity": _quantity,
    "int-or-string": _int_or_string,
    "any": _any,
}
