"""Routes: what an address, protocol and port leads to, as plain data."""

from __future__ import annotations

from enum import Enum
from typing import Literal

import msgspec

from seamark.kinds.values.addresses import Family

# Reasons of Events about a Service that a proxy cannot serve as it asks: Seamark's own, and one of kube-proxy.
NOT_SERVED = "FailedToListen"
HEALTH_CHECK_NOT_SERVED = "FailedToStartServiceHealthcheck"

Policy = Literal["Cluster", "Local"]
Empty = Literal["refuse", "drop"]  # what becomes of a connection for which there is no backend


class Kind(Enum):
    """What sort of address a frontend is.  The order decides who gets an address that two Services ask for."""

    CLUSTER_IP = "clusterIP"
    NODE_PORT = "nodePort"
    LOAD_BALANCER = "loadBalancer"
    EXTERNAL_IP = "externalIP"


class Frontend(msgspec.Struct, frozen=True, gc=False):
    """Where clients connect.  ``address`` is empty for a node port, which answers on several addresses."""

    kind: Kind
    address: str
    protocol: str
    port: int


class Backend(msgspec.Struct, frozen=True, gc=False, order=True):
    """One endpoint on one port.  ``address`` is in canonical spelling."""

    address: str
    port: int
    node: str = ""
    zone: str = ""
    local: bool = False
    ready: bool = True
    serving: bool = True
    terminating: bool = False
    for_nodes: tuple[str, ...] = ()
    for_zones: tuple[str, ...] = ()

    @property
    def retiring(self) -> bool:
        """Whether it terminates but still serves: the second choice when none is ready."""
        return self.serving and self.terminating and not self.ready


class Reason(Enum):
    """Why a backend gets no connections."""

    NOT_READY = "it is not ready"
    STOPPED = "it terminates and no longer serves"
    TERMINATING = "it terminates, and others are ready"
    ELSEWHERE = "it does not run on this node, as the traffic policy Local demands"
    OTHER_ZONE = "its hints are for other zones"
    OTHER_NODE = "its hints are for other nodes"


class LeftOut(msgspec.Struct, frozen=True, gc=False):
    backend: Backend
    reason: Reason


class Choice(msgspec.Struct, frozen=True, gc=False):
    """The backends that share the connections, ordered by address and port; ``empty`` counts if there are none."""

    backends: tuple[Backend, ...]
    left_out: tuple[LeftOut, ...] = ()
    empty: Empty = "refuse"


class Shadowed(msgspec.Struct, frozen=True, gc=False):
    """A frontend that another Service got first."""

    frontend: Frontend
    winner: str


class Route(msgspec.Struct, frozen=True, gc=False):
    """One port of one Service in one family: its frontends, and what they lead to."""

    service: str  # namespace/name
    port_name: str
    protocol: str
    family: Family
    frontends: tuple[Frontend, ...]
    cluster: Choice  # for the traffic policy Cluster
    local: Choice  # for the traffic policy Local
    internal: Policy = "Cluster"  # for the cluster IP
    external: Policy = "Cluster"  # for every other frontend
    affinity_seconds: int = 0  # 0: none
    source_ranges: tuple[str, ...] = ()  # who may use load-balancer addresses; empty: everybody
    shadowed: tuple[Shadowed, ...] = ()

    @property
    def key(self) -> tuple[str, str, str, Family]:
        return self.service, self.port_name, self.protocol, self.family


class HealthCheck(msgspec.Struct, frozen=True, gc=False):
    """What a load balancer is told at ``healthCheckNodePort``: how many ready endpoints are on this node."""

    port: int
    family: Family
    local_endpoints: int


class Ignored(Enum):
    """Why a proxy leaves a Service alone."""

    EXTERNAL_NAME = "it is an ExternalName"
    HEADLESS = "it is headless"
    NO_ADDRESS = "it has no cluster IP yet"
    OTHER_PROXY = "its label service.kubernetes.io/service-proxy-name names another proxy"
    HEADLESS_LABEL = "it has the label service.kubernetes.io/headless"


class ServiceRoutes(msgspec.Struct, frozen=True, gc=False):
    """All routes of one Service."""

    service: str
    routes: tuple[Route, ...] = ()
    addresses: tuple[str, ...] = ()  # its cluster IPs: their other ports refuse
    health_checks: tuple[HealthCheck, ...] = ()
    ignored: Ignored | None = None
    left_out: int = 0  # addresses with ports that are too many to be served
