"""How large each ReplicaSet of a Deployment should be next.  Pure; the results contain only sizes that change.

A ReplicaSet that is to shrink still reports its old Pods until its own controller has deleted them.  Until then these
Pods count towards the maximum, but only as many count as available as will stay.  So in any order of events there are
never too many Pods, and the same Pod is never counted as spare twice.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from seamark.controllers.workloads.deployment import DESIRED_REPLICAS, MAX_REPLICAS, Deployment, number
from seamark.controllers.workloads.replicas import ReplicaSet

Sizes = dict[str, int]

LARGEST = 2**31 - 1  # that a ReplicaSet may be


def by_age(sets: Iterable[ReplicaSet]) -> list[ReplicaSet]:
    """The oldest first."""
    return sorted(sets, key=lambda rs: (rs.metadata.creation_timestamp or "", rs.metadata.name))


def active(sets: Iterable[ReplicaSet]) -> list[ReplicaSet]:
    return [rs for rs in sets if rs.spec.replicas > 0]


def total(sets: Iterable[ReplicaSet]) -> int:
    """How many Pods these should have."""
    return sum(rs.spec.replicas for rs in sets)


def available(replica_set: ReplicaSet) -> int:
    return min(replica_set.status.available_replicas, replica_set.spec.replicas)


def held(sets: Iterable[ReplicaSet]) -> int:
    """How many Pods these have or are about to have, including those not deleted yet."""
    return sum(max(rs.spec.replicas, rs.status.replicas) for rs in sets)


# --- rolling update --------------------------------------------------------------------------------


def grown(deployment: Deployment, current: int, others: int) -> int:
    """How large the new ReplicaSet may be, given the number of Pods held."""
    wanted = deployment.spec.replicas
    if not deployment.rolling or current >= wanted:
        return wanted
    room = wanted + deployment.surge - current - others
    return current + max(0, min(room, wanted - current))


def rolling(deployment: Deployment, new: ReplicaSet, old: Sequence[ReplicaSet]) -> Sizes:
    """One step: the new ReplicaSet grows if there is room; otherwise old ones shrink if enough Pods are available."""
    size = grown(deployment, new.spec.replicas, held(old))
    if size != new.spec.replicas:
        return {new.metadata.name: size}
    return _shrunk(deployment, new, by_age(active(old)))


def _shrunk(deployment: Deployment, new: ReplicaSet, old: Sequence[ReplicaSet]) -> Sizes:
    needed = deployment.spec.replicas - deployment.unavailable
    spare = total(old) + available(new) - needed
    sizes = {rs.metadata.name: rs.spec.replicas for rs in old}
    # Pods that do not work go first: deleting them loses nothing, and waiting for them could block the rollout.
    for rs in old:
        broken = min(rs.spec.replicas - available(rs), spare)
        if broken > 0:
            sizes[rs.metadata.name] -= broken
            spare -= broken
    spare = min(spare, sum(map(available, (new, *old))) - needed)
    for rs in old:
        fewer = min(sizes[rs.metadata.name], spare)
        if fewer > 0:
            sizes[rs.metadata.name] -= fewer
            spare -= fewer
    return {rs.metadata.name: sizes[rs.metadata.name] for rs in old if sizes[rs.metadata.name] != rs.spec.replicas}


# --- scaling ---------------------------------------------------------------------------------------


def was_scaled(deployment: Deployment, sets: Iterable[ReplicaSet]) -> bool:
    """Whether the Deployment's size differs from the one recorded on its ReplicaSets.

    With Recreate and several ReplicaSets there is nothing to distribute: the rollout itself ends with the right size.
    """
    living = active(sets)
    if not deployment.rolling and len(living) > 1:
        return False
    desired = (number(rs.metadata.annotations, DESIRED_REPLICAS) for rs in living)
    return any(size is not None and size != deployment.spec.replicas for size in desired)


def scaled(deployment: Deployment, new: ReplicaSet | None, old: Sequence[ReplicaSet]) -> Sizes:
    """All sizes for a Deployment that was scaled, including unchanged ones.

    During a rollout every ReplicaSet is scaled in proportion: growing only the new one, or shrinking only the old
    ones, would speed up a rollout that may be bad.
    """
    everything = [*old, *([new] if new is not None else ())]
    living = active(everything)
    if len(living) <= 1:
        latest = living or ([new] if new is not None else by_age(old)[-1:])
        return {rs.metadata.name: deployment.spec.replicas for rs in latest}
    if new is not None and _saturated(deployment, new):
        return {rs.metadata.name: 0 for rs in active(old)}
    return _proportional(deployment, living) if deployment.rolling else {}


def _saturated(deployment: Deployment, new: ReplicaSet) -> bool:
    """Whether the new ReplicaSet already has all the Pods, and they are available."""
    wanted = deployment.spec.replicas
    desired = number(new.metadata.annotations, DESIRED_REPLICAS)
    return new.spec.replicas == desired == new.status.available_replicas == wanted


def _proportional(deployment: Deployment, living: Sequence[ReplicaSet]) -> Sizes:
    wanted = deployment.spec.replicas
    allowed = min(wanted + deployment.surge, LARGEST) if wanted else 0
    difference = allowed - total(living)
    # The largest first; of equal ones, the newest first when growing and the oldest first when shrinking.
    ordered = by_age(living)
    if difference > 0:
        ordered.reverse()
    ordered.sort(key=lambda rs: -rs.spec.replicas)
    sizes, added = {}, 0
    for rs in ordered:
        share = _share(deployment, rs, left=difference - added) if difference else 0
        sizes[rs.metadata.name] = rs.spec.replicas + share
        added += share
    largest = ordered[0].metadata.name
    sizes[largest] = max(0, sizes[largest] + difference - added)
    return sizes


def _share(deployment: Deployment, replica_set: ReplicaSet, *, left: int) -> int:
    """This ReplicaSet's share of the difference; never more than what is left of it."""
    size, wanted = replica_set.spec.replicas, deployment.spec.replicas
    if not left:
        return 0
    if not wanted:
        return max(-size, left)
    before = number(replica_set.metadata.annotations, MAX_REPLICAS) or deployment.status.replicas or size
    now = math.floor(size * min(wanted + deployment.surge, LARGEST) / before + 0.5)
    return min(now - size, left) if left > 0 else max(now - size, left)
