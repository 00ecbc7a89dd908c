"""Objects as kubectl prints them with ``-o json``, ``yaml`` and ``name``.  Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

Printer = Callable[[Mapping[str, Any]], str]

# Go's encoder writes these so that JSON can stand inside HTML.
_ESCAPED = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def json_text(value: Mapping[str, Any]) -> str:
    text = json.dumps(value, indent=4, sort_keys=True, ensure_ascii=False)
    for character, escape in _ESCAPED.items():
        text = text.replace(character, escape)
    return text


def yaml_text(value: Mapping[str, Any]) -> str:
    from seamark.api.yaml_text import dump

    return dump(value).decode().rstrip("\n")


def listed(objects: list[dict[str, Any]]) -> dict[str, Any]:
    """Several objects as one document."""
    return {"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": objects}


def without_managed_fields(value: dict[str, Any]) -> dict[str, Any]:
    """An object without the records of who set which field: nobody asks for them."""
    metadata = {key: each for key, each in (value.get("metadata") or {}).items() if key != "managedFields"}
    return {**value, "metadata": metadata}
