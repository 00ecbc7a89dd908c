"""One thing that is wrong: its code, the cause in a sentence, and what to do about it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from enum import Enum
from typing import Any

import msgspec

from seamark.why.codes import Code, weight
from seamark.why.evidence import Evidence
from seamark.why.views import Key


class Severity(Enum):
    """How bad it is: no traffic gets through, something is wrong, or merely worth a look."""

    ERROR = "error"
    WARNING = "warning"
    HINT = "hint"


_SEVERITIES = {severity: position for position, severity in enumerate(Severity)}


class Command(msgspec.Struct, frozen=True):
    """A ``kubectl`` command line, and the manifest that it reads from standard input, if any."""

    words: tuple[str, ...]
    manifest: Any = None

    def text(self, more: Sequence[str] = ()) -> str:
        """The line for a shell; ``more`` are options that say which cluster is meant."""
        line = shlex.join(("kubectl", *more, *self.words))
        if self.manifest is None:
            return line
        return f"echo {shlex.quote(msgspec.json.encode(self.manifest).decode())} | {line}"

    @property
    def change(self) -> str:
        """What a patch would change in a manifest that is not applied yet; "" for other commands."""
        if self.words[0] != "patch":
            return ""
        return f"in {self.words[1]}/{self.words[2]}: {self.words[-1]}"


class Fix(msgspec.Struct, frozen=True):
    """What would help.

    ``commands`` carry it out, ``look`` shows more.  ``certain`` is False if it rests on a guess about the intention.
    """

    text: str
    commands: tuple[Command, ...] = ()
    look: tuple[Command, ...] = ()
    certain: bool = True


class Finding(msgspec.Struct, frozen=True):
    """``evidence`` is what the cause was seen by; ``weight`` is how many Pods, addresses or objects it concerns."""

    code: Code
    severity: Severity
    cause: str
    fix: Fix
    evidence: tuple[Evidence, ...]
    weight: int = 1
    facts: tuple[str, ...] = ()


def ranked(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Sorted: the most severe first, then by family of codes, then those that concern more Pods first."""

    def order(finding: Finding) -> tuple[int, int, int, int]:
        family, position = weight(finding.code)
        return _SEVERITIES[finding.severity], family, -finding.weight, position

    return tuple(sorted(findings, key=order))


# --- the commands fixes are made of ----------------------------------------------------------------


def merge_patch(resource: str, key: Key, patch: Any) -> Command:
    return _patch(resource, key, "merge", patch)


def json_patch(resource: str, key: Key, operations: list[dict[str, Any]]) -> Command:
    return _patch(resource, key, "json", operations)


def _patch(resource: str, key: Key, type: str, patch: Any) -> Command:
    text = msgspec.json.encode(patch).decode()
    return Command(("patch", resource, key[1], *_in(key[0]), f"--type={type}", "-p", text))


def label(resource: str, key: Key, *labels: str, overwrite: bool = False) -> Command:
    """``labels`` as kubectl takes them: ``key=value``, or ``key-`` to remove one."""
    return Command(("label", resource, key[1], *_in(key[0]), *labels, *(["--overwrite"] if overwrite else [])))


def annotate(resource: str, key: Key, *annotations: str) -> Command:
    """``annotations`` as kubectl takes them, as for labels."""
    return Command(("annotate", resource, key[1], *_in(key[0]), *annotations))


def delete(resource: str, key: Key) -> Command:
    return Command(("delete", resource, key[1], *_in(key[0])))


def delete_selected(resource: str, namespace: str, selector: str) -> Command:
    return Command(("delete", resource, *_in(namespace), "-l", selector))


def create(manifest: dict[str, Any]) -> Command:
    return Command(("create", "-f", "-"), manifest)


def scale(kind: str, key: Key, replicas: int) -> Command:
    return Command(("scale", kind.lower(), key[1], *_in(key[0]), f"--replicas={replicas}"))


def look(*words: str, namespace: str = "") -> Command:
    """A command that changes nothing but shows more."""
    return Command((*words, *_in(namespace)))


def _in(namespace: str) -> tuple[str, ...]:
    return ("-n", namespace) if namespace else ()
