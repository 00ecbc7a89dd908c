"""What can be said about a probe of a container, which only its kubelet sees the answers of (pure).

A kubelet asks a container first when ``initialDelaySeconds`` have gone by, or up to one period later, and then once per
period.  So a container that is not ready may not have been asked yet.  It fails for certain only if an Event says so,
or if the threshold of failures must have been reached by now.
"""

from __future__ import annotations

from enum import Enum
from typing import Protocol

import msgspec


class Standing(Enum):
    """What is known of the answers to a probe."""

    PASSING = "passing"
    FAILING = "failing"
    NOT_ASKED = "not asked yet"  # the first question may still be to come
    UNDECIDED = "not decided yet"  # it has been asked, but less often than its threshold
    UNKNOWN = "unknown"  # when the container started, or what time it is, cannot be seen


class Timing(Protocol):
    """When a probe is asked, as its fields say."""

    @property
    def initial_delay_seconds(self) -> int: ...
    @property
    def period_seconds(self) -> int: ...
    @property
    def failure_threshold(self) -> int: ...


class Judgement(msgspec.Struct, frozen=True):
    """``elapsed`` seconds after its start, and when (in seconds after the start) it is asked first and decided."""

    standing: Standing
    elapsed: float | None = None
    first: float = 0.0
    decided: float = 0.0


def judge(
    probe: Timing, *, passed: bool, elapsed: float | None, said_to_fail: bool, after: Timing | None = None
) -> Judgement:
    """``elapsed`` seconds have gone by since the container started; ``after`` is the probe that has to pass before."""
    wait = _decided(after) if after is not None else 0.0
    first = wait + probe.initial_delay_seconds + max(1, probe.period_seconds)
    decided = wait + _decided(probe)
    if passed:
        standing = Standing.PASSING
    elif said_to_fail:
        standing = Standing.FAILING
    elif elapsed is None:
        standing = Standing.UNKNOWN
    elif elapsed >= decided:
        standing = Standing.FAILING
    else:
        standing = Standing.NOT_ASKED if elapsed < first else Standing.UNDECIDED
    return Judgement(standing, elapsed, first, decided)


def _decided(probe: Timing) -> float:
    """When the threshold of failures is reached at the latest if every answer is a failure."""
    return float(probe.initial_delay_seconds + max(1, probe.period_seconds) * max(1, probe.failure_threshold))
