"""Corners of the language that its specification names: overflow, mixed numbers, optional values, comprehensions."""

from __future__ import annotations

from typing import Any

import pytest

from seamark.cel import CompileError, Environment, EvaluationError
from seamark.cel.types import DYN

_ENVIRONMENT = Environment({"d": DYN})
_GIVEN = {"d": {"x": [1, 2], "n": None, "m": {"k": "v"}}}


def _value(text: str) -> Any:
    return _ENVIRONMENT.compile(text).evaluate(_GIVEN)


@pytest.mark.parametrize(
    "text",
    [
        "9223372036854775807 + 1",
        "-9223372036854775808 - 1",
        "9223372036854775807 * 2",
        "-(-9223372036854775807 - 1)",
        "(-9223372036854775807 - 1) / -1",
        "18446744073709551615u + 1u",
        "0u - 1u",
        "uint(-1)",
        "int(18446744073709551615u)",
        "int(1e99)",
        "uint(-1.5)",
        "int('x')",
        "1 % 0",
        "1u / 0u",
        "[1][1]",
        "[1][-1]",
        "{'a': 1}['b']",
        "d.m.none",
        "d.x['a']",
        "timestamp('9999-12-31T23:59:59Z') + duration('1s')",
        "[0].all(x, 1 / x > 0)",
        "[1, 2].exists_one(x, 1 / (x - 1) > 0)",
        "optional.none().value()",
        "{dyn('a'): 1, dyn('a'): 2}.size() == 1",
    ],
)
def test_what_cannot_be_evaluated(text: str) -> None:
    with pytest.raises(EvaluationError):
        _value(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("dyn(1) < 1.5 && dyn(2u) > 1.5 && dyn(1) <= 1u", True),
        ("dyn(9223372036854775807) < 9223372036854775808u", True),
        ("dyn(-1) < 0u", True),
        ("{1: 'a'}[dyn(1.0)]", "a"),
        ("1 in [dyn(1.0)]", True),
        ("dyn(1u) in {1: true}", True),
        ("d.?none.orValue('x')", "x"),
        ("d.?m.k.orValue('x')", "v"),
        ("d.?m.?none.hasValue()", False),
        ("d.x[?5].orValue(9)", 9),
        ("[?optional.none(), 1].size()", 1),
        ("{?'a': optional.none()}.size()", 0),
        ("optional.of(1).optMap(x, x + 1).value()", 2),
        ("optional.of(1).optFlatMap(x, optional.none()).hasValue()", False),
        ("optional.ofNonZeroValue('').hasValue()", False),
        ("optional.none().or(optional.of(3)).value()", 3),
        ("optional.none() == optional.none()", True),
        ("[].all(x, false)", True),
        ("[].exists(x, true)", False),
        ("[1, 1].exists_one(x, x == 1)", False),
        ("{'a': 1, 'b': 2}.exists(k, k == 'b')", True),
        ("[1, 2, 3].map(x, x > 1, x * 10)", [20, 30]),
        ("[[1], [2, 3]].map(x, x.map(x, x + 1))", [[2], [3, 4]]),
        ("[1, 2].filter(x, [x].exists(y, y == 2))", [2]),
        ("has(d.m.k) && !has(d.m.none)", True),
        ("false && 1 / 0 > 0", False),
        ("1 / 0 > 0 || true", True),
        ("d.n == null", True),
        ("type(1) == int && type(1u) != int", True),
        ("int(-1.9) == -1 && int(1.9) == 1", True),
        ("string(1.5) + string(true) + string(b'a')", "1.5truea"),
    ],
)
def test_what_is_evaluated(text: str, value: object) -> None:
    assert _value(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "1 + 1u",
        "1 + 1.0",
        "'a' + 1",
        "[1].map(x)",
        "has(1)",
        "x",
        "1.nothing()",
        "timestamp('nonsense')",
        "duration('1 day')",
        "'a' in 'abc'",
        "!1",
        "-'a'",
    ],
)
def test_what_is_not_an_expression(text: str) -> None:
    with pytest.raises(CompileError):
        _ENVIRONMENT.compile(text)
