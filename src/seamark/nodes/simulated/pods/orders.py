"""Annotations that tell the simulated kubelet what to do with a Pod, so that users can test how Services react.

    seamark.dev/start-after: 3s       containers start this long after the Pod came to its node
    seamark.dev/ready-after: 5s       ready this long after the containers started
    seamark.dev/ready: "never"        never ready; also for running Pods; ready again when it is removed
    seamark.dev/flap: 5s              ready for so long, then not ready for so long, and so on
    seamark.dev/fail-after: 10s       containers end in failure this long after they started …
    seamark.dev/exit-code: "3"        … with this exit code (1 if not told)
    seamark.dev/complete-after: 2s    containers end well this long after they started; "never": not by themselves
    seamark.dev/stop-after: 20s       takes so long to end when deleted, if its grace period lets it
    seamark.dev/pods: simulated       simulated, also where Pods run as processes

An annotation that is not valid is ignored, and an Event says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf
from typing import Any

import msgspec

from seamark.kinds.values import times

PREFIX = "seamark.dev/"
LONGEST = 366 * 24 * 3600.0


class Orders(msgspec.Struct, frozen=True):
    """Times are in seconds; None without an annotation."""

    start_after: float = 0.0
    ready_after: float = 0.0
    never_ready: bool = False
    flap: float | None = None
    fail_after: float | None = None
    exit_code: int = 1
    complete_after: float | None = None  # infinite for "never"
    stop_after: float | None = None
    simulated: bool = True


NO_ORDERS = Orders()


def parse(annotations: Mapping[str, str]) -> tuple[Orders, tuple[str, ...]]:
    """The orders, and a message about each annotation that is not valid."""
    given = {key.removeprefix(PREFIX): text for key, text in annotations.items() if key.startswith(PREFIX)}
    if not given:
        return NO_ORDERS, ()
    orders: dict[str, Any] = {}
    complaints = []
    for word, text in sorted(given.items()):
        known = _KNOWN.get(word)
        if known is None:
            complaints.append(f"unknown annotation {PREFIX}{word}: known are {', '.join(_KNOWN)}")
            continue
        field, read, expected = known
        try:
            orders[field] = read(text)
        except ValueError:
            complaints.append(f"annotation {PREFIX}{word}: {text!r} is not {expected}")
    return Orders(**orders), tuple(complaints)


def duration(text: str) -> float:
    """Seconds, a year at most; ``ValueError`` for anything else."""
    seconds = times.parse_duration(text)
    if seconds > LONGEST:
        raise ValueError(text)
    return seconds


def _simulated(text: str) -> bool:
    """A Pod that runs is given to another kubelet, if there is one."""
    if text != "simulated":
        raise ValueError(text)
    return True


def _period(text: str) -> float:
    """A duration for something that repeats."""
    seconds = duration(text)
    if seconds < 0.001:
        raise ValueError(text)
    return seconds


def _end(text: str) -> float:
    """A duration, or ``never``."""
    return inf if text == "never" else duration(text)


def _never(text: str) -> bool:
    if text != "never":
        raise ValueError(text)
    return True


def _exit_code(text: str) -> int:
    code = int(text) if text.isascii() and text.isdigit() and len(text) <= 3 else 0
    if not 1 <= code <= 255:
        raise ValueError(text)
    return code


_TIME = "a duration such as 3s, 1m30s or 250ms"
_KNOWN: Mapping[str, tuple[str, Callable[[str], Any], str]] = {
    "start-after": ("start_after", duration, _TIME),
    "ready-after": ("ready_after", duration, _TIME),
    "ready": ("never_ready", _never, '"never"'),
    "flap": ("flap", _period, _TIME),
    "fail-after": ("fail_after", duration, _TIME),
    "exit-code": ("exit_code", _exit_code, "a number from 1 to 255"),
    "complete-after": ("complete_after", _end, f'{_TIME}, or "never"'),
    "stop-after": ("stop_after", duration, _TIME),
    "pods": ("simulated", _simulated, '"simulated"; Pods can run after `seamark up --pods chosen` only'),
}
