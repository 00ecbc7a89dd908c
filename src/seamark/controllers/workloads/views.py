"""What the workload controllers see of Pods and of each other's objects.

Pods have no ``resourceVersion`` here: a heartbeat or an annotation that changes nothing below is no change.  Objects
that these controllers write back conditionally have one.
"""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from seamark.access.correlation import Reference
from seamark.kinds.resource import Resource
from seamark.kinds.values import times
from seamark.kinds.values.selectors import LabelSelector
from seamark.rules.membership import View
from seamark.rules.written import Metadata, OwnerReference

Template = dict[str, Any]

FINISHED = ("Succeeded", "Failed")


class Owned(Protocol):
    """Metadata of something a workload may own."""

    @property
    def name(self) -> str: ...
    @property
    def namespace(self) -> str: ...
    @property
    def uid(self) -> str: ...
    @property
    def labels(self) -> dict[str, str]: ...
    @property
    def deletion_timestamp(self) -> str | None: ...
    @property
    def owner_references(self) -> tuple[OwnerReference, ...]: ...


class Dependant(Protocol):
    @property
    def metadata(self) -> Owned: ...


class Workload(Protocol):
    """A workload of any kind, as far as owning things goes."""

    @property
    def metadata(self) -> Metadata: ...
    @property
    def selector(self) -> LabelSelector: ...


def controller_of(metadata: Owned) -> OwnerReference | None:
    """The one owner that manages it, if there is one."""
    for owner in metadata.owner_references:
        if owner.controller:
            return owner
    return None


def owner_reference(resource: Resource, metadata: Metadata) -> dict[str, Any]:
    """How something refers to the workload that manages it."""
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": metadata.name,
        "uid": metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def reference(resource: Resource, metadata: Metadata) -> Reference:
    """How an event refers to a workload."""
    return Reference(
        kind=resource.kind,
        name=metadata.name,
        namespace=metadata.namespace,
        uid=metadata.uid,
        api_version=resource.api_version,
        resource_version=metadata.resource_version,
    )


# --- Pods ------------------------------------------------------------------------------------------


class PodAnnotations(View, frozen=True):
    deletion_cost: str = msgspec.field(name="controller.kubernetes.io/pod-deletion-cost", default="")


class PodMetadata(View, frozen=True):
    name: str
    namespace: str = ""
    uid: str = ""
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: PodAnnotations = PodAnnotations()
    owner_references: tuple[OwnerReference, ...] = ()


class FieldTerm(View, frozen=True):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class NodeTerm(View, frozen=True):
    match_fields: tuple[FieldTerm, ...] = ()


class NodeTerms(View, frozen=True):
    node_selector_terms: tuple[NodeTerm, ...] = ()


class NodeAffinity(View, frozen=True):
    required_during_scheduling_ignored_during_execution: NodeTerms = NodeTerms()


class Affinity(View, frozen=True):
    node_affinity: NodeAffinity = NodeAffinity()


class PodSpec(View, frozen=True):
    node_name: str = ""
    affinity: Affinity = Affinity()


class PodCondition(View, frozen=True):
    type: str
    status: str = ""
    last_transition_time: str | None = None


class ContainerStatus(View, frozen=True):
    restart_count: int = 0


class PodStatus(View, frozen=True):
    phase: str = ""
    conditions: tuple[PodCondition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()


class Pod(View, frozen=True):
    metadata: PodMetadata
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def ready_condition(self) -> PodCondition | None:
        for condition in self.status.conditions:
            if condition.type == "Ready":
                return condition
        return None

    @property
    def ready(self) -> bool:
        condition = self.ready_condition
        return condition is not None and condition.status == "True"

    @property
    def running_and_ready(self) -> bool:
        return self.status.phase == "Running" and self.ready

    @property
    def finished(self) -> bool:
        """It ran and does not any more; nothing will start it again."""
        return self.status.phase in FINISHED

    @property
    def terminating(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    @property
    def active(self) -> bool:
        """Whether it counts as a replica."""
        return not self.finished and not self.terminating

    @property
    def restarts(self) -> int:
        return max((status.restart_count for status in self.status.container_statuses), default=0)

    @property
    def ready_since(self) -> float | None:
        """Since when it has been ready; None while it is not."""
        condition = self.ready_condition
        if condition is None or condition.status != "True" or not condition.last_transition_time:
            return None
        return times.parse(condition.last_transition_time)

    def available_at(self, min_ready_seconds: int) -> float | None:
        """From when on it is available if nothing happens to it: at once (0), at a time, or not as it is (None)."""
        if not self.ready:
            return None
        if not min_ready_seconds:
            return 0.0
        since = self.ready_since
        return None if since is None else since + min_ready_seconds

    def available(self, min_ready_seconds: int, now: float) -> bool:
        """Ready, and for long enough."""
        at = self.available_at(min_ready_seconds)
        return at is not None and at <= now

    @property
    def target_node(self) -> str:
        """The node it runs on, or the only one it may run on; empty if there is no such node."""
        if self.spec.node_name:
            return self.spec.node_name
        required = self.spec.affinity.node_affinity.required_during_scheduling_ignored_during_execution
        for term in required.node_selector_terms:
            for field in term.match_fields:
                if field.key == "metadata.name" and field.operator == "In" and len(field.values) == 1:
                    return field.values[0]
        return ""


# --- status conditions of workloads ----------------------------------------------------------------


class Condition(View, frozen=True):
    type: str
    status: str = ""
    last_update_time: str | None = None
    last_transition_time: str | None = None
    reason: str = ""
    message: str = ""


Conditions = tuple[Condition, ...]


def condition_of(conditions: Conditions, type: str) -> Condition | None:
    return next((condition for condition in conditions if condition.type == type), None)


def without_condition(conditions: Conditions, type: str) -> Conditions:
    if condition_of(conditions, type) is None:
        return conditions
    return tuple(condition for condition in conditions if condition.type != type)


def with_condition(conditions: Conditions, new: Condition) -> Conditions:
    """The conditions with this one, unless they say the same already; a text alone is no news.

    The time of the last transition is kept while the status stays what it was.
    """
    old = condition_of(conditions, new.type)
    if old is not None and old.status == new.status:
        if old.reason == new.reason:
            return conditions
        new = msgspec.structs.replace(new, last_transition_time=old.last_transition_time)
    return (*without_condition(conditions, new.type), new)
