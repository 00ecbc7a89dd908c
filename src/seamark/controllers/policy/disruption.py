"""What a PodDisruptionBudget allows at the moment.  Pure.

Its status says how many of its Pods are healthy and how many must be; the difference may be evicted.  The API server
notes each eviction in ``disruptedPods`` until the deletion is seen here.
"""

from __future__ import annotations

from collections.abc import Sequence

from seamark.controllers.workloads.shares import resolve
from seamark.errors import Object
from seamark.kinds.policy.eviction import conditions
from seamark.kinds.values import times
from seamark.rules.objects.budget import Budget, BudgetSpec
from seamark.rules.objects.pod import Pod

# For how many seconds an evicted Pod counts as going although it has not been deleted.
DELETION_SECONDS = 120.0


def wanted(spec: BudgetSpec, present: int, scale: int) -> tuple[int, int]:
    """How many Pods are expected, and how many of them must be healthy.

    ``scale`` is how many there should be, by their owners; bare Pods are not in it.
    """
    if spec.max_unavailable is not None:
        return scale, max(0, scale - resolve(spec.max_unavailable, scale, rounding="up"))
    if isinstance(spec.min_available, str):
        return scale, resolve(spec.min_available, scale, rounding="up")
    return (present, spec.min_available) if spec.min_available is not None else (0, 0)


def still_going(budget: Budget, pods: Sequence[Pod], now: float) -> dict[str, str]:
    """The evicted Pods whose deletion has not been seen yet, and when they were evicted."""
    evicted: dict[str, str] = budget.status.get("disruptedPods") or {}
    waited_for = {pod.metadata.name for pod in pods if not pod.terminating}
    return {
        name: since
        for name, since in evicted.items()
        if name in waited_for and times.parse(since) + DELETION_SECONDS >= now
    }


def status(budget: Budget, pods: Sequence[Pod], scale: int, now: float) -> Object:
    """The status that the budget should have."""
    expected, desired = wanted(budget.spec, len(pods), scale)
    going = still_going(budget, pods, now)
    healthy = sum(pod.ready and not pod.terminating and pod.metadata.name not in going for pod in pods)
    found: Object = {
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        # Without Pods nothing is allowed, so that the first ones cannot be evicted before they are counted.
        "disruptionsAllowed": max(0, healthy - desired) if expected > 0 else 0,
        "expectedPods": expected,
        "observedGeneration": budget.metadata.generation,
    }
    if going:
        found["disruptedPods"] = going
    found["conditions"] = conditions({**budget.status, **found}, times.text(now))
    return found


def failed(budget: Budget, sentence: str, now: float) -> Object:
    """The status when it cannot be calculated: nothing may be evicted."""
    found = {**budget.status, "disruptionsAllowed": 0}
    return {**found, "conditions": conditions(found, times.text(now), failure=sentence)}


def recheck_after(budget_status: Object, now: float) -> float | None:
    """After how many seconds the first eviction is given up; None if none is waited for."""
    moments = [times.parse(since) for since in (budget_status.get("disruptedPods") or {}).values()]
    return max(0.0, min(moments) + DELETION_SECONDS - now) + 1.0 if moments else None
