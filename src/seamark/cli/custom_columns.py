"""``-o custom-columns=NAME:.metadata.name,…``: a table with columns of one's own.  Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from seamark.cli.failure import Refusal
from seamark.cli.go_text import printed
from seamark.cli.jsonpath import JsonPathError, evaluate, relaxed
from seamark.cli.jsonpath_template import Template
from seamark.cli.table_text import Row, Table

MISSING = "<none>"


class CustomColumns:
    """From objects to tables, by a specification or, of several lines, a file with headers and paths."""

    def __init__(self, specification: str) -> None:
        pairs = _of_file(specification) if "\n" in specification else _of_line(specification)
        self._paths: list[Template] = []
        columns = []
        for header, path in pairs:
            try:
                self._paths.append(relaxed(path))
            except JsonPathError as error:
                raise Refusal(str(error), 2) from error
            columns.append({"name": header, "header": header})
        self._columns = tuple(columns)

    def table(self, objects: Iterable[Mapping[str, Any]]) -> Table:
        return Table(self._columns, [Row(self._cells(each), each) for each in objects])

    def _cells(self, value: Mapping[str, Any]) -> list[str]:
        cells = []
        for path in self._paths:
            try:
                values = [each for found in evaluate(path, value) for each in found]
            except JsonPathError:
                values = []  # an index beyond the end is as good as nothing there
            cells.append(",".join(map(printed, values)) or MISSING)
        return cells


def _of_line(text: str) -> list[tuple[str, str]]:
    pairs = []
    for column in text.split(","):
        header, colon, path = column.partition(":")
        if not colon or not header or not path:
            raise Refusal(f"unexpected custom-columns spec: {column}, expected <header>:<json-path-expr>", 2)
        pairs.append((header, path))
    return pairs


def _of_file(text: str) -> list[tuple[str, str]]:
    headers, paths = (line.split() for line in text.strip("\n").split("\n")[:2])
    if len(headers) != len(paths):
        raise Refusal(f"number of headers ({len(headers)}) and field specifications ({len(paths)}) don't match", 2)
    return list(zip(headers, paths, strict=True))
