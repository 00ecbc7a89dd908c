"""Whether a Pod is an endpoint of a Service, how, and why.

:func:`judge` is the one place where that is decided.  The Endpoints and EndpointSlice controllers build what they write
from its verdicts, and ``seamark why`` prints them, so an explanation can never disagree with the behaviour.

The views of Service, Pod and Node below name only the fields a verdict depends on; they decode straight from the wire.
Pods and Nodes have no ``resourceVersion`` here: a heartbeat or an annotation that changes nothing below is no change.
"""

from __future__ import annotations

from enum import Enum
from functools import lru_cache

import msgspec

from seamark.kinds.values import addresses
from seamark.kinds.values.addresses import Family as Family

ZONE_LABEL = "topology.kubernetes.io/zone"
FINISHED_PHASES = frozenset(("Succeeded", "Failed"))


class View(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """A part of an object as it is on the wire: fields it does not name are dropped, those it lacks are empty."""


# --- Service ---------------------------------------------------------------------------------------


class ServiceMetadata(View, frozen=True):
    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class ServicePort(View, frozen=True):
    port: int = 0
    name: str = ""
    protocol: str = "TCP"
    target_port: int | str = 0
    app_protocol: str | None = None


class ServiceSpec(View, frozen=True):
    type: str = "ClusterIP"
    selector: dict[str, str] | None = None
    ports: tuple[ServicePort, ...] = ()
    cluster_ip: str = msgspec.field(name="clusterIP", default="")
    ip_families: tuple[str, ...] = ()
    publish_not_ready_addresses: bool = False
    traffic_distribution: str | None = None


class Service(View, frozen=True):
    metadata: ServiceMetadata
    spec: ServiceSpec = ServiceSpec()

    @property
    def managed(self) -> bool:
        """Whether the controllers make endpoints for it: an empty selector counts as none, for storage drops it."""
        return bool(self.spec.selector) and self.spec.type != "ExternalName"

    @property
    def headless(self) -> bool:
        """No address of its own, be it by wish (``None``) or not yet given."""
        return self.spec.cluster_ip in ("", "None")

    @property
    def families(self) -> tuple[Family, ...]:
        """The address families its EndpointSlices are made for."""
        if found := tuple(f for f in ("IPv4", "IPv6") if f in self.spec.ip_families):
            return found
        if not self.headless:
            return ("IPv6",) if ":" in self.spec.cluster_ip else ("IPv4",)
        return ("IPv4", "IPv6")

    @property
    def primary_family(self) -> Family | None:
        """The one family its Endpoints are made for; None if it is left to each Pod."""
        if self.spec.ip_families:
            return "IPv6" if self.spec.ip_families[0] == "IPv6" else "IPv4"
        if not self.headless:
            return "IPv6" if ":" in self.spec.cluster_ip else "IPv4"
        return None


# --- Pod -------------------------------------------------------------------------------------------


class PodMetadata(View, frozen=True):
    name: str
    namespace: str = ""
    uid: str = ""
    deletion_timestamp: str | None = None
    labels: dict[str, str] = {}


class ContainerPort(View, frozen=True):
    container_port: int = 0
    name: str = ""
    protocol: str = "TCP"


class Container(View, frozen=True):
    ports: tuple[ContainerPort, ...] = ()
    restart_policy: str | None = None


class PodSpec(View, frozen=True):
    node_name: str = ""
    hostname: str = ""
    subdomain: str = ""
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()


class PodIP(View, frozen=True):
    ip: str = ""


class Condition(View, frozen=True):
    type: str
    status: str = ""
    last_transition_time: str | None = None


class PodStatus(View, frozen=True):
    phase: str = ""
    pod_ip: str = msgspec.field(name="podIP", default="")
    pod_ips: tuple[PodIP, ...] = msgspec.field(name="podIPs", default=())
    conditions: tuple[Condition, ...] = ()


class Pod(View, frozen=True):
    metadata: PodMetadata
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def ready_condition(self) -> Condition | None:
        return next((c for c in self.status.conditions if c.type == "Ready"), None)

    @property
    def ready(self) -> bool:
        """As the kubelet summed it up; container states are not consulted, and no condition is not ready."""
        condition = self.ready_condition
        return condition is not None and condition.status == "True"

    @property
    def ips(self) -> tuple[str, ...]:
        if self.status.pod_ips:
            return tuple(entry.ip for entry in self.status.pod_ips)
        # An API server keeps the two in step; one that does not should not cost a Pod its traffic.
        return (self.status.pod_ip,) if self.status.pod_ip else ()

    def container_ports(self) -> tuple[ContainerPort, ...]:
        """Every declared port a Service may name, in the order in which the first match wins; sidecars come last."""
        sidecars = (c for c in self.spec.init_containers if c.restart_policy == "Always")
        return tuple(port for group in (self.spec.containers, sidecars) for c in group for port in c.ports)


# --- Node ------------------------------------------------------------------------------------------


class NodeMetadata(View, frozen=True):
    name: str
    labels: dict[str, str] = {}


class NodeStatus(View, frozen=True):
    allocatable: dict[str, int | float | str] = {}
    conditions: tuple[Condition, ...] = ()


class Node(View, frozen=True):
    metadata: NodeMetadata
    status: NodeStatus = NodeStatus()

    @property
    def zone(self) -> str:
        return self.metadata.labels.get(ZONE_LABEL, "")

    @property
    def ready(self) -> bool:
        condition = next((c for c in self.status.conditions if c.type == "Ready"), None)
        return condition is not None and condition.status == "True"


# --- the verdict -----------------------------------------------------------------------------------


class Standing(Enum):
    """What a Pod is to a Service."""

    READY = "ready"  # gets traffic
    SERVING = "serving"  # on its way out but still able; gets traffic only if nothing is ready
    NOT_READY = "not ready"  # listed, without traffic
    TERMINATING = "terminating"  # listed while it goes, without traffic
    EXCLUDED = "excluded"  # not listed in EndpointSlices at all


class Reason(Enum):
    """Stable codes for why a verdict is what it is; one verdict may have several, the weightiest first."""

    EXTERNAL_NAME = "ExternalNameService"
    NO_SELECTOR = "ServiceWithoutSelector"
    OTHER_NAMESPACE = "OtherNamespace"
    LABEL_MISMATCH = "LabelMismatch"
    FINISHED = "PodFinished"
    NO_ADDRESS = "PodHasNoAddress"
    NO_ADDRESS_OF_FAMILY = "NoAddressOfFamily"
    NODE_MISSING = "NodeMissing"
    TERMINATING = "PodTerminating"
    NOT_READY = "PodNotReady"
    PORT_UNRESOLVED = "PortUnresolved"
    NO_PORTS = "ServiceWithoutPorts"
    PUBLISHED_ANYWAY = "PublishNotReadyAddresses"


class Port(msgspec.Struct, frozen=True, gc=False, order=True):
    """A Service port resolved against one Pod."""

    name: str
    port: int
    protocol: str
    app_protocol: str = ""


class UnresolvedPort(msgspec.Struct, frozen=True, gc=False):
    """A Service port whose ``target`` name no container declares with that protocol; ``declared`` is what there is."""

    name: str
    target: str
    protocol: str
    declared: tuple[ContainerPort, ...]


class WrongLabel(msgspec.Struct, frozen=True, gc=False):
    """One pair of the selector and what the Pod has instead (None: nothing under that key)."""

    key: str
    wanted: str
    found: str | None


class Verdict(msgspec.Struct, frozen=True, gc=False):
    """Everything the controllers write about one Pod, and the facts it follows from.

    ``in_slices`` and ``in_endpoints`` differ: Endpoints leaves terminating Pods and those without any resolved port
    out, EndpointSlices those whose Node is missing.  ``endpoints_address`` is the one address Endpoints would use.
    """

    standing: Standing
    reasons: tuple[Reason, ...]
    in_slices: bool = False
    in_endpoints: bool = False
    ready: bool = False
    serving: bool = False
    terminating: bool = False
    ipv4: tuple[str, ...] = ()
    ipv6: tuple[str, ...] = ()
    endpoints_address: str = ""
    ports: tuple[Port, ...] = ()
    unresolved: tuple[UnresolvedPort, ...] = ()
    wrong_labels: tuple[WrongLabel, ...] = ()
    hostname: str = ""
    node: str = ""
    zone: str = ""
    phase: str = ""

    @property
    def reason(self) -> Reason | None:
        """The weightiest reason; None for a Pod that is simply ready."""
        return self.reasons[0] if self.reasons else None

    def addresses(self, family: Family) -> tuple[str, ...]:
        return self.ipv6 if family == "IPv6" else self.ipv4


def judge(service: Service, pod: Pod, node: Node | None) -> Verdict:
    """What this Pod is to this Service; ``node`` is the Pod's, None if there is no such Node."""
    if outside := _outside(service, pod):
        return outside
    ipv4, ipv6 = addresses_by_family(pod.ips)
    wanted = service.families
    publish = service.spec.publish_not_ready_addresses
    serving, terminating = pod.ready, pod.metadata.deletion_timestamp is not None
    ready = publish or (serving and not terminating)
    ports, unresolved = resolve_ports(service, pod)
    reasons: list[Reason] = []
    usable = bool((ipv4 and "IPv4" in wanted) or (ipv6 and "IPv6" in wanted))
    if not usable:
        reasons.append(Reason.NO_ADDRESS_OF_FAMILY)
    if node is None and not publish:
        reasons.append(Reason.NODE_MISSING)
    if terminating:
        reasons.append(Reason.TERMINATING)
    if not serving:
        reasons.append(Reason.NOT_READY)
    if ready and (terminating or not serving):
        reasons.append(Reason.PUBLISHED_ANYWAY)
    if unresolved:
        reasons.append(Reason.PORT_UNRESOLVED)
    portless = not service.spec.ports
    if portless and service.spec.cluster_ip != "None":
        reasons.append(Reason.NO_PORTS)
    in_slices = usable and (node is not None or publish)
    address = _endpoints_address(service, ipv4=ipv4, ipv6=ipv6, first=pod.ips[0])
    offers = bool(ports) or (portless and service.spec.cluster_ip == "None")
    hostname = pod.spec.hostname if pod.spec.subdomain == service.metadata.name else ""
    return Verdict(
        standing=_standing(listed=in_slices, ready=ready, serving=serving, terminating=terminating),
        reasons=tuple(reasons),
        in_slices=in_slices,
        in_endpoints=bool(address) and offers and (publish or not terminating),
        ready=ready,
        serving=serving,
        terminating=terminating,
        ipv4=ipv4,
        ipv6=ipv6,
        endpoints_address=address,
        ports=ports,
        unresolved=unresolved,
        hostname=hostname,
        node=pod.spec.node_name,
        zone=node.zone if node is not None else "",
        phase=pod.status.phase,
    )


def selects(service: Service, pod: Pod) -> bool:
    """Whether the selector picks the Pod: equality only, same namespace, and no selector picks nothing."""
    selector = service.spec.selector
    if not selector or service.metadata.namespace != pod.metadata.namespace:
        return False
    return selector.items() <= pod.metadata.labels.items()


def _outside(service: Service, pod: Pod) -> Verdict | None:
    """The verdict on a Pod that is no candidate at all: not selected, finished, or without any address."""
    reason = None
    wrong: tuple[WrongLabel, ...] = ()
    if service.spec.type == "ExternalName":
        reason = Reason.EXTERNAL_NAME
    elif not service.spec.selector:
        reason = Reason.NO_SELECTOR
    elif service.metadata.namespace != pod.metadata.namespace:
        reason = Reason.OTHER_NAMESPACE
    elif not selects(service, pod):
        reason = Reason.LABEL_MISMATCH
        labels = pod.metadata.labels
        wrong = tuple(WrongLabel(k, v, labels.get(k)) for k, v in service.spec.selector.items() if labels.get(k) != v)
    elif pod.status.phase in FINISHED_PHASES:
        reason = Reason.FINISHED
    elif not pod.ips:
        reason = Reason.NO_ADDRESS
    if reason is None:
        return None
    return Verdict(
        standing=Standing.EXCLUDED,
        reasons=(reason,),
        serving=pod.ready,
        terminating=pod.metadata.deletion_timestamp is not None,
        wrong_labels=wrong,
        node=pod.spec.node_name,
        phase=pod.status.phase,
    )


def _standing(*, listed: bool, ready: bool, serving: bool, terminating: bool) -> Standing:
    if not listed:
        return Standing.EXCLUDED
    if ready:
        return Standing.READY
    if terminating:
        return Standing.SERVING if serving else Standing.TERMINATING
    return Standing.NOT_READY


def _endpoints_address(service: Service, *, ipv4: tuple[str, ...], ipv6: tuple[str, ...], first: str) -> str:
    """Endpoints knows one family only: the Service's first, or failing that the Pod's own first."""
    family = service.primary_family
    if family is None:
        parsed = parse_ip(first)
        family = parsed[0] if parsed else "IPv4"
    found = ipv6 if family == "IPv6" else ipv4
    return found[0] if found else ""


# --- ports and addresses ---------------------------------------------------------------------------


def resolve_ports(service: Service, pod: Pod) -> tuple[tuple[Port, ...], tuple[UnresolvedPort, ...]]:
    """The Service's ports as this Pod offers them, and those it does not offer."""
    found: list[Port] = []
    missing: list[UnresolvedPort] = []
    for wanted in service.spec.ports:
        # A number is taken at its word: containers need not declare the ports they listen on.
        number = wanted.target_port if isinstance(wanted.target_port, int) else _named_port(wanted, pod)
        if number is None:
            target = str(wanted.target_port)
            missing.append(UnresolvedPort(wanted.name, target, wanted.protocol, pod.container_ports()))
        else:
            found.append(Port(wanted.name, number, wanted.protocol, wanted.app_protocol or ""))
    return tuple(found), tuple(missing)


def _named_port(wanted: ServicePort, pod: Pod) -> int | None:
    for declared in pod.container_ports():
        if declared.name == wanted.target_port and declared.protocol == wanted.protocol:
            return declared.container_port
    return None


def addresses_by_family(ips: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """IPv4 and IPv6 addresses in canonical spelling, in the order given; what is no address is left out."""
    ipv4: list[str] = []
    ipv6: list[str] = []
    for text in ips:
        if parsed := parse_ip(text):
            (ipv6 if parsed[0] == "IPv6" else ipv4).append(parsed[1])
    return tuple(ipv4), tuple(ipv6)


@lru_cache(maxsize=1 << 16)
def parse_ip(text: str) -> tuple[Family, str] | None:
    """Family and canonical spelling of an address, read as sloppily as Kubernetes reads it; None if it is none."""
    parsed = addresses.parse(text)
    if parsed is None:
        return None
    return ("IPv6" if parsed.address.version == 6 else "IPv4"), str(parsed.address)
