"""Service: what endpoints, DNS, cluster addresses, load balancers and routing decide by."""

import msgspec

from seamark.kinds.service.types import EXTERNAL_NAME, LOAD_BALANCER, NONE
from seamark.kinds.values.addresses import Family, canonical
from seamark.rules.objects.metadata import ObjectView, View


class ServicePort(View, frozen=True):
    port: int = 0
    name: str = ""
    protocol: str = "TCP"
    target_port: int | str = 0
    node_port: int = 0
    app_protocol: str | None = None


class ClientIPConfig(View, frozen=True):
    timeout_seconds: int | None = None


class SessionAffinityConfig(View, frozen=True):
    client_ip: ClientIPConfig | None = msgspec.field(name="clientIP", default=None)


class ServiceSpec(View, frozen=True):
    type: str = "ClusterIP"
    selector: dict[str, str] | None = None
    ports: tuple[ServicePort, ...] = ()
    cluster_ip: str = msgspec.field(name="clusterIP", default="")
    cluster_ips: tuple[str, ...] = msgspec.field(name="clusterIPs", default=())
    ip_families: tuple[Family, ...] = ()
    external_name: str = ""
    publish_not_ready_addresses: bool = False
    traffic_distribution: str | None = None
    internal_traffic_policy: str = ""
    external_traffic_policy: str = ""
    load_balancer_class: str | None = None
    load_balancer_ip: str = msgspec.field(name="loadBalancerIP", default="")
    load_balancer_source_ranges: tuple[str, ...] = ()
    external_ips: tuple[str, ...] = msgspec.field(name="externalIPs", default=())
    session_affinity: str = ""
    session_affinity_config: SessionAffinityConfig | None = None
    health_check_node_port: int = 0


class Ingress(View, frozen=True):
    ip: str = ""
    hostname: str = ""
    ip_mode: str | None = None


class LoadBalancerStatus(View, frozen=True):
    ingress: tuple[Ingress, ...] = ()


class ServiceStatus(View, frozen=True):
    load_balancer: LoadBalancerStatus = LoadBalancerStatus()


class Service(ObjectView, frozen=True):
    spec: ServiceSpec = ServiceSpec()
    status: ServiceStatus = ServiceStatus()

    @property
    def node_ports(self) -> tuple[int, ...]:
        """Each node port once: TCP and UDP may share one."""
        listed = (port.node_port for port in self.spec.ports)
        return tuple(dict.fromkeys(number for number in (*listed, self.spec.health_check_node_port) if number))

    @property
    def external(self) -> bool:
        return self.spec.type == EXTERNAL_NAME

    @property
    def is_load_balancer(self) -> bool:
        return self.spec.type == LOAD_BALANCER

    @property
    def managed(self) -> bool:
        """Whether the controllers make its endpoints.  An empty selector counts as none, for storage drops it."""
        return bool(self.spec.selector) and not self.external

    # --- addresses ---------------------------------------------------------------------------------

    @property
    def addresses(self) -> tuple[str, ...]:
        """Its cluster IPs as written: one of them is ``None`` for a headless Service, or empty if not yet given."""
        return self.spec.cluster_ips or (self.spec.cluster_ip,)

    @property
    def cluster_addresses(self) -> tuple[str, ...]:
        """The cluster IPs it has, in the spelling that IPAddresses are named by."""
        if self.external or self.spec.cluster_ips[:1] == (NONE,):
            return ()
        return tuple(canonical(address) for address in self.spec.cluster_ips)

    @property
    def ingress_addresses(self) -> tuple[str, ...]:
        return tuple(canonical(each.ip) for each in self.status.load_balancer.ingress if each.ip)

    @property
    def headless(self) -> bool:
        """Whether it is meant to have no cluster IP."""
        return self.addresses[0] == NONE

    @property
    def has_cluster_ip(self) -> bool:
        """False for a headless Service, and for one that has not been given its cluster IP yet."""
        return self.spec.cluster_ip not in ("", NONE)

    @property
    def families(self) -> tuple[Family, ...]:
        """The address families its EndpointSlices are made for."""
        families: tuple[Family, ...] = ("IPv4", "IPv6")
        if found := tuple(family for family in families if family in self.spec.ip_families):
            return found
        if self.has_cluster_ip:
            return ("IPv6",) if ":" in self.spec.cluster_ip else ("IPv4",)
        return families

    @property
    def primary_family(self) -> Family | None:
        """The one family its Endpoints are made for; None if each Pod's first address decides."""
        if self.spec.ip_families:
            return self.spec.ip_families[0]
        if self.has_cluster_ip:
            return "IPv6" if ":" in self.spec.cluster_ip else "IPv4"
        return None
