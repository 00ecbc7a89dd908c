"""Simple JSON paths (``.spec.template.replicas``), by which definitions name fields of instances."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

_simple = re.compile(r"\.\w[\w.\[\]'\"=@?()*\-\\/]*")
_step = re.compile(
    r"\.([\w\-]+(?:\\.[\w\-/]+)*)|\[(-?\d{1,9}|\*)\]|\['([^']+)'\]|\[\"([^\"]+)\"\]"
    r"|\[\?\(\s*@([^\s=!<>()]+)\s*(?:(==|!=|<=|>=|<|>)\s*(\"[^\"]*\"|'[^']*'|-?\d{1,18}(?:\.\d{1,18})?|true|false)\s*)?\)\]"
)
EVERY = -1  # the step of ``[*]``; a place that is counted from the end is one less than it was written
_COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}


@dataclass(frozen=True, slots=True)
class Filter:
    """Chooses those elements of a list that have a value at a path, and one that compares well."""

    path: tuple[Step, ...]
    sign: str = ""
    value: Any = None

    def chooses(self, element: Any) -> bool:
        found = find(element, self.path)
        if found is None or not self.sign:
            return found is not None
        both_numbers = _is_number(found) and _is_number(self.value)
        return (both_numbers or type(found) is type(self.value)) and _COMPARED[self.sign](found, self.value)


Step = str | int | Filter


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_simple(path: str) -> bool:
    return _simple.fullmatch(path) is not None and ".." not in path and is_closed(path)


def is_closed(path: str) -> bool:
    return path.count("[") == path.count("]")


def steps(path: str) -> tuple[Step, ...] | None:
    """What leads to a value; None for a path that this module cannot read."""
    found: list[Step] = []
    position = 0
    while position < len(path):
        step = _step.match(path, position)
        if step is None:
            return None
        position = step.end()
        if step[2] is not None:
            place = EVERY if step[2] == "*" else int(step[2])
            found.append(place - 1 if step[2].startswith("-") else place)
        elif step[5] is not None:
            inner = steps(step[5])
            if inner is None:
                return None
            found.append(Filter(inner, step[6] or "", _literal(step[7] or "")))
        else:
            found.append((step[1] or step[3] or step[4]).replace("\\.", "."))
    return tuple(found)


def _literal(text: str) -> Any:
    if text[:1] in ("'", '"'):
        return text[1:-1]
    if text in ("true", "false"):
        return text == "true"
    return float(text) if "." in text else int(text) if text else None


def find(value: Any, path: tuple[Step, ...] | None) -> Any:
    """The first value at this path, None if there is none."""
    if path is None:
        return None
    values = [value]
    for step in path:
        values = [inner for each in values for inner in _inside(each, step) if inner is not None]
        if not values:
            return None
    return values[0]


def _inside(value: Any, step: Step) -> Iterable[Any]:
    if isinstance(step, str):
        return (value.get(step),) if isinstance(value, dict) else ()
    if step == EVERY and isinstance(value, dict):
        return [value[key] for key in sorted(value)]
    if not isinstance(value, list):
        return ()
    if isinstance(step, Filter):
        return [element for element in value if step.chooses(element)]
    if step == EVERY:
        return value
    place = step if step >= 0 else step + 1
    return (value[place],) if -len(value) <= place < len(value) else ()


def set_at(obj: Any, names: tuple[str, ...], value: Any) -> Any:
    """A copy of the object with a value at this path of names; objects on the way are copied or made."""
    name, *rest = names
    out = dict(obj) if isinstance(obj, dict) else {}
    out[name] = set_at(out.get(name), tuple(rest), value) if rest else value
    return out
