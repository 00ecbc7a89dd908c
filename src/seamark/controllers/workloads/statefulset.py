"""What to do next for a StatefulSet: which Pods to create, delete and correct, and its status.

Pure.  Each Pod has a place: an ordinal, counted from ``start``.  By default Pods are created and deleted one at a time,
in order, and only while all before them are available; with the ``Parallel`` policy each place is handled separately.

A StatefulSet may ask for two thousand million Pods.  So no step looks at more places than there are Pods and new Pods,
and no step creates, deletes or corrects more than ``BURST`` of them; the changes that follow cause the next step.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from typing import Any

import msgspec

from seamark.controllers.workloads.replicas import BURST, batch
from seamark.controllers.workloads.shares import RollingUpdate, resolve
from seamark.controllers.workloads.templates import name_prefix, pod_from
from seamark.errors import Object
from seamark.kinds.resource import STATEFUL_SETS
from seamark.kinds.values.selectors import LabelSelector, from_label_selector
from seamark.kinds.wellknown import POD_INDEX_LABEL, POD_NAME_LABEL, REVISION_HASH_LABEL
from seamark.rules.objects.metadata import ObjectView, View
from seamark.rules.objects.pod import Pod
from seamark.rules.objects.workloads import Template, owner_reference

_member = re.compile(r"(.*)-([0-9]+)", re.ASCII)


class UpdateStrategy(View, frozen=True):
    type: str = "RollingUpdate"
    rolling_update: RollingUpdate | None = None


class Ordinals(View, frozen=True):
    start: int = 0


class ClaimRetention(View, frozen=True):
    """What becomes of the claims: ``Retain`` or ``Delete``."""

    when_deleted: str = "Retain"
    when_scaled: str = "Retain"


class StatefulSetSpec(View, frozen=True):
    replicas: int = 1
    selector: dict[str, Any] | None = None
    template: Template = msgspec.field(default_factory=dict)
    service_name: str = ""
    pod_management_policy: str = "OrderedReady"
    update_strategy: UpdateStrategy = UpdateStrategy()
    volume_claim_templates: tuple[dict[str, Any], ...] = ()
    persistent_volume_claim_retention_policy: ClaimRetention = ClaimRetention()
    min_ready_seconds: int = 0
    revision_history_limit: int | None = None
    ordinals: Ordinals = Ordinals()


class StatefulSetStatus(View, frozen=True):
    observed_generation: int = 0
    replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    current_replicas: int = 0
    updated_replicas: int = 0
    current_revision: str = ""
    update_revision: str = ""
    collision_count: int | None = None


class StatefulSet(ObjectView, frozen=True):
    spec: StatefulSetSpec = StatefulSetSpec()
    status: StatefulSetStatus = StatefulSetStatus()

    @property
    def selector(self) -> LabelSelector:
        return from_label_selector(self.spec.selector)

    @property
    def ordered(self) -> bool:
        return self.spec.pod_management_policy != "Parallel"

    @property
    def places(self) -> range:
        """The ordinals that should have a Pod."""
        start = self.spec.ordinals.start
        return range(start, start + self.spec.replicas)

    @property
    def partition(self) -> int:
        """The first ordinal that should have the newest revision."""
        rolling = self.spec.update_strategy.rolling_update
        return self.spec.ordinals.start + (rolling.partition if rolling is not None else 0)

    @property
    def unavailable(self) -> int:
        """How many Pods may be unavailable during an update."""
        rolling = self.spec.update_strategy.rolling_update
        share = rolling.max_unavailable if rolling is not None else 1
        return max(1, resolve(share, self.spec.replicas, rounding="down"))


def ordinal(name: str, pod: str) -> int | None:
    """The place of a Pod in the StatefulSet of this name; None if the Pod's name does not fit."""
    found = _member.fullmatch(pod)
    return int(found[2]) if found is not None and found[1] == name else None


def revision_of(pod: Pod) -> str:
    return pod.metadata.labels.get(REVISION_HASH_LABEL, "")


class Revisions(msgspec.Struct, frozen=True):
    """The names of the current revision, and of the one that an update brings all Pods to."""

    current: str
    update: str


class Creation(msgspec.Struct, frozen=True):
    ordinal: int
    revision: str


class MemberChanges(msgspec.Struct):
    """Which Pods to create, to delete, and to give the labels with their name and ordinal."""

    create: list[Creation] = msgspec.field(default_factory=list)
    delete: list[Pod] = msgspec.field(default_factory=list)
    relabel: list[Pod] = msgspec.field(default_factory=list)


def plan(stateful_set: StatefulSet, pods: Sequence[Pod], revisions: Revisions, *, now: float) -> MemberChanges:
    """What to change; empty if nothing has to change, or a Pod has to be waited for."""
    change = MemberChanges()
    if stateful_set.metadata.deletion_timestamp is not None:
        return change
    taken = {place: pod for pod in pods if (place := _place(stateful_set, pod)) is not None}
    board = _Board(stateful_set, taken, revisions, now)
    if board.fill(change) and board.shrink(change) and stateful_set.spec.update_strategy.type != "OnDelete":
        change.delete += board.outdated()
    return MemberChanges(change.create, change.delete[:BURST], change.relabel[:BURST])


def _place(stateful_set: StatefulSet, pod: Pod) -> int | None:
    return ordinal(stateful_set.metadata.name, pod.metadata.name)


class _Board:
    """The Pods by place.  Each step returns whether the next step may follow."""

    def __init__(self, stateful_set: StatefulSet, taken: dict[int, Pod], revisions: Revisions, now: float) -> None:
        self._set = stateful_set
        self._taken = taken
        self._revisions = revisions
        self._now = now
        self._places = stateful_set.places
        self._filled = sorted(place for place in taken if place in self._places)
        self._condemned = sorted((place for place in taken if place not in self._places), reverse=True)

    def _up(self, place: int) -> bool:
        """Whether this place has a Pod that works."""
        pod = self._taken.get(place)
        return pod is not None and not pod.terminating and self._available(pod)

    def _available(self, pod: Pod) -> bool:
        return pod.running_and_ready and pod.available(self._set.spec.min_ready_seconds, self._now)

    def fill(self, change: MemberChanges) -> bool:
        """Give every place its Pod: one after the other in order, unless the policy is ``Parallel``."""
        ordered = self._set.ordered
        room = 1 if ordered else batch(self._taken.values())
        missing = list(islice((place for place in self._places if place not in self._taken), room))
        for place in self._filled:
            pod = self._taken[place]
            if ordered and missing and missing[0] < place:
                break
            if pod.finished:
                if not pod.terminating:
                    change.delete.append(pod)
            elif not ordered or self._up(place):
                if pod.metadata.labels.get(POD_NAME_LABEL) != pod.metadata.name:
                    change.relabel.append(pod)
                continue
            if ordered:
                return False
        change.create += [Creation(place, self._revision_at(place)) for place in missing]
        return not (ordered and missing)

    def _revision_at(self, place: int) -> str:
        """The revision for a new Pod: below the partition it stays the current one."""
        strategy = self._set.spec.update_strategy
        if strategy.type != "RollingUpdate":
            return self._revisions.update
        start = self._set.spec.ordinals.start
        kept = self._set.partition if strategy.rolling_update is not None else start + self._set.status.current_replicas
        return self._revisions.current if place < kept else self._revisions.update

    def shrink(self, change: MemberChanges) -> bool:
        """Delete Pods beyond the last place, the highest first; if ordered, a broken Pod blocks the others."""
        ordered = self._set.ordered
        # If ordered, the Pods at the places all work, or this step would not have been reached.
        broken = next((place for place in reversed(self._condemned) if not self._up(place)), None)
        for place in self._condemned:
            pod = self._taken[place]
            if ordered and (pod.terminating or (not self._available(pod) and place != broken)):
                return False
            if not pod.terminating:
                change.delete.append(pod)
            if ordered:
                return False
        return True

    def outdated(self) -> list[Pod]:
        """Outdated Pods to delete, the highest ordinal first, as many as may be unavailable."""
        down = len(self._places) - sum(self._up(place) for place in self._filled)
        left = self._set.unavailable - down
        old = [
            pod
            for place in reversed(self._filled)
            if place >= self._set.partition
            and not (pod := self._taken[place]).finished
            and not pod.terminating
            and revision_of(pod) != self._revisions.update
        ]
        if self._set.ordered:
            return old[: max(0, left)]
        # Pods that do not work may go despite the limit: they would never become available by themselves.
        idle = [pod for pod in old if not self._available(pod)]
        return idle + [pod for pod in old if self._available(pod)][: max(0, left)]


def count(
    stateful_set: StatefulSet, pods: Sequence[Pod], revisions: Revisions, *, collisions: int, now: float
) -> StatefulSetStatus:
    """The status; once an update has reached every Pod, its revision becomes the current one."""
    seconds, wanted = stateful_set.spec.min_ready_seconds, stateful_set.spec.replicas
    members = [pod for pod in pods if _place(stateful_set, pod) is not None]
    staying = [revision_of(pod) for pod in members if not pod.terminating]
    ready = [pod for pod in members if pod.running_and_ready]
    updated, current = staying.count(revisions.update), staying.count(revisions.current)
    current_revision = revisions.current
    rolling = stateful_set.spec.update_strategy.type == "RollingUpdate"
    if rolling and updated == len(ready) == len(members) == wanted:
        current, current_revision = updated, revisions.update
    return StatefulSetStatus(
        observed_generation=stateful_set.metadata.generation,
        replicas=len(members),
        ready_replicas=len(ready),
        available_replicas=sum(pod.available(seconds, now) for pod in ready),
        current_replicas=current,
        updated_replicas=updated,
        current_revision=current_revision,
        update_revision=revisions.update,
        collision_count=collisions,
    )


def new_pod(stateful_set: StatefulSet, template: Template, creation: Creation) -> Object:
    """The Pod for a place, with a stable name, and a host name under the headless Service."""
    meta, spec = stateful_set.metadata, stateful_set.spec
    name = f"{meta.name}-{creation.ordinal}"
    labels = {POD_NAME_LABEL: name, POD_INDEX_LABEL: str(creation.ordinal), REVISION_HASH_LABEL: creation.revision}
    pod = pod_from(template, owner=owner_reference(STATEFUL_SETS, meta), labels=labels)
    pod["metadata"] |= {"name": name, "generateName": name_prefix(meta.name)}
    pod["spec"] = {**pod["spec"], "hostname": name}
    if spec.service_name:
        pod["spec"]["subdomain"] = spec.service_name
    if spec.volume_claim_templates:
        pod["spec"]["volumes"] = _volumes(stateful_set, template, creation.ordinal)
    return pod


def claim_names(stateful_set: StatefulSet, place: int) -> dict[str, str]:
    """The claims of the Pod at a place, by the names of their templates."""
    names = [(claim.get("metadata") or {}).get("name", "") for claim in stateful_set.spec.volume_claim_templates]
    return {name: f"{name}-{stateful_set.metadata.name}-{place}" for name in names}


def new_claims(stateful_set: StatefulSet, place: int) -> list[Object]:
    """The claims that the Pod at a place needs."""
    meta, names = stateful_set.metadata, claim_names(stateful_set, place)
    selected = (stateful_set.spec.selector or {}).get("matchLabels") or {}
    made = []
    for template, name in zip(stateful_set.spec.volume_claim_templates, names.values(), strict=True):
        given = template.get("metadata") or {}
        about: Object = {"name": name, "labels": {**(given.get("labels") or {}), **selected}}
        if given.get("annotations"):
            about["annotations"] = given["annotations"]
        if stateful_set.spec.persistent_volume_claim_retention_policy.when_deleted == "Delete":
            about["ownerReferences"] = [owner_reference(STATEFUL_SETS, meta)]
        made.append({"metadata": about, "spec": template.get("spec") or {}})
    return made


def _volumes(stateful_set: StatefulSet, template: Template, place: int) -> list[Object]:
    """A volume for each claim, followed by the template's volumes with other names."""
    names = claim_names(stateful_set, place)
    claimed = [{"name": name, "persistentVolumeClaim": {"claimName": claim}} for name, claim in names.items()]
    own = (template.get("spec") or {}).get("volumes") or ()
    return claimed + [volume for volume in own if volume.get("name") not in names]
