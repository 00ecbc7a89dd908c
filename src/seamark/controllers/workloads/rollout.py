"""What to do next for a Deployment: which ReplicaSets to create, resize and delete, and its status.

Pure: :func:`plan` is the whole decision.  It plans one step at a time; the changes that follow cause the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from seamark.controllers.workloads import rollout_sizes, rollout_status
from seamark.controllers.workloads.deployment import (
    REVISION,
    Deployment,
    DeploymentStatus,
    new_replica_set,
    number,
    revised_annotations,
    same_template,
    size_annotations,
)
from seamark.controllers.workloads.replicas import ReplicaSet
from seamark.controllers.workloads.rollout_sizes import Sizes, by_age
from seamark.errors import Object
from seamark.rules.objects.conditions import condition_of, with_condition
from seamark.rules.objects.workloads import WorkloadConditions


class Resize(msgspec.Struct, frozen=True):
    """A ReplicaSet as it is and as it should be: its size, annotations or ``minReadySeconds`` differ."""

    before: ReplicaSet
    after: ReplicaSet


class RolloutPlan(msgspec.Struct, frozen=True):
    """``again`` is after how many seconds to plan again if nothing changes."""

    status: DeploymentStatus
    revision: str = ""
    create: Object | None = None
    resize: tuple[Resize, ...] = ()
    delete: tuple[ReplicaSet, ...] = ()
    again: float | None = None


def plan(deployment: Deployment, sets: Sequence[ReplicaSet], *, lingering: bool, now: float) -> RolloutPlan:
    """``lingering``: Pods of old ReplicaSets still run, perhaps terminating; Recreate waits for them."""
    new, old = split(deployment, sets)
    draft = _Draft(deployment, new, old, now)
    if deployment.metadata.deletion_timestamp is not None:
        return draft.plan(moving=False)
    if deployment.spec.paused or rollout_sizes.was_scaled(deployment, sets):
        draft.resize(rollout_sizes.scaled(deployment, draft.new, old))
        if deployment.spec.paused:
            draft.clean_up()
        return draft.plan(moving=False)
    if deployment.rolling:
        draft.resize(rollout_sizes.rolling(deployment, draft.ensured(), old))
    elif rollout_sizes.active(old):
        draft.resize({rs.metadata.name: 0 for rs in rollout_sizes.active(old)})
    elif not lingering and not any(rs.status.replicas for rs in old):
        draft.resize({draft.ensured().metadata.name: deployment.spec.replicas})
    if rollout_status.complete(deployment, deployment.status):
        draft.clean_up()
    return draft.plan(moving=True)


def split(deployment: Deployment, sets: Iterable[ReplicaSet]) -> tuple[ReplicaSet | None, list[ReplicaSet]]:
    """The oldest ReplicaSet with the Deployment's template, and all others."""
    ordered = by_age(sets)
    new = next((rs for rs in ordered if same_template(deployment, rs)), None)
    return new, [rs for rs in ordered if rs is not new]


class _Draft:
    """A plan under construction: the ReplicaSets as they will be."""

    def __init__(self, deployment: Deployment, new: ReplicaSet | None, old: Sequence[ReplicaSet], now: float) -> None:
        self._deployment = deployment
        self._before = {rs.metadata.name: rs for rs in (*old, *([new] if new is not None else ()))}
        self._after = dict(self._before)
        self._old = [rs.metadata.name for rs in old]
        self._created: Object | None = None
        self._deleted: tuple[ReplicaSet, ...] = ()
        self._now = now
        self._revision = 1 + max((number(rs.metadata.annotations, REVISION) or 0 for rs in old), default=0)
        self._conditions: WorkloadConditions = deployment.status.conditions
        if deployment.metadata.deletion_timestamp is None:
            self._conditions = rollout_status.pause_noted(deployment, self._conditions, now)
        self.new = new
        if new is not None:
            self._renew(new)

    def _renew(self, new: ReplicaSet) -> None:
        """Update the fields that the new ReplicaSet copies from its Deployment; every plan does this."""
        deployment = self._deployment
        annotations = revised_annotations(deployment, new.metadata.annotations, self._revision)
        self.new = self._after[new.metadata.name] = msgspec.structs.replace(
            new,
            metadata=msgspec.structs.replace(new.metadata, annotations=annotations),
            spec=msgspec.structs.replace(new.spec, min_ready_seconds=deployment.spec.min_ready_seconds),
        )
        if deployment.deadline is not None and condition_of(self._conditions, rollout_status.PROGRESSING) is None:
            self._note("FoundNewReplicaSet", f'Found new replica set "{new.metadata.name}"')

    def ensured(self) -> ReplicaSet:
        """The new ReplicaSet; planned if it does not exist."""
        if self.new is not None:
            return self.new
        deployment = self._deployment
        size = rollout_sizes.grown(deployment, 0, rollout_sizes.held(self._after.values()))
        annotations = {**revised_annotations(deployment, {}, self._revision), **size_annotations(deployment)}
        self._created = new_replica_set(deployment, replicas=size, annotations=annotations)
        self.new = msgspec.convert(self._created, ReplicaSet)
        self._after[self.new.metadata.name] = self.new
        if deployment.deadline is not None:
            self._note("NewReplicaSetCreated", f'Created new replica set "{self.new.metadata.name}"')
        return self.new

    def _note(self, reason: str, message: str) -> None:
        noted = rollout_status.progressing("True", reason, message, now=self._now)
        self._conditions = with_condition(self._conditions, noted)

    def resize(self, sizes: Sizes) -> None:
        for name, size in sizes.items():
            rs = self._after[name]
            annotations = {**rs.metadata.annotations, **size_annotations(self._deployment)}
            self._after[name] = msgspec.structs.replace(
                rs,
                metadata=msgspec.structs.replace(rs.metadata, annotations=annotations),
                spec=msgspec.structs.replace(rs.spec, replicas=size),
            )
        if self.new is not None:
            self.new = self._after[self.new.metadata.name]

    def clean_up(self) -> None:
        """Delete the oldest of the old ReplicaSets without Pods, down to the number that the history may keep."""
        limit = self._deployment.history_limit
        kept = [self._after[name] for name in self._old]
        kept = [rs for rs in kept if rs.metadata.deletion_timestamp is None]
        if limit is None or len(kept) <= limit:
            return
        kept.sort(key=lambda rs: number(rs.metadata.annotations, REVISION) or 0)
        self._deleted = tuple(rs for rs in kept[: len(kept) - limit] if _empty(rs))

    def plan(self, *, moving: bool) -> RolloutPlan:
        """``moving`` is true for a rollout; a paused or scaled Deployment does not report progress."""
        deployment, sets, now = self._deployment, list(self._after.values()), self._now
        status = rollout_status.summed_up(deployment, sets, self.new, conditions=self._conditions, now=now)
        again = None
        if moving:
            status = rollout_status.with_progress(deployment, status, sets, self.new, now=now)
            again = rollout_status.seconds_left(deployment, status, now)
        created = self._created["metadata"]["name"] if self._created is not None else ""
        changed = [
            Resize(self._before[name], after)
            for name, after in self._after.items()
            if name != created and after is not self._before[name] and after != self._before[name]
        ]
        revision = self.new.metadata.annotations.get(REVISION, "") if self.new is not None else ""
        # A second more, because times are written without fractions of seconds.
        return RolloutPlan(
            status,
            revision=revision,
            create=self._created,
            resize=tuple(changed),
            delete=self._deleted,
            again=None if again is None else max(again, 0.0) + 1.0,
        )


def _empty(replica_set: ReplicaSet) -> bool:
    return (
        not replica_set.spec.replicas
        and not replica_set.status.replicas
        and replica_set.status.observed_generation >= replica_set.metadata.generation
    )
