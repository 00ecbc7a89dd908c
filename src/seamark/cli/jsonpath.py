"""kubectl's JSONPath templates applied to objects (``-o jsonpath=…``, ``--sort-by``, ``-o custom-columns=…``).  Pure.

What is not there is nothing, as in kubectl; an index beyond a list, and a comparison of what cannot be compared, are
errors.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from seamark.cli.jsonpath_template import (
    OPERATORS,
    Action,
    Descent,
    Field,
    Filter,
    JsonPathError,
    Literal,
    Range,
    Slice,
    Step,
    Template,
    Union,
    Unknown,
    Wildcard,
    parse,
)

__all__ = ["JsonPathError", "evaluate", "find", "parse", "relaxed"]

_RELAXED = re.compile(r"\{\.?([^{}]+)\}|\.?([^{}]+)")
_COMPARE = dict(
    zip(OPERATORS, (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge), strict=True)
)


def relaxed(path: str) -> Template:
    """The template that a path means where braces and the first dot may be left out."""
    found = _RELAXED.fullmatch(path)
    if found is None:
        raise JsonPathError(
            "unexpected path string, expected a 'name1.name2' or '.name1.name2' or '{name1.name2}' or '{.name1.name2}'"
        )
    return parse(f"{{.{found[1] or found[2]}}}")


def evaluate(template: Template, value: Any) -> Iterator[list[Any]]:
    """What each part of the template gives, in order; texts are parts, too."""
    for part in template:
        match part:
            case str():
                yield [part]
            case Action():
                yield find(part.steps, [value])
            case Range():
                for each in find(part.steps, [value]):
                    yield from evaluate(part.body, each)


def find(steps: Sequence[Step], values: list[Any]) -> list[Any]:
    """What a chain of steps leads to."""
    for step in steps:
        values = _after(step, values)
    return values


def _after(step: Step, values: list[Any]) -> list[Any]:
    match step:
        case Literal():
            return [step.value] if isinstance(step.value, str) else [step.value for _ in values]
        case Field():
            return [value[step.name] for value in values if isinstance(value, dict) and step.name in value]
        case Wildcard():
            return [each for value in values for each in _inside(value)]
        case Descent():
            return [each for value in values for each in _below(value)]
        case Slice():
            return [each for value in values if value is not None for each in _sliced(step, value)]
        case Union():
            return [each for choice in step.choices for each in find(choice, values)]
        case Filter():
            return [each for value in values for each in _filtered(step, value)]
        case Unknown():
            if step.word == "end":
                raise JsonPathError("not in range, nothing to end")
            raise JsonPathError(f"unrecognized identifier {step.word}")


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _below(value: Any) -> Iterator[Any]:
    inside = list(_inside(value))
    if inside:
        yield value
        for each in inside:
            yield from _below(each)


def _sliced(wanted: Slice, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise JsonPathError(f"{_go_type(value)} is not array or slice")
    length = len(value)
    first = wanted.first or 0
    end = length if wanted.end is None else wanted.end
    if first < 0:
        first += length
    if end < 0 or (end == 0 and wanted.alone):
        end += length
    if first == end:
        return []
    if not 0 <= first < length:
        raise JsonPathError(f"array index out of bounds: index {first}, length {length}")
    if not 0 <= end <= length:
        raise JsonPathError(f"array index out of bounds: index {end - 1}, length {length}")
    if first > end:
        raise JsonPathError(f"starting index {first} is greater than ending index {end}")
    if wanted.step is not None and wanted.step <= 0:
        raise JsonPathError("step must be > 0")
    return value[first : end : wanted.step or 1]


def _filtered(wanted: Filter, value: Any) -> Iterator[Any]:
    if not isinstance(value, list):
        raise JsonPathError(f"{_go_type(value)} is not array or slice and cannot be filtered")
    for each in value:
        left = find(wanted.left, [each])
        if not wanted.operator:
            if left:
                yield each
            continue
        right = find(wanted.right, [each])
        if left and right and _holds(wanted.operator, left, right):
            yield each


def _holds(written: str, left: list[Any], right: list[Any]) -> bool:
    if len(left) > 1 or len(right) > 1:
        raise JsonPathError("can only compare one element at a time")
    if written not in _COMPARE:
        raise JsonPathError(f"unrecognized filter operator {written}")
    for value in (left[0], right[0]):
        if not isinstance(value, bool | int | float | str):
            raise JsonPathError("invalid type for comparison")
    if type(left[0]) is not type(right[0]):
        raise JsonPathError("incompatible types for comparison")
    if isinstance(left[0], bool) and written not in ("==", "!="):
        raise JsonPathError("invalid type for comparison")
    return bool(_COMPARE[written](left[0], right[0]))


def _go_type(value: Any) -> str:
    """What kubectl calls the type of a value."""
    if isinstance(value, dict):
        return "map[string]interface {}"
    names = {str: "string", bool: "bool", int: "int64", float: "float64"}
    return names.get(type(value), "<nil>")
