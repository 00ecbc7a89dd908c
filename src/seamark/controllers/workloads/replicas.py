"""How many Pods a ReplicaSet or ReplicationController creates, which ones it deletes, and its status.

Pure: the input is the Pods of a workload, the result is the changes and the status.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import msgspec

from seamark.errors import ApiError
from seamark.kinds.resource import REPLICA_SETS, REPLICATION_CONTROLLERS, Resource
from seamark.kinds.values import times
from seamark.kinds.values.numbers import int64
from seamark.kinds.values.selectors import LabelSelector, from_label_selector, from_pairs
from seamark.kinds.wellknown import DELETION_COST_ANNOTATION
from seamark.rules.objects.conditions import condition_of, with_condition, without_condition
from seamark.rules.objects.metadata import ObjectView, View
from seamark.rules.objects.pod import Pod
from seamark.rules.objects.workloads import Template, WorkloadCondition, WorkloadConditions

# At most this many Pods are created or deleted for one workload in one ``reconcile``.
BURST = 500

# A workload creates no more Pods while this many of its Pods wait for a node: they would only fill memory and store.
MOST_WAITING = 10_000

# The cost of counting grows with the number of Pods: while they change continuously, a thousand are counted twenty
# times a second.
PAUSE_PER_POD = 0.00005

FAILURE = "ReplicaFailure"
_PHASE_ORDER = {"Pending": 0, "Unknown": 1, "Running": 2}


class ReplicasStatus(View, frozen=True):
    replicas: int = 0
    fully_labeled_replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    terminating_replicas: int | None = None
    observed_generation: int = 0
    conditions: WorkloadConditions = ()


class ReplicasSpec(View, frozen=True):
    replicas: int = 1
    min_ready_seconds: int = 0
    selector: dict[str, Any] | None = None
    template: Template | None = None


class Replicas(ObjectView, frozen=True):
    """The fields that both kinds have in common."""

    spec: ReplicasSpec = ReplicasSpec()
    status: ReplicasStatus = ReplicasStatus()

    resource: ClassVar[Resource]
    counts_terminating: ClassVar[bool]

    @property
    def selector(self) -> LabelSelector:
        raise NotImplementedError


class ReplicaSet(Replicas, frozen=True):
    resource: ClassVar[Resource] = REPLICA_SETS
    counts_terminating: ClassVar[bool] = True

    @property
    def selector(self) -> LabelSelector:
        return from_label_selector(self.spec.selector)


class ReplicationController(Replicas, frozen=True):
    resource: ClassVar[Resource] = REPLICATION_CONTROLLERS
    # The status of a ReplicationController has no such field.
    counts_terminating: ClassVar[bool] = False

    @property
    def selector(self) -> LabelSelector:
        return from_pairs(self.spec.selector or {})


class ReplicaChanges(msgspec.Struct, frozen=True):
    """How many Pods to create, or which to delete; never both."""

    create: int = 0
    delete: tuple[Pod, ...] = ()


def plan(replicas: Replicas, pods: Sequence[Pod], *, related: Iterable[Pod], now: float) -> ReplicaChanges:
    """The changes that reach the wanted number of active Pods; ``related`` includes Pods of its siblings."""
    if replicas.metadata.deletion_timestamp is not None:
        return ReplicaChanges()
    surplus = len(pods) - replicas.spec.replicas
    if surplus < 0:
        return ReplicaChanges(create=min(-surplus, batch(pods)))
    if surplus == 0:
        return ReplicaChanges()
    return ReplicaChanges(delete=doomed(pods, min(surplus, BURST), related=related, now=now))


def batch(pods: Iterable[Pod]) -> int:
    """How many more Pods a workload with these Pods may create now."""
    waiting = sum(not pod.spec.node_name for pod in pods)
    return max(0, min(BURST, MOST_WAITING - waiting))


def pause(wanted: int, counted: int) -> float:
    """Seconds between two counts of a workload's Pods: those of the last count, and those that may have come since."""
    return min(wanted, counted + BURST) * PAUSE_PER_POD


def doomed(pods: Sequence[Pod], count: int, *, related: Iterable[Pod], now: float) -> tuple[Pod, ...]:
    """The Pods to delete: first those that do not work yet, then those that are needed least."""
    if count >= len(pods):
        return tuple(pods)
    crowds = Counter(pod.spec.node_name for pod in related if pod.active)
    return tuple(sorted(pods, key=lambda pod: _worth(pod, crowds, now))[:count])


def _worth(pod: Pod, crowds: Mapping[str, int], now: float) -> tuple[Any, ...]:
    """Sorts the least needed first.

    Ages are compared only by order of magnitude, and equal ones by uid, which is as good as random.  Otherwise a
    workload that is scaled down and up again would keep all its Pods in the zone of the oldest ones.
    """
    since = pod.ready_since
    created = pod.metadata.creation_timestamp
    return (
        bool(pod.spec.node_name),
        _PHASE_ORDER.get(pod.status.phase, -1),
        pod.ready,
        _deletion_cost(pod),
        -crowds.get(pod.spec.node_name, 0),
        _magnitude(now - since) if since is not None else -2,
        -pod.restarts,
        _magnitude(now - times.parse(created)) if created else -2,
        pod.metadata.uid,
    )


def _deletion_cost(pod: Pod) -> int:
    return int64(pod.metadata.annotations.get(DELETION_COST_ANNOTATION, "")) or 0


def _magnitude(seconds: float) -> int:
    """The order of magnitude of an age: as in Kubernetes, the binary logarithm of nanoseconds."""
    return int(math.log2(seconds * 1e9)) if seconds > 0 else -1


def count(
    replicas: Replicas, pods: Sequence[Pod], *, terminating: int, failure: ApiError | None, now: float
) -> ReplicasStatus:
    """The status of a workload with these active Pods; ``failure`` is the error of creating or deleting others."""
    template = (replicas.spec.template or {}).get("metadata") or {}
    wanted = (template.get("labels") or {}).items()
    seconds = replicas.spec.min_ready_seconds
    return ReplicasStatus(
        replicas=len(pods),
        fully_labeled_replicas=sum(wanted <= pod.metadata.labels.items() for pod in pods),
        ready_replicas=sum(pod.ready for pod in pods),
        available_replicas=sum(pod.available(seconds, now) for pod in pods),
        terminating_replicas=terminating if replicas.counts_terminating else None,
        observed_generation=replicas.metadata.generation,
        conditions=_conditions(replicas, len(pods), failure, now),
    )


def _conditions(replicas: Replicas, pods: int, failure: ApiError | None, now: float) -> WorkloadConditions:
    conditions = replicas.status.conditions
    if failure is None:
        return without_condition(conditions, FAILURE)
    if condition_of(conditions, FAILURE) is not None:
        return conditions
    reason = "FailedCreate" if pods < replicas.spec.replicas else "FailedDelete"
    new = WorkloadCondition(FAILURE, "True", last_transition_time=times.text(now), reason=reason, message=str(failure))
    return with_condition(conditions, new)


def next_available(pods: Iterable[Pod], min_ready_seconds: int, now: float) -> float | None:
    """In how many seconds the next ready Pod becomes available; None if none is about to."""
    if not min_ready_seconds:
        return None
    at = (pod.available_at(min_ready_seconds) for pod in pods)
    return min((moment - now for moment in at if moment is not None and moment > now), default=None)
