"""What ``why`` says about one thing, ready to be shown to a person or a program."""

from __future__ import annotations

from enum import Enum

import msgspec

from seamark.why.finding import Finding, Severity


class Health(Enum):
    HEALTHY = "healthy"
    DEGRADED = "degraded"  # some traffic gets through
    BROKEN = "broken"


class PodRow(msgspec.Struct, frozen=True):
    """One Pod and what it is to the Service."""

    namespace: str
    name: str
    standing: str
    ready: bool
    addresses: tuple[str, ...]
    reasons: tuple[str, ...]
    why: str


class Table(msgspec.Struct, frozen=True):
    """More evidence, in rows."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Report(msgspec.Struct, frozen=True):
    """``subject`` is what was asked about (``service/web``), ``state`` its state in a few words."""

    subject: str
    namespace: str
    state: str
    health: Health
    findings: tuple[Finding, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    pods: tuple[PodRow, ...] = ()
    tables: tuple[Table, ...] = ()
    ready: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def healthy(self) -> bool:
        return self.health is Health.HEALTHY

    @property
    def cause(self) -> Finding | None:
        """The first finding: what to see to before anything else."""
        return self.findings[0] if self.findings else None


def health_of(findings: tuple[Finding, ...]) -> Health:
    worst = {finding.severity for finding in findings}
    if Severity.ERROR in worst:
        return Health.BROKEN
    return Health.DEGRADED if Severity.WARNING in worst else Health.HEALTHY
