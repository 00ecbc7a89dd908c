"""The status of a Deployment: the sums over its ReplicaSets, and the progress of its rollout.  Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from seamark.controllers.workloads.deployment import Deployment, DeploymentStatus
from seamark.controllers.workloads.replicas import FAILURE, ReplicaSet
from seamark.kinds.values import times
from seamark.rules.objects.conditions import condition_of, with_condition, without_condition
from seamark.rules.objects.workloads import WorkloadCondition, WorkloadConditions

AVAILABLE, PROGRESSING = "Available", "Progressing"
TIMED_OUT, NEW_AVAILABLE, PAUSED = "ProgressDeadlineExceeded", "NewReplicaSetAvailable", "DeploymentPaused"


def condition(type: str, status: str, reason: str, message: str, *, now: float) -> WorkloadCondition:
    moment = times.text(now)
    return WorkloadCondition(
        type, status, last_update_time=moment, last_transition_time=moment, reason=reason, message=message
    )


def progressing(status: str, reason: str, message: str, *, now: float) -> WorkloadCondition:
    return condition(PROGRESSING, status, reason, message, now=now)


def pause_noted(deployment: Deployment, conditions: WorkloadConditions, now: float) -> WorkloadConditions:
    """The conditions of a Deployment that was paused or resumed, so that the pause does not count towards the deadline.

    A lack of progress that has been reported stays reported.
    """
    current = condition_of(conditions, PROGRESSING)
    if deployment.deadline is None or (current is not None and current.reason == TIMED_OUT):
        return conditions
    resting = current is not None and current.reason == PAUSED
    if deployment.spec.paused and not resting:
        return with_condition(conditions, progressing("Unknown", PAUSED, "Deployment is paused", now=now))
    if not deployment.spec.paused and resting:
        resumed = progressing("Unknown", "DeploymentResumed", "Deployment is resumed", now=now)
        return with_condition(conditions, resumed)
    return conditions


def summed_up(
    deployment: Deployment,
    sets: Sequence[ReplicaSet],
    new: ReplicaSet | None,
    *,
    conditions: WorkloadConditions,
    now: float,
) -> DeploymentStatus:
    """The counts, and whether there are enough Pods."""
    available = sum(rs.status.available_replicas for rs in sets)
    terminating = [rs.status.terminating_replicas for rs in sets]
    if available >= deployment.spec.replicas - deployment.unavailable:
        enough = condition(
            AVAILABLE, "True", "MinimumReplicasAvailable", "Deployment has minimum availability.", now=now
        )
    else:
        message = "Deployment does not have minimum availability."
        enough = condition(AVAILABLE, "False", "MinimumReplicasUnavailable", message, now=now)
    return DeploymentStatus(
        observed_generation=deployment.metadata.generation,
        replicas=sum(rs.status.replicas for rs in sets),
        updated_replicas=new.status.replicas if new is not None else 0,
        ready_replicas=sum(rs.status.ready_replicas for rs in sets),
        available_replicas=available,
        unavailable_replicas=max(0, sum(rs.spec.replicas for rs in sets) - available),
        # The sum is unknown until every ReplicaSet has reported its number.
        terminating_replicas=None if None in terminating else sum(count or 0 for count in terminating),
        collision_count=deployment.status.collision_count,
        conditions=with_condition(conditions, enough),
    )


def complete(deployment: Deployment, status: DeploymentStatus) -> bool:
    """Whether all Pods are new and available, and no old ones are left."""
    wanted = deployment.spec.replicas
    seen = status.observed_generation >= deployment.metadata.generation
    return seen and status.updated_replicas == status.replicas == status.available_replicas == wanted


def with_progress(
    deployment: Deployment,
    status: DeploymentStatus,
    sets: Sequence[ReplicaSet],
    new: ReplicaSet | None,
    *,
    now: float,
) -> DeploymentStatus:
    """The status during a rollout: complete, progressing or stuck; and why ReplicaSets could not create Pods."""
    conditions = status.conditions
    if deployment.deadline is None:
        conditions = without_condition(conditions, PROGRESSING)
    elif not _long_done(status):
        conditions = _judged(deployment, status, new, now)
    failure = _failure(sets, new)
    conditions = without_condition(conditions, FAILURE) if failure is None else with_condition(conditions, failure)
    return msgspec.structs.replace(status, conditions=conditions)


def _long_done(status: DeploymentStatus) -> bool:
    current = condition_of(status.conditions, PROGRESSING)
    return current is not None and current.reason == NEW_AVAILABLE and status.replicas == status.updated_replicas


def _judged(deployment: Deployment, status: DeploymentStatus, new: ReplicaSet | None, now: float) -> WorkloadConditions:
    name = deployment.metadata.name
    subject = f'Deployment "{name}"' if new is None else f'ReplicaSet "{new.metadata.name}"'
    if complete(deployment, status):
        done = progressing("True", NEW_AVAILABLE, f"{subject} has successfully progressed.", now=now)
        return with_condition(status.conditions, done)
    if _moved(deployment.status, status):
        return _moving(status.conditions, f"{subject} is progressing.", now)
    if timed_out(deployment, status, now):
        stuck = progressing("False", TIMED_OUT, f"{subject} has timed out progressing.", now=now)
        return with_condition(status.conditions, stuck)
    return status.conditions


def _moving(conditions: WorkloadConditions, message: str, now: float) -> WorkloadConditions:
    """Renew the condition on all progress, even if the reason is the same: the deadline counts from the last one."""
    new = progressing("True", "ReplicaSetUpdated", message, now=now)
    current = condition_of(conditions, PROGRESSING)
    if current is not None and current.status == "True":
        new = msgspec.structs.replace(new, last_transition_time=current.last_transition_time)
    return (*without_condition(conditions, PROGRESSING), new)


def _moved(before: DeploymentStatus, after: DeploymentStatus) -> bool:
    return (
        after.updated_replicas > before.updated_replicas
        or after.replicas - after.updated_replicas < before.replicas - before.updated_replicas
        or after.ready_replicas > before.ready_replicas
        or after.available_replicas > before.available_replicas
    )


def timed_out(deployment: Deployment, status: DeploymentStatus, now: float) -> bool:
    current = condition_of(status.conditions, PROGRESSING)
    if current is not None and current.reason == TIMED_OUT:
        return True
    left = seconds_left(deployment, status, now)
    return left is not None and left < 0


def seconds_left(deployment: Deployment, status: DeploymentStatus, now: float) -> float | None:
    """How many seconds without progress are left; None if there is no deadline, or it no longer applies.

    Pods lost after a rollout has succeeded do not make it a failure.
    """
    current = condition_of(status.conditions, PROGRESSING)
    if deployment.deadline is None or current is None or current.last_update_time is None:
        return None
    if current.reason in (TIMED_OUT, NEW_AVAILABLE) or complete(deployment, status):
        return None
    return times.parse(current.last_update_time) + deployment.deadline - now


def _failure(sets: Sequence[ReplicaSet], new: ReplicaSet | None) -> WorkloadCondition | None:
    """A ReplicaSet's condition about Pods it could not create; the new ReplicaSet's takes precedence."""
    for replica_set in [*([new] if new is not None else ()), *sets]:
        conditions: WorkloadConditions = replica_set.status.conditions
        found = condition_of(conditions, FAILURE)
        if found is not None:
            return msgspec.structs.replace(found, last_update_time=found.last_transition_time)
    return None
