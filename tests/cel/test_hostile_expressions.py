"""Expressions and texts that nobody would write on purpose: refused or evaluated, never a failure of ours."""

from __future__ import annotations

import contextlib

import pytest

from seamark.cel import CelError, Environment
from seamark.cel.errors import CompileError
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
