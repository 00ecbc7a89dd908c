"""The kinds of one server: found by their place, told about as they come and go."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark.errors import Conflict
from seamark.kinds.kind import Kind
from seamark.kinds.resource import PODS, Resource
from seamark.kinds.table import KINDS, Kinds
from widgets import WIDGETS, widget_kind

RESOURCES = [
    Resource(group, version, f"{kind.lower()}s", kind)
    for group in ("example.com", "example.org")
    for version in ("v1", "v2")
    for kind in ("Widget", "Gadget")
]


def test_each_server_has_its_own() -> None:
    mine, other = Kinds(), Kinds()
    mine.add(widget_kind())
    assert (len(mine), len(other)) == (len(KINDS) + 1, len(KINDS))
    assert mine.by_kind("example.com/v1", "Widget") is mine.by_plural("example.com", "v1", "widgets")
    assert "example.com" in mine.groups
    assert "example.com" not in other.groups


def test_a_kind_keeps_its_name_for_itself() -> None:
    kinds = Kinds([widget_kind()])
    with pytest.raises(Conflict, match="Widget is the kind of widgets"):
        kinds.add(widget_kind(resource=Resource("example.com", "v1", "gadgets", "Widget")))
    with pytest.raises(KeyError):
        kinds.remove(PODS)
    assert [kind.resource for kind in kinds] == [WIDGETS]


@given(st.lists(st.tuples(st.booleans(), st.sampled_from(RESOURCES))))
def test_whatever_is_added_and_removed(steps: list[tuple[bool, Resource]]) -> None:
    kinds = Kinds([])
    told: dict[Resource, Kind] = {}
    late: list[object] = []

    def follow(old: Kind | None, new: Kind | None) -> None:
        assert (None if old is None else told.pop(old.resource)) is old
        if new is not None:
            told[new.resource] = new

    kinds.on_change(follow)
    stop = kinds.on_change(lambda old, new: late.append(new))
    stop()
    model: dict[Resource, Kind] = {}
    for adding, resource in steps:
        revision, changes = kinds.revision, adding or resource in model
        if adding:
            model[resource] = widget_kind(resource=resource)
            kinds.add(model[resource])
        elif resource in model:
            del model[resource]
            kinds.remove(resource)
        assert kinds.revision == revision + changes
        assert {kind.resource: kind for kind in kinds} == told == model
        assert kinds.groups == {r.group for r in model}
        for r in RESOURCES:
            assert kinds.by_plural(r.group, r.version, r.plural) is model.get(r)
            assert kinds.by_kind(r.api_version, r.kind) is model.get(r)
    assert late == []
