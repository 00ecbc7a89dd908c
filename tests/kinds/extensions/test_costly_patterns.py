"""Patterns and schemas that take long are left to a thread, so that others are answered meanwhile."""

from __future__ import annotations

import pytest

from seamark.errors import Object
from seamark.haste import Costly, at_once
from seamark.kinds.extensions.checking import ABSENT, validator
from seamark.kinds.extensions.definition import DEFINITION
from seamark.kinds.extensions.regex import compiled
from seamark.kinds.values.fields import Errors

LARGE = "(a|b)*a(a|b){200}c"  # each letter of a text may take hundreds of steps


def definition(schema: Object) -> Object:
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    obj, _ = DEFINITION.conform({"metadata": {"name": "widgets.example.com"}, "spec": spec})
    DEFINITION.default(obj)
    DEFINITION.prepare_create(obj)
    return obj


def mistakes(pattern: str, text: str) -> Errors:
    errors: Errors = []
    validator({"type": "string", "pattern": pattern})(text, ABSENT, None, errors)
    return errors


def test_a_long_text_is_not_matched_on_the_event_loop() -> None:
    assert not compiled(LARGE)("ab"), "from now on it is compiled"
    assert len(at_once(lambda: mistakes(LARGE, "ab" * 10))) == 1
    with pytest.raises(Costly):
        at_once(lambda: mistakes(LARGE, "ab" * 50_000))
    assert len(mistakes(LARGE, "ab" * 1000)) == 1


def test_many_short_texts_are_no_better_than_a_long_one() -> None:
    compiled(LARGE)
    with pytest.raises(Costly):
        at_once(lambda: [mistakes(LARGE, "ab" * 100) for _ in range(1000)])


def test_a_pattern_that_may_be_large_is_not_compiled_on_the_event_loop() -> None:
    obj = definition({"type": "object", "properties": {"a": {"type": "string", "pattern": r"\pL{1,9}costly"}}})
    with pytest.raises(Costly):
        at_once(lambda: DEFINITION.validate(obj))
    assert DEFINITION.validate(obj) == []
    assert at_once(lambda: DEFINITION.validate(obj)) == [], "now it is compiled"


def test_a_large_definition_is_not_validated_on_the_event_loop() -> None:
    few, many = ({f"p{i}": {"type": "string"} for i in range(count)} for count in (20, 3000))
    assert at_once(lambda: DEFINITION.validate(definition({"type": "object", "properties": few}))) == []
    with pytest.raises(Costly):
        at_once(lambda: DEFINITION.validate(definition({"type": "object", "properties": many})))


@pytest.mark.parametrize(
    ("choices", "value", "fits"),
    [
        ([1, "a"], 1.0, True),
        ([1], True, False),
        ([True], 1, False),
        (["1"], 1, False),
        ([{"a": [1, {}]}], {"a": [1.0, {}]}, True),
        ([{"a": 1}], {"a": True}, False),
        ([[1, 2]], [2, 1], False),
        ([None], None, True),
        ([{}], [], False),
    ],
)
def test_choices_are_looked_up(choices: list[object], value: object, fits: bool) -> None:
    errors: Errors = []
    validator({"enum": choices})(value, ABSENT, None, errors)
    assert (errors == []) is fits
