from __future__ import annotations

import copy
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from owned_objects import THING, things

from seamark.api.fields import fieldsets, merging, typed
from seamark.api.fields.fieldsets import LEAF, Fields, MalformedFields
from seamark.kinds.language import shapes

steps = st.sampled_from(["f:a", "f:b", "f:name", 'k:{"port":80,"protocol":"TCP"}', 'v:"x"', "v:7", "i:3"])
path_sets = st.sets(st.lists(steps, min_size=1, max_size=3).map(tuple), max_size=8)


PORT_1 = 'k:{"port":1,"protocol":"TCP"}'


def members(fields: Fields) -> set[tuple[str, ...]]:
    return set(fieldsets.paths(fields))


def of(paths: set[tuple[str, ...]]) -> Fields:
    fields: Fields = {}
    for path in paths:
        node: Fields = LEAF
        for step in reversed(path):
            node = {step: node}
        fields = fieldsets.union(fields, node)
    return fields


# --- algebra ----------------------------------------------------------------------------------------


@settings(deadline=None)
@given(path_sets)
def test_a_set_has_the_paths_it_was_made_of(paths: set[tuple[str, ...]]) -> None:
    assert members(of(paths)) == paths


@settings(deadline=None)
@given(path_sets, path_sets)
def test_algebra_is_that_of_sets_of_paths(one: set[tuple[str, ...]], other: set[tuple[str, ...]]) -> None:
    a, b = of(one), of(other)
    kept = copy.deepcopy((a, b))
    assert members(fieldsets.union(a, b)) == one | other
    assert members(fieldsets.difference(a, b)) == one - other
    assert members(fieldsets.intersection(a, b)) == one & other
    below = {path for path in one if any(path[: len(root)] == root for root in other)}
    assert members(fieldsets.without(a, b)) == one - below
    assert (a, b) == kept
    assert LEAF == {}


@settings(deadline=None)
@given(path_sets, path_sets)
def test_equal_sets_are_equal_trees(one: set[tuple[str, ...]], other: set[tuple[str, ...]]) -> None:
    a, b = of(one), of(other)
    assert fieldsets.difference(fieldsets.union(a, b), fieldsets.difference(b, a)) == a
    assert fieldsets.union(fieldsets.intersection(a, b), fieldsets.difference(a, b)) == a


@settings(deadline=None)
@given(path_sets)
def test_difference_gives_the_set_itself_when_nothing_is_taken(paths: set[tuple[str, ...]]) -> None:
    fields = of(paths)
    assert fieldsets.difference(fields, {"f:elsewhere": LEAF}) is fields


# --- in and out -------------------------------------------------------------------------------------


@settings(deadline=None)
@given(path_sets)
def test_a_set_survives_printing_and_parsing(paths: set[tuple[str, ...]]) -> None:
    fields = of(paths)
    printed = msgspec.json.encode(fieldsets.ordered(fields))
    assert fieldsets.parse(msgspec.json.decode(printed)) == fields


def test_steps_are_written_in_kubernetes_order() -> None:
    jumbled: Any = {
        'v:"b"': {},
        "v:10": {},
        "v:9": {},
        'k:{"name":"b"}': {},
        'k:{"name":"a"}': {"f:z": {}, "f:a": {}, ".": {}},
        "f:b": {},
        "f:a": {},
        "i:1": {},
    }
    ordered = fieldsets.ordered(jumbled)
    assert list(ordered) == [
        "f:a",
        "f:b",
        'k:{"name":"a"}',
        'k:{"name":"b"}',
        "v:9",
        "v:10",
        'v:"b"',
        "i:1",
    ]
    assert list(ordered['k:{"name":"a"}']) == [".", "f:a", "f:z"]


def test_parsing_knows_one_spelling_of_each_set() -> None:
    sent = {
        'k:{"protocol": "TCP", "port": 80}': None,
        'v: "x"': {},
        "f:a": {".": {}, "f:b": {".": {}}},
        "z:new in a later version": {"f:x": {}},
    }
    assert fieldsets.parse(sent) == {
        'k:{"port":80,"protocol":"TCP"}': {},
        'v:"x"': {},
        "f:a": {".": {}, "f:b": {}},
    }
    assert fieldsets.parse(None) == {}


@pytest.mark.parametrize(
    "sent",
    [[], "f:a", {"a": {}}, {"": {}}, {"fa": {}}, {"k:[1]": {}}, {"k:{": {}}, {"v:": {}}, {"i:x": {}}, {"f:a": []}],
)
def test_what_is_no_set_is_refused(sent: Any) -> None:
    with pytest.raises(MalformedFields):
        fieldsets.parse(sent)


def test_paths_are_shown_as_in_messages() -> None:
    fields: Any = {
        "f:spec": {
            "f:ports": {".": {}, 'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:name": {}}},
            "f:finalizers": {'v:"example.com/x"': {}},
        },
        "f:data": {},
    }
    assert [fieldsets.show(path) for path in fieldsets.paths(fields)] == [
        ".data",
        ".spec.ports",
        '.spec.finalizers[="example.com/x"]',
        '.spec.ports[port=80,protocol="TCP"]',
        '.spec.ports[port=80,protocol="TCP"].name',
    ]


# --- from objects -----------------------------------------------------------------------------------


def compare(old: Any, new: Any) -> tuple[Fields, Fields]:
    changed: Fields = {}
    removed: Fields = {}
    typed.struct(THING).compare(old, new, changed, removed)
    return changed, removed


@settings(deadline=None)
@given(things)
def test_an_object_does_not_differ_from_itself(thing: dict[str, Any]) -> None:
    assert compare(thing, copy.deepcopy(thing)) == ({}, {})


@settings(deadline=None)
@given(things, things)
def test_differences_are_where_the_objects_differ(old: dict[str, Any], new: dict[str, Any]) -> None:
    changed, removed = compare(old, new)
    walker = typed.struct(THING)
    before, after = members(walker.whole(old)), members(walker.whole(new))
    assert after - before <= members(changed) <= after | before
    # An empty container is a leaf of its own, so it may change into one with things in it without its path changing.
    assert members(removed) == before - after
    assert not (members(changed) & members(removed))


@pytest.mark.parametrize(
    ("old", "new", "changed", "removed"),
    [
        ({"limits": {}}, {"limits": {}}, {}, {}),
        ({"limits": None}, {"limits": {}}, {"f:limits": {}}, {}),
        ({}, {"limits": {}}, {"f:limits": {}}, {}),
        ({}, {"limits": {"a": "1"}}, {"f:limits": {".": {}, "f:a": {}}}, {}),
        ({"limits": None}, {"limits": {"a": "1"}}, {"f:limits": {"f:a": {}}}, {}),
        ({"limits": {"a": "1"}}, {"limits": {}}, {}, {"f:limits": {"f:a": {}}}),
        ({"limits": {"a": "1"}}, {}, {}, {"f:limits": {".": {}, "f:a": {}}}),
        ({"ports": None}, {"ports": []}, {"f:ports": {}}, {}),
        ({"ports": [{"port": 1}]}, {"ports": None}, {}, {"f:ports": {PORT_1: {".": {}, "f:port": {}}}}),
        ({"tags": ["a"]}, {"tags": ["b"]}, {"f:tags": {'v:"b"': {}}}, {"f:tags": {'v:"a"': {}}}),
        ({"tags": ["a", "b"]}, {"tags": ["b", "a"]}, {}, {}),
        ({"steps": ["a", "b"]}, {"steps": ["b", "a"]}, {"f:steps": {}}, {}),
        ({"size": 1}, {"size": None}, {"f:size": {}}, {}),
    ],
)
def test_empty_null_and_absent_are_three_things(old: Any, new: Any, changed: Any, removed: Any) -> None:
    def in_spec(fields: Any) -> Any:
        return {"f:spec": fields} if fields else {}

    assert compare({"spec": old}, {"spec": new}) == (in_spec(changed), in_spec(removed))


@settings(deadline=None)
@given(things)
def test_named_fields_are_part_of_the_whole(thing: dict[str, Any]) -> None:
    walker = typed.struct(THING)
    named = members(merging.named_fields(walker, thing))
    assert named <= members(walker.whole(thing))
    assert ("f:metadata", "f:name") in named
    assert ("f:metadata",) not in named


def test_keys_with_defaults() -> None:
    listing = typed.struct(shapes.of("io.k8s.api.core.v1.ServiceSpec")).fields["ports"][1]
    assert isinstance(listing, typed.Listing)
    assert listing.step({"port": 80}) == listing.step({"port": 80, "protocol": "TCP"})
    assert listing.step({"port": 80}) == 'k:{"port":80,"protocol":"TCP"}'


def test_twins_are_owned_together() -> None:
    def env(*pairs: str) -> dict[str, Any]:
        return {"name": "c", "env": [dict(zip(("name", "value"), pair.split("="), strict=True)) for pair in pairs]}

    walker = typed.struct(shapes.of("io.k8s.api.core.v1.Container"))

    def differ(old: dict[str, Any], new: dict[str, Any]) -> tuple[Fields, Fields]:
        changed: Fields = {}
        removed: Fields = {}
        walker.compare(old, new, changed, removed)
        return changed.get("f:env", {}), removed.get("f:env", {})

    leaf, single = {'k:{"name":"A"}': {}}, {'k:{"name":"A"}': {".": {}, "f:name": {}, "f:value": {}}}
    assert walker.whole(env("A=1", "A=2"))["f:env"] == {".": {}, **leaf}
    assert merging.named_fields(walker, env("A=1", "A=2"))["f:env"] == leaf
    assert differ(env("A=1", "A=2"), env("A=1", "A=2")) == ({}, {})
    assert differ(env("A=1", "A=2"), env("A=1", "A=3")) == (leaf, {})
    assert differ(env("A=1", "A=2"), env("A=1")) == (single, leaf)
    assert differ(env("A=1"), env("A=1", "A=2")) == (leaf, single)
    assert differ(env("B=1"), env("B=1", "A=1", "A=2")) == (leaf, {})
    assert differ(env("B=1", "A=1", "A=2"), env("B=1")) == ({}, leaf)


def test_shapes_that_refer_to_themselves_can_be_compiled() -> None:
    for name, shape in shapes.load().items():
        walker = typed.struct(shape)
        assert isinstance(walker.zero, dict), name
        assert walker.fields.keys() == shape.fields.keys()
