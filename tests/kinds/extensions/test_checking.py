"""What a schema says of values, in Kubernetes' words."""

from __future__ import annotations

from typing import Any

import pytest

from seamark.kinds.extensions.checking import ABSENT, validator


def mistakes(schema: Any, value: Any, old: Any = ABSENT) -> list[str]:
    errors: list[Any] = []
    validator({"type": "object", "properties": {"a": schema}})({"a": value}, old, None, errors)
    return [f"{error.field}: {error.message}" for error in errors]


@pytest.mark.parametrize(
    ("schema", "good", "bad", "said"),
    [
        ({"type": "string"}, "x", 5, 'a: Invalid value: "integer": a in body must be of type string: "integer"'),
        ({"type": "integer"}, 5.0, "5", 'a: Invalid value: "string": a in body must be of type integer: "string"'),
        ({"type": "number"}, 1.5, True, 'a: Invalid value: "boolean": a in body must be of type number: "boolean"'),
        (
            {"type": "integer", "minimum": 2},
            2,
            1,
            "a: Invalid value: 1: a in body should be greater than or equal",
        ),
        (
            {"type": "integer", "maximum": 2, "exclusiveMaximum": True},
            1,
            2,
            "a: Invalid value: 2: a in body should be less than 2",
        ),
        ({"type": "integer", "multipleOf": 5}, 10, 7, "a: Invalid value: 7: a in body should be a multiple of 5"),
        ({"type": "string", "pattern": "^[0-9]+$"}, "1", "1\n", 'a: Invalid value: "1\\n": a in body should match '),
        ({"type": "string", "enum": ["x", "y"]}, "x", "z", 'a: Unsupported value: "z": supported values: "x", "y"'),
        ({"type": "string", "format": "ipv4"}, "1.2.3.4", "::1", 'a: Invalid value: "::1": a in body must be of type'),
        ({"type": "object", "additionalProperties": {"type": "string"}}, {"k": "v"}, {"k": 1}, "a.k: Invalid value"),
        ({"type": "array", "items": {"type": "string"}}, ["x"], ["x", 1], "a[1]: Invalid value"),
        ({"type": "string", "nullable": True}, None, 1, "a: Invalid value"),
        (
            {"type": "string", "minLength": 2, "maxLength": 3},
            "äöü",
            "äöüß",
            "a: Too long: may not be more than 3",
        ),
    ],
)
def test_each_keyword(schema: Any, good: Any, bad: Any, said: str) -> None:
    assert mistakes(schema, good) == []
    assert mistakes(schema, bad)[0].startswith(said)


def test_true_is_not_one() -> None:
    assert mistakes({"type": "integer", "enum": [1]}, True)
    assert mistakes({"enum": [1]}, True)


def test_what_was_wrong_before_may_stay() -> None:
    schema = {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "size": {"type": "integer", "maximum": 3}},
        },
    }
    old = {"a": [{"name": "x", "size": 9}]}
    assert mistakes(schema, [{"name": "y", "size": 1}, {"name": "x", "size": 9}], old) == []
    assert len(mistakes(schema, [{"name": "x", "size": 8}], old)) == 1


def test_alternatives() -> None:
    schema = {"type": "object", "oneOf": [{"required": ["x"]}, {"required": ["y"]}]}
    assert mistakes(schema, {"x": 1}) == []
    assert mistakes(schema, {"x": 1, "y": 1})[0].endswith("(oneOf). Found 2 valid alternatives")
    assert mistakes({"not": {"enum": ["x"]}}, "x")[0].endswith('"a" must not validate the schema (not)')


def test_a_value_that_comes_three_times_is_reported_once() -> None:
    schema = {"type": "array", "items": {"type": "integer"}, "x-kubernetes-list-type": "set"}
    assert mistakes(schema, [1, 1, 1]) == ["a[1]: Duplicate value: 1"]
