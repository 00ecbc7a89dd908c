"""Sets of indexes as text, compared with sets of numbers."""

import re
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark.kinds.batch import indexes
from seamark.kinds.batch.indexes import Indexes

some = st.sets(st.integers(0, 60))


def numbers(found):
    return {number for low, high in found.intervals for number in range(low, high + 1)}


@given(some, some)
def test_as_sets_of_numbers(a, b):
    left, right = Indexes.of(a), Indexes.of(b)
    assert numbers(left | right) == a | b
    assert numbers(left & right) == a & b
    assert len(left) == len(a)
    assert {n for n in range(62) if n in left} == a
    assert set(left.missing(61)) == set(range(61)) - a
    assert Indexes.read(str(left), 61) == left
    assert indexes.count(str(left), 61) == len(a)


def test_text():
    assert str(Indexes.of([7, 1, 3, 4, 5, 9, 10])) == "1,3-5,7,9,10"
    assert str(Indexes()) == ""


def test_billions():
    most = Indexes.read("0-2147483640,2147483645", 2**31 - 1)
    assert len(most) == 2147483642
    assert list(islice(most.missing(2**31 - 1), 3)) == [2147483641, 2147483642, 2147483643]


def test_what_makes_no_sense_is_left_out():
    assert str(Indexes.read("x,3-1,-2,2,7-99,100", 10)) == "2,7-9"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("1-2-3", 'the fragment "1-2-3" violates the requirement that an index interval can have at most two parts'),
        ("a", 'cannot convert string to integer for index: "a"'),
        ("1-", 'cannot convert string to integer for index: ""'),
        ("10", 'too large index: "10"'),
        ("2,2", "non-increasing order, previous: 2, current: 2"),
        ("3-3", "non-increasing order, previous: 3, current: 3"),
    ],
)
def test_what_a_user_wrote_wrongly(text, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        indexes.count(text, 10)
