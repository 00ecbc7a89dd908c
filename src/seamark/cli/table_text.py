"""A server's ``Table`` as kubectl prints it: the same columns, the same widths, the same marks.  Pure.

Columns are at least six wide, three apart, and the last is not filled up.  A table that goes on (``-w``) never becomes
narrower than it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from seamark.cli.terminal import styled, width

NARROWEST = 6
APART = 3

_COLOURS = {
    "green": ("Running", "Ready", "Active", "True", "Bound", "Succeeded"),
    "yellow": ("Pending", "ContainerCreating", "Terminating", "Completed", "<pending>", "Ready,SchedulingDisabled"),
    "red": ("NotReady", "Error", "CrashLoopBackOff", "Failed", "Evicted", "ErrImagePull", "ImagePullBackOff", "False"),
    "dim": ("<none>", "<unset>", "<unknown>"),
}
_COLOUR_OF = {word: colour for colour, words in _COLOURS.items() for word in words}


class Row(msgspec.Struct, frozen=True):
    """The cells of a row, and the object it is about, or as much of it as the server sent."""

    cells: Sequence[Any]
    object: Mapping[str, Any]

    @property
    def metadata(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.object.get("metadata") or {}
        return found


class Table(msgspec.Struct, frozen=True):
    """Columns as the server describes them (``name``, ``type``, ``format``, ``priority``), and rows.

    A column of one's own has its heading in ``header``.
    """

    columns: Sequence[Mapping[str, Any]]
    rows: Sequence[Row]


class Looks(msgspec.Struct, frozen=True):
    """What is shown beyond the columns that everybody sees."""

    wide: bool = False
    namespace: bool = False
    kind: str = ""  # put before names: service/web
    labels: bool = False
    label_columns: tuple[str, ...] = ()
    headers: bool = True
    empty: bool = False  # a heading even if there are no rows


class TableText:
    """Prints tables of one kind below each other, as one."""

    def __init__(self, looks: Looks, *, colour: bool = False) -> None:
        self._looks = looks
        self._colour = colour
        self._columns: Sequence[Mapping[str, Any]] = ()
        self._headed = False
        self._widths: list[int] = []

    def lines(self, table: Table) -> list[str]:
        """The lines of a table; a table without rows has none, unless that was asked for."""
        if table.columns and table.columns != self._columns:
            self._columns, self._headed, self._widths = table.columns, False, []
        if not table.rows and not self._looks.empty:
            return []
        shown = [index for index, column in enumerate(self._columns) if self._looks.wide or not column.get("priority")]
        texts = []
        head = not self._headed and self._looks.headers
        if head:
            texts.append(self._header(shown))
        texts += [self._row(row, shown) for row in table.rows]
        self._headed = True
        self._widen(texts)
        return [self._line(cells, header=head and not number) for number, cells in enumerate(texts)]

    def _header(self, shown: Sequence[int]) -> list[str]:
        names = [str(self._columns[index].get("header") or self._columns[index]["name"].upper()) for index in shown]
        more = [key.rpartition("/")[2].upper() for key in self._looks.label_columns]
        return [
            *(["NAMESPACE"] if self._looks.namespace else []),
            *names,
            *more,
            *(["LABELS"] if self._looks.labels else []),
        ]

    def _row(self, row: Row, shown: Sequence[int]) -> list[str]:
        cells = []
        for index in shown:
            if index >= len(row.cells):
                break
            text = cell_text(row.cells[index])
            if self._looks.kind and self._columns[index].get("format") == "name":
                text = f"{self._looks.kind}/{text}"
            cells.append(text)
        labels: Mapping[str, str] = row.metadata.get("labels") or {}
        more = [cell_text(labels.get(key, "")) for key in self._looks.label_columns]
        if self._looks.labels:
            more.append(",".join(f"{key}={value}" for key, value in sorted(labels.items())) or "<none>")
        return [*([row.metadata.get("namespace", "")] if self._looks.namespace else []), *cells, *more]

    def _widen(self, texts: Iterable[Sequence[str]]) -> None:
        for cells in texts:
            for index, text in enumerate(cells):
                needed = max(NARROWEST, width(text) + APART)
                if index >= len(self._widths):
                    self._widths.append(needed)
                elif needed > self._widths[index]:
                    self._widths[index] = needed

    def _line(self, cells: Sequence[str], *, header: bool) -> str:
        parts = []
        for index, text in enumerate(cells):
            filling = " " * (self._widths[index] - width(text)) if index + 1 < len(cells) else ""
            style = "bold" if header else _COLOUR_OF.get(text, "")
            parts.append(styled(text, style, colour=self._colour) + filling)
        return "".join(parts)


def cell_text(value: Any) -> str:
    """One cell on one line, harmless to a terminal."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    text = str(value)
    for position, character in enumerate(text):
        if character in "\f\n\r":
            text = f"{text[:position]}..."
            break
    return text.replace("\x1b", "^[")


def table_of(document: Mapping[str, Any]) -> Table:
    """The table in a ``Table`` document."""
    rows = [Row(row.get("cells") or (), row.get("object") or {}) for row in document.get("rows") or ()]
    return Table(document.get("columnDefinitions") or (), rows)


def plain_table(objects: Iterable[Mapping[str, Any]], age: Any) -> Table:
    """For servers that make no tables: names and ages; ``age`` is asked with a timestamp."""
    columns = ({"name": "Name", "type": "string", "format": "name"}, {"name": "Age", "type": "string"})
    rows = []
    for each in objects:
        metadata = each.get("metadata") or {}
        rows.append(Row((metadata.get("name", ""), age(metadata.get("creationTimestamp"))), each))
    return Table(columns, rows)
