"""Node: what endpoints, scheduling and simulated nodes decide by; and the Lease that shows that a node is alive.

Conditions and taints are complete, because the simulated nodes write them back.
"""

from typing import Any

import msgspec

from seamark.kinds.wellknown import CONTROL_PLANE_LABELS, SIMULATED_ANNOTATION, STOPPED_ANNOTATION, ZONE_LABEL
from seamark.rules.objects.conditions import Condition, condition_of
from seamark.rules.objects.metadata import ObjectView, View
from seamark.rules.objects.pod import Quantity


class Taint(View, frozen=True):
    key: str = ""
    effect: str = ""
    value: str = ""
    time_added: str | None = None


class NodeSpec(View, frozen=True):
    pod_cidrs: tuple[str, ...] = msgspec.field(name="podCIDRs", default=())
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False


class NodeCondition(Condition, frozen=True):
    last_heartbeat_time: str | None = None


class NodeAddress(View, frozen=True):
    type: str = ""
    address: str = ""


class NodeStatus(View, frozen=True):
    conditions: tuple[NodeCondition, ...] = ()
    addresses: tuple[NodeAddress, ...] = ()
    capacity: dict[str, Quantity] = msgspec.field(default_factory=dict)
    allocatable: dict[str, Quantity] = msgspec.field(default_factory=dict)
    node_info: dict[str, Any] = msgspec.field(default_factory=dict)
    daemon_endpoints: dict[str, Any] = msgspec.field(default_factory=dict)


class Node(ObjectView, frozen=True):
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def zone(self) -> str:
        return self.metadata.labels.get(ZONE_LABEL, "")

    def condition(self, type: str) -> NodeCondition | None:
        return condition_of(self.status.conditions, type)

    @property
    def ready(self) -> bool:
        condition = self.condition("Ready")
        return condition is not None and condition.status == "True"

    @property
    def control_plane(self) -> bool:
        """Whether it runs the control plane, and so, usually, no ordinary Pods."""
        return any(role in self.metadata.labels for role in CONTROL_PLANE_LABELS)

    @property
    def simulated(self) -> bool:
        """Whether Seamark simulates it."""
        return self.metadata.annotations.get(SIMULATED_ANNOTATION) == "true"

    @property
    def stopped(self) -> bool:
        """Whether a user has switched it off."""
        return self.metadata.annotations.get(STOPPED_ANNOTATION) == "true"


class LeaseSpec(View, frozen=True):
    renew_time: str | None = None


class Lease(ObjectView, frozen=True):
    spec: LeaseSpec = LeaseSpec()
