"""Kubernetes' own libraries, and the types of schemas."""

from __future__ import annotations

from typing import Any

import pytest

from seamark.cel import CompileError, EvaluationError
from seamark.cel.types import INT
from seamark.errors import Object
from seamark.kinds.expressions.environments import environment
from seamark.kinds.expressions.schema_types import escaped, type_of_schema


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("isQuantity('1Gi') && !isQuantity('x')", True),
        ("quantity('1k').asInteger() + quantity('1').sign()", 1001),
        ("quantity('1.5').isInteger()", False),
        ("quantity('500m').asApproximateFloat()", 0.5),
        ("quantity('1Mi').add(quantity('1Mi')) == quantity('2Mi')", True),
        ("quantity('10').sub(3).compareTo(quantity('7'))", 0),
        ("quantity('1').isLessThan(quantity('2')) && quantity('2').isGreaterThan(quantity('1'))", True),
        ("type(quantity('1')) == kubernetes.Quantity", True),
        ("format.dns1123Label().validate('abc').hasValue()", False),
        ("format.dns1123Label().validate('A').value().size()", 1),
        ("format.named('labelValue').value().validate('a b').hasValue()", True),
        ("format.named('nope').hasValue()", False),
        ("format.uuid().validate('x').value()", ["does not match the UUID format"]),
        ("format.date().validate('2020-02-30').hasValue() && !format.byte().validate('YQ==').hasValue()", True),
        ("format.uri().validate('https://a').hasValue()", False),
        ("format.dns1123LabelPrefix().validate('a-').hasValue()", False),
    ],
)
def test_libraries_of_kubernetes(text: str, value: Any) -> None:
    assert environment({}).compile(text).evaluate({}) == value


def test_a_quantity_that_is_no_integer() -> None:
    with pytest.raises(EvaluationError, match="cannot convert value to integer"):
        environment({}).compile("quantity('1.5').asInteger()").evaluate({})


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("a", "a"),
        ("a-b", "a__dash__b"),
        ("a.b/c", "a__dot__b__slash__c"),
        ("a__b", "a__underscores__b"),
        ("namespace", "__namespace__"),
        ("in", "__in__"),
        ("$z", None),
        ("1a", None),
        ("ä", None),
    ],
)
def test_names_of_fields(name: str, word: str | None) -> None:
    assert escaped(name) == word


_SCHEMA: Object = {
    "type": "object",
    "properties": {
        "t": {"type": "string", "format": "date-time"},
        "day": {"type": "string", "format": "date"},
        "d": {"type": "string", "format": "duration"},
        "b": {"type": "string", "format": "byte"},
        "n": {"type": "number"},
        "ns": {"type": "array", "items": {"type": "number"}},
        "map": {"type": "object", "additionalProperties": {"type": "number"}},
        "p": {"x-kubernetes-int-or-string": True},
        "u": {"x-kubernetes-preserve-unknown-fields": True},
        "o": {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True},
        "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "rows": {
            "type": "array",
            "items": {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "integer"}}},
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k"],
        },
    },
}
_VALUE = {
    "t": "2020-01-01T00:00:00Z",
    "day": "2020-01-02",
    "d": "1m",
    "b": "YQ==",
    "n": 1,
    "ns": [1, 2.5],
    "map": {"a": 1},
    "p": "5%",
    "o": {"kind": "Pod", "metadata": {"name": "x"}},
    "set": ["a", "b"],
    "rows": [{"k": "a", "v": 1}, {"k": "b", "v": 2}],
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("self.t < self.day + self.d", True),
        ("self.b == b'a'", True),
        ("type(self.n) == double && self.n / 2.0 == 0.5", True),
        ("self.ns.sum()", 3.5),
        ("self.ns.all(x, type(x) == double) && type(self.map.a) == double", True),
        ("type(self.p) == string", True),
        ("self.o.kind + self.o.metadata.name", "Podx"),
        ("self.set == ['b', 'a']", True),
        ("self.set == ['b', 'c']", False),
        ("self.rows == other.rows", True),
        ("self.rows.map(r, r.v) == other.rows.map(r, r.v)", False),
        ("self == other", True),
    ],
)
def test_values_of_schemas(text: str, value: Any) -> None:
    type = type_of_schema(_SCHEMA)
    assert type is not None
    other = {**_VALUE, "rows": _VALUE["rows"][::-1]}  # type: ignore[index]
    program = environment({"self": type, "other": type}).compile(text)
    assert program.evaluate({"self": _VALUE, "other": other}) == value


@pytest.mark.parametrize("text", ["self.u", "self.o.spec", "self.o.metadata.labels"])
def test_what_expressions_cannot_see(text: str) -> None:
    type = type_of_schema(_SCHEMA)
    assert type is not None
    with pytest.raises(CompileError, match="undefined field"):
        environment({"self": type, "n": INT}).compile(text)
