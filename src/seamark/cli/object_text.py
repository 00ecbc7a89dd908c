"""Objects as kubectl prints them with ``-o json``, ``yaml`` and ``name``.  Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from seamark.cli.go_text import json_text


def json_document(value: Mapping[str, Any]) -> str:
    return json_text(value, indent=4)


def yaml_text(value: Mapping[str, Any]) -> str:
    from seamark.kinds.language.yaml_text import dump

    return dump(value).decode().rstrip("\n")


def listed(objects: list[dict[str, Any]]) -> dict[str, Any]:
    """Several objects as one document."""
    return {"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": objects}


def without_managed_fields(value: dict[str, Any]) -> dict[str, Any]:
    """An object without the records of who set which field: nobody asks for them."""
    metadata = {key: each for key, each in (value.get("metadata") or {}).items() if key != "managedFields"}
    return {**value, "metadata": metadata}
