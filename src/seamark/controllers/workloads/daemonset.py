"""What to do next for a DaemonSet: on which nodes to start a Pod, which Pods to delete, and its status (pure).

First every node gets the Pod it should have.  Once that is done, outdated Pods are replaced.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from seamark.controllers.workloads.replicas import BURST
from seamark.controllers.workloads.shares import RollingUpdate, Share, resolve
from seamark.controllers.workloads.templates import pod_from
from seamark.errors import Object
from seamark.kinds.resource import DAEMON_SETS
from seamark.kinds.values.selectors import LabelSelector, from_label_selector
from seamark.kinds.wellknown import (
    DISK_PRESSURE_TAINT,
    MEMORY_PRESSURE_TAINT,
    NETWORK_UNAVAILABLE_TAINT,
    NOT_READY_TAINT,
    PID_PRESSURE_TAINT,
    REVISION_HASH_LABEL,
    UNREACHABLE_TAINT,
    UNSCHEDULABLE_TAINT,
)
from seamark.kinds.workloads.daemonset import TEMPLATE_GENERATION
from seamark.rules.objects.metadata import ObjectView, View
from seamark.rules.objects.pod import Pod
from seamark.rules.objects.workloads import Template, owner_reference
from seamark.rules.placement import REQUIRED, Eligibility

GENERATION_LABEL = "pod-template-generation"

# The Pods of a DaemonSet stay on a failing node, because they may be needed to repair it.
_TOLERATED = (
    (NOT_READY_TAINT, "NoExecute"),
    (UNREACHABLE_TAINT, "NoExecute"),
    (DISK_PRESSURE_TAINT, "NoSchedule"),
    (MEMORY_PRESSURE_TAINT, "NoSchedule"),
    (PID_PRESSURE_TAINT, "NoSchedule"),
    (UNSCHEDULABLE_TAINT, "NoSchedule"),
)
_TOLERATED_ON_HOST_NETWORK = (NETWORK_UNAVAILABLE_TAINT, "NoSchedule")


class UpdateStrategy(View, frozen=True):
    type: str = "RollingUpdate"
    rolling_update: RollingUpdate = RollingUpdate()


class DaemonSetSpec(View, frozen=True):
    selector: dict[str, Any] | None = None
    template: Template = msgspec.field(default_factory=dict)
    update_strategy: UpdateStrategy = UpdateStrategy()
    min_ready_seconds: int = 0
    revision_history_limit: int | None = None


class DaemonSetStatus(View, frozen=True):
    current_number_scheduled: int = 0
    number_misscheduled: int = 0
    desired_number_scheduled: int = 0
    number_ready: int = 0
    observed_generation: int = 0
    updated_number_scheduled: int = 0
    number_available: int = 0
    number_unavailable: int = 0
    collision_count: int | None = None


class DaemonSet(ObjectView, frozen=True):
    spec: DaemonSetSpec = DaemonSetSpec()
    status: DaemonSetStatus = DaemonSetStatus()

    @property
    def selector(self) -> LabelSelector:
        return from_label_selector(self.spec.selector)

    @property
    def template_generation(self) -> str:
        return self.metadata.annotations.get(TEMPLATE_GENERATION, "")

    @property
    def surges(self) -> bool:
        """Whether a new Pod is started beside the old one."""
        strategy = self.spec.update_strategy
        return strategy.type == "RollingUpdate" and resolve(strategy.rolling_update.max_surge, 100, rounding="up") > 0

    def updated(self, pod: Pod, hash: str) -> bool:
        """Whether a Pod has this revision."""
        labels = pod.metadata.labels
        generation = self.template_generation
        return labels.get(REVISION_HASH_LABEL) == hash or bool(
            generation and labels.get(GENERATION_LABEL) == generation
        )


class DaemonChanges(msgspec.Struct):
    """``create`` has names of nodes; ``finished`` are those Pods to delete that ended by themselves."""

    create: list[str] = msgspec.field(default_factory=list)
    delete: list[Pod] = msgspec.field(default_factory=list)
    finished: list[Pod] = msgspec.field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.create or self.delete or self.finished)


def by_node(pods: Iterable[Pod]) -> dict[str, list[Pod]]:
    """The Pods of each node: scheduled ones before others, then the oldest first."""
    found: dict[str, list[Pod]] = {}
    for pod in pods:
        if node := pod.target_node:
            found.setdefault(node, []).append(pod)
    for there in found.values():
        if len(there) > 1:
            there.sort(key=_seniority)
    return found


def _seniority(pod: Pod) -> tuple[bool, str, str]:
    return not pod.spec.node_name, pod.metadata.creation_timestamp or "", pod.metadata.name


def plan(
    daemon_set: DaemonSet,
    pods: Mapping[str, Sequence[Pod]],
    nodes: Mapping[str, Eligibility],
    hash: str,
    *,
    spared: Collection[str] = (),
    now: float,
) -> DaemonChanges:
    """What to create and delete; ``pods`` are by node, ``hash`` is the hash of the current revision.

    ``spared`` are uids of Pods that have ended and must not be replaced yet.
    """
    change = _placed(daemon_set, pods, nodes, hash, now)
    change.finished = [pod for pod in change.finished if pod.metadata.uid not in spared]
    strategy = daemon_set.spec.update_strategy
    if not change and strategy.type == "RollingUpdate":
        change = _rolled(daemon_set, pods, nodes, hash, now)
    return DaemonChanges(change.create[:BURST], change.delete[:BURST], change.finished)


def _placed(
    daemon_set: DaemonSet, pods: Mapping[str, Sequence[Pod]], nodes: Mapping[str, Eligibility], hash: str, now: float
) -> DaemonChanges:
    """Give every node exactly the Pods it should have."""
    change = DaemonChanges()
    for node, eligible in nodes.items():
        here = pods.get(node, ())
        if eligible.run and not here:
            change.create.append(node)
        elif eligible.stay:
            change.finished += [pod for pod in here if pod.finished and not pod.terminating]
            running = [pod for pod in here if pod.active]
            if not daemon_set.surges:
                change.delete += running[1:]
            elif not running and eligible.run:
                change.create.append(node)
            else:
                change.delete += _excess(daemon_set, running, hash, now)
        else:
            change.delete += [pod for pod in here if not pod.terminating]
    # Delete Pods that wait for a node that is gone, because no other controller does.
    for node, waiting in pods.items():
        if node not in nodes:
            change.delete += [pod for pod in waiting if not pod.spec.node_name and not pod.terminating]
    return change


def _excess(daemon_set: DaemonSet, running: Sequence[Pod], hash: str, now: float) -> list[Pod]:
    """The surplus Pods of one node: one old and one new Pod may stay, the old one only until the new one works."""
    new = [pod for pod in running if pod.metadata.labels.get(REVISION_HASH_LABEL) == hash]
    old = [pod for pod in running if pod.metadata.labels.get(REVISION_HASH_LABEL) != hash]
    excess = new[1:] + old[1:]
    if new and old:
        relieved = new[0].available(daemon_set.spec.min_ready_seconds, now)
        if relieved or not old[0].ready:
            excess.append(old[0])
    return excess


def _limit(share: Share, nodes: Mapping[str, Eligibility]) -> int:
    return resolve(share, sum(eligible.run for eligible in nodes.values()), rounding="up")


def _old_and_new(daemon_set: DaemonSet, here: Sequence[Pod], hash: str) -> tuple[Pod | None, Pod | None]:
    """The outdated and the current Pod of a node; None for one that is missing or terminating."""
    staying = [pod for pod in here if not pod.terminating]
    old = next((pod for pod in staying if not daemon_set.updated(pod, hash)), None)
    new = next((pod for pod in staying if daemon_set.updated(pod, hash)), None)
    return old, new


def _rolled(
    daemon_set: DaemonSet, pods: Mapping[str, Sequence[Pod]], nodes: Mapping[str, Eligibility], hash: str, now: float
) -> DaemonChanges:
    """Delete outdated Pods within ``maxUnavailable``, or start new ones beside them within ``maxSurge``.

    Pods that do not work come first, whatever the limit, because replacing them makes nothing worse.
    """
    seconds, rolling = daemon_set.spec.min_ready_seconds, daemon_set.spec.update_strategy.rolling_update
    idle: list[tuple[str, Pod]] = []
    working: list[tuple[str, Pod]] = []
    used = 0  # nodes that count against the limit already
    for node, eligible in nodes.items():
        if not eligible.run:
            continue
        old, new = _old_and_new(daemon_set, pods.get(node, ()), hash)
        if old is not None and new is None:
            (working if old.available(seconds, now) else idle).append((node, old))
        elif old is not None:
            used += 1
        elif not daemon_set.surges:
            used += new is None or not new.available(seconds, now)
    limit = _limit(rolling.max_surge if daemon_set.surges else rolling.max_unavailable, nodes)
    chosen = idle + working[: max(0, limit - used - len(idle))]
    if daemon_set.surges:
        return DaemonChanges(create=[node for node, _ in chosen])
    return DaemonChanges(delete=[pod for _, pod in chosen])


def count(
    daemon_set: DaemonSet,
    pods: Mapping[str, Sequence[Pod]],
    nodes: Mapping[str, Eligibility],
    hash: str,
    *,
    settled: bool,
    now: float,
) -> DaemonSetStatus:
    """The status.  ``observedGeneration`` follows only once the controller could act on that generation."""
    seconds = daemon_set.spec.min_ready_seconds
    wanted = [pods.get(node, ()) for node, eligible in nodes.items() if eligible.run]
    first = [here[0] for here in wanted if here]
    available = sum(pod.available(seconds, now) for pod in first)
    generation = daemon_set.metadata.generation if settled else daemon_set.status.observed_generation
    return DaemonSetStatus(
        current_number_scheduled=len(first),
        number_misscheduled=sum(bool(pods.get(node)) for node, eligible in nodes.items() if not eligible.run),
        desired_number_scheduled=len(wanted),
        number_ready=sum(pod.ready for pod in first),
        observed_generation=generation,
        updated_number_scheduled=sum(daemon_set.updated(pod, hash) for pod in first),
        number_available=available,
        number_unavailable=len(wanted) - available,
        collision_count=daemon_set.status.collision_count,
    )


def new_pod(daemon_set: DaemonSet, template: Template, node: str, hash: str) -> Object:
    """The Pod for a node; ``template`` already has the tolerations of DaemonSets."""
    labels = {REVISION_HASH_LABEL: hash}
    if daemon_set.template_generation:
        labels[GENERATION_LABEL] = daemon_set.template_generation
    pod = pod_from(template, owner=owner_reference(DAEMON_SETS, daemon_set.metadata), labels=labels)
    pod["spec"] = bound_to(pod["spec"], node)
    return pod


def with_tolerations(template: Template) -> Template:
    """The template with the tolerations that every Pod of a DaemonSet has."""
    spec = template.get("spec") or {}
    tolerated = [*_TOLERATED, *([_TOLERATED_ON_HOST_NETWORK] if spec.get("hostNetwork") else ())]
    given: list[Object] = list(spec.get("tolerations") or ())
    for key, effect in tolerated:
        wanted = {"key": key, "operator": "Exists", "effect": effect}
        if wanted not in given:
            given.append(wanted)
    return {**template, "spec": {**spec, "tolerations": given}}


def bound_to(spec: Object, node: str) -> Object:
    """The spec with a required affinity to one node, instead of its own required node affinity."""
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}]
    affinity = spec.get("affinity") or {}
    on_nodes = affinity.get("nodeAffinity") or {}
    required = {REQUIRED: {"nodeSelectorTerms": terms}}
    return {**spec, "affinity": {**affinity, "nodeAffinity": {**on_nodes, **required}}}
