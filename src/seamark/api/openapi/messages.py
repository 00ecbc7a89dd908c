"""Members of gnostic's messages, in which Go clients read OpenAPI: the same for both dialects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from seamark.errors import Object
from seamark.kinds.language.protobuf_writing import member, varint


def named(number: int, values: Mapping[str, bytes]) -> bytes:
    """A repeated message of a name and a value."""
    return b"".join(member(number, member(1, name.encode()) + member(2, value)) for name, value in values.items())


def texts(value: Mapping[str, Any], numbers: Mapping[str, int]) -> bytes:
    return b"".join(member(number, value[name].encode()) for name, number in numbers.items() if value.get(name))


def lists(value: Mapping[str, Iterable[str]], numbers: Mapping[str, int]) -> bytes:
    return b"".join(member(number, text.encode()) for name, number in numbers.items() for text in value.get(name, ()))


def flag(number: int, value: bool) -> bytes:
    return varint(number << 3) + b"\x01" if value else b""


def as_yaml(value: Any) -> bytes:
    """Anything, as YAML (JSON is YAML)."""
    return member(2, msgspec.json.encode(value))


def extensions(number: int, value: Object) -> bytes:
    """The members with names that begin with ``x-``."""
    return named(number, {name: as_yaml(item) for name, item in value.items() if name.startswith("x-")})
