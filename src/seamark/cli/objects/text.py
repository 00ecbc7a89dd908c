"""Objects and tables as text, laid out as kubectl does.  Pure.

The columns of a table are at least six characters wide and three apart; the last is not padded.  A table that goes on
(``get -w``) never becomes narrower.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from seamark.cli.terminal import styled, width
from seamark.errors import Object

NARROWEST = 6
APART = 3

_COLOURS = {
    "green": ("Running", "Ready", "Active", "True", "Bound", "Succeeded"),
    "yellow": ("Pending", "ContainerCreating", "Terminating", "Completed", "<pending>", "Ready,SchedulingDisabled"),
    "red": ("NotReady", "Error", "CrashLoopBackOff", "Failed", "Evicted", "ErrImagePull", "ImagePullBackOff", "False"),
    "dim": ("<none>", "<unset>", "<unknown>"),
}
_COLOUR_OF = {word: colour for colour, words in _COLOURS.items() for word in words}


class TableText:
    """Prints ``Table`` documents of one kind below each other, as one table.

    ``wide`` adds the columns of lower priority and ``namespace`` the namespace; ``kind`` is put before names
    (``service/web``).
    """

    def __init__(self, *, wide: bool = False, namespace: bool = False, kind: str = "", colour: bool = False) -> None:
        self._wide = wide
        self._namespace = namespace
        self._kind = kind
        self._colour = colour
        self._columns: Sequence[Mapping[str, Any]] = ()
        self._headed = False
        self._widths: list[int] = []

    def lines(self, table: Object) -> list[str]:
        """The lines of a table, with the heading if it was not printed yet; nothing if there are no rows."""
        columns, rows = table.get("columnDefinitions") or (), table.get("rows") or ()
        if columns and columns != self._columns:  # the server leaves them out of all but the first event of a watch
            self._columns, self._headed, self._widths = columns, False, []
        if not rows:
            return []
        heading = [] if self._headed else [self._heading()]
        texts = [*heading, *(self._row(row) for row in rows)]
        self._headed = True
        self._widen(texts)
        return [self._line(cells, heading=number < len(heading)) for number, cells in enumerate(texts)]

    def _shown(self) -> list[int]:
        return [index for index, column in enumerate(self._columns) if self._wide or not column.get("priority")]

    def _heading(self) -> list[str]:
        names = [self._columns[index]["name"].upper() for index in self._shown()]
        return ["NAMESPACE", *names] if self._namespace else names

    def _row(self, row: Mapping[str, Any]) -> list[str]:
        cells = row.get("cells") or ()
        texts = []
        for index in self._shown():
            if index < len(cells):
                is_name = self._kind and self._columns[index].get("format") == "name"
                texts.append(f"{self._kind}/{cell_text(cells[index])}" if is_name else cell_text(cells[index]))
        if self._namespace:
            texts.insert(0, metadata_of(row.get("object") or {}).get("namespace", ""))
        return texts

    def _widen(self, texts: Sequence[Sequence[str]]) -> None:
        for cells in texts:
            self._widths += [NARROWEST] * (len(cells) - len(self._widths))
            for index, text in enumerate(cells):
                self._widths[index] = max(self._widths[index], width(text) + APART)

    def _line(self, cells: Sequence[str], *, heading: bool) -> str:
        parts = []
        for index, text in enumerate(cells):
            padding = " " * (self._widths[index] - width(text)) if index + 1 < len(cells) else ""
            style = "bold" if heading else _COLOUR_OF.get(text, "")
            parts.append(styled(text, style, colour=self._colour) + padding)
        return "".join(parts)


def cell_text(value: Any) -> str:
    """One cell on one line, without control sequences for the terminal."""
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


def metadata_of(value: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata: Mapping[str, Any] = value.get("metadata") or {}
    return metadata


def object_text(value: Object, format: str) -> str:
    """An object or a list as ``json`` or ``yaml``, without ``managedFields``, which are long and seldom wanted."""
    value = _without_managed_fields(value)
    if format == "json":
        return json.dumps(value, indent=4, sort_keys=True, ensure_ascii=False)

    from seamark.kinds.language.yaml_text import dump

    return dump(value).decode().rstrip("\n")


def _without_managed_fields(value: Object) -> Object:
    metadata = {key: each for key, each in metadata_of(value).items() if key != "managedFields"}
    kept = {**value, "metadata": metadata}
    if value.get("kind") == "List":
        kept["items"] = [_without_managed_fields(item) for item in value["items"]]
    return kept
