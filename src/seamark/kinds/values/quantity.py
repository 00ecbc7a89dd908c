"""Resource quantities such as ``100m``, ``1.5Gi`` or ``1e3``: parsed exactly, and printed in canonical form.

A printed quantity keeps the kind of its suffix (binary, decimal or exponent).  The canonical form has the largest
suffix that needs no fraction: 0.1 is ``100m``, 1024Ki is ``1Mi``, 1000 is ``1k``.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Literal

import msgspec

from seamark.remembering import remembered

Format = Literal["BinarySI", "DecimalSI", "DecimalExponent"]

_SPLIT = "^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"
# Possessive (``*+``), so that the time for a text that does not match is linear.
_pattern = re.compile(r"([+-]?)(\d*+)(?:\.(\d*+))?([eEinumkKMGTP]*+[-+]?\d*+)", re.ASCII)
_exponent = re.compile(r"[eE]([-+]?\d+)", re.ASCII)

_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_DECIMAL_SUFFIX = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_SUFFIX = {exponent: suffix for suffix, exponent in _BINARY.items()} | {0: ""}

_FINEST = -9  # nothing smaller than a nano
_LARGEST_BINARY = 2**63 - 1
_LARGEST_EXPONENT = 2**31 - 1
MOST = Decimal(10**27)
_KEPT_DIGITS = 18  # longer numbers are always printed in canonical form


class QuantityError(ValueError):
    """The text is not a quantity; the message is Kubernetes' own."""


class Quantity(msgspec.Struct, frozen=True):
    """``digits`` times ten to the ``exponent``; ``text`` is the canonical form."""

    digits: int
    exponent: int
    format: Format
    text: str

    @property
    def value(self) -> Decimal:
        """The exact amount."""
        return Decimal((self.digits < 0, tuple(map(int, str(abs(self.digits)))), self.exponent))


def _suffix(text: str) -> tuple[Format, int]:
    if text in _DECIMAL:
        return "DecimalSI", _DECIMAL[text]
    if text in _BINARY:
        return "BinarySI", _BINARY[text]
    if match := _exponent.fullmatch(text):
        exponent = int(match[1])
        if abs(exponent) <= _LARGEST_EXPONENT:
            return "DecimalExponent", exponent
    raise QuantityError("unable to parse quantity's suffix")


def parse(text: str) -> Quantity:
    """Parse a quantity; raises :class:`QuantityError`."""
    match = _pattern.fullmatch(text)
    if not match or not text or len(text) > 1000:
        raise QuantityError(f"quantities must match the regular expression '{_SPLIT}'")
    sign, whole, fraction, suffix = match[1], match[2].lstrip("0") or "0", match[3] or "", match[4]
    form, exponent = _suffix(suffix)
    digits = int(whole + fraction)
    if form == "BinarySI":
        kept = not fraction and bool(digits & 7) and len(whole) + exponent * 3 // 10 <= 14
        digits, exponent = digits << exponent, 0
    else:
        # Kubernetes prints a text such as "1.500" as it was written, although the canonical form has no fraction.
        kept = (
            (exponent - len(fraction)) % 3 == 0
            and exponent - len(fraction) >= _FINEST
            and not whole.startswith("0")
            and not (whole + fraction).endswith("000")
            and len(whole) + len(fraction) <= _KEPT_DIGITS
        )
    exponent -= len(fraction)
    if exponent < _FINEST:
        digits, exponent = _round_up(digits, _FINEST - exponent), _FINEST
    if form == "BinarySI":
        digits, exponent, form = _settle_binary(digits, exponent)
    if sign == "-":
        digits = -digits
    return Quantity(digits, exponent, form, text if kept else _print(digits, exponent, form))


def _round_up(digits: int, places: int) -> int:
    """Drop decimal places, rounding up, so that a request never becomes zero."""
    if places > len(str(digits)):
        return 1 if digits else 0
    step: int = 10**places
    return -(-digits // step)


def _settle_binary(digits: int, exponent: int) -> tuple[int, int, Format]:
    """Cap a binary amount at the largest int64, and print one below 1 with a decimal suffix."""
    scale = 10**-exponent
    if digits > _LARGEST_BINARY * scale:
        digits, exponent, scale = _LARGEST_BINARY, 0, 1
    return digits, exponent, "DecimalSI" if digits < scale else "BinarySI"


def _print(digits: int, exponent: int, form: Format) -> str:
    if not digits:
        return "0"
    if form == "BinarySI":
        whole, rest = divmod(digits, 10**-exponent)
        # An amount below 1Ki or with a fraction has no exact binary suffix.
        if not rest and abs(whole) >= 1024:
            power = 0
            while whole % 1024 == 0 and power < 60:
                whole, power = whole // 1024, power + 10
            return f"{whole}{_BINARY_SUFFIX[power]}"
        form = "DecimalSI"
    while digits % 10 == 0:
        digits, exponent = digits // 10, exponent + 1
    largest = _LARGEST_EXPONENT if form == "DecimalExponent" else 18
    shift = exponent % 3 if exponent <= largest else exponent - largest
    digits, exponent = digits * 10**shift, exponent - shift
    if form == "DecimalExponent":
        return f"{digits}e{exponent}" if exponent else str(digits)
    return f"{digits}{_DECIMAL_SUFFIX[exponent]}"


@remembered(4096)
def canonical(text: str) -> str:
    """The canonical text of a quantity; raises :class:`QuantityError`."""
    return parse(text.strip()).text


@remembered(4096)
def amount(text: str) -> Decimal:
    """The exact amount of a quantity, only to compare: it may be 1e2147483647, which arithmetic cannot handle."""
    return parse(text).value


def measure(text: str) -> Decimal:
    """The amount of a quantity, at most ``MOST``, to calculate with."""
    return max(-MOST, min(amount(text), MOST))


def plus(first: str, second: str) -> str:
    """The sum of two quantities, with the kind of suffix that the first has (the second, if the first is zero)."""
    return _calculated(first, second, measure(first) + measure(second))


def minus(first: str, second: str) -> str:
    """The difference of two quantities, printed as by :func:`plus`."""
    return _calculated(first, second, measure(first) - measure(second))


def _calculated(first: str, second: str, value: Decimal) -> str:
    form = parse(first if amount(first) else second).format
    return _print(int(value.scaleb(-_FINEST)), _FINEST, form)
