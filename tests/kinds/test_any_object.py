"""Odd objects that have the shape of their kind: each is either taken or refused, by every kind and every door."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from kind_rules import NOW, change, create, shaped

from seamark.errors import ApiError, Object
from seamark.kinds.kind import Kind
from seamark.kinds.language.shape import ListOf, MapOf, Scalar, Shape, Type
from seamark.kinds.table import KINDS
from seamark.kinds.values.times import parse

WORDS = [
    "",
    "a",
    "A_b",
    "x.y",
    "example.com/x",
    "10.0.0.1",
    "fd00::1",
    "10.0.0.0/24",
    "..",
    "/abs",
    "Always",
    "In",
    "web",
]
OBJECTS_PER_KIND = 60
# Kinds that demand so little that chance will do now and then; the others have tests of their own for good objects.
EASY = {"ConfigMap", "Endpoints", "Namespace", "Node", "Secret", "ServiceAccount", "ControllerRevision", "Lease"}


class Author:
    """Writes objects of any shape; the same seed writes the same ones."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def write(self, type_: Type, depth: int = 0) -> Any:
        match type_:
            case Scalar(name):
                return self.scalar(name)
            case ListOf(of=of):
                return [self.write(of, depth + 1) for _ in range(self.random.choice((0, 1, 1, 2)))]
            case MapOf(of=of):
                return {
                    self.random.choice(WORDS): self.write(of, depth + 1) for _ in range(self.random.choice((0, 1, 2)))
                }
            case Shape(fields=fields):
                chance = 0.9 if depth < 2 else 0.35 if depth < 6 else 0.1
                return {
                    name: self.write(field.type, depth + 1)
                    for name, field in fields.items()
                    if self.random.random() < chance and name != "managedFields"
                }

    def scalar(self, name: str) -> Any:
        chosen = {
            "string": WORDS,
            "int32": [0, 1, -1, 80, 70000],
            "int64": [0, 1, -1, 1 << 40],
            "float64": [0.5],
            "bool": [True, False],
            "bytes": ["", "eA==", "e30="],
            "time": [None, NOW],
            "microtime": [None, "2038-01-19T03:14:07.000001Z"],
            "quantity": ["0", "1", "100m", "1Gi", "-1", "1500u"],
            "int-or-string": [0, 80, "25%", "web", ""],
            "any": [{}, {"a": 1}],
        }
        return self.random.choice(chosen[name])


def written(kind: Kind, seed: int) -> Object:
    body = Author(seed).write(kind.shape)
    assert isinstance(body, dict)
    return {**body, "metadata": {"name": "x"}}  # metadata has rules of its own, tested apart


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.resource.qualified)
def test_every_object_is_taken_or_refused(kind: Kind) -> None:
    taken = 0
    for seed in range(OBJECTS_PER_KIND):
        body = written(kind, seed)
        try:
            obj = create(kind, body)
        except ApiError:
            continue
        taken += 1
        assert kind.from_stored(kind.to_stored(obj)) == obj
        assert set(kind.fields(obj)) >= set(kind.field_names) - {"status.podIPs"}
        assert len(list(kind.row(obj, parse(NOW)))) == len(kind.columns)
        kind.warnings(obj, None)
        kind.status_warnings(obj)
        kind.grace_seconds(obj, None)
        kind.held(obj)
    assert taken or kind.resource.kind not in EASY, "some of them are good enough"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.resource.qualified)
def test_every_change_is_taken_or_refused(kind: Kind) -> None:
    doors = ["", *(sub.name for sub in kind.subresources if sub.kind == kind.resource.kind and "update" in sub.verbs)]
    for seed in range(OBJECTS_PER_KIND):
        old = shaped(kind, written(kind, seed))
        kind.default(old)
        old["metadata"]["creationTimestamp"] = NOW
        for door in doors:
            try:
                change(kind, old, written(kind, seed + 1), door)
            except ApiError:
                continue


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.resource.qualified)
def test_filling_in_twice_changes_nothing(kind: Kind) -> None:
    for seed in range(OBJECTS_PER_KIND):
        once = shaped(kind, written(kind, seed))
        kind.default(once)
        assert shaped(kind, once) == once, "what was filled in is as Go would encode it"
        twice = json.loads(json.dumps(once))
        kind.default(twice)
        assert twice == once
