"""Services, IPAddresses and ServiceCIDRs as the controllers of addresses read them."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Network

import msgspec

from seamark.access.correlation import Reference
from seamark.kinds.resource import Resource
from seamark.kinds.service.ipaddress import MANAGED_BY_LABEL, MANAGER
from seamark.kinds.service.types import EXTERNAL_NAME, LOAD_BALANCER, NONE
from seamark.kinds.values.addresses import Family, canonical, parse, parse_network
from seamark.rules.membership import View


class Metadata(View, frozen=True):
    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: str = ""
    deletion_timestamp: str | None = None
    finalizers: tuple[str, ...] = ()
    labels: dict[str, str] = msgspec.field(default_factory=dict)


# --- Service ---------------------------------------------------------------------------------------


class ServiceSpec(View, frozen=True):
    type: str = "ClusterIP"
    cluster_ips: tuple[str, ...] = msgspec.field(default=(), name="clusterIPs")
    ip_families: tuple[Family, ...] = ()
    load_balancer_class: str | None = None
    load_balancer_ip: str = msgspec.field(default="", name="loadBalancerIP")


class Ingress(View, frozen=True):
    ip: str = ""
    hostname: str = ""


class LoadBalancerStatus(View, frozen=True):
    ingress: tuple[Ingress, ...] = ()


class ServiceStatus(View, frozen=True):
    load_balancer: LoadBalancerStatus = LoadBalancerStatus()


class Service(View, frozen=True):
    metadata: Metadata
    spec: ServiceSpec = ServiceSpec()
    status: ServiceStatus = ServiceStatus()

    @property
    def cluster_addresses(self) -> tuple[str, ...]:
        """The cluster IPs it has, as IPAddresses are named after them."""
        if self.spec.type == EXTERNAL_NAME or self.spec.cluster_ips[:1] == (NONE,):
            return ()
        return tuple(canonical(address) for address in self.spec.cluster_ips)

    @property
    def ingress_addresses(self) -> tuple[str, ...]:
        return tuple(canonical(each.ip) for each in self.status.load_balancer.ingress if each.ip)

    @property
    def is_load_balancer(self) -> bool:
        return self.spec.type == LOAD_BALANCER


# --- IPAddress -------------------------------------------------------------------------------------


class ParentReference(View, frozen=True):
    group: str = ""
    resource: str = ""
    namespace: str = ""
    name: str = ""

    @property
    def is_service(self) -> bool:
        return (self.group, self.resource) == ("", "services")


class IPAddressSpec(View, frozen=True):
    parent_ref: ParentReference | None = None


class IPAddress(View, frozen=True):
    metadata: Metadata
    spec: IPAddressSpec = IPAddressSpec()

    @property
    def parent(self) -> ParentReference:
        return self.spec.parent_ref or ParentReference()

    @property
    def managed(self) -> bool:
        """Whether the API server's allocator made it; others' are none of our business."""
        return self.metadata.labels.get(MANAGED_BY_LABEL) == MANAGER


# --- ServiceCIDR -----------------------------------------------------------------------------------

Network = IPv4Network | IPv6Network


class Condition(View, frozen=True):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class ServiceCIDRSpec(View, frozen=True):
    cidrs: tuple[str, ...] = ()


class ServiceCIDRStatus(View, frozen=True):
    conditions: tuple[Condition, ...] = ()


class ServiceCIDR(View, frozen=True):
    metadata: Metadata
    spec: ServiceCIDRSpec = ServiceCIDRSpec()
    status: ServiceCIDRStatus = ServiceCIDRStatus()

    @property
    def networks(self) -> tuple[Network, ...]:
        parsed = (parse_network(cidr) for cidr in self.spec.cidrs)
        return tuple(each.network for each in parsed if each is not None)

    def covers(self, address: str) -> bool:
        parsed = parse(address)
        return parsed is not None and any(parsed.address in network for network in self.networks)


def covered(address: str, ranges: Iterable[ServiceCIDR]) -> bool:
    """Whether one of these has the address."""
    return any(each.covers(address) for each in ranges)


def about(resource: Resource, metadata: Metadata) -> Reference:
    """The reference of an event to an object."""
    return Reference(
        kind=resource.kind,
        name=metadata.name,
        namespace=metadata.namespace,
        uid=metadata.uid,
        api_version=resource.api_version,
        resource_version=metadata.resource_version,
    )
