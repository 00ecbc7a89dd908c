"""The type of a built-in kind in expressions, from its shape."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from seamark.cel.types import BOOL, BYTES, DOUBLE, DYN, INT, STRING, TIMESTAMP, Field, Type, list_of, map_of
from seamark.kinds.expressions.schema_types import escaped
from seamark.kinds.language import shape as shapes
from seamark.kinds.language.shape import ListOf, MapOf, ScalarName, Shape

# Texts and numbers alike are quantities and ports, so what they are is known only when they are read.
_SCALARS: dict[ScalarName, Type] = {
    "string": STRING,
    "int32": INT,
    "int64": INT,
    "float64": DOUBLE,
    "bool": BOOL,
    "bytes": BYTES,
    "time": TIMESTAMP,
    "microtime": TIMESTAMP,
}


class _Fields(Mapping[str, Field]):
    """The fields of a shape, made when they are first asked for, because shapes refer to each other in circles."""

    def __init__(self, shape: Shape, name: str) -> None:
        self._shape = shape
        self._name = name
        self._made: dict[str, Field] | None = None

    def _all(self) -> dict[str, Field]:
        if self._made is None:
            self._made = {
                word: Field(name, _type(field.type, f"{self._name}.{name}"))
                for name, field in self._shape.fields.items()
                if (word := escaped(name)) is not None
            }
        return self._made

    def __getitem__(self, name: str) -> Field:
        return self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())


def type_of_shape(shape: Shape, name: str) -> Type:
    return Type("object", name, fields=_Fields(shape, name))


def _type(given: shapes.Type, name: str) -> Type:
    if isinstance(given, Shape):
        return DYN if given.open else type_of_shape(given, name)
    if isinstance(given, ListOf):
        return list_of(_type(given.of, f"{name}.@idx"))
    if isinstance(given, MapOf):
        return map_of(STRING, _type(given.of, f"{name}.@prop"))
    return _SCALARS.get(given.name, DYN)
