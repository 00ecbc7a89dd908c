"""Types of expressions, which of them fit which, and the signatures of functions.

A type may know more than expressions need: the fields of an object with their real names, how long a text or list can
be (for the estimation of cost), and how a value from a document becomes one of this type.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

import msgspec

from seamark.cel import values

Convert = Callable[[Any], Any]
UNKNOWN_SIZE = (1 << 64) - 1
_MOST_PARTS = 1000


class Field(msgspec.Struct, frozen=True):
    """A field of an object: its name in documents, and its type."""

    name: str
    type: Type


class Type(msgspec.Struct, eq=False):
    """``kind`` is one of the names below, ``object``, ``opaque`` or ``param``; ``name`` tells objects apart."""

    kind: str
    name: str = ""
    params: tuple[Type, ...] = ()
    fields: Mapping[str, Field] | None = None
    most: int | None = None  # characters, bytes, elements or entries
    least_size: int = 1  # bytes, in a document
    convert: Convert | None = None
    list_type: str = ""  # x-kubernetes-list-type
    keys: tuple[str, ...] = ()  # x-kubernetes-list-map-keys
    parts: int = 1  # how many types its name names, each as often as it does

    def __post_init__(self) -> None:
        self.parts = 1 + sum(inner.parts for inner in self.params)

    def __str__(self) -> str:
        """The name as Kubernetes prints it where a type is asked for."""
        name = _LONG_NAMES.get(self.kind) or self.name or self.kind
        return f"{name}({', '.join(map(str, self.params))})" if self.params else name


_LONG_NAMES = {
    "null": "null_type",
    "timestamp": "google.protobuf.Timestamp",
    "duration": "google.protobuf.Duration",
    "optional": "optional_type",
}


def shown(type: Type) -> str:
    """The name in mistakes that the checker reports."""
    name = "optional_type" if type.kind == "optional" else type.name or type.kind
    return f"{name}({', '.join(map(shown, type.params))})" if type.params else name


BOOL, INT, UINT, DOUBLE = Type("bool"), Type("int"), Type("uint"), Type("double")
STRING, BYTES, NULL = Type("string"), Type("bytes"), Type("null")
TIMESTAMP, DURATION = Type("timestamp"), Type("duration")
DYN, ERROR = Type("dyn"), Type("error", "!error!")
_PLAIN = {type.kind: type for type in (BOOL, INT, UINT, DOUBLE, STRING, BYTES, NULL, TIMESTAMP, DURATION, DYN)}
_NAMED = {
    **_PLAIN,
    "null_type": NULL,
    "google.protobuf.Timestamp": TIMESTAMP,
    "google.protobuf.Duration": DURATION,
}


def list_of(element: Type, most: int | None = None) -> Type:
    return Type("list", params=(element,), most=most)


def map_of(key: Type, value: Type, most: int | None = None) -> Type:
    """``{x: x}`` has twice the parts of ``x``: of a type with very many, no more is known than that it is one."""
    made = Type("map", params=(key, value), most=most)
    return made if made.parts <= _MOST_PARTS else DYN


def optional_of(value: Type) -> Type:
    return Type("optional", params=(value,))


def type_of(value: Type) -> Type:
    return Type("type", params=(value,))


def opaque(name: str, *params: Type) -> Type:
    return Type("opaque", name, params)


def object_of(name: str, fields: Mapping[str, Type]) -> Type:
    """An object whose fields have the same names in documents."""
    return Type("object", name, fields={key: Field(key, type) for key, type in fields.items()})


LIST, MAP = list_of(DYN), map_of(DYN, DYN)


def named_type(name: str) -> Type | None:
    """The type that a name stands for in an expression."""
    if name in ("list", "map", "type"):
        return {"list": LIST, "map": MAP, "type": type_of(DYN)}[name]
    return _NAMED.get(name)


# --- which type fits which ------------------------------------------------------------------------------


class Substitution:
    """What the parameters of signatures stand for, in one expression."""

    def __init__(self) -> None:
        self._types: dict[str, Type] = {}
        self._fresh = 0

    def fresh(self, type: Type, renamed: dict[str, Type]) -> Type:
        """The type with parameters of its own."""
        if type.kind == "param":
            if type.name not in renamed:
                self._fresh += 1
                renamed[type.name] = Type("param", f"_var{self._fresh}")
            return renamed[type.name]
        if not type.params:
            return type
        return Type(type.kind, type.name, tuple(self.fresh(inner, renamed) for inner in type.params))

    def copy(self) -> Substitution:
        made = Substitution()
        made._types, made._fresh = dict(self._types), self._fresh
        return made

    def take(self, other: Substitution) -> None:
        self._types, self._fresh = other._types, other._fresh

    def resolved(self, type: Type, *, unknown: Type | None = None) -> Type:
        """The type with its parameters replaced; those that mean nothing become ``unknown``."""
        if type.kind == "param":
            found = self._types.get(type.name)
            if found is None:
                return unknown or type
            return self.resolved(found, unknown=unknown)
        if not any(_open(inner) for inner in type.params):
            return type
        params = tuple(self.resolved(inner, unknown=unknown) for inner in type.params)
        return msgspec.structs.replace(type, params=params)

    def fits(self, wanted: Type, given: Type) -> bool:
        """Whether a value of one type can be used as one of another; learns what parameters stand for."""
        wanted, given = self._known(wanted), self._known(given)
        if wanted is given:
            return True
        if given.kind == "param":
            return self._learn(given, wanted)
        if wanted.kind == "param":
            return self._learn(wanted, given)
        if wanted.kind in ("dyn", "error") or given.kind in ("dyn", "error"):
            return True
        if wanted.kind == "null" or given.kind == "null":
            other = given if wanted.kind == "null" else wanted
            return other.kind in ("null", "object", "opaque", "timestamp", "duration", "optional")
        if wanted.kind != given.kind or wanted.name != given.name:
            return False
        if wanted.kind == "type":
            return True
        return len(wanted.params) == len(given.params) and all(map(self.fits, wanted.params, given.params))

    def _known(self, type: Type) -> Type:
        while type.kind == "param" and type.name in self._types:
            type = self._types[type.name]
        return type

    def _learn(self, param: Type, type: Type) -> bool:
        if _mentions(self.resolved(type), param.name):
            return False
        self._types[param.name] = type
        return True


def _open(type: Type) -> bool:
    return type.kind == "param" or any(map(_open, type.params))


def _mentions(type: Type, name: str) -> bool:
    return type.name == name if type.kind == "param" else any(_mentions(inner, name) for inner in type.params)


def joined(one: Type, other: Type) -> Type:
    """The type of a value that is of one of two types: the more general one."""
    return one if one.kind == "dyn" or other.kind == "error" else other if other.kind == "dyn" else one


# --- functions --------------------------------------------------------------------------------------------


class Overload(msgspec.Struct, frozen=True, eq=False):
    """One signature of a function and what carries it out."""

    function: str
    member: bool
    params: tuple[Type, ...]
    result: Type
    run: Callable[..., Any]
    suits: Callable[..., bool]  # whether it takes these values

    @property
    def id(self) -> str:
        return f"{self.function}({', '.join(map(shown, self.params))})"


Functions = Mapping[str, list[Overload]]

_CLASSES: dict[str, type | tuple[type, ...]] = {
    "bool": bool,
    "uint": values.Uint,
    "double": float,
    "string": str,
    "bytes": bytes,
    "null": type(None),
    "list": list,
    "map": dict,
    "object": dict,
    "timestamp": values.Timestamp,
    "duration": values.Duration,
    "optional": values.Optional,
    "type": values.TypeValue,
}


def is_of(value: Any, type: Type) -> bool:
    """Whether a value is of a type, as far as its outside tells."""
    kind = type.kind
    if kind in ("dyn", "param"):
        return True
    if kind == "int":
        return value.__class__ is int
    if kind == "opaque":
        return getattr(value, "type_name", "") == type.name
    return isinstance(value, _CLASSES[kind])


_signature = re.compile(
    r"(?:(?P<target>[^()]+?)\.)?(?P<name>[\w.@?!_+\-*/%<>=&|:\[\]]+)\((?P<args>.*)\) -> (?P<result>.+)"
)
_word = re.compile(r"\s*([\w.]+|[<>,])")


def overload(signature: str, run: Callable[..., Any], *, name: str = "") -> Overload:
    """From ``string.split(string, int) -> list<string>``; a capital letter alone is a parameter.

    ``name`` is the function's whole name where it has dots itself.
    """
    before, _, result = signature.rpartition(" -> ")
    head, _, rest = before.partition("(")
    target, function = "", name or head
    if not name and "." in head and not head.startswith("_"):
        target, _, function = head.rpartition(".")
    params = tuple(_listed(f"{target},{rest[:-1]}" if target else rest[:-1]))

    def suits(*given: Any) -> bool:
        return len(given) == len(params) and all(map(is_of, given, params))

    return Overload(function, bool(target), params, read(result), run, suits)


@lru_cache(maxsize=512)
def read(text: str) -> Type:
    """A type from its name in a signature, such as ``map<K, list<int>>``."""
    return next(_listed(text))


def _listed(text: str) -> Iterator[Type]:
    words = [match[1] for match in _word.finditer(text)] if text.strip() else []
    position = 0

    def one() -> Type:
        nonlocal position
        word = words[position]
        position += 1
        params: list[Type] = []
        if position < len(words) and words[position] == "<":
            while words[position] != ">":
                position += 1
                params.append(one())
            position += 1
        if word in _PLAIN:
            return _PLAIN[word]
        if word in ("list", "map", "optional", "type"):
            return Type(word, params=tuple(params))
        return Type("param", word) if len(word) == 1 else opaque(word, *params)

    while position < len(words):
        if words[position] == ",":
            position += 1
            continue
        yield one()
