"""The quick yes or no is the one that the words give."""

from __future__ import annotations

from typing import Any

import pytest
from bench.rig.schemas import DEPLOYMENT, deployment, like
from hypothesis import example, given
from hypothesis import strategies as st

from seamark.kinds.extensions import checking, quick

SCALARS = st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from([1.0, 2.5, 2**31, 2**63, "", "a", "ab", "c"])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)


def optional(**parts: Any) -> Any:
    return st.fixed_dictionaries({}, optional=parts)


TEXTS = optional(
    enum=st.just(["a", "ab"]),
    pattern=st.sampled_from(["^a", "b$", "c"]),
    minLength=st.integers(0, 2),
    maxLength=st.integers(0, 2),
    format=st.sampled_from(["ipv4", "date", "unknown"]),
).map(lambda schema: {"type": "string", **schema})
NUMBERS = optional(
    minimum=st.integers(-2, 2),
    maximum=st.sampled_from([1, 2.5, 4]),
    exclusiveMinimum=st.booleans(),
    exclusiveMaximum=st.booleans(),
    multipleOf=st.just(2),
    enum=st.just([1, 2, 3]),
)
INTEGERS = st.tuples(NUMBERS, optional(format=st.sampled_from(["int32", "int64", "odd"]))).map(
    lambda parts: {"type": "integer", **parts[0], **parts[1]}
)
MIXED = optional(pattern=st.just("^a"), maxLength=st.just(1), anyOf=st.just([{"type": "integer"}, {"type": "string"}]))
LEAVES = (
    TEXTS
    | INTEGERS
    | NUMBERS.map(lambda schema: {"type": "number", **schema})
    | MIXED.map(lambda schema: {"x-kubernetes-int-or-string": True, **schema})
    | st.just({"type": "boolean"})
    | st.just({"x-kubernetes-preserve-unknown-fields": True})
)
ALTERNATIVES = st.sampled_from([{"required": ["a"]}, {"properties": {"b": {"enum": ["a"]}}}, {"maxProperties": 1}])


def containers(inner: Any) -> Any:
    limits = optional(nullable=st.booleans())
    lists = optional(minItems=st.just(1), maxItems=st.just(2))
    sets = st.sampled_from(
        [
            {},
            {"x-kubernetes-list-type": "set"},
            {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"]},
            {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a", "b"]},
        ]
    )
    objects = optional(
        properties=st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
        required=st.lists(st.sampled_from("abc"), max_size=2),
        minProperties=st.just(1),
        oneOf=st.lists(ALTERNATIVES, min_size=1, max_size=2),
        **{"not": ALTERNATIVES},
    )
    maps = optional(additionalProperties=inner | st.booleans(), maxProperties=st.just(2))
    return (
        st.tuples(limits, lists, sets, inner).map(
            lambda parts: {"type": "array", "items": parts[3], **parts[0], **parts[1], **parts[2]}
        )
        | st.tuples(limits, objects).map(lambda parts: {"type": "object", **parts[0], **parts[1]})
        | st.tuples(limits, maps).map(lambda parts: {"type": "object", **parts[0], **parts[1]})
    )


KEYED = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"]}


@given(st.recursive(LEAVES, containers, max_leaves=6), st.lists(VALUES, max_size=6))
@example(
    {"type": "array", "items": {"type": "object"}, "minItems": 1, **KEYED}, [[{"a": 1}, {"a": 2}], [{}, {"a": None}]]
)
@example({"type": "integer", "maximum": 4, "exclusiveMaximum": True}, [3, 4, 5])
@example({"type": "integer", "minimum": 1, "exclusiveMinimum": True, "format": "int32"}, [0, 1, 2])
def test_both_agree(schema: Any, values: list[Any]) -> None:
    test, check = quick.tester(schema), checking.validator(schema)
    for value in values:
        errors: list[Any] = []
        check(value, checking.ABSENT, None, errors)
        assert test(value) is (not errors), (schema, value, errors)


def test_nothing_of_a_large_schema_is_made_before_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    real = quick.tester
    monkeypatch.setattr(quick, "tester", lambda schema: made.append(schema) or real(schema))
    test = real(like(DEPLOYMENT, 500_000))
    assert test(deployment("x"))
    assert 0 < len(made) < 60
    before = len(made)
    assert test(deployment("y"))
    assert len(made) == before
