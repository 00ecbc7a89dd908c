"""Tables as kubectl lays them out."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from seamark.cli.objects.text import TableText, cell_text, object_text
from seamark.cli.terminal import width

COLUMNS = [
    {"name": "Name", "type": "string", "format": "name"},
    {"name": "Type", "type": "string"},
    {"name": "Age", "type": "string"},
    {"name": "Selector", "type": "string", "priority": 1},
]


def table(*rows: tuple[Any, ...], columns: list[dict[str, Any]] = COLUMNS) -> dict[str, Any]:
    about = {"metadata": {"namespace": "shop"}}
    return {"columnDefinitions": columns, "rows": [{"cells": list(row), "object": about} for row in rows]}


def lines(content: dict[str, Any], **looks: Any) -> list[str]:
    return TableText(**looks).lines(content)


def test_columns_are_three_apart_and_the_last_is_not_filled() -> None:
    assert lines(table(("kubernetes", "ClusterIP", "5d"), ("web", "NodePort", "3m10s"))) == [
        "NAME         TYPE        AGE",
        "kubernetes   ClusterIP   5d",
        "web          NodePort    3m10s",
    ]


def test_columns_are_at_least_six_wide() -> None:
    assert lines(table(("a", "b", "c"))) == ["NAME   TYPE   AGE", "a      b      c"]
    assert lines(table(("a", "b"), columns=[{"name": "A"}, {"name": "B"}])) == ["A     B", "a     b"]


def test_wide_columns_show_when_asked_for() -> None:
    assert lines(table(("web", "ClusterIP", "5d", "app=web")), wide=True)[1].endswith("5d    app=web")


def test_namespace_and_kind_are_added() -> None:
    head, row = lines(table(("web", "ClusterIP", "5d")), namespace=True, kind="service")
    assert head.split() == ["NAMESPACE", "NAME", "TYPE", "AGE"]
    assert row.split() == ["shop", "service/web", "ClusterIP", "5d"]


def test_a_table_that_goes_on_has_one_header_and_never_narrows() -> None:
    text = TableText()
    assert len(text.lines(table(("a-long-name-indeed", "x", "1s")))) == 2
    # The server leaves the columns out of later events.
    (later,) = text.lines(table(("web", "x", "2s"), columns=[]))
    assert later == "web                  x      2s"
    assert text.lines(table(columns=[])) == []


def test_new_columns_begin_anew() -> None:
    text = TableText()
    text.lines(table(("a", "b", "c")))
    assert text.lines(table(("x",), columns=[{"name": "Other"}])) == ["OTHER", "x"]


def test_without_rows_there_is_nothing() -> None:
    assert lines(table()) == []


def test_more_cells_than_columns_do_no_harm() -> None:
    assert lines(table(("a", "b"), columns=COLUMNS[:1])) == ["NAME", "a"]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, ""),
        (True, "true"),
        (3, "3"),
        ("two\nlines", "two..."),
        ("\x1b[31mred", "^[[31mred"),
        ("a\rb", "a..."),
    ],
)
def test_cells_are_one_harmless_line(value: Any, shown: str) -> None:
    assert cell_text(value) == shown


def test_wide_characters_take_two_columns() -> None:
    head, first, second = lines(table(("日本語の名前", "x", "1s"), ("web", "y", "1s")))
    assert width(first[: first.index("x")]) == second.index("y") == head.index("TYPE")


def test_colours_change_nothing_but_colour() -> None:
    import re

    content = table(("web", "Running", "<none>"), ("db", "Error", "1s"))
    coloured = lines(content, colour=True)
    assert "\x1b[32mRunning\x1b[0m" in coloured[1]
    assert [re.sub(r"\x1b\[\d+m", "", line) for line in coloured] == lines(content)


@given(some.lists(some.tuples(*[some.text("abc<> é漢", max_size=12)] * 3), min_size=1, max_size=6))
def test_cells_of_a_column_begin_at_the_same_place(rows: list[tuple[str, str, str]]) -> None:
    shown = lines(table(*rows))
    widths = [
        max(6, *(width(text) + 3 for text in column)) for column in zip(("NAME", "TYPE", "AGE"), *rows, strict=True)
    ]
    for line, cells in zip(shown, [("NAME", "TYPE", "AGE"), *rows], strict=True):
        filled = [text + " " * (room - width(text)) for text, room in zip(cells[:2], widths, strict=False)]
        assert line == "".join([*filled, cells[2]])


def test_objects_are_shown_without_who_set_which_field() -> None:
    web = {"kind": "Service", "metadata": {"name": "web", "managedFields": [{}]}, "spec": {"é": "<1>"}}
    kept = {"kind": "Service", "metadata": {"name": "web"}, "spec": {"é": "<1>"}}
    assert json.loads(object_text(web, "json")) == kept
    assert json.loads(object_text({"kind": "List", "items": [web]}, "json"))["items"] == [kept]
    assert object_text(web, "yaml") == "kind: Service\nmetadata:\n  name: web\nspec:\n  é: <1>"
