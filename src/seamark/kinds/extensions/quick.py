"""Whether a value satisfies a schema: yes or no, without the words, as fast as can be.

Nearly all instances are in order, so ``checking``, which has words for every mistake, is asked only after a no.  Each
part of a schema becomes one function when a value first needs it: a schema may be half a megabyte of which an
instance uses a few fields.  A scalar of which only the type is said needs no function; what is rare is left to
``checking``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from seamark.errors import Object
from seamark.kinds.extensions import checking
from seamark.kinds.extensions.regex import compiled
from seamark.kinds.extensions.schemas import INT_OR_STRING, LIST_KEYS, LIST_TYPE, RULES, Made, extra, items
from seamark.kinds.values.fields import Errors

Test = Callable[[Any], bool]

_CLASSES: dict[str, type] = {"string": str, "boolean": bool, "integer": int}
# Keywords that say nothing of a value.
_SILENT = frozenset(
    {"type", "description", "title", "default", "example", "externalDocs", LIST_TYPE, "properties", RULES}
)
_NUMBER_OR_TEXT = [{"type": "integer"}, {"type": "string"}]


def tester(schema: Object) -> Test:
    """The function that says whether a value satisfies a schema."""
    tested: set[str]
    match schema.get("type"):
        case "object":
            test, tested = _object_test(schema), {"properties", "required", "additionalProperties"}
        case "array" if schema.get(LIST_TYPE) not in ("set", "map"):
            test, tested = _list_test(schema), {"items"}
        case "array":
            test, tested = _unique_test(schema), {"items", LIST_TYPE, LIST_KEYS}
        case "string":
            test, tested = _text_test(schema), {"enum", "pattern", "minLength", "maxLength"}
        case "integer" if schema.get("format") in (None, "int32", "int64"):
            test, tested = _integer_test(schema), {"format"}
            if not (schema.get("exclusiveMinimum") or schema.get("exclusiveMaximum")):
                tested |= {"minimum", "maximum"}
        case None if schema.get(INT_OR_STRING) and schema.get("anyOf", _NUMBER_OR_TEXT) == _NUMBER_OR_TEXT:
            test, tested = _number_or_text_test(schema), {INT_OR_STRING, "anyOf", "pattern"}
        case _:
            return _worded(schema)
    if schema.keys() - _SILENT - tested - {"nullable"}:
        test = _also(test, schema, tested)
    return _or_null(test) if schema.get("nullable") else test


def _worded(schema: Object) -> Test:
    """What is rare, by the words that ``checking`` has for it."""
    check = checking.later(schema)

    def test(value: Any) -> bool:
        errors: Errors = []
        check(value, checking.ABSENT, None, errors)
        return not errors

    return test


def _also(test: Test, schema: Object, tested: set[str]) -> Test:
    """The test, and what else the schema says."""
    # "type" stays: bounds of integers mean other things to other numbers.
    rest = _worded({word: value for word, value in schema.items() if word not in tested})
    return lambda value: test(value) and rest(value)


def _or_null(test: Test) -> Test:
    return lambda value: value is None or test(value)


def _plain(schema: Object | None) -> type | None:
    """The class of a scalar of which the schema says nothing but its type."""
    if schema is None or schema.keys() - _SILENT:
        return None
    return _CLASSES.get(schema.get("type", ""))


# --- scalars ----------------------------------------------------------------------------------------


def _text_test(schema: Object) -> Test:
    longest, shortest = schema.get("maxLength"), schema.get("minLength") or 0
    choices = frozenset(choice for choice in schema.get("enum") or () if isinstance(choice, str))
    matches = compiled(schema["pattern"]) if schema.get("pattern") else None
    limited = longest is not None or shortest > 0
    any_text = not schema.get("enum")

    def test(value: Any) -> bool:
        return (
            value.__class__ is str
            and (any_text or value in choices)
            and (matches is None or matches(value))
            and (not limited or (len(value) >= shortest and (longest is None or len(value) <= longest)))
        )

    return test


def _integer_test(schema: Object) -> Test:
    """Of integers that are written with a fraction of zero, ``checking`` decides."""
    least, most = schema.get("minimum"), schema.get("maximum")
    bits = {"int32": 31, "int64": 63}.get(schema.get("format", ""))
    lowest = float("-inf") if bits is None else -(2**bits)
    highest = float("inf") if bits is None else 2**bits - 1
    lowest = lowest if least is None else max(lowest, least)
    highest = highest if most is None else min(highest, most)
    others = _worded(schema)

    def test(value: Any) -> bool:
        return lowest <= value <= highest if value.__class__ is int else others(value)

    return test


def _number_or_text_test(schema: Object) -> Test:
    matches = compiled(schema["pattern"]) if schema.get("pattern") else None

    def test(value: Any) -> bool:
        if value.__class__ is str:
            return matches is None or matches(value)
        return value.__class__ is int

    return test


# --- lists and objects ------------------------------------------------------------------------------


def _list_test(schema: Object) -> Test:
    elements = items(schema) or {}
    plain, element = _plain(elements), tester(elements) if elements else _anything

    def test(value: Any) -> bool:
        if value.__class__ is not list:
            return False
        for item in value:  # noqa: SIM110  # a generator would cost as much again
            if item.__class__ is not plain and not element(item):
                return False
        return True

    return test


def _unique_test(schema: Object) -> Test:
    """A list in which nothing may be twice: a set, or a list of objects with keys."""
    every = _list_test(schema)
    list_type, keys = schema[LIST_TYPE], tuple(schema.get(LIST_KEYS) or ())
    key = keys[0] if len(keys) == 1 else ""

    def test(value: Any) -> bool:
        if not every(value):
            return False
        if len(value) < 2:
            return True
        try:
            if list_type == "set":
                different = set(value)
            elif key:
                different = {item.get(key) for item in value}
            else:
                different = {tuple([item.get(name) for name in keys]) for item in value}
            if len(different) == len(value):
                return True
        except (TypeError, AttributeError):
            pass  # Elements that are objects or lists, or no objects at all.
        # Python takes 1, 1.0 and true for the same.
        repeated: Errors = []
        checking.check_unique(value, keys, list_type, None, repeated)
        return not repeated

    return test


def _object_test(schema: Object) -> Test:
    properties: Object = schema.get("properties") or {}
    needed = tuple(schema.get("required") or ())
    others = extra(schema)
    closed = schema.get("additionalProperties") is False
    plain = {name: found for name, inner in properties.items() if (found := _plain(inner)) is not None}
    plain_other = _plain(others)
    tests = Made(properties, tester, tester(others) if others is not None else _nothing if closed else _anything)

    def test(value: Any) -> bool:
        if value.__class__ is not dict:
            return False
        for name in needed:
            if name not in value:
                return False
        for name, item in value.items():
            if item.__class__ is not plain.get(name, plain_other) and not tests[name](item):
                return False
        return True

    return test


def _anything(value: Any) -> bool:
    return True


def _nothing(value: Any) -> bool:
    return False
