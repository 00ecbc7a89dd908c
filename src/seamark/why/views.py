"""Objects as ``why`` reads them: what membership is decided by, and what tells a person why it is so.

Services, Pods and Nodes extend the views of :mod:`seamark.rules.membership`, whose ``judge`` takes them as
they are.  Nothing here is ever written back.
"""

from __future__ import annotations

import msgspec

from seamark.rules import membership
from seamark.rules.membership import View

SERVICE_NAME_LABEL = "kubernetes.io/service-name"
MANAGED_BY_LABEL = "endpointslice.kubernetes.io/managed-by"
SKIP_MIRROR_LABEL = "endpointslice.kubernetes.io/skip-mirror"
ENDPOINTS_MANAGED_BY_LABEL = "endpoints.kubernetes.io/managed-by"
OVER_CAPACITY_ANNOTATION = "endpoints.kubernetes.io/over-capacity"
LEADER_ANNOTATION = "control-plane.alpha.kubernetes.io/leader"
SLICE_CONTROLLER = "endpointslice-controller.k8s.io"
MIRROR_CONTROLLER = "endpointslicemirroring-controller.k8s.io"

Key = tuple[str, str]  # namespace, name


class Owner(View, frozen=True):
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class Manager(View, frozen=True):
    """Who wrote some of an object's fields, and when."""

    manager: str = ""
    time: str | None = None


class Metadata(View, frozen=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    owner_references: tuple[Owner, ...] = ()
    finalizers: tuple[str, ...] = ()
    managed_fields: tuple[Manager, ...] = ()


# --- Service ---------------------------------------------------------------------------------------


class ServiceMetadata(membership.ServiceMetadata, frozen=True):
    finalizers: tuple[str, ...] = ()


class ServicePort(membership.ServicePort, frozen=True):
    node_port: int = 0


class ServiceSpec(membership.ServiceSpec, frozen=True):
    ports: tuple[ServicePort, ...] = ()
    cluster_ips: tuple[str, ...] = msgspec.field(name="clusterIPs", default=())
    ip_family_policy: str = ""
    external_name: str = ""
    internal_traffic_policy: str = ""
    external_traffic_policy: str = ""


class Ingress(View, frozen=True):
    ip: str = ""
    hostname: str = ""


class LoadBalancer(View, frozen=True):
    ingress: tuple[Ingress, ...] = ()


class ServiceStatus(View, frozen=True):
    load_balancer: LoadBalancer = LoadBalancer()


class Service(membership.Service, frozen=True):
    metadata: ServiceMetadata
    spec: ServiceSpec = ServiceSpec()
    status: ServiceStatus = ServiceStatus()

    @property
    def key(self) -> Key:
        return self.metadata.namespace, self.metadata.name

    @property
    def external(self) -> bool:
        return self.spec.type == "ExternalName"


# --- Pod -------------------------------------------------------------------------------------------


class PodMetadata(membership.PodMetadata, frozen=True):
    creation_timestamp: str | None = None
    owner_references: tuple[Owner, ...] = ()
    finalizers: tuple[str, ...] = ()


class ContainerPort(membership.ContainerPort, frozen=True):
    host_port: int = 0


class HttpGet(View, frozen=True):
    path: str = ""
    port: int | str = 0


class Socket(View, frozen=True):
    port: int | str = 0


class Exec(View, frozen=True):
    command: tuple[str, ...] = ()


class Probe(View, frozen=True):
    http_get: HttpGet | None = None
    tcp_socket: Socket | None = None
    grpc: Socket | None = None
    exec: Exec | None = None

    def __str__(self) -> str:
        if self.http_get is not None:
            return f"GET {self.http_get.path or '/'} on port {self.http_get.port}"
        if self.tcp_socket is not None:
            return f"a TCP connection to port {self.tcp_socket.port}"
        if self.grpc is not None:
            return f"gRPC on port {self.grpc.port}"
        if self.exec is not None:
            return "the command " + " ".join(self.exec.command)
        return "it"


class Container(membership.Container, frozen=True):
    name: str = ""
    ports: tuple[ContainerPort, ...] = ()
    readiness_probe: Probe | None = None
    startup_probe: Probe | None = None


class Named(View, frozen=True):
    name: str = ""


class Gate(View, frozen=True):
    condition_type: str = ""


class PodSpec(membership.PodSpec, frozen=True):
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    readiness_gates: tuple[Gate, ...] = ()
    scheduling_gates: tuple[Named, ...] = ()
    host_network: bool = False


class Condition(membership.Condition, frozen=True):
    reason: str = ""
    message: str = ""


class Waiting(View, frozen=True):
    reason: str = ""
    message: str = ""


class Terminated(View, frozen=True):
    reason: str = ""
    message: str = ""
    exit_code: int = 0
    finished_at: str | None = None


class Running(View, frozen=True):
    started_at: str | None = None


class State(View, frozen=True):
    waiting: Waiting | None = None
    running: Running | None = None
    terminated: Terminated | None = None


class ContainerStatus(View, frozen=True):
    name: str = ""
    ready: bool = False
    started: bool | None = None
    restart_count: int = 0
    image: str = ""
    state: State = State()
    last_state: State = State()


class PodStatus(membership.PodStatus, frozen=True):
    reason: str = ""
    message: str = ""
    conditions: tuple[Condition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()


class Pod(membership.Pod, frozen=True):
    metadata: PodMetadata
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def key(self) -> Key:
        return self.metadata.namespace, self.metadata.name

    def condition(self, type: str) -> Condition | None:
        return next((c for c in self.status.conditions if c.type == type), None)


# --- Node ------------------------------------------------------------------------------------------


class Taint(View, frozen=True):
    key: str = ""
    effect: str = ""


class NodeSpec(View, frozen=True):
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class NodeStatus(membership.NodeStatus, frozen=True):
    conditions: tuple[Condition, ...] = ()


class Node(membership.Node, frozen=True):
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def ready_condition(self) -> Condition | None:
        return next((c for c in self.status.conditions if c.type == "Ready"), None)


# --- Endpoints and EndpointSlices ------------------------------------------------------------------


class Reference(View, frozen=True):
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class EndpointAddress(View, frozen=True):
    ip: str = ""
    target_ref: Reference | None = None


class EndpointPort(View, frozen=True):
    name: str = ""
    port: int = 0
    protocol: str = "TCP"


class Subset(View, frozen=True):
    addresses: tuple[EndpointAddress, ...] | None = None
    not_ready_addresses: tuple[EndpointAddress, ...] | None = None
    ports: tuple[EndpointPort, ...] | None = None


class Endpoints(View, frozen=True):
    metadata: Metadata
    subsets: tuple[Subset, ...] | None = None

    @property
    def key(self) -> Key:
        return self.metadata.namespace, self.metadata.name

    @property
    def made_by_controller(self) -> bool:
        return ENDPOINTS_MANAGED_BY_LABEL in self.metadata.labels

    @property
    def mirrorable(self) -> bool:
        """Whether nobody forbids mirroring them into EndpointSlices."""
        return (
            self.metadata.labels.get(SKIP_MIRROR_LABEL) != "true" and LEADER_ANNOTATION not in self.metadata.annotations
        )

    def ready(self) -> list[EndpointAddress]:
        return [address for subset in self.subsets or () for address in subset.addresses or ()]

    def not_ready(self) -> list[EndpointAddress]:
        return [address for subset in self.subsets or () for address in subset.not_ready_addresses or ()]

    def ports(self) -> list[EndpointPort]:
        return [port for subset in self.subsets or () for port in subset.ports or ()]


class Conditions(View, frozen=True):
    ready: bool | None = None
    serving: bool | None = None
    terminating: bool | None = None


class Target(View, frozen=True):
    name: str = ""


class Hints(View, frozen=True):
    for_zones: tuple[Target, ...] | None = None
    for_nodes: tuple[Target, ...] | None = None


class Endpoint(View, frozen=True):
    addresses: tuple[str, ...] | None = None
    conditions: Conditions = Conditions()
    target_ref: Reference | None = None
    node_name: str | None = None
    zone: str | None = None
    hints: Hints | None = None

    @property
    def ready(self) -> bool:
        """As every reader takes it: what does not say otherwise is ready."""
        return self.conditions.ready is not False


class SlicePort(View, frozen=True):
    name: str | None = None
    port: int | None = None
    protocol: str | None = None


class EndpointSlice(View, frozen=True):
    metadata: Metadata
    address_type: str = ""
    endpoints: tuple[Endpoint, ...] | None = None
    ports: tuple[SlicePort, ...] | None = None

    @property
    def key(self) -> Key:
        return self.metadata.namespace, self.metadata.name

    @property
    def service_name(self) -> str:
        return self.metadata.labels.get(SERVICE_NAME_LABEL, "")

    @property
    def managed_by(self) -> str:
        return self.metadata.labels.get(MANAGED_BY_LABEL, "")

    def owned_by(self, uid: str) -> bool:
        return any(owner.uid == uid for owner in self.metadata.owner_references)

    def ready_addresses(self) -> list[str]:
        return [each for endpoint in self.endpoints or () if endpoint.ready for each in endpoint.addresses or ()]

    def all_addresses(self) -> list[str]:
        return [each for endpoint in self.endpoints or () for each in endpoint.addresses or ()]


# --- the rest --------------------------------------------------------------------------------------


class TemplateMetadata(View, frozen=True):
    labels: dict[str, str] = msgspec.field(default_factory=dict)


class Template(View, frozen=True):
    metadata: TemplateMetadata = TemplateMetadata()
    spec: PodSpec = PodSpec()


class WorkloadSpec(View, frozen=True):
    replicas: int | None = None
    paused: bool = False
    service_name: str = ""
    template: Template = Template()


class WorkloadStatus(View, frozen=True):
    replicas: int = 0
    desired_number_scheduled: int | None = None
    conditions: tuple[Condition, ...] = ()


class Workload(View, frozen=True):
    """A Deployment, ReplicaSet, StatefulSet, DaemonSet or whatever else makes Pods from a template."""

    metadata: Metadata
    kind: str = ""
    spec: WorkloadSpec = WorkloadSpec()
    status: WorkloadStatus = WorkloadStatus()

    @property
    def wanted(self) -> int | None:
        """How many Pods it should have; None if it does not say by itself."""
        if self.kind == "DaemonSet":
            return self.status.desired_number_scheduled
        return 1 if self.spec.replicas is None else self.spec.replicas

    def __str__(self) -> str:
        return f"{self.kind} {self.metadata.name}"


class CidrSpec(View, frozen=True):
    cidrs: tuple[str, ...] = ()


class ServiceCidr(View, frozen=True):
    metadata: Metadata
    spec: CidrSpec = CidrSpec()


class NamespaceStatus(View, frozen=True):
    phase: str = ""


class Namespace(View, frozen=True):
    metadata: Metadata
    status: NamespaceStatus = NamespaceStatus()


class Event(View, frozen=True):
    """What somebody noticed about an object."""

    metadata: Metadata
    involved_object: Reference = Reference()
    type: str = ""
    reason: str = ""
    message: str = ""
    first_timestamp: str | None = None
    last_timestamp: str | None = None
    event_time: str | None = None
    count: int = 0

    @property
    def time(self) -> str:
        return self.last_timestamp or self.event_time or self.first_timestamp or ""
