"""Quantities such as ``100m`` or ``1Gi`` as numbers that can be compared and added."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import ROUND_CEILING, Decimal
from functools import lru_cache

_SUFFIXES = {
    "": Decimal(1),
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    "k": Decimal(10**3),
    "M": Decimal(10**6),
    "G": Decimal(10**9),
    "T": Decimal(10**12),
    "P": Decimal(10**15),
    "E": Decimal(10**18),
    "Ki": Decimal(1 << 10),
    "Mi": Decimal(1 << 20),
    "Gi": Decimal(1 << 30),
    "Ti": Decimal(1 << 40),
    "Pi": Decimal(1 << 50),
    "Ei": Decimal(1 << 60),
}


@lru_cache(maxsize=4096)
def number(text: str) -> Decimal:
    """What a quantity amounts to.  The text has passed decoding, so it is one."""
    bare = text.rstrip("EPTGMKkmunid")
    suffix = text[len(bare) :]
    if suffix in _SUFFIXES:
        return Decimal(bare) * _SUFFIXES[suffix]
    return Decimal(text)  # exponents: 12e6


def milli(text: str) -> int:
    """Thousandths, rounded up: the precision in which Kubernetes compares CPU."""
    return int((number(text) * 1000).to_integral_value(ROUND_CEILING))


def render(amount: Decimal, *, binary: bool) -> str:
    """The shortest way to write an amount: ``1500m``, ``2``, ``3k``, or ``2Gi`` where it counts in powers of two."""
    if binary and abs(amount) >= 1024:
        return _shorten(int(amount.to_integral_value(ROUND_CEILING)), 1024, ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"))
    thousandths = int((amount * 1000).to_integral_value(ROUND_CEILING))
    if thousandths % 1000:
        return f"{thousandths}m"
    return _shorten(thousandths // 1000, 1000, ("", "k", "M", "G", "T", "P", "E"))


def _shorten(whole: int, step: int, suffixes: tuple[str, ...]) -> str:
    for suffix in suffixes[:-1]:
        if whole % step or not whole:
            return f"{whole}{suffix}"
        whole //= step
    return f"{whole}{suffixes[-1]}"


def total(texts: Iterable[str]) -> str:
    """The sum of quantities, written the way the first of them is."""
    listed = list(texts)
    if len(listed) == 1:
        return listed[0]
    return render(sum(map(number, listed), Decimal(0)), binary=bool(listed) and listed[0].endswith("i"))
