"""JSON values: copying them, and showing them as Go's ``fmt`` does, because Kubernetes' messages contain them so."""

from __future__ import annotations

from typing import Any

import msgspec


def copied(value: Any) -> Any:
    """The same value in new containers."""
    if value.__class__ is dict:
        return {key: copied(item) for key, item in value.items()}
    if value.__class__ is list:
        return [copied(item) for item in value]
    return value


def _number(value: int | float) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int) else f"{value:g}"


def plain(value: Any) -> str:
    """``%v``: ``map[name:web ports:[80 81]]``"""
    if isinstance(value, dict):
        return "map[" + " ".join(f"{key}:{plain(value[key])}" for key in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(plain(item) for item in value) + "]"
    if value is None:
        return "<nil>"
    return value if isinstance(value, str) else _number(value)


def syntax(value: Any) -> str:
    """``%#v``: ``map[string]interface {}{"name":"web"}``"""
    if isinstance(value, dict):
        pairs = (f"{syntax(key)}:{syntax(value[key])}" for key in sorted(value))
        return "map[string]interface {}{" + ", ".join(pairs) + "}"
    if isinstance(value, list):
        return "[]interface {}{" + ", ".join(syntax(item) for item in value) + "}"
    if value is None:
        return "interface {}(nil)"
    return msgspec.json.encode(value).decode() if isinstance(value, str) else _number(value)


def type_name(value: Any) -> str:
    """``%T`` of a value decoded from JSON."""
    if isinstance(value, dict):
        return "map[string]interface {}"
    if isinstance(value, list):
        return "[]interface {}"
    if isinstance(value, bool):
        return "bool"
    if value is None:
        return "<nil>"
    return {str: "string", int: "int64", float: "float64"}[type(value)]
