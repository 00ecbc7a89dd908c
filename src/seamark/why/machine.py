"""Reports for programs.  Fields are added, never renamed; reason codes are those of :mod:`seamark.why.codes`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from seamark.why.finding import Finding
from seamark.why.report import Report


def finding(found: Finding, kubectl: Sequence[str] = ()) -> dict[str, Any]:
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
        "weight": found.weight,
        "facts": list(found.facts),
    }


def report(told: Report, kubectl: Sequence[str] = ()) -> dict[str, Any]:
    found = [finding(each, kubectl) for each in told.findings]
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
    }


def text(document: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode()
