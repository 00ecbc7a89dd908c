"""Reads YAML bodies as Kubernetes does: as another notation for JSON.

There are no dates and no base-60 numbers, keys are always strings, and only the first document is read.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

# A limit on the number of values, because aliases can make a small text expand to a huge value.
LARGEST_EXPANSION = 400_000


class YamlFault(ValueError):
    """The text is not YAML, or has values that JSON cannot express."""


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader with JSON's types only; it records repeated keys."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012  # PyYAML's own name and form

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self.repeated: list[str] = []

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        self.flatten_mapping(node)
        mapping: dict[Any, Any] = {}
        for key_node, value_node in node.value:
            key = _key(self.construct_object(key_node, deep=True))
            if key in mapping:
                self.repeated.append(f'line {key_node.start_mark.line + 1}: key "{key}" already set in map')
            mapping[key] = self.construct_object(value_node, deep=True)
        return mapping


_DECIMAL = r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"

# The types of unquoted text: tag, pattern, and the first characters it may have.  They are tried in this order.
for _tag, _pattern, _first in (
    ("bool", "yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF", "yYnNtTfFoO"),
    ("int", r"[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|0[0-7_]*|[1-9][0-9_]*)", "-+0123456789"),
    ("float", rf"{_DECIMAL}|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)", "-+.0123456789"),
    ("null", "~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("merge", "<<", "<"),
):
    for _character in _first:
        _Loader.yaml_implicit_resolvers.setdefault(_character, []).append(
            (f"tag:yaml.org,2002:{_tag}", re.compile(f"(?:{_pattern})$"))
        )


def _key(key: Any) -> str:
    """A key as a string; numbers and booleans as JSON prints them."""
    if isinstance(key, str):
        return key
    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, int | float):
        return str(key)
    raise YamlFault(f"error converting YAML to JSON: unsupported map key of type: {type(key).__name__}")


def read(body: bytes) -> tuple[Any, list[str]]:
    """The value of the first document, and warnings about repeated keys."""
    try:
        loader = _Loader(body.decode())
        try:
            value = loader.get_data() if loader.check_node() else None
        finally:
            loader.dispose()
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise YamlFault(f"error converting YAML to JSON: yaml: {_sentence(error)}") from error
    except RecursionError as error:
        raise YamlFault("error converting YAML to JSON: yaml: exceeded max depth") from error
    except ValueError as error:
        raise YamlFault(f"error converting YAML to JSON: yaml: {error}") from error
    except (AttributeError, LookupError, TypeError, ArithmeticError) as error:
        # PyYAML's constructors raise these, for example for `!!bool z`.
        raise YamlFault("error converting YAML to JSON: yaml: cannot decode a value as its tag says") from error
    _check(value)
    warnings = [f"yaml: unmarshal errors:\n  {sentence}" for sentence in loader.repeated]
    return value, warnings


def _sentence(error: Exception) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        return f"line {error.problem_mark.line + 1}: {error.problem}"
    return " ".join(str(error).split())


def _check(value: Any) -> None:
    """Reject values that JSON cannot express, and values that aliases make huge or let contain themselves."""
    waiting, seen = [value], 0
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            waiting.extend(part)
            waiting.extend(part.values())
        elif isinstance(part, list):
            waiting.extend(part)
        elif isinstance(part, str) and not part.isascii():
            _check_text(part)
        elif isinstance(part, float) and part - part != 0:
            raise YamlFault("error converting YAML to JSON: json: unsupported value: " + str(part))
        elif not isinstance(part, str | int | float | None):
            raise YamlFault(f"error converting YAML to JSON: unsupported value of type {type(part).__name__}")
        seen += 1
        if seen + len(waiting) > LARGEST_EXPANSION:
            raise YamlFault("error converting YAML to JSON: yaml: document contains excessive aliasing")


def _check_text(text: str) -> None:
    """Reject half a surrogate pair, which an escape can produce but UTF-8 cannot encode."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise YamlFault(f"error converting YAML to JSON: yaml: {error.reason}") from error
