"""Reports for people: the cause and the fix first, then the evidence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from seamark.why.finding import Command, Finding, Severity
from seamark.why.report import Health, PodRow, Report
from seamark.why.text import clean, fit, table, wrap

COLUMNS = 80
PODS_SHOWN = 20

_RED, _YELLOW, _GREEN, _CYAN, _BOLD = "31", "33", "32", "36", "1"
_COLOURS = {Health.BROKEN: _RED, Health.DEGRADED: _YELLOW, Health.HEALTHY: _GREEN}


class Style:
    """How wide, in colour or not, which options make ``kubectl`` mean the same cluster; or is all still planned?"""

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
    """One report; of what is healthy, one line."""
    name = f"{told.subject} in namespace {told.namespace}" if told.namespace else told.subject
    if told.healthy:
        line = fit(clean(f"{name}: healthy, {told.state}"), style.columns)
        # Of a Pod the verdict of each Service is the answer, of a name the walk; of a Service this line is.
        verdicts = [] if told.subject.startswith("service/") else _evidence(told, style)
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
    """What is not applied yet cannot be patched, but changed where it is written."""
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
    """Those that say something first, and not more than a screen can hold."""
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
    """Broken before degraded, then what reaches the fewest, then by name."""
    order = {Health.BROKEN: 0, Health.DEGRADED: 1, Health.HEALTHY: 2}
    return sorted(reports, key=lambda each: (order[each.health], len(each.ready), each.namespace, each.subject))
