"""Reports for people: the cause and the fix first, then the evidence."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import zip_longest

from seamark.why.finding import Command, Finding, Severity
from seamark.why.report import Health, PodRow, Report

COLUMNS = 80
GAP = 2
UNLIMITED = 1_000_000  # columns: what a pipe takes
_COMFORTABLE_LAST = 28  # columns below which the last column of a table goes under the others
PODS_SHOWN = 20

_RED, _YELLOW, _GREEN, _CYAN, _BOLD = "31", "33", "32", "36", "1"
_COLOURS = {Health.BROKEN: _RED, Health.DEGRADED: _YELLOW, Health.HEALTHY: _GREEN}


class Style:
    """How to show reports: how wide, in colour or not, and with which options ``kubectl`` means the same cluster.

    ``table_columns`` is how wide tables may be, if not as wide as paragraphs.  ``planned`` says that the reports are
    about manifests that are not applied yet.
    """

    def __init__(
        self,
        *,
        columns: int = COLUMNS,
        table_columns: int = 0,
        colour: bool = False,
        kubectl: Sequence[str] = (),
        planned: bool = False,
    ) -> None:
        self.planned = planned
        self.columns = max(columns, 40)
        self.table_columns = table_columns or self.columns
        self.colour = colour
        self.kubectl = tuple(kubectl)

    def paint(self, text: str, *codes: str) -> str:
        return f"\x1b[{';'.join(codes)}m{text}\x1b[0m" if self.colour and text else text

    def block(self, label: str, text: str, *codes: str) -> list[str]:
        """A labelled paragraph, with its further lines under the first."""
        indent = 7
        lines = wrap(text, self.columns - indent)
        return [self.paint(f"{label:<{indent}}", *codes) + lines[0], *(" " * indent + line for line in lines[1:])]


def report(told: Report, style: Style) -> str:
    """One report; if it is healthy, in one line."""
    name = f"{told.subject} in namespace {told.namespace}" if told.namespace else told.subject
    if told.healthy:
        lines = [style.paint(line, _GREEN) for line in wrap(f"{name}: healthy, {told.state}", style.columns)]
        # For a Service this line is the answer; for a Pod the verdicts are, for a name the steps of its lookup, and
        # for a connection its ways.
        plain = told.subject.startswith("service/") and not told.ways
        verdicts = [] if plain else _evidence(told, style)
        return "\n".join([*lines, *verdicts, *_notes(told, style)])
    headline = f"{name}: {told.state}"
    lines = [style.paint(line, _BOLD, _COLOURS[told.health]) for line in wrap(headline, style.columns)]
    for position, finding in enumerate(told.findings):
        lines += [""] * (position > 0) + _finding(finding, style, "cause" if position == 0 else "also")
    lines += _evidence(told, style)
    return "\n".join([*lines, *_notes(told, style)])


def _finding(finding: Finding, style: Style, label: str) -> list[str]:
    colour = {Severity.ERROR: _RED, Severity.WARNING: _YELLOW, Severity.HINT: _CYAN}[finding.severity]
    lines = style.block(label, f"{finding.cause} [{finding.code.value}]", _BOLD, colour)
    commands = _commands(finding.fix.commands, style)
    text = finding.fix.text
    lines += style.block("fix", text if commands or not text.endswith(":") else f"{text[:-1]}.", _BOLD, _GREEN)
    # Commands are not wrapped: they are there to be copied.
    lines += [f"  {style.paint(clean(command), _GREEN)}" for command in commands]
    if not style.planned:
        lines += [f"{'see':<7}{clean(command.text(style.kubectl))}" for command in finding.fix.look]
    for fact in finding.facts:
        lines += style.block("note", fact)
    return lines


def _commands(commands: Sequence[Command], style: Style) -> list[str]:
    """The commands, or for manifests that are not applied yet what to change in them."""
    if style.planned:
        return [command.change for command in commands if command.change]
    return [command.text(style.kubectl) for command in commands]


def _evidence(told: Report, style: Style) -> list[str]:
    lines: list[str] = []
    if told.facts:
        longest = max(len(name) for name, _ in told.facts)
        lines.append("")
        for name, fact in told.facts:
            first, *more = wrap(fact, style.columns - longest - 2)
            lines += [f"{name:<{longest}}  {first}", *(" " * (longest + 2) + line for line in more)]
    if told.pods:
        rows = [_pod(row, told.namespace) for row in _telling(told.pods)]
        lines += ["", *table(("POD", "VERDICT", "ADDRESS", "WHY"), rows, style.table_columns)]
        if len(told.pods) > len(rows):
            lines.append(f"and {len(told.pods) - len(rows):,} more Pods (-o json lists them all)")
    for each in told.tables:
        lines += ["", *table(each.header, each.rows, style.table_columns)]
    return lines


def _telling(pods: Sequence[PodRow]) -> list[PodRow]:
    """The Pods that are not ready first, and no more than fit on a screen."""
    return sorted(pods, key=lambda row: row.ready)[:PODS_SHOWN]


def _pod(row: PodRow, namespace: str) -> tuple[str, ...]:
    name = row.name if row.namespace == namespace else f"{row.namespace}/{row.name}"
    return name, row.standing, ",".join(row.addresses) or "-", row.why or "nothing is wrong with it"


def _notes(told: Report, style: Style) -> list[str]:
    return [line for note in told.notes for line in style.block("note", note, _CYAN)]


# --- many Services ---------------------------------------------------------------------------------


def summary(reports: Sequence[Report], total: int, style: Style, *, where: str) -> str:
    """Every Service that needs attention, the worst first, as a table."""
    count = f"{total:,} Service{'s' * (total != 1)} {where}"
    if not reports:
        return style.paint(f"{count}: all healthy", _GREEN)
    verb = "needs" if len(reports) == 1 else "need"
    lines = [style.paint(f"{len(reports):,} of {count} {verb} attention", _BOLD, _RED), ""]
    header = ("NAMESPACE", "SERVICE", "READY", "CAUSE")
    return "\n".join([*lines, *table(header, (_line(each) for each in reports), style.table_columns)])


def _line(told: Report) -> tuple[str, ...]:
    cause = f"{told.findings[0].code.value}: {told.findings[0].cause}" if told.findings else ""
    return told.namespace, told.subject.partition("/")[2], str(len(told.ready)), cause


def worst_first(reports: Iterable[Report]) -> list[Report]:
    """Broken before degraded, then those with the fewest ready addresses, then by name."""
    order = {Health.BROKEN: 0, Health.DEGRADED: 1, Health.HEALTHY: 2}
    return sorted(reports, key=lambda each: (order[each.health], len(each.ready), each.namespace, each.subject))


# --- text in columns -------------------------------------------------------------------------------
# Wide characters are counted as wide, and control characters are removed, so that no object can steer the terminal.


def width(text: str) -> int:
    """How many columns a text takes."""
    return len(text) if text.isascii() else sum(map(_columns, text))


@lru_cache(maxsize=4096)
def _columns(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


def clean(text: str) -> str:
    """On one line and without control characters, because the text may come from any user of the cluster."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or unicodedata.category(c) == "Cf" else " " for c in text).strip()


def pad(text: str, columns: int) -> str:
    return text + " " * max(0, columns - width(text))


def wrap(text: str, columns: int) -> list[str]:
    """In lines of at most so many columns, broken at spaces and after commas; a longer word is a line of its own."""
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
    """The word in pieces that fit if they can, such as a list of addresses in single ones."""
    pieces = [""]
    for part in _parts(word):
        if pieces[-1] and width(pieces[-1]) + width(part) > columns:
            pieces.append("")
        pieces[-1] += part
    return pieces


def _parts(text: str) -> list[str]:
    """The parts between which a line may be broken: at spaces, after commas, and anywhere in other scripts."""
    parts = [part for word in text.split(" ") for part in re.findall(r"[^,]*,|[^,]+", word)]
    return [piece for part in parts for piece in ([part] if part.isascii() else part)]


def table(header: Sequence[str], rows: Iterable[Sequence[str]], columns: int) -> list[str]:
    """Rows under a header, within so many columns; nothing is cut.

    Where the columns are too narrow for the rows, cells are wrapped between words and addresses.  If that is not
    enough, the last cell of each row goes under the others, and then each cell on a line of its own.
    """
    cells = [header, *([clean(cell) for cell in row] for row in rows)]
    if (widths := _widths(cells, columns, _COMFORTABLE_LAST)) is not None:
        return [line for row in cells for line in _lines(row, widths)]
    if (widths := _widths([row[:-1] for row in cells], columns)) is not None:
        under = [[f"    {line}" for line in wrap(row[-1], columns - 4)] for row in cells]
        return [line for row, last in zip(cells, under, strict=True) for line in (*_lines(row[:-1], widths), *last)]
    longest = max(map(width, header)) + GAP
    shown: list[str] = []
    for row in cells[1:]:
        for name, cell in zip(header, row, strict=True):
            first, *more = wrap(cell, max(columns - longest, 8))
            shown += [pad(name, longest) + first, *(" " * longest + line for line in more)]
        shown.append("")
    return shown[:-1]


def _widths(cells: Sequence[Sequence[str]], columns: int, last: int = 0) -> list[int] | None:
    """How wide to make each column, with the last one at least ``last`` or as wide as it needs.

    The widest column is made narrower first, but none narrower than its longest word; None if that does not help.
    """
    held = list(zip(*cells, strict=True))
    widths = [max(map(width, column)) for column in held]
    least = [max(width(part) for cell in column for part in _parts(cell) or [""]) for column in held]
    least[-1] = max(least[-1], min(widths[-1], last))
    room = columns - GAP * (len(widths) - 1)
    if sum(least) > room:
        return None
    needed, widths[-1] = widths[-1], max(least[-1], room - sum(widths[:-1]))
    while sum(widths) > room:
        widths[max((i for i in range(len(widths)) if widths[i] > least[i]), key=widths.__getitem__)] -= 1
    widths[:-1] = [
        max(width(line) for cell in column for line in wrap(cell, wide))
        for column, wide in zip(held, widths[:-1], strict=False)
    ]
    widths[-1] = min(needed, room - sum(widths[:-1]))
    return widths


def _lines(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    """A row, with its cells wrapped."""
    wrapped = [wrap(cell, columns) for cell, columns in zip(row, widths, strict=True)]
    lines = zip_longest(*wrapped, fillvalue="")
    return [
        (" " * GAP).join(pad(cell, room) for cell, room in zip(line, widths, strict=True)).rstrip() for line in lines
    ]
