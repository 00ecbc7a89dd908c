"""YAML as Go prints it: what could be read as something else is in double quotes, long texts are blocks."""

from __future__ import annotations

from typing import Any

import yaml

_GO_TRUTHS = ("y", "Y", "n", "N")  # to YAML 1.1 they are truth values; PyYAML leaves them out


class _Dumper(yaml.SafeDumper):
    """PyYAML's, but quoting as Kubernetes' clients are used to see it."""


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    if "\n" in value:
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|")
    plain = dumper.resolve(yaml.ScalarNode, value, (True, False))  # type: ignore[no-untyped-call]  # no stub for it
    style = None if plain == "tag:yaml.org,2002:str" and value not in _GO_TRUTHS else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _text)


def dump(value: Any) -> bytes:
    return yaml.dump(value, Dumper=_Dumper, sort_keys=True, allow_unicode=True, width=10**6).encode()
