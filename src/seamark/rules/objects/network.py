"""IPAddress and ServiceCIDR: which cluster addresses are in use, and which ranges they may come from."""

from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Network

from seamark.kinds.values.addresses import parse, parse_network
from seamark.kinds.wellknown import ADDRESS_ALLOCATOR, ADDRESS_MANAGED_BY_LABEL
from seamark.rules.objects.conditions import Condition
from seamark.rules.objects.metadata import ObjectView, View

Network = IPv4Network | IPv6Network

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


class IPAddress(ObjectView, frozen=True):
    spec: IPAddressSpec = IPAddressSpec()

    @property
    def parent(self) -> ParentReference:
        return self.spec.parent_ref or ParentReference()

    @property
    def managed(self) -> bool:
        """Whether the API server's allocator made it; the controllers leave all others alone."""
        return self.metadata.labels.get(ADDRESS_MANAGED_BY_LABEL) == ADDRESS_ALLOCATOR


# --- ServiceCIDR -----------------------------------------------------------------------------------


class ServiceCIDRSpec(View, frozen=True):
    cidrs: tuple[str, ...] = ()


class ServiceCIDRStatus(View, frozen=True):
    conditions: tuple[Condition, ...] = ()


class ServiceCIDR(ObjectView, frozen=True):
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
    """Whether one of these ranges has the address."""
    return any(each.covers(address) for each in ranges)
