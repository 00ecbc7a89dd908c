"""Pod: what endpoints, workloads, scheduling, simulated kubelets and DNS decide by.

The status is complete as far as a kubelet writes it, because the simulated kubelets write it back.
"""

from typing import Any

import msgspec

from seamark.kinds.values import times
from seamark.kinds.wellknown import FINISHED_PHASES
from seamark.rules.objects.conditions import Condition, condition_of
from seamark.rules.objects.metadata import ObjectView, View

Quantity = str | int | float  # the API server makes a string of it; a manifest may hold a number

# --- spec ------------------------------------------------------------------------------------------


class ContainerPort(View, frozen=True):
    container_port: int = 0
    name: str = ""
    protocol: str = "TCP"
    host_port: int = 0
    host_ip: str = msgspec.field(name="hostIP", default="")


class Resources(View, frozen=True):
    requests: dict[str, Quantity] = msgspec.field(default_factory=dict)
    limits: dict[str, Quantity] = msgspec.field(default_factory=dict)


class ResizePolicy(View, frozen=True):
    """Whether a container is restarted when this resource of it is changed."""

    resource_name: str = ""
    restart_policy: str = ""


class ExecAction(View, frozen=True):
    command: tuple[str, ...] = ()


class ProbeTimes(View, frozen=True):
    """When a probe is asked first, how often it must pass, and the command that it runs, if it runs one."""

    exec: ExecAction | None = None
    initial_delay_seconds: int = 0
    period_seconds: int = 10
    success_threshold: int = 1


class Container(View, frozen=True):
    name: str = ""
    image: str = ""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    ports: tuple[ContainerPort, ...] = ()
    resources: Resources = Resources()
    resize_policy: tuple[ResizePolicy, ...] = ()
    restart_policy: str | None = None
    startup_probe: ProbeTimes | None = None
    readiness_probe: ProbeTimes | None = None

    @property
    def sidecar(self) -> bool:
        """Whether it, as an init container, runs beside the others until the Pod ends."""
        return self.restart_policy == "Always"


class Toleration(View, frozen=True):
    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class SchedulingGate(View, frozen=True):
    name: str = ""


class ReadinessGate(View, frozen=True):
    condition_type: str = ""


class SpreadConstraint(View, frozen=True):
    max_skew: int = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: dict[str, Any] | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None


class ClaimName(View, frozen=True):
    claim_name: str = ""


class PodVolume(View, frozen=True):
    """A volume, as far as it has to do with claims."""

    name: str = ""
    persistent_volume_claim: ClaimName | None = None
    ephemeral: dict[str, Any] | None = None

    @property
    def of_claim(self) -> bool:
        return self.persistent_volume_claim is not None or self.ephemeral is not None


class PodDevices(View, frozen=True):
    """A claim of devices that the Pod uses: one that is there, or one made for it from a template."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSpec(View, frozen=True):
    node_name: str = ""
    volumes: tuple[PodVolume, ...] = ()
    hostname: str = ""
    subdomain: str = ""
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    ephemeral_containers: tuple[Container, ...] = ()
    restart_policy: str = "Always"
    active_deadline_seconds: int | None = None
    host_network: bool = False
    os: dict[str, str] = msgspec.field(default_factory=dict)  # its name, if the Pod says it
    scheduler_name: str = ""
    scheduling_gates: tuple[SchedulingGate, ...] = ()
    readiness_gates: tuple[ReadinessGate, ...] = ()
    node_selector: dict[str, str] = msgspec.field(default_factory=dict)
    affinity: dict[str, Any] | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[SpreadConstraint, ...] = ()
    resources: Resources = Resources()
    overhead: dict[str, Quantity] = msgspec.field(default_factory=dict)
    priority: int = 0
    preemption_policy: str = ""
    resource_claims: tuple[PodDevices, ...] = ()


# --- status ----------------------------------------------------------------------------------------


class Waiting(View, frozen=True):
    reason: str = ""
    message: str = ""


class Running(View, frozen=True):
    started_at: str | None = None


class Terminated(View, frozen=True):
    exit_code: int = 0
    signal: int = 0
    reason: str = ""
    message: str = ""
    started_at: str | None = None
    finished_at: str | None = None
    container_id: str = msgspec.field(name="containerID", default="")


class ContainerState(View, frozen=True):
    """At most one of the three; none of them for a container that has not been heard of yet."""

    waiting: Waiting | None = None
    running: Running | None = None
    terminated: Terminated | None = None


NO_STATE = ContainerState()


class ContainerStatus(View, frozen=True):
    name: str = ""
    state: ContainerState = NO_STATE
    last_state: ContainerState = NO_STATE
    ready: bool = False
    restart_count: int = 0
    image: str = ""
    image_id: str = msgspec.field(name="imageID", default="")
    container_id: str = msgspec.field(name="containerID", default="")
    started: bool | None = None
    allocated_resources: dict[str, Quantity] = msgspec.field(default_factory=dict)
    resources: Resources | None = None  # None while it has not run


class PodIP(View, frozen=True):
    """An address of a Pod or of its host."""

    ip: str = ""


class PodDevicesStatus(View, frozen=True):
    """The claim that was made for the Pod; without a name if it turned out that it needs none."""

    name: str = ""
    resource_claim_name: str | None = None


class PodStatus(View, frozen=True):
    phase: str = ""
    reason: str = ""
    message: str = ""
    nominated_node_name: str = ""
    observed_generation: int = 0
    conditions: tuple[Condition, ...] = ()
    host_ip: str = msgspec.field(name="hostIP", default="")
    host_ips: tuple[PodIP, ...] = msgspec.field(name="hostIPs", default=())
    pod_ip: str = msgspec.field(name="podIP", default="")
    pod_ips: tuple[PodIP, ...] = msgspec.field(name="podIPs", default=())
    start_time: str | None = None
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    ephemeral_container_statuses: tuple[ContainerStatus, ...] = ()
    resource_claim_statuses: tuple[PodDevicesStatus, ...] = ()


# --- the Pod ---------------------------------------------------------------------------------------


class Pod(ObjectView, frozen=True):
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    def condition(self, type: str) -> Condition | None:
        return condition_of(self.status.conditions, type)

    @property
    def claims(self) -> list[str]:
        """The keys of the PersistentVolumeClaims that it uses."""
        meta = self.metadata
        found = []
        for volume in self.spec.volumes:
            if volume.persistent_volume_claim is not None:
                found.append(f"{meta.namespace}/{volume.persistent_volume_claim.claim_name}")
            elif volume.ephemeral is not None:
                found.append(f"{meta.namespace}/{meta.name}-{volume.name}")
        return found

    @property
    def device_claims(self) -> dict[str, str | None]:
        """The names of its ResourceClaims by the Pod's own words for them: None where it turned out to need none.

        Those that are yet to be made for it are missing.
        """
        made = {each.name: each.resource_claim_name for each in self.status.resource_claim_statuses}
        named = {each.name: each.resource_claim_name for each in self.spec.resource_claims if each.resource_claim_name}
        return made | named

    @property
    def ready(self) -> bool:
        """What the kubelet says.  Container statuses are not consulted; without the condition it is not ready."""
        condition = self.condition("Ready")
        return condition is not None and condition.status == "True"

    @property
    def ready_since(self) -> float | None:
        """Since when it has been ready; None while it is not."""
        condition = self.condition("Ready")
        if condition is None or condition.status != "True" or not condition.last_transition_time:
            return None
        return times.parse(condition.last_transition_time)

    def available_at(self, min_ready_seconds: int) -> float | None:
        """From when on it is available if it stays as it is: 0 for at once, None for not at all."""
        if not self.ready:
            return None
        if not min_ready_seconds:
            return 0.0
        since = self.ready_since
        return None if since is None else since + min_ready_seconds

    def available(self, min_ready_seconds: int, now: float) -> bool:
        """Whether it has been ready for long enough."""
        at = self.available_at(min_ready_seconds)
        return at is not None and at <= now

    @property
    def running_and_ready(self) -> bool:
        return self.status.phase == "Running" and self.ready

    @property
    def finished(self) -> bool:
        """Whether its containers have ended for good."""
        return self.status.phase in FINISHED_PHASES

    @property
    def terminating(self) -> bool:
        """Whether it has been deleted and is still there, for its grace period or its finalizers."""
        return self.metadata.deletion_timestamp is not None

    @property
    def active(self) -> bool:
        """Whether it counts as a replica."""
        return not self.finished and not self.terminating

    def same_replica(self, other: "Pod") -> bool:
        """Whether nothing differs that the workload which owns it acts on."""
        mine, its = self.metadata, other.metadata
        return (
            mine.uid == its.uid
            and mine.deletion_timestamp == its.deletion_timestamp
            and mine.labels == its.labels
            and mine.owner_references == its.owner_references
            and mine.finalizers == its.finalizers
            and self.spec.node_name == other.spec.node_name
            and self.status.phase == other.status.phase
            and self.status.conditions == other.status.conditions
        )

    @property
    def restarts(self) -> int:
        """How often the container that restarted most has restarted."""
        return max((status.restart_count for status in self.status.container_statuses), default=0)

    @property
    def ips(self) -> tuple[str, ...]:
        if self.status.pod_ips:
            return tuple(entry.ip for entry in self.status.pod_ips)
        # An API server keeps both fields in step.  Where it does not, podIP alone is enough.
        return (self.status.pod_ip,) if self.status.pod_ip else ()

    def container_ports(self) -> tuple[ContainerPort, ...]:
        """Every declared port that a Service may name.  The first match wins, and sidecars come last."""
        sidecars = (c for c in self.spec.init_containers if c.sidecar)
        return tuple(port for group in (self.spec.containers, sidecars) for c in group for port in c.ports)

    @property
    def target_node(self) -> str:
        """The node it runs on, or the only one its affinity allows; empty if neither is known."""
        if self.spec.node_name or not self.spec.affinity:
            return self.spec.node_name
        affinity = self.spec.affinity.get("nodeAffinity") or {}
        required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
        for term in required.get("nodeSelectorTerms") or ():
            for field in term.get("matchFields") or ():
                values: list[str] = field.get("values") or []
                if field.get("key") == "metadata.name" and field.get("operator") == "In" and len(values) == 1:
                    return values[0]
        return ""
