"""Text in columns, for terminals: what is wide is counted as wide, and nothing that is shown can steer the terminal."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import zip_longest

GAP = 2
_ELLIPSIS = "…"
_LONGEST_CELL = 30  # of every column but the last, while that has little room; it takes what is left
_COMFORTABLE_LAST = 28
_SHORTEST_LAST = 16


def width(text: str) -> int:
    """How many columns a text takes."""
    return len(text) if text.isascii() else sum(map(_columns, text))


@lru_cache(maxsize=4096)
def _columns(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


def clean(text: str) -> str:
    """On one line, and without control characters: what is shown comes from others."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or unicodedata.category(c) == "Cf" else " " for c in text).strip()


def fit(text: str, columns: int) -> str:
    """Cut to a number of columns."""
    if width(text) <= columns:
        return text
    kept, used = [], 0
    for character in text:
        used += _columns(character)
        if used > columns - 1:
            break
        kept.append(character)
    return "".join(kept) + _ELLIPSIS


def pad(text: str, columns: int) -> str:
    return text + " " * max(0, columns - width(text))


def wrap(text: str, columns: int) -> list[str]:
    """In lines of so many columns, broken at spaces; words that are longer are broken anywhere."""
    lines: list[str] = []
    line = ""
    for word in clean(text).split(" "):
        candidate = f"{line} {word}" if line else word
        if width(candidate) <= columns:
            line = candidate
            continue
        if line:
            lines.append(line)
        *whole, line = _pieces(word, columns)
        lines += whole
    return [*lines, line] if line or not lines else lines


def _pieces(word: str, columns: int) -> list[str]:
    pieces = [""]
    for character in word:
        if width(pieces[-1]) + _columns(character) > columns:
            pieces.append("")
        pieces[-1] += character
    return pieces


def table(header: Sequence[str], rows: Iterable[Sequence[str]], columns: int, *, lines: int = 0) -> list[str]:
    """Rows under a header, within so many columns; the last is wrapped, to at most ``lines`` if that is given."""
    cells = [[clean(cell) for cell in row] for row in rows]
    stacks = [[[cell] for cell in row[:-1]] for row in cells]
    widths = _widths(header, stacks)
    if _left(widths, columns) < _COMFORTABLE_LAST:
        stacks = [[_pair(cell) for cell in row[:-1]] for row in cells]
        widths = _widths(header, stacks)
    last = _left(widths, columns)
    while widths and (
        (last < _COMFORTABLE_LAST and max(widths) > _LONGEST_CELL) or (last < _SHORTEST_LAST and max(widths) > 8)
    ):
        widths[widths.index(max(widths))] -= 1
        last += 1
    shown = [_line(header, widths, header[-1])]
    for row, stack in zip(cells, stacks, strict=True):
        wrapped = wrap(row[-1], max(last, 8))
        if lines and len(wrapped) > lines:
            wrapped = [*wrapped[: lines - 1], fit(" ".join(wrapped[lines - 1 :]), max(last, 8))]
        shown += [_line(cut[:-1], widths, cut[-1]) for cut in zip_longest(*stack, wrapped, fillvalue="")]
    return shown


def _pair(cell: str) -> list[str]:
    """The two addresses of a Pod may stand one below the other."""
    one, comma, other = cell.partition(",")
    return [f"{one},", other] if comma and other and "," not in other and " " not in cell else [cell]


def _widths(header: Sequence[str], stacks: Sequence[Sequence[Sequence[str]]]) -> list[int]:
    """What every column but the last would like to have."""
    return [
        max([width(header[i]), *(width(piece) for stack in stacks for piece in stack[i])])
        for i in range(len(header) - 1)
    ]


def _left(widths: Sequence[int], columns: int) -> int:
    return columns - sum(widths) - GAP * len(widths)


def _line(row: Sequence[str], widths: Sequence[int], last: str) -> str:
    parts = [pad(fit(cell, columns), columns) for cell, columns in zip(row, widths, strict=False)]
    return (" " * GAP).join([*parts, last]).rstrip()
