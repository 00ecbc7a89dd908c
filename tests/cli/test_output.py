"""``-o`` and ``--sort-by``: formats, columns of one's own, orders."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pytest

from seamark.cli.custom_columns import CustomColumns
from seamark.cli.failure import Refusal
from seamark.cli.output_formats import OBJECTS, TEMPLATES, Output, OutputFormats
from seamark.cli.sorting import in_order
from seamark.cli.table_text import Looks, TableText

FORMATS = OutputFormats(("wide", *OBJECTS, *TEMPLATES))


@pytest.mark.parametrize(
    ("text", "output"),
    [
        ("wide", Output("wide")),
        ("name", Output("name")),
        ("jsonpath={.a=b}", Output("jsonpath", "{.a=b}")),
        ("jsonpath-as-json={.a}", Output("jsonpath-as-json", "{.a}")),
        ("custom-columns=A:.a", Output("custom-columns", "A:.a")),
    ],
)
def test_formats(text: str, output: Output) -> None:
    assert FORMATS(text) == output
    assert FORMATS(text).as_table is (text == "wide")


def test_templates_from_files(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("{.a}\n")
    assert FORMATS(f"jsonpath-file={tmp_path / 't'}") == Output("jsonpath", "{.a}\n")
    with pytest.raises(argparse.ArgumentTypeError, match="No such file"):
        FORMATS(f"custom-columns-file={tmp_path / 'nope'}")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nope", 'unable to match a printer suitable for the output format "nope"'),
        ("json=x", "unable to match"),
        ("jsonpath", "jsonpath format specified but no template given"),
        ("jsonpath=", "no template given"),
        ("custom-columns=", "no custom columns given"),
    ],
)
def test_what_is_no_format(text: str, said: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=said):
        FORMATS(text)


# --- columns ---------------------------------------------------------------------------------------

PODS: list[dict[str, Any]] = [
    {"metadata": {"name": "web-10", "labels": {"app": "web"}}, "spec": {"ports": [{"p": 1}, {"p": 2}]}, "n": 2},
    {"metadata": {"name": "web-9"}, "spec": {"ports": []}, "n": 10},
    {"metadata": {"name": "db"}, "spec": {}},
]


def columns(specification: str) -> list[str]:
    return TableText(Looks(empty=True)).lines(CustomColumns(specification).table(PODS))


def test_columns_of_ones_own() -> None:
    assert columns("Name:.metadata.name,L:metadata.labels,P:{.spec.ports[*].p},First:.spec.ports[0].p,X:.x") == [
        "Name     L              P        First    X",
        "web-10   map[app:web]   1,2      1        <none>",
        "web-9    <none>         <none>   <none>   <none>",
        "db       <none>         <none>   <none>   <none>",
    ]
    assert columns("A  B\n.metadata.name  .n\n") == ["A        B", "web-10   2", "web-9    10", "db       <none>"]


@pytest.mark.parametrize(
    ("specification", "said"),
    [
        ("A", "unexpected custom-columns spec: A, expected <header>:<json-path-expr>"),
        ("A:", "unexpected custom-columns spec"),
        ("A:.a,,B:.b", "unexpected custom-columns spec"),
        ("A:{.a", "unexpected path string"),
        ("A:.a[", "unterminated array"),
        ("A B\n.a\n", "don't match"),
    ],
)
def test_what_is_no_column(specification: str, said: str) -> None:
    with pytest.raises(Refusal) as refused:
        CustomColumns(specification)
    assert said in str(refused.value)
    assert refused.value.code == 2


# --- order -----------------------------------------------------------------------------------------


def ordered(values: list[Any], path: str = ".v") -> list[Any]:
    objects = [{} if value is None else {"v": value} for value in values]
    return [each.get("v") for each in in_order(objects, path, lambda each: each)]


@pytest.mark.parametrize(
    ("values", "order"),
    [
        ([3, 1, 20], [1, 3, 20]),
        (["web-10", "web-9", "web"], ["web", "web-9", "web-10"]),
        (["1Gi", "500m", "2", "100Mi"], ["500m", "2", "100Mi", "1Gi"]),
        (["10.244.0.10", "10.244.0.9"], ["10.244.0.9", "10.244.0.10"]),
        (["b", None, "a"], [None, "a", "b"]),
        ([True, False], [False, True]),
        (["2026-01-02T00:00:00Z", "2025-12-31T00:00:00Z"], ["2025-12-31T00:00:00Z", "2026-01-02T00:00:00Z"]),
    ],
)
def test_in_the_order_of_a_field(values: list[Any], order: list[Any]) -> None:
    assert ordered(values) == order
    assert ordered(order) == order


def test_order_keeps_what_is_equal_as_it_was() -> None:
    items = [{"v": 1, "i": index} for index in range(5)]
    assert in_order(items, "v", lambda each: each) == items
    assert in_order([], "v", lambda each: each) == []


def test_no_order() -> None:
    with pytest.raises(Refusal, match="couldn't find any field with path"):
        ordered([1, 2], ".nope")
    with pytest.raises(Refusal, match="unexpected path string"):
        ordered([1, 2], "{.v")
