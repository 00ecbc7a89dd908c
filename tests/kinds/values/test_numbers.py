"""Whole numbers in texts, of any length."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark.kinds.values.numbers import LARGEST, int64
from seamark.kinds.values.quantity import MOST, measure
from seamark.kinds.values.selectors import parse_labels


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("-0", 0),
        ("+7", 7),
        ("007", 7),
        ("0" * 9000 + "7", 7),
        (str(LARGEST), LARGEST),
        (str(-LARGEST - 1), -LARGEST - 1),
        (str(LARGEST + 1), None),
        (str(-LARGEST - 2), None),
        ("9" * 9000, None),
        ("", None),
        ("-", None),
        ("1_0", None),
        (" 1", None),
        ("1\n", None),
        ("١", None),
    ],
)
def test_numbers_as_go_reads_them(text, number):
    assert int64(text) == number


@given(st.integers(-LARGEST - 1, LARGEST))
def test_every_number_of_64_bits_is_read(number):
    assert int64(str(number)) == number


@pytest.mark.parametrize("text", ["1e2147483647", "9" * 999, "1e1000000"])
def test_a_quantity_beyond_measure_can_be_calculated_with(text):
    assert measure(text) == MOST
    assert measure(f"-{text}") == -MOST
    assert (measure(text) + measure("1n")) % 1 == 0


def test_a_selector_may_compare_with_a_label_of_many_digits():
    assert not parse_labels("size>5").matches({"size": "9" * 9000})
    assert parse_labels("size>5").matches({"size": "6"})
