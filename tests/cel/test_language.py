"""What expressions evaluate to, what they refuse, and what they cost: a table of the language's rules."""

from __future__ import annotations

from typing import Any

import pytest

from seamark.cel import CompileError, CostError, Environment, EvaluationError
from seamark.cel.compiling import Meter
from seamark.cel.types import DYN, INT, STRING, list_of, map_of, object_of
from seamark.cel.values import NONE, Duration, Timestamp, TypeValue, Uint, some

_SELF = object_of("thing", {"a": INT, "s": STRING, "l": list_of(INT, 10), "m": map_of(STRING, INT, 10)})
_ENVIRONMENT = Environment({"self": _SELF, "d": DYN})
_GIVEN = {"self": {"a": 1, "s": "abc", "l": [1, 2, 3], "m": {"x": 1}}, "d": {"x": [1, "a"], "n": None, "t": True}}


def _value(text: str) -> Any:
    return _ENVIRONMENT.compile(text).evaluate(_GIVEN)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        # numbers
        ("1 + 2 * 3 - 4", 3),
        ("-7 / 2", -3),
        ("-7 % 2", -1),
        ("7u % 4u", Uint(3)),
        ("0x1F + 1", 32),
        ("-9223372036854775808", -(2**63)),
        ("1.5 + .5", 2.0),
        ("1e3 == 1000.0", True),
        ("1.0 / 0.0 > 1e300", True),
        ("dyn(1) == 1.0", True),
        ("dyn(1) == 1u", True),
        ("dyn(1) == true", False),
        ("[dyn(1)] == [dyn(true)]", False),
        ("dyn(1) == 'a'", False),
        ("1 < 1.5 && 2u > 1", True),
        ("double('NaN') == double('NaN')", False),
        # texts
        (r"'a\tb\u00e9\x41\101'", "a\tbéAA"),
        (r"r'a\tb'", "a\\tb"),
        ("'''a'b'''", "a'b"),
        (r"b'\xff\001é'", b"\xff\x01\xc3\xa9"),
        ("'é'.size()", 1),
        ("b'é'.size()", 2),
        ("'b' > 'a'", True),
        # logic
        ("d.none || true", True),
        ("true || d.none", True),
        ("d.none && false", False),
        ("[1, 2, 3].all(x, x == 2 || 1 / (x - 2) == 5)", False),
        ("[0, 1].exists(x, 1 / x == 1)", True),
        ("true ? 1 : 1 / 0", 1),
        ("!!true", True),
        # fields, maps and lists
        ("has(self.a) && !has(d.none)", True),
        ("has(d.n)", True),
        ("d.n == null", True),
        ("self.m.x + self.m['x']", 2),
        ("'x' in self.m && !('y' in self.m)", True),
        ("2 in self.l", True),
        ("dyn(2.0) in [dyn(2)]", True),
        ("{1: 'a'}[dyn(1.0)]", "a"),
        ("{true: 'a'}[true]", "a"),
        ("{'a': [1]} == {'a': [1]}", True),
        ("[1] + [2]", [1, 2]),
        ("[[1, 2], [3]].flatten()", [1, 2, 3]),
        # macros
        ("[1, 2, 3].map(x, x * 2)", [2, 4, 6]),
        ("[1, 2, 3].map(x, x > 1, x * 2)", [4, 6]),
        ("[1, 2, 3].filter(x, x > 1)", [2, 3]),
        ("[1, 2, 3].exists_one(x, x > 2)", True),
        ("{'a': 1}.all(k, k == 'a')", True),
        ("{'a': 1}.exists(k, v, k == 'a' && v == 1)", True),
        ("[5, 6].all(i, v, v == i + 5)", True),
        ("[5, 6].transformList(i, v, i * v)", [0, 6]),
        ("{'a': 1, 'b': 2}.transformMap(k, v, v > 1, v * 2)", {"b": 4}),
        ("{'a': 1}.transformMapEntry(k, v, {v: k})", {1: "a"}),
        ("[[1, 2], [3]].all(x, x.all(y, y > 0))", True),
        # optional values
        ("self.?s", some("abc")),
        ("d.?none", NONE),
        ("d.?none.?deeper.orValue(5)", 5),
        ("self.m[?'y'].orValue(7)", 7),
        ("[1][?3].hasValue()", False),
        ("optional.of(1).optMap(x, x + 1).value()", 2),
        ("optional.none().or(optional.of(3)).value()", 3),
        ("optional.of(2).optFlatMap(x, optional.ofNonZeroValue(x - 2))", NONE),
        ("[1, ?optional.none(), ?optional.of(3)]", [1, 3]),
        ("{?'a': optional.of(1), ?'b': optional.none()}", {"a": 1}),
        # types and conversions
        ("type(1) == int && type(1u) == uint && type(1.0) == double", True),
        ("type(null)", TypeValue("null_type")),
        ("type(type(1)) == type", True),
        ("type(timestamp('2020-01-01T00:00:00Z')) == google.protobuf.Timestamp", True),
        ("int('-12') + int(3.9) + int(2u)", -7),
        ("uint(3.9)", Uint(3)),
        ("double('1.5')", 1.5),
        ("string(1.0) + string(true) + string(2u) + string(1e6)", "1true21e+06"),
        ("bool('T')", True),
        ("string(bytes('é'))", "é"),
        # moments
        ("duration('1h30m') + duration('500ms')", Duration(5400 * 10**9 + 5 * 10**8)),
        ("string(duration('-1.5s'))", "-1.5s"),
        ("timestamp('1970-01-01T01:00:00+01:00') + duration('1s')", Timestamp(10**9)),
        ("timestamp('2020-02-03T04:05:06.789Z').getMilliseconds()", 789),
        ("timestamp('2020-02-03T04:05:06Z').getDayOfWeek()", 1),
        ("timestamp('2020-02-03T04:05:06Z').getHours('America/New_York')", 23),
        ("timestamp('2020-02-03T04:05:06Z').getHours('+02:30')", 6),
        ("timestamp('2020-02-03T04:05:06Z').getMonth()", 1),
        ("int(timestamp('1970-01-01T00:01:00Z'))", 60),
        ("string(timestamp(60))", "1970-01-01T00:01:00Z"),
        ("duration('90s').getMinutes()", 1),
        ("timestamp('2020-01-01T00:00:00Z') - timestamp('2019-12-31T23:59:59Z')", Duration(10**9)),
    ],
)
def test_value(text: str, value: Any) -> None:
    found = _value(text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("self.m['y']", "no such key: y"),
        ("d.none", "no such key: none"),
        ("self.l[3]", "index out of bounds: 3"),
        ("self.l[-1]", "index out of bounds: -1"),
        ("1 / 0", "division by zero"),
        ("1 % 0", "modulus by zero"),
        ("9223372036854775807 + 1", "integer overflow"),
        ("-(-9223372036854775808)", "integer overflow"),
        ("1u - 2u", "unsigned integer overflow"),
        ("uint(-1)", "unsigned integer overflow"),
        ("int(1e30)", "integer overflow"),
        ("int(self.s)", "type conversion error from 'string' to 'int'"),
        ("duration(self.s)", "type conversion error from 'string' to 'google.protobuf.Duration'"),
        ("d.x[1] + 1", "no such overload"),
        ("d.t.size()", "no such overload"),
        ("d.none && true", "no such key: none"),
        ("optional.none().value()", "optional.none() dereference"),
        ("{self.s: 1, 'abc': 2}", "Failed with repeated key: abc"),
        ("self.s.matches('(' + self.s)", "error parsing regexp: missing closing ): `(abc`"),
        ("timestamp('9999-12-31T23:59:59Z') + duration('1s')", "timestamp overflow"),
    ],
)
def test_failure(text: str, sentence: str) -> None:
    with pytest.raises(EvaluationError) as caught:
        _value(text)
    assert str(caught.value) == sentence


_STARTS = (
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
)


@pytest.mark.parametrize(
    ("text", "column", "sentence"),
    [
        ("self.nope > 1", 5, "undefined field 'nope'"),
        ("has(self.nope)", 4, "undefined field 'nope'"),
        ("nope == 1", 1, "undeclared reference to 'nope' (in container '')"),
        ("self.a.frobnicate()", 18, "undeclared reference to 'frobnicate' (in container '')"),
        ("self.a + self.s == 'x'", 8, "found no matching overload for '_+_' applied to '(int, string)'"),
        ("self.s == null", 8, "found no matching overload for '_==_' applied to '(string, null)'"),
        ("self.s.reverse()", 15, "found no matching overload for 'reverse' applied to 'string.()'"),
        ("self.l == self.m", 8, "found no matching overload for '_==_' applied to '(list(int), map(string, int))'"),
        ("self.a.b", 7, "type 'int' does not support field selection"),
        ("self.l.all(x, x)", 11, "found no matching overload for '_&&_' applied to '(bool, int)'"),
        (
            "self.a.all(x, true)",
            5,
            "expression of type 'int' cannot be range of a comprehension (must be list, map, or dynamic)",
        ),
        ("[1, 'a']", 5, "expected type 'int' but found 'string'"),
        ("self.a >", 9, f"Syntax error: mismatched input '<EOF>' expecting {_STARTS}"),
        ("", 1, f"Syntax error: mismatched input '<EOF>' expecting {_STARTS}"),
        ("1 2", 3, "Syntax error: extraneous input '2' expecting <EOF>"),
        ("(1", 3, "Syntax error: missing ')' at '<EOF>'"),
        ("1 + $", 5, "Syntax error: token recognition error at: '$'"),
        ("if + 1", 1, "reserved identifier: if"),
        ("has(self)", 5, "invalid argument to has() macro"),
        ("self.l.all(1, true)", 12, "argument must be a simple name"),
        ("self.s.matches('(')", 16, "invalid matches argument"),
        ("duration('soon')", 10, "invalid duration argument"),
        ("9223372036854775808", 1, "invalid int literal"),
    ],
)
def test_mistake(text: str, column: int, sentence: str) -> None:
    with pytest.raises(CompileError) as caught:
        _ENVIRONMENT.compile(text)
    picture = f"ERROR: <input>:1:{column}: {sentence}\n | {text}\n | {'.' * (column - 1)}^"
    assert str(caught.value).startswith(picture)


def test_a_mistake_in_a_later_line_shows_that_line() -> None:
    with pytest.raises(CompileError) as caught:
        _ENVIRONMENT.compile("self.a < 10 &&\n  self.b")
    assert str(caught.value) == "ERROR: <input>:2:7: undefined field 'b'\n |   self.b\n | ......^"


def test_every_mistake_is_told() -> None:
    with pytest.raises(CompileError) as caught:
        _ENVIRONMENT.compile("one + two")
    assert str(caught.value).count("ERROR") == 2


def test_types_may_mix_in_the_list_of_a_format() -> None:
    assert _value("'%d %s'.format([self.a, self.s])") == "1 abc"


@pytest.mark.parametrize(
    ("text", "most"),
    [
        ("self.a > 1", 3),
        ("self.l.all(x, x > 0)", 53),
        ("self.l.map(x, x)", 143),
        ("[1, 2]", 10),
        ("{'a': 1}", 30),
        ("'abc'.matches('abcd')", 1),
        ("self.a > 1 && self.a < 5", 6),
    ],
)
def test_estimated_cost(text: str, most: int) -> None:
    assert _ENVIRONMENT.compile(text).cost_estimate.most == most


def test_what_nothing_bounds_is_too_much() -> None:
    assert _ENVIRONMENT.compile("'n is ' + string(self.a)").cost_estimate.most > 10**9


def test_a_rule_that_would_run_for_ever_is_stopped() -> None:
    numbers = "lists.range(1000)"
    program = _ENVIRONMENT.compile(f"{numbers}.all(a, {numbers}.all(b, {numbers}.all(c, a + b + c >= 0)))")
    with pytest.raises(CostError):
        program.evaluate(_GIVEN)


def test_evaluations_share_a_budget() -> None:
    program, budget = _ENVIRONMENT.compile("self.l.all(x, x > 0)"), Meter(50)
    program.evaluate(_GIVEN, budget)
    program.evaluate(_GIVEN, budget)
    assert 0 < budget.left < 20
    with pytest.raises(CostError):
        program.evaluate(_GIVEN, budget)


def test_a_pattern_that_backtracks_takes_linear_time() -> None:
    assert _value("('a' + 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!').matches('^(a+)+$')") is False
