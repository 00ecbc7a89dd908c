"""Rules of schemas: what they see, when they hold, and what instances that break them are told."""

from __future__ import annotations

from typing import Any

import pytest

from seamark.errors import Object
from seamark.kinds.extensions import rule_checks, rules
from seamark.kinds.extensions.checking import ABSENT


def _schema(rule: str, of: Object | None = None, **more: Any) -> Object:
    inner = of or {"type": "integer"}
    return {"type": "object", "properties": {"a": {**inner, "x-kubernetes-validations": [{"rule": rule, **more}]}}}


def _outcome(schema: Object, value: Any, old: Any = ABSENT) -> rules.Outcome:
    run = rules.runner(schema)
    assert run is not None
    outcome = rules.Outcome()
    run(value, old, "", outcome)
    return outcome


def _told(schema: Object, value: Any, old: Any = ABSENT) -> list[str]:
    return [f"{error.field}: {error.message}" for error in _outcome(schema, value, old).errors]


def _mistakes(schema: Object) -> list[str]:
    return [f"{error.field}: {error.message}" for error in rule_checks.mistakes(schema, "s")]


def test_a_broken_rule_tells_the_value_of_a_scalar() -> None:
    assert _told(_schema("self > 1"), {"a": 1}) == ["a: Invalid value: 1: failed rule: self > 1"]
    assert _told(_schema("self > 1"), {"a": 2}) == []
    assert _told(_schema("self > 1"), {"a": None}) == []


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        ("FieldValueRequired", "Required value: m"),
        ("FieldValueForbidden", "Forbidden: m"),
        ("FieldValueDuplicate", "Duplicate value: 1"),
        ("FieldValueInvalid", "Invalid value: 1: m"),
    ],
)
def test_reasons(reason: str, message: str) -> None:
    (error,) = _outcome(_schema("false", reason=reason, message="m"), {"a": 1}).errors
    assert (error.reason, error.message) == (reason, message)


@pytest.mark.parametrize("expression", ["''", "'a\\nb'", "string(1 / 0)"])
def test_a_message_expression_that_says_nothing_gives_way(expression: str) -> None:
    assert _told(_schema("false", message="m", messageExpression=expression), {"a": 1}) == ["a: Invalid value: 1: m"]


def test_a_transition_rule_needs_an_old_value() -> None:
    schema = _schema("self >= oldSelf")
    assert _told(schema, {"a": 1}) == []
    assert _told(schema, {"a": 1}, {}) == []
    assert _told(schema, {"a": 1}, {"a": 2}) == ["a: Invalid value: 1: failed rule: self >= oldSelf"]


def test_an_optional_old_value_is_there_at_creation() -> None:
    schema = _schema("oldSelf.hasValue() || self == 1", optionalOldSelf=True)
    assert _told(schema, {"a": 1}) == []
    assert len(_told(schema, {"a": 2})) == 1
    assert _told(schema, {"a": 2}, {"a": 1}) == []


def test_a_value_that_did_not_change_is_tolerated() -> None:
    outcome = _outcome(_schema("self > 5"), {"a": 1}, {"a": 1})
    assert outcome.errors == []
    assert len(outcome.tolerated) == 1


def test_a_transition_rule_is_never_tolerated() -> None:
    assert len(_told(_schema("self > oldSelf"), {"a": 1}, {"a": 1})) == 1


def test_items_of_a_plain_list_have_no_old_values() -> None:
    inner = {"type": "integer", "x-kubernetes-validations": [{"rule": "self > 5"}]}
    schema = {"type": "object", "properties": {"l": {"type": "array", "items": inner}}}
    assert _told(schema, {"l": [1]}, {"l": [1]}) == ["l[0]: Invalid value: 1: failed rule: self > 5"]


def test_failures_have_sentences() -> None:
    assert _told(_schema("10 / self > 0"), {"a": 0}) == [
        'a: Invalid value: "integer": division by zero evaluating rule: 10 / self > 0'
    ]
    schema = _schema("self.startsWith('x')", {"x-kubernetes-int-or-string": True}, message="m")
    assert _told(schema, {"a": 5}) == [
        "a: Invalid value: \"\": 'no such overload': call arguments did not match a supported operator, function or "
        "macro signature for rule: m"
    ]


def test_a_rule_that_would_run_for_ever_is_stopped_and_ends_the_others() -> None:
    loop = "self.all(x, self.all(y, self.all(z, x + y + z >= 0)))"
    of = {"type": "array", "items": {"type": "integer"}}
    schema = _schema(loop, of, message="m")
    schema["properties"]["b"] = {"type": "integer", "x-kubernetes-validations": [{"rule": "false"}]}
    assert _told(schema, {"a": list(range(1000)), "b": 1}) == [
        "a: Invalid value: \"array\": 'operation cancelled: actual cost limit exceeded': no further validation rules "
        "will be run due to call cost exceeds limit for rule: m"
    ]


def test_rules_share_a_budget() -> None:
    inner = {"type": "array", "items": {"type": "integer"}}
    rule = {"rule": "self.all(x, self.all(y, x + y >= 0))"}
    items = {**inner, "x-kubernetes-validations": [rule]}
    schema = {"type": "object", "properties": {"l": {"type": "array", "items": items}}}
    told = _told(schema, {"l": [list(range(350))] * 30})
    assert len(told) == 1
    assert told[0].endswith(
        "validation failed due to running out of cost budget, no further validation rules will be run"
    )


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ({"rule": " "}, "rule: Required value: rule is not specified"),
        (
            {"rule": "true", "messageExpression": " "},
            "messageExpression: Required value: messageExpression must be non-empty if specified",
        ),
        ({"rule": "", "message": " "}, "rule: Required value: rule is not specified"),
        ({"rule": "true", "message": "a\rb"}, 'message: Invalid value: "a\\rb": must not contain line breaks'),
        ({"rule": "true", "fieldPath": ".b"}, 'fieldPath: Invalid value: ".b": must be a valid path'),
        (
            {"rule": "true", "optionalOldSelf": False},
            "optionalOldSelf: Invalid value: false: may not be set if oldSelf is not used in rule",
        ),
    ],
)
def test_what_a_rule_must_satisfy(rule: Object, told: str) -> None:
    assert _mistakes(_schema(rule.pop("rule"), **rule)) == [f"s.properties[a].x-kubernetes-validations[0].{told}"]


def _bounded(**bounds: int) -> Object:
    element = {"type": "string", "maxLength": 100, "x-kubernetes-validations": [{"rule": "self.matches('^[a-z]+$')"}]}
    return {"type": "object", "properties": {"l": {"type": "array", "items": element, **bounds}}}


def test_rules_are_compiled_only_when_all_their_words_are_in_order() -> None:
    schema = _schema("self.nothing > 1")
    assert "compilation failed" in _mistakes(schema)[0]
    schema["properties"]["a"]["x-kubernetes-validations"].append({"rule": "true", "fieldPath": " "})
    place = "s.properties[a].x-kubernetes-validations[1].fieldPath"
    assert _mistakes(schema) == [
        f'{place}: Invalid value: " ": must be non-empty if specified',
        f'{place}: Invalid value: " ": must be a valid path',
    ]


def test_the_cost_of_a_rule_counts_for_every_place() -> None:
    assert _mistakes(_bounded(maxItems=100)) == []
    first, *others = _mistakes(_bounded())
    assert "estimated rule cost exceeds budget by factor of" in first
    assert others == [] or "entire OpenAPIv3 schema" in others[-1]
    (only,) = _mistakes(_bounded(maxItems=200_000))
    assert "exceeds budget by factor of 1.7x" in only


def test_sets_and_map_lists_are_joined_by_what_their_items_are() -> None:
    texts = {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}
    assert (
        _told(_schema("self + ['b', 'c'] == ['a', 'b', 'c'] && size(self + self) == 2", texts), {"a": ["a", "b"]}) == []
    )
    item = {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "integer"}}}
    keyed = {"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}
    old, new = [{"k": "a", "v": 1}, {"k": "b", "v": 2}], [{"k": "b", "v": 3}, {"k": "c", "v": 4}]
    rule = "(oldSelf + self).map(i, i.v) == [1, 3, 4]"
    assert _told(_schema(rule, keyed), {"a": new}, {"a": old}) == []
    assert _told(_schema(rule, keyed), {"a": old}, {"a": new}) != []
    plain = {"type": "array", "items": {"type": "string"}}
    assert _told(_schema("size(self + self) == 4", plain), {"a": ["a", "b"]}) == []
