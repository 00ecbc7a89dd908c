"""Validation of a list that is eight times as long compares about eight times as much, whatever kind and list it is.

A rule that compares each entry with all the others takes minutes for a body of 3 MB, while other requests wait.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import msgspec
import pytest

from seamark.errors import ApiError, Object
from seamark.kinds.kind import Kind
from seamark.kinds.language.shape import ListOf, MapOf, Scalar, Shape, Type
from seamark.kinds.table import KINDS
from seamark.kinds.values.fields import alike, repeated
from seamark.kinds.values.metadata import drop_repeated_owners

SHORT, LONG = 25, 200
MOST = 20  # times as many comparisons, if all other things take their share; the square would be 64


class Counted(str):
    """A text that counts how often one is compared."""

    comparisons = 0

    def __eq__(self, other: object) -> bool:
        Counted.comparisons += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def some(type_: Type, i: int, depth: int = 0) -> Any:
    """A value with what is required and what tells entries apart."""
    match type_:
        case Scalar(name):
            numbers = {"int32": i + 1, "int64": i + 1, "float64": 1.5, "bool": True, "any": {}, "quantity": "1"}
            times = {"time": "2026-01-01T00:00:00Z", "microtime": "2026-01-01T00:00:00.000000Z", "bytes": "YQ=="}
            return {**numbers, **times}.get(name, f"x{i}")
        case ListOf(of=of):
            return [some(of, i, depth + 1)]
        case MapOf(of=of):
            return {f"x{i}": some(of, i, depth + 1)}
    return {
        name: some(field.type, i, depth + 1)
        for name, field in type_.fields.items()
        if isinstance(field.type, Scalar) or (field.required and depth < 4)
    }


def places_of_lists(type_: Type, seen: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The ways to every struct that has lists."""
    if isinstance(type_, ListOf | MapOf):
        type_ = type_.of
    if not isinstance(type_, Shape) or type_.name in seen:
        return
    if any(isinstance(field.type, ListOf) for field in type_.fields.values()):
        yield ()
    for name, field in type_.fields.items():
        if name not in ("metadata", "template"):
            yield from ((name, *rest) for rest in places_of_lists(field.type, (*seen, type_.name)))


def filled(type_: Type, way: tuple[str, ...], length: int) -> Any:
    """A value in which all lists of the struct at this place have so many entries."""
    match type_:
        case ListOf(of=of):
            return [filled(of, way, length)]
        case MapOf(of=of):
            return {"x": filled(of, way, length)}
    assert isinstance(type_, Shape)
    made: Object = some(type_, 0, 3)
    if way:
        made[way[0]] = filled(type_.fields[way[0]].type, way[1:], length)
        return made
    for at, (name, field) in enumerate(type_.fields.items()):
        if isinstance(field.type, ListOf):
            made[name] = [some(field.type.of, at * 1000 + i, 1) for i in range(length)]
    return made


def counting(value: Any) -> Any:
    """The value with texts that count, in place of plain ones."""
    if isinstance(value, dict):
        return {name: counting(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [counting(inner) for inner in value]
    return Counted(value) if isinstance(value, str) else value


def comparisons(kind: Kind, way: tuple[str, ...], length: int) -> int:
    made = filled(kind.shape, way, length) | {"metadata": {"name": "x"}}
    obj = counting(kind.conform(made)[0])
    Counted.comparisons = 0
    try:
        kind.default(obj)
        kind.prepare_create(obj)
        kind.validate(obj)
    except ApiError:
        pass
    return Counted.comparisons


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.stored], ids=lambda kind: kind.resource.plural)
def test_no_rule_compares_every_entry_with_every_other(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(msgspec.json, "encode", partial(msgspec.json.encode, enc_hook=str))
    for way in dict.fromkeys(places_of_lists(kind.shape)):
        few, many = comparisons(kind, way, SHORT), comparisons(kind, way, LONG)
        assert many < MOST * max(few, LONG), way


def test_owners_are_looked_up_and_not_compared() -> None:
    assert repeated(["a", "b", "a", "c", "b"]) == [2, 4]
    assert alike({"a": 1, "b": [{}]}) == alike({"b": [{}], "a": 1})
    one, two = ({"kind": "A", "uid": uid} for uid in "12")
    meta: Object = {"ownerReferences": [one, two, dict(reversed(one.items()))]}
    assert drop_repeated_owners(meta)[0].endswith("observed: 1")
    assert meta["ownerReferences"] == [one, two]
