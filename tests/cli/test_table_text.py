"""Tables as kubectl lays them out."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from seamark.cli.table_text import Looks, Row, Table, TableText, cell_text, plain_table, table_of
from seamark.cli.terminal import width

COLUMNS = (
    {"name": "Name", "type": "string", "format": "name"},
    {"name": "Type", "type": "string"},
    {"name": "Age", "type": "string"},
    {"name": "Selector", "type": "string", "priority": 1},
)


def table(*rows: tuple[Any, ...]) -> Table:
    return Table(
        COLUMNS, [Row(row, {"metadata": {"namespace": "shop", "labels": {"b": "2", "a": "1"}}}) for row in rows]
    )


def lines(content: Table, looks: Looks | None = None, *, colour: bool = False) -> list[str]:
    return TableText(looks or Looks(), colour=colour).lines(content)


def test_columns_are_three_apart_and_the_last_is_not_filled() -> None:
    assert lines(table(("kubernetes", "ClusterIP", "5d"), ("web", "NodePort", "3m10s"))) == [
        "NAME         TYPE        AGE",
        "kubernetes   ClusterIP   5d",
        "web          NodePort    3m10s",
    ]


def test_columns_are_at_least_six_wide() -> None:
    assert lines(table(("a", "b", "c")), Looks(headers=False)) == ["a     b     c"]


def test_wide_columns_show_when_asked_for() -> None:
    assert lines(table(("web", "ClusterIP", "5d", "app=web")), Looks(wide=True))[1].endswith("5d    app=web")


def test_namespace_kind_and_labels_are_added_around() -> None:
    looks = Looks(namespace=True, kind="service", labels=True, label_columns=("x/a", "a"))
    head, row = lines(table(("web", "ClusterIP", "5d")), looks)
    assert head.split() == ["NAMESPACE", "NAME", "TYPE", "AGE", "A", "A", "LABELS"]
    assert row.split() == ["shop", "service/web", "ClusterIP", "5d", "1", "a=1,b=2"]


def test_a_table_that_goes_on_has_one_header_and_never_narrows() -> None:
    text = TableText(Looks())
    assert len(text.lines(table(("a-long-name-indeed", "x", "1s")))) == 2
    # The server leaves the columns out of later events.
    (later,) = text.lines(Table((), [Row(("web", "x", "2s"), {})]))
    assert later == "web                  x      2s"
    assert text.lines(Table((), [])) == []


def test_new_columns_begin_anew() -> None:
    text = TableText(Looks())
    text.lines(table(("a", "b", "c")))
    assert text.lines(Table(({"name": "Other"},), [Row(("x",), {})])) == ["OTHER", "x"]


def test_without_rows_there_is_nothing() -> None:
    assert lines(table()) == []


def test_more_cells_than_columns_do_no_harm() -> None:
    assert lines(Table(COLUMNS[:1], [Row(("a", "b"), {})])) == ["NAME", "a"]


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


def test_documents_become_tables() -> None:
    document = {
        "kind": "Table",
        "columnDefinitions": [{"name": "Name"}],
        "rows": [{"cells": ["web"], "object": {"metadata": {"uid": "1"}}}, {"cells": None}],
    }
    assert table_of(document) == Table([{"name": "Name"}], [Row(["web"], {"metadata": {"uid": "1"}}), Row((), {})])
    plain = plain_table([{"metadata": {"name": "web"}}, {}], age=lambda _stamp: "5d")
    assert [row.cells for row in plain.rows] == [("web", "5d"), ("", "5d")]
