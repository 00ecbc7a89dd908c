"""JSON inside other texts, whatever is wrong with it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark.kinds.language.inner_json import Unreadable, read
from seamark.kinds.language.scalars import DEEPEST

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(JSON)
def test_what_was_written_is_read(value: Any) -> None:
    assert read(msgspec.json.encode(value)) == read(msgspec.json.encode(value).decode()) == value


@given(st.binary() | st.text())
def test_everything_else_is_one_fault(text: str | bytes) -> None:
    try:
        msgspec.json.encode(read(text))
    except Unreadable:
        return


@pytest.mark.parametrize(
    "text",
    ["", "{", b"\xff", b'"\xff"', r'"\ud800"', "1" * 5000, *(each * 50_000 for each in ("[", '{"a":'))]
    + [f"{'[' * levels}{']' * levels}" for levels in (DEEPEST + 1, 900, 1100, 100_000)],
    ids=lambda text: f"{text[:8]!r} of {len(text)}",
)
def test_kinds_of_faults(text: str | bytes) -> None:
    with pytest.raises(Unreadable):
        read(text)


class Named(msgspec.Struct):
    name: str = ""


def test_a_type() -> None:
    assert read('{"name":"a","more":[]}', Named) == Named("a")
    for text in ('{"name":1}', "[]", '{"name":"a","more":' + "[" * 5000 + "]" * 5000 + "}"):
        with pytest.raises(Unreadable):
            read(text, Named)
