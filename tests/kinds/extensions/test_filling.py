"""Unknown fields go, defaults come."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark.errors import ApiError, Object
from seamark.kinds.extensions.filling import Unknown, fill_in, filler, pruner

SCHEMA: Any = {
    "type": "object",
    "properties": {
        "list": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"k": {"type": "string"}, "v": {"type": "string", "default": "d"}},
            },
        },
        "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"q": {"type": "integer"}}}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "deep": {"type": "object", "default": {}, "properties": {"x": {"type": "string", "default": "dx"}}},
        "text": {"type": "string"},
        "maybe": {"type": "string", "nullable": True},
    },
}


def pruned(value: Any) -> tuple[Any, list[str]]:
    unknown: Unknown = []
    return pruner(SCHEMA)(value, None, unknown), [path for _, path in sorted(unknown)]


def test_unknown_fields_go_at_every_depth() -> None:
    value = {"list": [{"k": "1", "x": 1}], "map": {"m": {"q": 1, "w": 2}}, "free": {"y": {"z": None}}, "bogus": 1}
    kept = {"list": [{"k": "1"}], "map": {"m": {"q": 1}}, "free": {"y": {"z": None}}}
    assert pruned(value) == (kept, ["bogus", "list[0].x", "map.m.w"])


def test_defaults_come_and_forbidden_nulls_go() -> None:
    value: Any = {"list": [{"k": "1"}, {"v": "x"}], "text": None, "maybe": None}
    fill = filler(SCHEMA)
    assert fill is not None
    fill(value)
    assert value == {"list": [{"k": "1", "v": "d"}, {"v": "x"}], "maybe": None, "deep": {"x": "dx"}}


def test_defaults_are_not_shared() -> None:
    one: Any = {}
    two: Any = {}
    fill = filler(SCHEMA)
    assert fill is not None
    fill(one)
    one["deep"]["x"] = "changed"
    fill(two)
    assert two["deep"] == {"x": "dx"}


anything = st.recursive(
    st.none() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["k", "list", "map", "x"]), inner),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(["list", "map", "deep", "free", "text", "other"]), anything))
def test_both_settle_at_once_whatever_they_are_given(value: Any) -> None:
    once, _ = pruned(value)
    assert pruned(once) == (once, [])
    fill = filler(SCHEMA)
    assert fill is not None
    fill(once)
    again, unknown = pruned(once)
    fill(again)
    assert (again, unknown) == (once, [])


def test_defaults_that_multiply_are_refused_before_they_are_encoded() -> None:
    entry = {"type": "object", "properties": {"a": {"type": "string", "default": "x" * 100_000}}}
    fill = filler({"type": "object", "properties": {"spec": {"type": "object", "additionalProperties": entry}}})
    assert fill is not None
    few: Object = {"spec": {f"k{i}": {} for i in range(10)}}
    fill_in(fill, few, written=True)
    assert len(few["spec"]["k9"]["a"]) == 100_000
    with pytest.raises(ApiError, match="request is too large"):
        fill_in(fill, {"spec": {f"k{i}": {} for i in range(100)}}, written=True)


def test_an_object_that_is_read_is_shown_without_the_defaults_that_have_no_room() -> None:
    entry = {"type": "object", "properties": {"a": {"type": "string", "default": "x" * 100_000}}}
    fill = filler({"type": "object", "properties": {"spec": {"type": "object", "additionalProperties": entry}}})
    assert fill is not None
    many: Object = {"spec": {f"k{i}": {} for i in range(100)}}
    fill_in(fill, many, written=False)
    assert [name for name, value in many["spec"].items() if value] == [f"k{i}" for i in range(41)]
