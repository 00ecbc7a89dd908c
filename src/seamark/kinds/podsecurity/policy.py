"""What the labels of a Namespace demand of its Pods.

Each of three modes has a level and the version of Kubernetes whose idea of the level counts: ``enforce`` refuses Pods,
``audit`` notes violations in the audit log, ``warn`` tells the client.  A Namespace without labels demands nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from seamark.kinds.values.fields import FieldError, invalid

PREFIX: Final = "pod-security.kubernetes.io/"
PRIVILEGED: Final = "privileged"
BASELINE: Final = "baseline"
RESTRICTED: Final = "restricted"
LATEST: Final = "latest"

LEVELS = (PRIVILEGED, BASELINE, RESTRICTED)  # each is stricter than the one before
LABELS = tuple(f"{PREFIX}{mode}{what}" for mode in ("enforce", "audit", "warn") for what in ("", "-version"))

_OURS = frozenset(LABELS)
_version = re.compile(r"v1\.(0|[1-9][0-9]*)")
_LARGEST = 2**63 - 1  # Go reads the number into an int


class Standard(NamedTuple):
    """A level as one version of Kubernetes defines it."""

    level: str = PRIVILEGED
    version: str = LATEST

    def __str__(self) -> str:
        return f"{self.level}:{self.version}"

    @property
    def minor(self) -> int | None:
        """The number N of the version v1.N; None for the latest."""
        return None if self.version == LATEST else int(self.version.removeprefix("v1."))

    def stricter(self, other: Standard) -> bool:
        """Whether the level is stricter, whatever the versions."""
        return LEVELS.index(self.level) > LEVELS.index(other.level)


ANYTHING = Standard()


class Policy(NamedTuple):
    """What a Namespace demands; ``mistakes`` are labels that say nothing sensible."""

    enforce: Standard = ANYTHING
    audit: Standard = ANYTHING
    warn: Standard = ANYTHING
    mistakes: tuple[FieldError, ...] = ()

    @property
    def lenient(self) -> bool:
        """Whether it neither enforces anything nor has anything to say."""
        return not self.mistakes and self.enforce.level == PRIVILEGED and self.silent

    @property
    def silent(self) -> bool:
        """Whether it neither warns nor audits."""
        return not self.mistakes and self.warn.level == self.audit.level == PRIVILEGED


NOTHING = Policy()


def policy_of(labels: Mapping[str, str]) -> Policy:
    """The policy of a Namespace with these labels; found once for each combination of them."""
    if _OURS.isdisjoint(labels):  # most Namespaces, and every Pod asks
        return NOTHING
    return _policy(*map(labels.get, LABELS))


@lru_cache(maxsize=256)
def _policy(*values: str | None) -> Policy:
    mistakes: list[FieldError] = []

    def read(place: int, known: Callable[[str], bool], otherwise: str, unknown: str, expected: str) -> str:
        value = values[place]
        if value is None:
            return otherwise
        if known(value):
            return value
        mistakes.append(invalid(f"metadata.labels[{LABELS[place]}]", value, expected))
        return unknown

    def standard(place: int, unknown: str) -> Standard:
        level = read(place, LEVELS.__contains__, PRIVILEGED, unknown, f"must be one of {', '.join(LEVELS)}")
        return Standard(level, read(place + 1, _is_version, LATEST, LATEST, 'must be "latest" or "v1.x"'))

    # A level that cannot be read is enforced as the strictest one; but clients are not warned of its violations.
    enforce, audit, warn = standard(0, RESTRICTED), standard(2, PRIVILEGED), standard(4, PRIVILEGED)
    if values[4] is None and values[0] in LEVELS and enforce.stricter(warn):
        # Who enforces a level is warned of workloads whose Pods it will refuse.
        warn = Standard(enforce.level, enforce.version if values[5] is None else warn.version)
    return Policy(enforce, audit, warn, tuple(mistakes))


def _is_version(text: str) -> bool:
    found = _version.fullmatch(text)
    return text == LATEST or (found is not None and int(found[1]) <= _LARGEST)
