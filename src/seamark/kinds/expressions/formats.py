"""Named formats in expressions: ``format.dns1123Label().validate(name)`` is a list of mistakes, or nothing."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from typing import Any, ClassVar
from urllib.parse import urlsplit

from seamark.cel.errors import EvaluationError
from seamark.cel.types import overload
from seamark.cel.values import NONE, Opaque, Optional, parse_date, parse_timestamp, some
from seamark.kinds.values.metadata import dns_1035_label, dns_label, dns_subdomain, label_value, qualified_name

_uuid = re.compile(r"(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}")


class Format(Opaque):
    """A format: what is wrong with a text."""

    type_name: ClassVar[str] = "kubernetes.NamedFormat"

    def __init__(self, name: str, mistakes: Callable[[str], list[str]]) -> None:
        self.name = name
        self.mistakes = mistakes


def _checked(read: Callable[[str], Any], word: str) -> Callable[[str], list[str]]:
    """A format by what reads it."""

    def mistakes(text: str) -> list[str]:
        try:
            return [] if read(text) is not None else [word]
        except (ValueError, binascii.Error, EvaluationError):
            return [word]

    return mistakes


def _uri(text: str) -> str | None:
    return text if text.startswith("/") or (urlsplit(text).scheme and ":" in text) else None


def _prefixed(check: Callable[..., list[str]]) -> Callable[[str], list[str]]:
    return lambda text: check(text, prefix=True)


_CHECKS: dict[str, Callable[[str], list[str]]] = {
    "dns1123Label": dns_label,
    "dns1123Subdomain": dns_subdomain,
    "dns1035Label": dns_1035_label,
    "qualifiedName": qualified_name,
    "dns1123LabelPrefix": _prefixed(dns_label),
    "dns1123SubdomainPrefix": _prefixed(dns_subdomain),
    "dns1035LabelPrefix": lambda text: dns_1035_label(f"{text[:-1]}a" if text.endswith("-") else text),
    "labelValue": label_value,
    "uri": _checked(_uri, "invalid URI"),
    "uuid": _checked(_uuid.fullmatch, "does not match the UUID format"),
    "byte": _checked(lambda text: base64.b64decode(text, validate=True), "invalid base64"),
    "date": _checked(parse_date, "invalid date"),
    "datetime": _checked(parse_timestamp, "invalid datetime"),
}
_KNOWN = {name: Format(name, mistakes) for name, mistakes in _CHECKS.items()}


def _named(name: str) -> Optional:
    return some(_KNOWN[name]) if name in _KNOWN else NONE


def _validate(format: Format, text: str) -> Optional:
    mistakes = format.mistakes(text)
    return some(mistakes) if mistakes else NONE


_T = Format.type_name
FUNCTIONS = [
    overload("format.named(string) -> optional<kubernetes.NamedFormat>", _named, name="format.named"),
    overload(f"{_T}.validate(string) -> optional<list<string>>", _validate),
    *(
        overload(f"format.{name}() -> {_T}", lambda made=made: made, name=f"format.{name}")
        for name, made in _KNOWN.items()
    ),
]
