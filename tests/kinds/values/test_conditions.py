"""The rules that the conditions of newer APIs have in common."""

from __future__ import annotations

from typing import Any

import pytest

from seamark.errors import Object
from seamark.kinds.values.conditions import conditions_mistakes


def condition(**more: Any) -> Object:
    whole = {"type": "Ready", "status": "True", "reason": "Done", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    return {**whole, **more}


def test_a_whole_condition_is_right() -> None:
    assert conditions_mistakes([condition(), condition(type="example.com/Other", reason="A,B:c_")], "c") == []


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"status": "Maybe"}, 'status: Unsupported value: "Maybe": supported values: "False", "True", "Unknown"'),
        ({"observedGeneration": -1}, "observedGeneration: Invalid value: -1: must be greater than or equal to zero"),
        ({"lastTransitionTime": None}, "lastTransitionTime: Required value: must be set"),
        ({"reason": ""}, "reason: Required value: must be set"),
        ({"reason": "x" * 1025}, "reason: Too long: may not be more than 1024 bytes"),
        ({"message": "x" * 32769}, "message: Too long: may not be more than 32768 bytes"),
    ],
)
def test_what_is_wrong(more: Object, expected: str) -> None:
    (mistake,) = conditions_mistakes([condition(**more)], "c")
    assert f"{mistake.field}: {mistake.message}" == f"c[0].{expected}"


def test_types_are_names_and_come_once() -> None:
    fields = [mistake.field for mistake in conditions_mistakes([condition(type=""), condition(type="")], "c")]
    assert fields == ["c[0].type", "c[0].type", "c[1].type", "c[1].type", "c[1].type"]


def test_a_reason_is_one_word() -> None:
    (mistake,) = conditions_mistakes([condition(reason="two words")], "c")
    assert mistake.message.startswith('Invalid value: "two words": a condition reason must start with alphabetic')
