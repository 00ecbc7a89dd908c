"""Expressions and texts made to do harm: refused or evaluated, never a failure of ours."""

from __future__ import annotations

import contextlib

import pytest

from seamark.cel import CelError, Environment
from seamark.cel.errors import CompileError, CostError
from seamark.cel.types import INT, STRING, list_of

_ENVIRONMENT = Environment({"s": STRING, "i": INT, "l": list_of(STRING, 100)})
_LONG = "9" * 5000  # more digits than int() reads
_TEXTS = (
    "", _LONG, "0" * 5000 + "1", f"-{_LONG}", "1e999999", f"v{_LONG}.1.1", f"1.1.1-{_LONG}", f"{_LONG}h", f"1.{_LONG}h",
    f"2026-01-01T00:00:00.{_LONG}Z", "9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59", f"::ffff:{_LONG}",
    f"10.0.0.0/{_LONG}", f"http://x:{_LONG}/", f"%.{_LONG}f", "%" * 300, "(a+)+$", "(?:a{1000}){1000}", "[", "\\", "\0",
    "a" * 100_000, "%zz" * 300,
)  # fmt: skip
_CALLS = (
    "int(s)", "uint(s)", "double(s)", "duration(s)", "timestamp(s)", "bytes(s)", "bool(s)", "semver(s)", "isSemver(s)",
    "semver(s, true)", "ip(s)", "cidr(s)", "url(s)", "url(s).getPort()", "'aaa!'.matches(s)", "'aaa'.find(s)",
    "'aaa'.findAll(s)", "s.format([s])", "s.format([1.5])", "s.replace('', 'x')", "s.split('', 3)", "s.substring(i)",
    "s.charAt(i)", "s.indexOf(s, i)", "l.join(s)", "timestamp(s) + duration(s)", "timestamp(i)", "i * i", "-i", "i / 0",
    "timestamp('2026-01-01T00:00:00Z').getHours(s)", "int(double(s))", "uint(i)", "l[i]", "lists.range(i)",
)  # fmt: skip
_NESTED = {
    "parentheses": lambda n: "(" * n + "1" + ")" * n,
    "lists": lambda n: "[" * n + "]" * n,
    "maps": lambda n: "{1:" * n + "1" + "}" * n,
    "sums": lambda n: "1" + "+1" * n,
    "fields": lambda n: "l" + ".a" * n,
    "indexes": lambda n: "l" + "[0]" * n,
    "choices": lambda n: "true?" * n + "true" + ":true" * n,
    "loops": lambda n: "l.all(x," * n + "true" + ")" * n,
    "chains": lambda n: "l" + ".map(x,x)" * n,
    "ins": lambda n: "1 in " * n + "[1]",
    "ands": lambda n: "true" + "&&true" * n,
}


@pytest.mark.parametrize("call", _CALLS)
def test_any_text_has_a_value_or_is_refused(call: str) -> None:
    program = _ENVIRONMENT.compile(call)
    for text in _TEXTS:
        for number in (0, -1, 2**63 - 1, -(2**63)) if "i" in call else (0,):
            with contextlib.suppress(CelError):
                program.evaluate({"s": text, "i": number, "l": [text]})


@pytest.mark.parametrize("shape", ["{}", "-{}", "{}u", "0x{}", "[{}]", "l[{}]", "1.{}", "1e{}", "{}.a"])
def test_numbers_of_any_length_compile_or_are_refused(shape: str) -> None:
    for digits in ("1", _LONG, "0" * 5000, "0" * 5000 + "7"):
        with contextlib.suppress(CompileError):
            _ENVIRONMENT.compile(shape.format(digits))
    assert _ENVIRONMENT.compile("0" * 5000 + "7").evaluate({}) == 7
    with pytest.raises(CompileError, match="invalid int literal"):
        _ENVIRONMENT.compile(_LONG)


@pytest.mark.parametrize("shape", _NESTED)
def test_whatever_is_nested_is_worked_out_or_refused(shape: str) -> None:
    for levels in (*range(40, 400, 20), 1000, 5000):
        with contextlib.suppress(CelError):
            program = _ENVIRONMENT.compile(_NESTED[shape](levels))
            assert program.cost_estimate.most >= 0
            program.evaluate({"s": "", "i": 0, "l": ["a"]})


_EIGHT = f"[{', '.join(['{0}'] * 8)}]"


def _bound(start: str, step: str, last: str) -> str:
    """An expression in which each of twelve names stands for what ``step`` makes of the one before."""
    for level in range(12, 0, -1):
        last = f"[{step.format(f'x{level - 1}')}].map(x{level}, {last})"
    return f"[{start}].map(x0, {last})"


@pytest.mark.parametrize(
    ("start", "step", "last"),
    [
        ("1", _EIGHT, "x12 == [x11, x11, x11, x11, x11, x11, x11, x11]"),
        ("1", _EIGHT, "dyn(x12) in [dyn(x11), dyn(x12)]"),
        ("1", _EIGHT, "sets.contains([x12], [x12])"),
        ("1", _EIGHT, "[x12, x12].distinct() == []"),
        ("1", _EIGHT, "[x12, x12].indexOf(x12) == 0"),
        ("1", _EIGHT, "'%s'.format([x12]) == ''"),
        ("[]", _EIGHT, "x12.flatten(30) == []"),
        (
            "1",
            "{{1: {0}, 2: {0}, 3: {0}, 4: {0}, 5: {0}, 6: {0}, 7: {0}}}",
            "x12 == {1: x11, 2: x11, 3: x11, 4: x11, 5: x11, 6: x11, 7: x11}",
        ),
        ("'abc'", "{0}.replace('', {0})", "x12 == ''"),
        ("'abc'", f"{_EIGHT}.join({{0}})", "x12 == ''"),
    ],
)
def test_what_contains_itself_many_times_over_is_not_walked_through(start: str, step: str, last: str) -> None:
    """The names are few and short, but what they stand for has billions of parts."""
    program = _ENVIRONMENT.compile(_bound(start, step, last))
    with pytest.raises(CostError):
        program.evaluate({})


def test_the_type_of_a_map_does_not_grow_without_end() -> None:
    program = _ENVIRONMENT.compile(_bound("1", "{{{{{0}: {0}}}: {{{0}: {0}}}}}", "x12"))
    assert program.type.parts < 5000
