"""Decoded JSON → the object Go would make of it: what Kubernetes' decoding and encoding do to what a client sends.

:func:`conform` drops unknown fields and nulls, drops or fills empty values as the shape says, brings quantities and
times into their canonical form, and refuses wrong types in Go's words.  Every write passes through it, so each shape is
compiled once, on first use, into nested functions; paths exist only as linked tuples until somebody needs their text.
"""

from __future__ import annotations

import binascii
from collections.abc import Callable
from typing import Any

from seamark.errors import Object
from seamark.kinds import quantity, times
from seamark.kinds.shape import Field, ListOf, MapOf, Scalar, Shape, Type, Zero

# Where in the object we are: the way there, and the last step: a field's name, a list's index or a map's key.
At = tuple["At", str | int | tuple[str]] | None
Convert = Callable[[Any, At, list[str]], Any]
Fill = Callable[[], Any]

INT32 = (-(2**31), 2**31 - 1)
INT64 = (-(2**63), 2**63 - 1)

# Python encodes nested values recursively; what nobody could encode again is better refused.
DEEPEST = 200


class DecodeError(ValueError):
    """The value does not have its type; the text is what Go's decoder would say."""


class _Mismatch(Exception):
    """A value of the wrong type, before anyone knew which field it was for."""

    def __init__(self, found: str, go_type: str) -> None:
        super().__init__(found)
        self.found, self.go_type = found, go_type


def conform(value: Any, shape: Shape) -> tuple[Object, list[str]]:
    """The object in its normal form, in new containers (but ``any`` values), and the paths of its unknown fields in order."""
    unknown: list[str] = []
    convert = _compiled.get(shape.name) or compile_shape(shape)
    try:
        obj: Object = convert(value, None, unknown)
    except _Mismatch as wrong:
        raise DecodeError(f"json: cannot unmarshal {wrong.found} into Go value of type {wrong.go_type}") from None
    return obj, unknown


def path_text(at: At) -> str:
    """``spec.ports[0].name``"""
    if at is None:
        return ""
    parent, step = at
    before = path_text(parent)
    if isinstance(step, int):
        return f"{before}[{step}]"
    name = step if isinstance(step, str) else step[0]
    return f"{before}.{name}" if before else name


def _field_path(at: At) -> str:
    """The fields of structs only: Go's errors name neither indices nor map keys."""
    names: list[str] = []
    while at is not None:
        at, step = at
        if isinstance(step, str):
            names.append(step)
    return ".".join(reversed(names))


def found(value: Any) -> str:
    """What Go calls a JSON value of this kind."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "string"
    if isinstance(value, int | float):
        return "number"
    return "array" if isinstance(value, list) else "object"


# --- structs ---------------------------------------------------------------------------------------

_compiled: dict[str, Convert] = {}


class _Step:
    """How one field is converted.  Compiled when first met: a Pod has 150 shapes, most Pods use ten."""

    __slots__ = ("_convert", "field", "keep")

    def __init__(self, field: Field) -> None:
        self.field = field
        containers = isinstance(field.type, ListOf | MapOf)
        # Whether an empty value stays; lists and maps that are filled are filled with null.
        self.keep = field.zero in (Zero.KEEP, Zero.NULL) or (field.zero is Zero.FILL and not containers)
        self._convert: Convert | None = None

    @property
    def convert(self) -> Convert:
        if self._convert is None:
            self._convert = _converter(self.field.type, self.field.go_type)
        return self._convert


def compile_shape(shape: Shape) -> Convert:
    """The function that conforms a value to this shape."""
    known = _compiled.get(shape.name)
    if known is not None:
        return known
    strings = {
        name: field.zero is not Zero.DROP
        for name, field in shape.fields.items()
        if isinstance(field.type, Scalar) and field.type.name == "string"
    }
    steps = {name: _Step(field) for name, field in shape.fields.items()}
    fills = [(name, _filler(field)) for name, field in shape.fields.items() if field.zero in (Zero.FILL, Zero.NULL)]
    go_type = f"v1.{shape.go_name}"

    def convert(value: Any, at: At, unknown: list[str]) -> Object:
        if value.__class__ is not dict:
            raise _Mismatch(found(value), go_type)
        out: Object = {}
        for name, item in value.items():
            if item is None:
                if name not in steps:
                    unknown.append(path_text((at, name)))
                continue
            # Strings are most of all fields, so they are checked here, without a call.
            if item.__class__ is str and name in strings:
                if item or strings[name]:
                    out[name] = item
                continue
            step = steps.get(name)
            if step is None:
                unknown.append(path_text((at, name)))
                continue
            try:
                item = step.convert(item, (at, name), unknown)
            except _Mismatch as wrong:
                raise DecodeError(
                    f"json: cannot unmarshal {wrong.found} into Go struct field "
                    f"{shape.go_name}.{_field_path((at, name))} of type {wrong.go_type}"
                ) from None
            if item or (item is not None and step.keep):
                out[name] = item
        for name, fill in fills:
            if name not in out:
                out[name] = fill()
        return out

    _compiled[shape.name] = convert
    return convert


def _filler(field: Field) -> Fill:
    """What stands where nothing was given."""
    if field.zero is Zero.NULL or isinstance(field.type, ListOf | MapOf):
        return _nothing
    if isinstance(field.type, Scalar):
        zero = _ZERO_VALUES.get(field.type.name)
        return lambda: zero
    shape = field.type
    return lambda: compile_shape(shape)({}, None, [])


def _nothing() -> None:
    return None


_ZERO_VALUES: dict[str, Any] = {
    "string": "",
    "int32": 0,
    "int64": 0,
    "float64": 0,
    "bool": False,
    "bytes": "",
    "quantity": "0",
    "int-or-string": 0,
}


# --- lists, maps and scalars -----------------------------------------------------------------------


def _converter(type_: Type, go_type: str = "") -> Convert:
    if isinstance(type_, Shape):
        return compile_shape(type_)
    if isinstance(type_, ListOf):
        return _list_converter(type_.of, go_type)
    if isinstance(type_, MapOf):
        return _map_converter(type_.of, go_type)
    return _SCALARS[type_.name](go_type)


def _go_name(type_: Type) -> str:
    if isinstance(type_, Shape):
        return f"v1.{type_.go_name}"
    if isinstance(type_, ListOf):
        return "[]" + _go_name(type_.of)
    if isinstance(type_, MapOf):
        return "map[string]" + _go_name(type_.of)
    return _GO_NAMES.get(type_.name, type_.name)


def _zero_element(of: Type) -> Fill:
    """A null inside a list or map is its element's zero value."""
    return _filler(Field(of, Zero.FILL))


def _list_converter(of: Type, go_type: str) -> Convert:
    go_type = go_type or "[]" + _go_name(of)
    convert_element = _converter(of, go_type[2:] if isinstance(of, Scalar) and go_type.startswith("[]") else "")
    zero = _zero_element(of)
    only_strings = isinstance(of, Scalar) and of.name == "string"

    def convert(value: Any, at: At, unknown: list[str]) -> list[Any]:
        if value.__class__ is not list:
            raise _Mismatch(found(value), go_type)
        if only_strings and all(item.__class__ is str for item in value):
            return list(value)
        return [
            zero() if item is None else convert_element(item, (at, index), unknown) for index, item in enumerate(value)
        ]

    return convert


def _map_converter(of: Type, go_type: str) -> Convert:
    go_type = go_type or "map[string]" + _go_name(of)
    named = isinstance(of, Scalar) and go_type.startswith("map[string]")
    convert_element = _converter(of, go_type.removeprefix("map[string]") if named else "")
    zero = _zero_element(of)
    only_strings = isinstance(of, Scalar) and of.name == "string"

    def convert(value: Any, at: At, unknown: list[str]) -> Object:
        if value.__class__ is not dict:
            raise _Mismatch(found(value), go_type)
        if only_strings and all(item.__class__ is str for item in value.values()):
            return dict(value)
        return {
            key: zero() if item is None else convert_element(item, (at, (key,)), unknown) for key, item in value.items()
        }

    return convert


def _string(go_type: str) -> Convert:
    def convert(value: Any, at: At, unknown: list[str]) -> str:
        if value.__class__ is not str:
            raise _Mismatch(found(value), go_type or "string")
        return value  # type: ignore[no-any-return]  # its class was just compared

    return convert


def _integer(name: str, limits: tuple[int, int]) -> Callable[[str], Convert]:
    smallest, largest = limits

    def make(go_type: str) -> Convert:
        def convert(value: Any, at: At, unknown: list[str]) -> int:
            if value.__class__ is int and smallest <= value <= largest:
                return value  # type: ignore[no-any-return]  # its class was just compared
            what = found(value)
            # Go reads integers only: neither 80.5 nor 80.0.
            raise _Mismatch(f"number {value}" if what == "number" else what, go_type or name)

        return convert

    return make


def _float(go_type: str) -> Convert:
    def convert(value: Any, at: At, unknown: list[str]) -> float:
        if found(value) != "number":
            raise _Mismatch(found(value), go_type or "float64")
        return value  # type: ignore[no-any-return]  # a number, as just seen

    return convert


def _bool(go_type: str) -> Convert:
    def convert(value: Any, at: At, unknown: list[str]) -> bool:
        if value.__class__ is not bool:
            raise _Mismatch(found(value), go_type or "bool")
        return value  # type: ignore[no-any-return]  # its class was just compared

    return convert


def _bytes(go_type: str) -> Convert:
    def convert(value: Any, at: At, unknown: list[str]) -> str:
        if value.__class__ is not str:
            raise _Mismatch(found(value), "[]uint8")
        text: str = value.replace("\r", "").replace("\n", "")
        try:
            return binascii.b2a_base64(binascii.a2b_base64(text, strict_mode=True), newline=False).decode()
        except (binascii.Error, ValueError):
            raise DecodeError(f"illegal base64 data at input byte {_illegal_base64(value)}") from None

    return convert


_BASE64 = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")


def _illegal_base64(text: str) -> int:
    """The offset Go complains about: the first byte out of place, or the end of an unfinished group of four."""
    group = 0
    for offset, character in enumerate(text.encode().decode("latin-1")):
        if character in "\r\n":
            continue
        if character == "=" and group >= 2:
            rest = text[offset:].replace("\r", "").replace("\n", "")
            padding = 4 - group
            return offset + padding if rest.startswith("=" * padding) else offset + len(rest.rstrip())
        if character not in _BASE64:
            return offset
        group = (group + 1) % 4
    return len(text) - group


def _time(go_type: str) -> Convert:
    return _timestamp(times.canonical)


def _microtime(go_type: str) -> Convert:
    return _timestamp(times.canonical_micro)


def _timestamp(canonical: Callable[[str], str | None]) -> Convert:
    def convert(value: Any, at: At, unknown: list[str]) -> str | None:
        if value.__class__ is not str:
            raise _Mismatch(found(value), "string")
        try:
            return canonical(value)
        except times.TimeError as error:
            raise DecodeError(str(error)) from None

    return convert


def _quantity(go_type: str) -> Convert:
    def convert(value: Any, at: At, unknown: list[str]) -> str:
        try:
            return quantity.canonical(value if value.__class__ is str else str(value))
        except quantity.QuantityError as error:
            raise DecodeError(str(error)) from None

    return convert


def _int_or_string(go_type: str) -> Convert:
    integer = _integer("int32", INT32)("")

    def convert(value: Any, at: At, unknown: list[str]) -> int | str:
        return value if value.__class__ is str else integer(value, at, unknown)

    return convert


def _any(go_type: str) -> Convert:
    def convert(value: Any, at: At, unknown: list[str]) -> Any:
        level = [value]
        for _ in range(DEEPEST):
            level = [
                child
                for parent in level
                if parent.__class__ is dict or parent.__class__ is list
                for child in (parent.values() if parent.__class__ is dict else parent)
            ]
            if not level:
                return value
        raise DecodeError("exceeded max depth")

    return convert


_GO_NAMES = {
    "time": "v1.Time",
    "microtime": "v1.MicroTime",
    "quantity": "resource.Quantity",
    "bytes": "[]uint8",
    "int-or-string": "intstr.IntOrString",
    "any": "runtime.RawExtension",
}

_SCALARS: dict[str, Callable[[str], Convert]] = {
    "string": _string,
    "int32": _integer("int32", INT32),
    "int64": _integer("int64", INT64),
    "float64": _float,
    "bool": _bool,
    "bytes": _bytes,
    "time": _time,
    "microtime": _microtime,
    "quantity": _quantity,
    "int-or-string": _int_or_string,
    "any": _any,
}
