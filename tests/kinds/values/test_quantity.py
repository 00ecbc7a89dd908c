"""Quantities: parsed exactly, printed as Kubernetes prints them."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark.kinds.values import quantity
from seamark.kinds.values.quantity import QuantityError, amount, canonical, parse


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("0", "0"),
        ("0Gi", "0"),
        ("-0", "0"),
        ("000", "0"),
        ("0.1", "100m"),
        (".5", "500m"),
        ("1.", "1."),
        ("1000", "1k"),
        ("1024", "1024"),
        ("1000000", "1M"),
        ("1500", "1500"),
        ("1.5k", "1500"),
        ("100m", "100m"),
        ("1000m", "1"),
        ("1024Ki", "1Mi"),
        ("1000Ki", "1000Ki"),
        ("1023", "1023"),
        ("512Ki", "512Ki"),
        ("1.5Gi", "1536Mi"),
        ("0.5Ki", "512"),
        ("1.5", "1500m"),
        ("1.500", "1.500"),
        ("0.5Mi", "512Ki"),
        ("0.1Ki", "102400m"),
        ("1e3", "1e3"),
        ("1E3", "1E3"),
        ("1000e3", "1e6"),
        ("1e4", "10e3"),
        ("1e-3", "1e-3"),
        ("12e1", "120"),
        ("1n", "1n"),
        ("0.1n", "1n"),
        ("1.0000000001", "1000000001n"),
        ("-100", "-100"),
        ("-1.5Gi", "-1536Mi"),
        ("9Ei", "9223372036854775807"),
        ("1000E", "1000E"),
        ("1e1000000000", "10e999999999"),
        ("1e-1000000000", "1e-9"),
        ("123456789012345678901234567890", "123456789012345678901234567890"),
        (" 1 ", "1"),
        ("+", "0"),
        ("0.00000000001Ki", "11n"),
        ("100000Pi", "9223372036854775807"),
    ],
)
def test_canonical_form(text: str, printed: str) -> None:
    assert canonical(text) == printed


@pytest.mark.parametrize("text", ["", "x", "1x", "1.5.2", "--1", "1 k", "1e", "1Kib", "0x10", "1" * 2000, "①", "1e١"])
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(QuantityError):
        parse(text)


def test_errors_are_kubernetes_own() -> None:
    with pytest.raises(QuantityError, match="quantities must match the regular expression"):
        parse("1x")
    with pytest.raises(QuantityError, match="unable to parse quantity's suffix"):
        parse("1Ke")


def test_amounts_compare_by_value() -> None:
    assert amount("1Ki") > amount("1k") > amount("999")
    assert amount("0.5") == amount("500m") == Decimal("0.5")
    assert amount("1e1000000000") > amount("1e999999999")
    assert amount("-1") < amount("0")


NUMBERS = st.from_regex(r"[+-]?[0-9]{1,20}(\.[0-9]{0,12})?", fullmatch=True)
SUFFIXES = st.sampled_from(
    ["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e3", "E-4"]
)


@given(NUMBERS, SUFFIXES)
def test_canonical_form_is_stable_and_means_the_same(number: str, suffix: str) -> None:
    once = parse(number + suffix)
    again = parse(once.text)
    assert again.text == once.text
    assert again.value == once.value


@given(NUMBERS, st.sampled_from(["", "k", "m", "e2"]))
def test_amounts_are_exact_up_to_nanos(number: str, suffix: str) -> None:
    factor = {"": 0, "k": 3, "m": -3, "e2": 2}[suffix]
    exact = Decimal(number + f"e{factor}")
    assert abs(quantity.amount(number + suffix) - exact) < Decimal("1e-9")
