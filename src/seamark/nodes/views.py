"""Pods, Nodes and Leases as the simulated nodes see them: only what they decide by, decoded straight from the wire.

What is written back (a Pod's status, a Node's conditions and taints) is here in full, so that nothing of it is lost.
"""

from __future__ import annotations

from typing import Any

import msgspec

SIMULATED = "seamark.dev/simulated"  # on Nodes that are ours
STOPPED = "seamark.dev/stopped"  # on Nodes of ours that someone has switched off
ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
HOSTNAME = "kubernetes.io/hostname"

FINISHED = frozenset(("Succeeded", "Failed"))


class View(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """A part of an object as it is on the wire: fields it does not name are dropped, those it lacks are empty."""


class Owner(View, frozen=True):
    uid: str = ""
    kind: str = ""
    controller: bool = False


class Metadata(View, frozen=True):
    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: tuple[Owner, ...] = ()
    finalizers: tuple[str, ...] = ()


# --- Pods --------------------------------------------------------------------------------------------


class Resources(View, frozen=True):
    requests: dict[str, str] = {}


class Port(View, frozen=True):
    host_port: int = 0
    host_ip: str = msgspec.field(name="hostIP", default="")
    protocol: str = "TCP"


class Container(View, frozen=True):
    name: str
    image: str = ""
    resources: Resources = Resources()
    ports: tuple[Port, ...] = ()
    restart_policy: str = ""


class Toleration(View, frozen=True):
    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class Named(View, frozen=True):
    name: str


class ReadinessGate(View, frozen=True):
    condition_type: str


class SpreadConstraint(View, frozen=True):
    max_skew: int
    topology_key: str
    when_unsatisfiable: str
    label_selector: dict[str, Any] | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None


class PodSpec(View, frozen=True):
    node_name: str = ""
    scheduler_name: str = ""
    scheduling_gates: tuple[Named, ...] = ()
    node_selector: dict[str, str] = {}
    affinity: dict[str, Any] | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[SpreadConstraint, ...] = ()
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    ephemeral_containers: tuple[Container, ...] = ()
    resources: Resources = Resources()
    overhead: dict[str, str] = {}
    host_network: bool = False
    priority: int = 0
    readiness_gates: tuple[ReadinessGate, ...] = ()
    restart_policy: str = "Always"


class Condition(View, frozen=True):
    """Of a Pod.  ``lastProbeTime`` is never set by anybody."""

    type: str
    status: str = ""
    last_transition_time: str | None = None
    reason: str = ""
    message: str = ""
    observed_generation: int = 0


class ContainerStatus(View, frozen=True):
    name: str
    state: dict[str, Any] = {}
    last_state: dict[str, Any] = {}
    ready: bool = False
    restart_count: int = 0
    image: str = ""
    image_id: str = msgspec.field(name="imageID", default="")
    container_id: str = msgspec.field(name="containerID", default="")
    started: bool | None = None


class Address(View, frozen=True):
    ip: str = ""


class PodStatus(View, frozen=True):
    phase: str = ""
    reason: str = ""
    message: str = ""
    observed_generation: int = 0
    conditions: tuple[Condition, ...] = ()
    host_ip: str = msgspec.field(name="hostIP", default="")
    host_ips: tuple[Address, ...] = msgspec.field(name="hostIPs", default=())
    pod_ip: str = msgspec.field(name="podIP", default="")
    pod_ips: tuple[Address, ...] = msgspec.field(name="podIPs", default=())
    start_time: str | None = None
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    ephemeral_container_statuses: tuple[ContainerStatus, ...] = ()

    def condition(self, type: str) -> Condition | None:
        for condition in self.conditions:
            if condition.type == type:
                return condition
        return None


class Pod(View, frozen=True):
    metadata: Metadata
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def key(self) -> str:
        return f"{self.metadata.namespace}/{self.metadata.name}"

    @property
    def finished(self) -> bool:
        return self.status.phase in FINISHED

    @property
    def deleting(self) -> bool:
        return self.metadata.deletion_timestamp is not None


# --- Nodes -------------------------------------------------------------------------------------------


class Taint(View, frozen=True):
    key: str
    effect: str
    value: str = ""
    time_added: str | None = None


class NodeSpec(View, frozen=True):
    pod_cidrs: tuple[str, ...] = msgspec.field(name="podCIDRs", default=())
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False


class NodeCondition(View, frozen=True):
    type: str
    status: str = ""
    last_heartbeat_time: str | None = None
    last_transition_time: str | None = None
    reason: str = ""
    message: str = ""


class NodeAddress(View, frozen=True):
    type: str
    address: str


class NodeStatus(View, frozen=True):
    conditions: tuple[NodeCondition, ...] = ()
    addresses: tuple[NodeAddress, ...] = ()
    capacity: dict[str, str] = {}
    allocatable: dict[str, str] = {}
    node_info: dict[str, Any] = {}


class Node(View, frozen=True):
    metadata: Metadata
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def simulated(self) -> bool:
        """Whether it is ours."""
        return self.metadata.annotations.get(SIMULATED) == "true"

    @property
    def stopped(self) -> bool:
        """Whether somebody has switched it off."""
        return self.metadata.annotations.get(STOPPED) == "true"

    @property
    def ready(self) -> bool:
        return any(c.type == "Ready" and c.status == "True" for c in self.status.conditions)


class LeaseSpec(View, frozen=True):
    renew_time: str | None = None


class Lease(View, frozen=True):
    metadata: Metadata
    spec: LeaseSpec = LeaseSpec()


class NamespaceMetadata(View, frozen=True):
    name: str
    labels: dict[str, str] = {}


class Namespace(View, frozen=True):
    metadata: NamespaceMetadata
