"""Reports for people: the cause and the fix first, then the evidence."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import zip_longest

from seamark.why.finding import Command, Finding, Severity
from seamark.why.report import Health, PodRow, Report

COLUMNS = 80
GAP = 2
_ELLIPSIS = "…"
_LONGEST_CELL = 30  # of each column but the last, while the last one has little room
_COMFORTABLE_LAST = 28
_SHORTEST_LAST = 16
PODS_SHOWN = 20

_RED, _YELLOW, _GREEN, _CYAN, _BOLD = "31", "33", "32", "36", "1"
_COLOURS = {Health.BROKEN: _RED, Health.DEGRADED: _YELLOW, Health.HEALTHY: _GREEN}


class Style:
    """How to show reports: how wide, in colour or not, and with which options ``kubectl`` means the same cluster.

    ``planned`` says that the reports are about manifests that are not applied yet.
    """

    def __init__(
        self,
        *,
        columns: int = COLUMNS,
        colour: bool = False,
        kubectl: Sequence[str] = (),
        planned: bool = False,
    ) -> None:
        self.planned = planned
        self.columns = max(columns, 40)
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
        line = fit(clean(f"{name}: healthy, {told.state}"), style.columns)
        # For a Service this line is the answer; for a Pod the verdicts are, for a name the steps of its lookup, and
        # for a connection its ways.
        plain = told.subject.startswith("service/") and not told.ways
        verdicts = [] if plain else _evidence(told, style)
        return "\n".join([style.paint(line, _GREEN), *verdicts, *_notes(told, style)])
    headline = clean(f"{name}: {told.state}")
    lines = [style.paint(line, _BOLD, _COLOURS[told.health]) for line in wrap(headline, style.columns)]
    for position, finding in enumerate(told.findings):
        lines += [""] * (position > 0) + _finding(finding, style, "cause" if position == 0 else "also")
    lines += _evidence(told, style)
    return "\n".join([*lines, *_notes(told, style)])


def _finding(finding: Finding, style: Style, label: str) -> list[str]:
    colour = {Severity.ERROR: _RED, Severity.WARNING: _YELLOW, Severity.HINT: _CYAN}[finding.severity]
    lines = style.block(label, f"{finding.cause} [{finding.code.value}]", _BOLD, colour)
    lines += style.block("fix", finding.fix.text, _BOLD, _GREEN)
    # Commands are not wrapped: they are there to be copied.
    lines += [f"  {style.paint(clean(text), _GREEN)}" for text in _commands(finding.fix.commands, style)]
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
        lines += ["", *table(("POD", "VERDICT", "ADDRESS", "WHY"), rows, style.columns)]
        if len(told.pods) > len(rows):
            lines.append(f"and {len(told.pods) - len(rows):,} more Pods (-o json lists them all)")
    for each in told.tables:
        lines += ["", *table(each.header, each.rows, style.columns)]
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
    return "\n".join([*lines, *table(header, (_line(each) for each in reports), style.columns, lines=2)])


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
    """In lines of at most so many columns, broken at spaces; longer words are broken anywhere."""
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
    """Rows under a header, within so many columns; the last column is wrapped, to at most ``lines`` if given."""
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
    shown = [_cells(header, widths, header[-1])]
    for row, stack in zip(cells, stacks, strict=True):
        wrapped = wrap(row[-1], max(last, 8))
        if lines and len(wrapped) > lines:
            wrapped = [*wrapped[: lines - 1], fit(" ".join(wrapped[lines - 1 :]), max(last, 8))]
        shown += [_cells(cut[:-1], widths, cut[-1]) for cut in zip_longest(*stack, wrapped, fillvalue="")]
    return shown


def _pair(cell: str) -> list[str]:
    """The two addresses of a Pod, one below the other."""
    one, comma, other = cell.partition(",")
    return [f"{one},", other] if comma and other and "," not in other and " " not in cell else [cell]


def _widths(header: Sequence[str], stacks: Sequence[Sequence[Sequence[str]]]) -> list[int]:
    """The width that each column but the last needs."""
    return [
        max([width(header[i]), *(width(piece) for stack in stacks for piece in stack[i])])
        for i in range(len(header) - 1)
    ]


def _left(widths: Sequence[int], columns: int) -> int:
    return columns - sum(widths) - GAP * len(widths)


def _cells(row: Sequence[str], widths: Sequence[int], last: str) -> str:
    parts = [pad(fit(cell, columns), columns) for cell, columns in zip(row, widths, strict=False)]
    return (" " * GAP).join([*parts, last]).rstrip()
