"""YAML that goes out: as Go prints it, and readable as what it was."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as some

from seamark.kinds.language.yaml_body import read
from seamark.kinds.language.yaml_text import dump


@pytest.mark.parametrize(
    ("value", "line"),
    [
        ("web", "web"),
        ("", '""'),
        ("true", '"true"'),
        ("y", '"y"'),
        ("1e3", '"1e3"'),
        ("08", '"08"'),
        ("0o7", '"0o7"'),
        ("+.5", '"+.5"'),
        ("2020-1-1", '"2020-1-1"'),
        ("12:30", '"12:30"'),
        ("~", '"~"'),
        ("<<", "<<"),
        ("=", "="),
        ("10.0.0.1", "10.0.0.1"),
        ("::1", "::1"),
        ("a: b", "'a: b'"),
        (" a", "' a'"),
        ("it's", "it's"),
        ("日本", "日本"),
        ("😀", '"\\U0001F600"'),
        ("a\tb", '"a\\tb"'),
        (True, "true"),
        (1, "1"),
        (None, "null"),
        ([], "[]"),
    ],
)
def test_values_are_written_as_go_writes_them(value: Any, line: str) -> None:
    assert dump({"k": value}).decode() == f"k: {line}\n"


def test_long_texts_are_broken_and_several_lines_are_blocks() -> None:
    plain = dump({"k": "some words " * 9 + "end"}).decode()
    assert plain.splitlines()[1].startswith("  ")
    assert len(plain.splitlines()[0]) > 80
    quoted = dump({"k": "tab\t and words " * 9 + "end"}).decode()
    assert quoted.splitlines()[1].startswith("  ")
    assert "\\\n" not in quoted
    assert dump({"k": "a\nb\n"}) == b"k: |\n  a\n  b\n"


values = some.recursive(
    some.none() | some.booleans() | some.integers(-(2**62), 2**62) | some.text(max_size=120),
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(values)
@example("a b\t" * 40)
@example({"\x85": None})
@example("two\nlines\u2028or three")
@example("x" * 81 + "   y\t")
@example("\t " + "word " * 30)
def test_what_is_written_can_be_read(value: Any) -> None:
    try:
        str(value).encode()
    except UnicodeEncodeError:
        return  # half a surrogate pair is no text
    assert read(dump({"k": value}))[0] == {"k": value}
