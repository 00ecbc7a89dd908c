"""What to do next for a Deployment: which ReplicaSets to create, resize and delete, and what to say.

Pure: :func:`plan` is the whole decision.  It makes one step at a time; the change it causes brings the next.
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
    """A ReplicaSet as it is and as it should be; its size, its annotations or how long its Pods must be ready."""

    before: ReplicaSet
    after: ReplicaSet


class Plan(msgspec.Struct, frozen=True):
    """``again`` is in how many seconds to look again should nothing happen."""

    status: DeploymentStatus
    revision: str = ""
    create: Object | None = None
    resize: tuple[Resize, ...] = ()
    delete: tuple[ReplicaSet, ...] = ()
    again: float | None = None


def plan(deployment: Deployment, sets: Sequence[ReplicaSet], *, lingering: bool, now: float) -> Plan:
    """``lingering`` says that Pods of old ReplicaSets still run, be it on their way out: Recreate waits for them."""
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
    """The ReplicaSet that has the Deployment's template, and all others; of several the oldest is the one."""
    ordered = by_age(sets)
    new = next((rs for rs in ordered if same_template(deployment, rs)), None)
    return new, [rs for rs in ordered if rs is not new]


class _Draft:
    """A plan in the making: ReplicaSets as they will be."""

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
        """Bring what the new ReplicaSet has from its Deployment up to date, whatever else happens."""
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
        """The new ReplicaSet, which is created if there is none."""
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
        """Forget the oldest of the old ReplicaSets, as far as they are more than should be kept and have no Pods."""
        limit = self._deployment.history_limit
        kept = [self._after[name] for name in self._old]
        kept = [rs for rs in kept if rs.metadata.deletion_timestamp is None]
        if limit is None or len(kept) <= limit:
            return
        kept.sort(key=lambda rs: number(rs.metadata.annotations, REVISION) or 0)
        self._deleted = tuple(rs for rs in kept[: len(kept) - limit] if _empty(rs))

    def plan(self, *, moving: bool) -> Plan:
        """``moving`` is a rollout; a Deployment that rests or is scaled says nothing about its progress."""
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
        # A second more, for times are written without their fractions.
        return Plan(
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
