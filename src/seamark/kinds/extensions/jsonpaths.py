"""Simple JSON paths (``.spec.template.replicas``), by which definitions name fields of instances."""

from __future__ import annotations

import re
from typing import Any

_simple = re.compile(r"\.\w[\w.\[\]'\"=@?()*\-\\/]*")
_step = re.compile(r"\.([\w\-]+(?:\\.[\w\-/]+)*)|\[(\d{1,9}|\*)\]|\['([^']+)'\]|\[\"([^\"]+)\"\]")


def is_simple(path: str) -> bool:
    return _simple.fullmatch(path) is not None and ".." not in path and path.count("[") == path.count("]")


def steps(path: str) -> tuple[str | int, ...] | None:
    """Names and indices that lead to a value (-1 for ``[*]``); None for a path that this module cannot read."""
    found: list[str | int] = []
    position = 0
    while position < len(path):
        step = _step.match(path, position)
        if step is None:
            return None
        position = step.end()
        if step[2] is not None:
            found.append(-1 if step[2] == "*" else int(step[2]))
        else:
            found.append((step[1] or step[3] or step[4]).replace("\\.", "."))
    return tuple(found)


def find(value: Any, path: tuple[str | int, ...] | None) -> Any:
    """The first value at this path, None if there is none."""
    if path is None:
        return None
    for step in path:
        if isinstance(step, str):
            value = value.get(step) if isinstance(value, dict) else None
        else:
            index = max(step, 0)
            value = value[index] if isinstance(value, list) and index < len(value) else None
        if value is None:
            return None
    return value


def set_at(obj: Any, names: tuple[str, ...], value: Any) -> Any:
    """A copy of the object with a value at this path of names; objects on the way are copied or made."""
    name, *rest = names
    out = dict(obj) if isinstance(obj, dict) else {}
    out[name] = set_at(out.get(name), tuple(rest), value) if rest else value
    return out
