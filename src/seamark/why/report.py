"""What ``why`` says about one thing, and how programs read it.

In the documents for programs, fields are added and never renamed.  Reason codes are those of :mod:`seamark.why.codes`.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any

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


class EndpointRow(msgspec.Struct, frozen=True):
    """An endpoint of a way; ``why`` says why it is left out, and is empty for one that gets connections."""

    address: str
    port: int
    node: str = ""
    zone: str = ""
    why: str = ""


class Way(msgspec.Struct, frozen=True):
    """An address and port of a Service, and where a connection to it goes; ``nodes`` are those it is the same on.

    ``verdict`` is "accept", "refuse" or "drop"; ``blocked`` says that it is dropped because of who the client is.
    """

    kind: str
    address: str
    port: int
    protocol: str
    nodes: tuple[str, ...]
    verdict: str
    policy: str
    why: str
    blocked: bool = False
    endpoints: tuple[EndpointRow, ...] = ()
    left_out: tuple[EndpointRow, ...] = ()


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
    ways: tuple[Way, ...] = ()

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


# --- for programs ----------------------------------------------------------------------------------


def _finding(found: Finding, kubectl: Sequence[str] = ()) -> dict[str, Any]:
    return {
        "code": found.code.value,
        "family": found.code.family.name.lower(),
        "severity": found.severity.value,
        "cause": found.cause,
        "fix": {
            "text": found.fix.text,
            "commands": [command.text(kubectl) for command in found.fix.commands],
            "look": [command.text(kubectl) for command in found.fix.look],
            "certain": found.fix.certain,
        },
        "evidence": [msgspec.to_builtins(each) for each in found.evidence],
        "weight": found.weight,
        "facts": list(found.facts),
    }


def document(told: Report, kubectl: Sequence[str] = ()) -> dict[str, Any]:
    """The report for a program; ``kubectl`` are the options that make its commands mean the same cluster."""
    found = [_finding(each, kubectl) for each in told.findings]
    return {
        "subject": told.subject,
        "namespace": told.namespace,
        "health": told.health.value,
        "state": told.state,
        "cause": found[0] if found else None,
        "findings": found,
        "ready": list(told.ready),
        "facts": dict(told.facts),
        "pods": [msgspec.to_builtins(row) for row in told.pods],
        "tables": [msgspec.to_builtins(each) for each in told.tables],
        "notes": list(told.notes),
        "ways": [msgspec.to_builtins(each) for each in told.ways],
    }


def as_json(document: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode()
