"""Whether a Pod is an endpoint of a Service, how, and why.

:func:`judge` is the one place where that is decided.  The Endpoints and EndpointSlice controllers build what they write
from its verdicts, and ``seamark why`` prints them, so an explanation can never disagree with the behaviour.

:func:`same` tells whether a change of a Pod can change any verdict on it.
"""

from __future__ import annotations

from enum import Enum
from functools import lru_cache

import msgspec

from seamark.kinds.values import addresses
from seamark.kinds.values.addresses import Family
from seamark.kinds.wellknown import FINISHED_PHASES
from seamark.rules.objects.node import Node
from seamark.rules.objects.pod import ContainerPort, Pod
from seamark.rules.objects.service import Service

# --- the verdict -----------------------------------------------------------------------------------


class Standing(Enum):
    """What a Pod is to a Service."""

    READY = "ready"  # gets traffic
    SERVING = "serving"  # terminating but still able to serve; gets traffic only if no endpoint is ready
    NOT_READY = "not ready"  # listed, without traffic
    TERMINATING = "terminating"  # listed until it is gone, without traffic
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
    """A Service port whose ``target`` name no container declares for its protocol; ``declared`` are all their ports."""

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

    ``in_slices`` and ``in_endpoints`` differ: Endpoints leave out terminating Pods and Pods without any resolved port,
    EndpointSlices leave out Pods whose Node is missing.  ``endpoints_address`` is the one address Endpoints would use.
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


def same(old: Pod, new: Pod) -> bool:
    """Whether nothing differs that a verdict, or the time it is written for, depends on.

    Most changes of a Pod (container statuses, annotations, other conditions) do not matter to its Services.  This test
    is far cheaper than judging the Pod again for each of them.
    """
    before, after = old.metadata, new.metadata
    return (
        before.uid == after.uid
        and before.deletion_timestamp == after.deletion_timestamp
        and before.labels == after.labels
        and old.status.phase == new.status.phase
        and old.status.pod_ips == new.status.pod_ips
        and old.status.pod_ip == new.status.pod_ip
        and old.condition("Ready") == new.condition("Ready")
        and old.spec == new.spec
    )


def selects(service: Service, pod: Pod) -> bool:
    """Whether the selector picks the Pod: equality only, same namespace, and no selector picks nothing."""
    selector = service.spec.selector
    if not selector or service.metadata.namespace != pod.metadata.namespace:
        return False
    return selector.items() <= pod.metadata.labels.items()


def _outside(service: Service, pod: Pod) -> Verdict | None:
    """The verdict on a Pod that cannot be an endpoint: not selected, finished, or without any address; else None."""
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
    """Endpoints hold one family only: the first of the Service, or if it has none, that of the Pod's first address."""
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
    declared: tuple[ContainerPort, ...] = ()
    named: dict[tuple[int | str, str], int] | None = None  # made if a name is wanted
    for wanted in service.spec.ports:
        # A number is used as it is: containers need not declare the ports they listen on.
        number = wanted.target_port if isinstance(wanted.target_port, int) else None
        if number is None:
            if named is None:
                declared = pod.container_ports()
                named = {(port.name, port.protocol): port.container_port for port in reversed(declared)}
            number = named.get((wanted.target_port, wanted.protocol))
        if number is None:
            missing.append(UnresolvedPort(wanted.name, str(wanted.target_port), wanted.protocol, declared))
        else:
            found.append(Port(wanted.name, number, wanted.protocol, wanted.app_protocol or ""))
    return tuple(found), tuple(missing)


def addresses_by_family(ips: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """IPv4 and IPv6 addresses in canonical spelling, in the order given; other texts are left out."""
    ipv4: list[str] = []
    ipv6: list[str] = []
    for text in ips:
        if parsed := parse_ip(text):
            (ipv6 if parsed[0] == "IPv6" else ipv4).append(parsed[1])
    return tuple(ipv4), tuple(ipv6)


@lru_cache(maxsize=1 << 16)
def parse_ip(text: str) -> tuple[Family, str] | None:
    """Family and canonical spelling of an address, parsed as leniently as Kubernetes does; None for any other text."""
    if (family := addresses.plain(text)) is not None:
        return family, text
    parsed = addresses.parse(text)
    if parsed is None:
        return None
    return ("IPv6" if parsed.address.version == 6 else "IPv4"), str(parsed.address)
