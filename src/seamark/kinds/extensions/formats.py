"""The formats of texts that Kubernetes checks; all others are allowed with a warning and mean nothing."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from datetime import date
from urllib.parse import urlsplit

from seamark.kinds.values import times
from seamark.kinds.values.addresses import parse, parse_network

_uuid = re.compile(r"(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}")
_host = re.compile(r"(?i)[a-z0-9]([a-z0-9\-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9\-]{0,61}[a-z0-9])?)*")
_email = re.compile(r"[^@\s]+@[^@\s]+")
_moment = re.compile(r"(?i)\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)")
_words = re.compile(r"(\d+)\s*(ns|us|µs|ms|s|m|h|d|w|sec|min|hr|hour|day|week)s?")
_ssn = re.compile(r"\d{3}[- ]?\d{2}[- ]?\d{4}")
_hex_colour = re.compile(r"#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})")
_rgb = re.compile(r"rgb\((\s*\d{1,3}\s*),(\s*\d{1,3}\s*),(\s*\d{1,3}\s*)\)")
_mac = re.compile(r"(?i)([0-9a-f]{2}[:-]){5}[0-9a-f]{2}")
_short_name = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_path_or_scheme = re.compile(r"[a-zA-Z][a-zA-Z0-9+.\-]*:.+|/.*")


def _date(text: str) -> bool:
    try:
        return len(text) == 10 and bool(date.fromisoformat(text))
    except ValueError:
        return False


def _byte(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _duration(text: str) -> bool:
    try:
        times.parse_duration(text)
    except ValueError:
        return _words.fullmatch(text) is not None
    return True


def _uri(text: str) -> bool:
    try:
        urlsplit(text)
    except ValueError:
        return False
    return _path_or_scheme.fullmatch(text) is not None


def _family(text: str, version: int) -> bool:
    found = parse(text)
    return found is not None and (":" in text) == (version == 6)


def _uuid_version(digit: str) -> Callable[[str], bool]:
    return lambda text: _uuid.fullmatch(text) is not None and text.replace("-", "")[12] == digit


def _matches(pattern: re.Pattern[str]) -> Callable[[str], bool]:
    return lambda text: pattern.fullmatch(text) is not None


def _luhn(digits: str) -> bool:
    doubled = [int(d) * (2 if i % 2 else 1) for i, d in enumerate(reversed(digits))]
    return sum(d - 9 if d > 9 else d for d in doubled) % 10 == 0


def _card(text: str) -> bool:
    digits = re.sub(r"[^0-9]+", "", text)
    return 12 < len(digits) < 20 and _luhn(digits)


def _isbn(length: int) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        digits = re.sub(r"[\s-]+", "", text)
        if length == 10:
            if not re.fullmatch(r"\d{9}[\dX]", digits):
                return False
            return sum((10 - i) * (10 if d == "X" else int(d)) for i, d in enumerate(digits)) % 11 == 0
        if not re.fullmatch(r"\d{13}", digits):
            return False
        return sum(int(d) * (3 if i % 2 else 1) for i, d in enumerate(digits)) % 10 == 0

    return check


_isbn10, _isbn13 = _isbn(10), _isbn(13)

CHECKS: dict[str, Callable[[str], bool]] = {
    "bsonobjectid": _matches(re.compile("[0-9a-fA-F]{24}")),
    "byte": _byte,
    "cidr": lambda text: parse_network(text) is not None,
    "creditcard": _card,
    "date": _date,
    "date-time": _matches(_moment),
    "datetime": _matches(_moment),
    "duration": _duration,
    "email": _matches(_email),
    "hexcolor": _matches(_hex_colour),
    "hostname": lambda text: len(text) <= 255 and _host.fullmatch(text) is not None,
    "ipv4": lambda text: _family(text, 4),
    "ipv6": lambda text: _family(text, 6),
    "isbn": lambda text: _isbn10(text) or _isbn13(text),
    "isbn10": _isbn10,
    "isbn13": _isbn13,
    "k8s-long-name": lambda text: len(text) <= 253 and all(_short_name.fullmatch(part) for part in text.split(".")),
    "k8s-short-name": _matches(_short_name),
    "mac": _matches(_mac),
    "password": lambda text: True,
    "rgbcolor": _matches(_rgb),
    "ssn": _matches(_ssn),
    "uri": _uri,
    "uuid": _matches(_uuid),
    "uuid3": _uuid_version("3"),
    "uuid4": _uuid_version("4"),
    "uuid5": _uuid_version("5"),
}

# Formats that a definition may name without a warning.
KNOWN = frozenset(CHECKS) | {"int32", "int64", "float", "double"}
