"""Values as Go prints them, in kubectl's templates and columns.  Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

# Go's encoder writes these so that JSON can stand inside HTML.
_ESCAPED = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def json_text(value: Any, *, indent: int | None = None) -> str:
    """As ``encoding/json`` writes it: keys in order, and on one line unless indented."""
    separators = None if indent else (",", ":")
    text = json.dumps(value, indent=indent, separators=separators, sort_keys=True, ensure_ascii=False)
    for character, escape in _ESCAPED.items():
        text = text.replace(character, escape)
    return text


def printed(value: Any) -> str:
    """As ``%v`` shows it: ``map[app:web]``, ``[1 2]``, ``<nil>``."""
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, Mapping):
        return "map[" + " ".join(f"{key}:{printed(each)}" for key, each in sorted(value.items())) + "]"
    if isinstance(value, list):
        return "[" + " ".join(map(printed, value)) + "]"
    return str(value)


def _float(value: float) -> str:
    """The shortest digits, as Python finds them; but Go begins to write exponents later."""
    if 1e16 <= abs(value) < 1e21:
        return f"{value:.0f}"
    return repr(value).removesuffix(".0")
