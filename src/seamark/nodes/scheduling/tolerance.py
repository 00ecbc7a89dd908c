"""Taints of Nodes and tolerations of Pods: which Pods may come, and how long they may stay.  Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from seamark.kinds.values import times
from seamark.rules.objects.node import Taint
from seamark.rules.objects.pod import Toleration

REFUSING = ("NoSchedule", "NoExecute")


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    # Without a key "Exists" means every taint; the API lets nothing else through.
    return toleration.operator == "Exists" or toleration.value == taint.value


def untolerated(taints: Iterable[Taint], tolerations: Sequence[Toleration]) -> Taint | None:
    """The first taint that keeps a Pod with these tolerations from coming."""
    for taint in taints:
        if taint.effect in REFUSING and not any(tolerates(toleration, taint) for toleration in tolerations):
            return taint
    return None


def disliked(taints: Iterable[Taint], tolerations: Sequence[Toleration]) -> int:
    """How many taints a Pod should rather avoid."""
    return sum(
        taint.effect == "PreferNoSchedule" and not any(tolerates(toleration, taint) for toleration in tolerations)
        for taint in taints
    )


def eviction_time(taints: Iterable[Taint], tolerations: Sequence[Toleration], *, now: float) -> float | None:
    """When a Pod has to leave a node with these taints; None if it may stay.

    A Pod stays as long as the most impatient of its tolerations says, counted from when the taint came.
    """
    evicting = [taint for taint in taints if taint.effect == "NoExecute"]
    if not evicting:
        return None
    due: float | None = None
    for taint in evicting:
        used = [toleration for toleration in tolerations if tolerates(toleration, taint)]
        if not used:
            return now
        bounded = [t.toleration_seconds for t in used if t.toleration_seconds is not None]
        if bounded:
            added = times.parse(taint.time_added) if taint.time_added else now
            leaves = added + max(0, min(bounded))
            due = leaves if due is None else min(due, leaves)
    return due
