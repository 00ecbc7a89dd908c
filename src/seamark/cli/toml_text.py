"""Values as TOML, which the standard library can read but not write.  Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def toml_text(values: Mapping[str, Any], notes: Mapping[str, str]) -> str:
    """A TOML document.  ``notes``, by dotted name, are comments behind a value, or instead of a missing one."""
    return "\n".join(_table(values, notes, ())).strip() + "\n"


def _table(values: Mapping[str, Any], notes: Mapping[str, str], path: tuple[str, ...]) -> list[str]:
    lines = [f"[{'.'.join(map(_key, path))}]"] if path else []
    for name, value in values.items():
        if not isinstance(value, Mapping):
            note = notes.get(".".join((*path, name)), "")
            lines.append(f"{_key(name)} = {toml_value(value)}" + (f"  # {note}" if note else ""))
    for dotted, note in notes.items():
        *parents, name = dotted.split(".")
        if tuple(parents) == path and name not in values:
            lines.append(f"# {name} = {note}")
    lines.append("")
    for name, value in values.items():
        if isinstance(value, Mapping):
            lines += _table(value, notes, (*path, name))
    return lines


def toml_value(value: Any) -> str:
    """One value on one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # A JSON string is a TOML string, except that TOML wants one more character escaped.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(name)} = {toml_value(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    return repr(value)


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else toml_value(name)
