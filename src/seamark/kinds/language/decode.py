"""Brings decoded JSON into the form that Go's decoding and encoding would give it.

:func:`conform` drops unknown fields and nulls, drops or fills empty values as the shape says, brings quantities and
times into their canonical form, and rejects wrong types with Go's messages.  Every write passes through it, so each
shape is compiled once, on first use, into nested functions.  Paths are linked tuples until an error or a warning needs
the text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from seamark.errors import Object
from seamark.kinds.language.scalars import CONVERTERS, GO_NAMES, ZERO_VALUES, DecodeError, Mismatch, found
from seamark.kinds.language.shape import Field, ListOf, MapOf, Scalar, Shape, Type, Zero

__all__ = ["DecodeError", "conform", "found", "path_text"]

# A position in the object: the parent's position, and the last step: a field's name, a list's index or a map's key.
At = tuple["At", str | int | tuple[str]] | None
Convert = Callable[[Any, At, list[str]], Any]


def conform(value: Any, shape: Shape) -> tuple[Object, list[str]]:
    """The object in its normal form, and the paths of its unknown fields in order of appearance.

    All dicts and lists are new; only values of type ``any`` are shared with the input.
    """
    unknown: list[str] = []
    try:
        obj: Object = shape.form(_compile)(value, None, unknown)
    except Mismatch as wrong:
        text = f"json: cannot unmarshal {wrong.found} into Go value of type {wrong.go_type}"
        raise DecodeError(text, wrong.restoring) from None
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
    """The path without list indices and map keys, as in Go's errors."""
    names: list[str] = []
    while at is not None:
        at, step = at
        if isinstance(step, str):
            names.append(step)
    return ".".join(reversed(names))


# --- structs ---------------------------------------------------------------------------------------

# Scalars that are checked by their class alone; all other types have a converter.
_PLAIN: dict[str, type] = {"string": str, "bool": bool, "int32": int, "int64": int}


def _compile(shape: Shape) -> Convert:
    """The function that conforms a value to this shape."""
    plain = {
        name: _PLAIN[field.type.name]
        for name, field in shape.fields.items()
        if isinstance(field.type, Scalar) and field.type.name in _PLAIN
    }
    steps: dict[str, Convert] = {}
    for name, field in shape.fields.items():
        steps[name] = _on_first_use(steps, name, field)
    kept = frozenset(name for name, field in shape.fields.items() if _keeps_empty(field))
    fills = [(name, *_fill(field)) for name, field in shape.fields.items() if field.zero in (Zero.FILL, Zero.NULL)]
    go_name = shape.go_name

    def convert(value: Any, at: At, unknown: list[str]) -> Object:
        if value.__class__ is not dict:
            raise Mismatch(value, f"v1.{go_name}", "struct")
        out: Object = {}
        for name, item in value.items():
            kind = item.__class__
            # Most fields are plain scalars, so they are checked here without a function call.
            if plain.get(name) is kind and (kind is not int or -2147483648 <= item <= 2147483647):
                if item or name in kept:
                    out[name] = item
                continue
            step = steps.get(name)
            if step is None:
                unknown.append(path_text((at, name)))
            elif item is not None:
                try:
                    item = step(item, (at, name), unknown)
                except Mismatch as wrong:
                    raise DecodeError(
                        f"json: cannot unmarshal {wrong.found} into Go struct field "
                        f"{go_name}.{_field_path((at, name))} of type {wrong.go_type}",
                        wrong.restoring,
                    ) from None
                if item or (item is not None and name in kept):
                    out[name] = item
        for name, zero, make in fills:
            if name not in out:
                out[name] = make({}, None, unknown) if make else zero
        return out

    return convert


def _on_first_use(steps: dict[str, Convert], name: str, field: Field) -> Convert:
    """Compile a field's converter on first use: a Pod has 150 shapes, of which most Pods use ten."""

    def convert(value: Any, at: At, unknown: list[str]) -> Any:
        steps[name] = _converter(field.type, field.go_type)
        return steps[name](value, at, unknown)

    return convert


def _keeps_empty(field: Field) -> bool:
    """Whether an empty value stays.  Empty lists and maps with FILL do not stay: they become null."""
    containers = isinstance(field.type, ListOf | MapOf)
    return field.zero in (Zero.KEEP, Zero.NULL) or (field.zero is Zero.FILL and not containers)


def _fill(field: Field) -> tuple[Any, Convert | None]:
    """The value for an absent field: the value itself, or the function that makes it from an empty struct."""
    if field.zero is Zero.NULL or isinstance(field.type, ListOf | MapOf):
        return None, None
    if isinstance(field.type, Scalar):
        return ZERO_VALUES.get(field.type.name), None
    return None, field.type.form(_compile)


# --- lists and maps ---------------------------------------------------------------------------------


def _converter(type_: Type, go_type: str) -> Convert:
    if isinstance(type_, Shape):
        return type_.form(_compile)
    if isinstance(type_, ListOf):
        return _list_converter(type_.of, go_type)
    if isinstance(type_, MapOf):
        return _map_converter(type_.of, go_type)
    return CONVERTERS[type_.name](go_type)


def _go_name(type_: Type) -> str:
    if isinstance(type_, Shape):
        return f"v1.{type_.go_name}"
    if isinstance(type_, ListOf):
        return "[]" + _go_name(type_.of)
    if isinstance(type_, MapOf):
        return "map[string]" + _go_name(type_.of)
    return GO_NAMES.get(type_.name, type_.name)


_STRINGS = {str}


def _element(of: Type, go_type: str) -> tuple[Convert, Convert]:
    """The converter for an element of a list or map, and the one for a null element: it gives the type's zero value."""
    zero, make = _fill(Field(of, Zero.FILL))
    return (
        _converter(of, go_type if isinstance(of, Scalar) else ""),
        lambda value, at, unknown: make({}, None, unknown) if make else zero,
    )


def _list_converter(of: Type, go_type: str) -> Convert:
    go_type = go_type or "[]" + _go_name(of)
    element, null = _element(of, go_type[2:] if go_type.startswith("[]") else "")
    only_strings = isinstance(of, Scalar) and of.name == "string"

    def convert(value: Any, at: At, unknown: list[str]) -> list[Any]:
        if value.__class__ is not list:
            raise Mismatch(value, go_type, "slice")
        if only_strings and _STRINGS.issuperset(map(type, value)):
            return value.copy()
        return [(null if item is None else element)(item, (at, index), unknown) for index, item in enumerate(value)]

    return convert


def _map_converter(of: Type, go_type: str) -> Convert:
    go_type = go_type or "map[string]" + _go_name(of)
    element, null = _element(of, go_type.removeprefix("map[string]") if go_type.startswith("map[string]") else "")
    only_strings = isinstance(of, Scalar) and of.name == "string"

    def convert(value: Any, at: At, unknown: list[str]) -> Object:
        if value.__class__ is not dict:
            raise Mismatch(value, go_type, "map")
        if only_strings and _STRINGS.issuperset(map(type, value.values())):
            return value.copy()
        return {key: (null if item is None else element)(item, (at, (key,)), unknown) for key, item in value.items()}

    return convert
