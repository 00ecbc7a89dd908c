"""What one metric says about a workload: how many replicas it asks for, or why it says nothing."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from seamark.controllers.autoscaling.sizing import Tolerance
from seamark.errors import Object
from seamark.rules.objects.pod import Pod


class MetricError(Exception):
    """A metric that says nothing: the reason in one word, what went wrong, and the same seen from further away."""

    def __init__(self, reason: str, message: str, outer: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.outer = f"{outer}: {message}"


class Proposal(msgspec.Struct, frozen=True):
    """How many replicas one metric asks for, the name of the metric, and what ``status.currentMetrics`` says of it."""

    replicas: int
    name: str
    status: Object


class Workload(msgspec.Struct, frozen=True):
    """The Pods that an autoscaler scales: how many it should have (``current``) and has (``counted``)."""

    namespace: str
    selector: str
    current: int
    counted: int
    pods: Sequence[Pod]
    tolerance: Tolerance
