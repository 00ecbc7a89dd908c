"""Kinds made from data: their rules, their rows, and what describes them."""

from __future__ import annotations

from seamark.errors import Object
from seamark.kinds.dynamic import Printed
from seamark.kinds.kind import Column
from seamark.kinds.language.decode import conform
from widgets import NAME, shape, widget, widget_kind

MADE = "2026-01-02T03:04:05Z"
NOW = 1767323045.0 + 90  # that moment, and a minute and a half


def stored(**parts: object) -> Object:
    return {"metadata": {"name": "a", "generation": 3}, "spec": {"size": 1}, **parts}


def test_a_row_takes_its_cells_from_where_the_columns_say() -> None:
    printed = (
        Printed(Column("Size", "integer"), ("spec", "size")),
        Printed(Column("Phase"), ("status", "phase")),
        Printed(Column("Deep"), ("spec", "size", "more")),
        Printed(Column("Made", "date"), ("metadata", "creationTimestamp")),
        Printed(Column("Odd", "date"), ("spec", "size")),
    )
    kind = widget_kind(printed=printed)
    obj = widget("a", metadata={"creationTimestamp": MADE}, size=3)
    assert [column.name for column in kind.columns] == ["Name", "Size", "Phase", "Deep", "Made", "Odd"]
    assert list(kind.row(obj, NOW)) == ["a", 3, None, None, "90s", "<invalid>"]


def test_with_a_status_subresource_other_writes_leave_the_status_alone() -> None:
    kind = widget_kind()
    new = stored(status={"phase": "New"})
    kind.prepare_create(new)
    assert (new.get("status"), new["metadata"]["generation"]) == (None, 1)
    for old, expected in ((stored(), None), (stored(status={"phase": "Old"}), {"phase": "Old"})):
        new = stored(status={"phase": "New"})
        kind.prepare_update(new, old)
        assert (new.get("status"), new["metadata"]["generation"]) == (expected, 3)
    new = stored(status={"phase": "New"}, spec={"size": 2})
    new["metadata"]["labels"] = {"a": "b"}
    kind.prepare_status(new, stored())
    assert new == stored(status={"phase": "New"})


def test_without_one_the_status_is_a_field_like_any_other() -> None:
    kind = widget_kind(subresources=())
    new = stored(status={"phase": "New"})
    kind.prepare_create(new)
    assert new["status"] == {"phase": "New"}
    new = stored(status={"phase": "New"})
    kind.prepare_update(new, stored(status={"phase": "Old"}))
    assert (new["status"], new["metadata"]["generation"]) == ({"phase": "New"}, 4)


def test_changes_of_metadata_do_not_count_for_the_generation() -> None:
    new = stored()
    new["metadata"]["labels"] = {"a": "b"}
    widget_kind().prepare_update(new, stored())
    assert new["metadata"]["generation"] == 3


def test_two_shapes_of_one_name_are_compiled_apart() -> None:
    one, other = shape(), shape({"weight": "int32 keep"})
    assert (one.name, one == other) == (NAME, False)
    assert conform(widget("a", size=1, weight=2), one)[1] == ["spec.weight"]
    assert conform(widget("a", size=1, weight=2), other)[1] == ["spec.size"]


def test_its_list_is_made_of_its_shape() -> None:
    kind = widget_kind()
    listed, unknown = conform({"items": [widget("a", size=1)]}, kind.list_shape)
    assert (listed["items"][0]["spec"], listed["metadata"], unknown) == ({"size": 1}, {}, [])
    assert kind.singular == "widget"
