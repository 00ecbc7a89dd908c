"""All routes of a node, kept change by change (pure)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from seamark.kinds.service.types import LOAD_BALANCER
from seamark.kinds.values.addresses import Family
from seamark.rules.objects.endpointslice import EndpointSlice
from seamark.rules.objects.pod import Pod
from seamark.rules.objects.service import Service
from seamark.rules.routing.endpoints import ListedPorts, left_alone
from seamark.rules.routing.frontends import (
    FAMILIES,
    Place,
    PlaceClaims,
    addresses_of,
    affinity_seconds,
    families_of,
    frontends_of,
    ignored,
    place_of,
    source_ranges,
)
from seamark.rules.routing.host_ports import HOST_PORTS, asks, routes_of
from seamark.rules.routing.model import Backend, Frontend, HealthCheck, Policy, Route, ServiceRoutes, Shadowed
from seamark.rules.routing.selection import for_cluster, for_node
from seamark.rules.routing.surroundings import Surroundings, within

# Endpoints of one Service, counted for each of its ports; ports beyond them have no route.
MOST_BACKENDS = 200_000

Touched = set[str]  # the Services (namespace/name) whose routes may have changed


class RouteTable:
    """The Services and slices of a cluster, and what follows from them on one node.

    A change is taken in at once and returns the Services it touches; ``routes`` works out one Service's routes.  Both
    cost as much as that Service has ports and endpoints, however many Services there are.  Ports of which no frontend
    can be ``served`` have no route, and their endpoints cost nothing.
    """

    def __init__(self, surroundings: Surroundings, served: Callable[[Frontend], bool] = lambda frontend: True) -> None:
        self.surroundings = surroundings
        self._served = served
        self.clear()

    def clear(self) -> None:
        """Forget all objects."""
        self._services: dict[str, Service] = {}
        self._slices: dict[str, dict[str, EndpointSlice]] = {}  # by Service, then by name
        self._service_of: dict[str, str] = {}  # slice -> its Service
        self._claims = PlaceClaims()
        self._host_pods: dict[str, Pod] = {}  # those with host ports, in the order in which they came

    # --- changes -------------------------------------------------------------------------------------

    def put_service(self, service: Service) -> Touched:
        key = service.metadata.key
        self._services[key] = service
        return {key} | self._claims.put(service) | self._beside(service)

    def remove_service(self, namespace: str, name: str) -> Touched:
        key = f"{namespace}/{name}"
        service = self._services.pop(key, None)
        if service is None:
            return set()
        return {key} | self._claims.remove(key) | self._beside(service)

    def _beside(self, service: Service) -> Touched:
        """Host ports are touched by a Service with addresses that may be the node's own: it comes first there."""
        return {HOST_PORTS} if self._host_pods and service.spec.external_ips else set()

    def put_pod(self, pod: Pod) -> Touched:
        """A Pod, for the host ports that it asks for."""
        key, node = pod.metadata.key, self.surroundings.node
        if not asks(pod, node):
            return self.remove_pod(key)
        before = self._host_pods.get(key)
        self._host_pods[key] = pod
        return set() if before is not None and routes_of(before, node) == routes_of(pod, node) else {HOST_PORTS}

    def remove_pod(self, key: str) -> Touched:
        return set() if self._host_pods.pop(key, None) is None else {HOST_PORTS}

    def put_slice(self, slice: EndpointSlice) -> Touched:
        key = slice.metadata.key
        name = "" if left_alone(slice) else slice.service_name
        owner = f"{slice.metadata.namespace}/{name}" if name else ""
        touched = self._forget(key) if self._service_of.get(key, owner) != owner else set()
        if owner:
            self._service_of[key] = owner
            self._slices.setdefault(owner, {})[key] = slice
            touched.add(owner)
        return touched

    def remove_slice(self, namespace: str, name: str) -> Touched:
        return self._forget(f"{namespace}/{name}")

    def put_surroundings(self, surroundings: Surroundings) -> Touched:
        """A new zone or address of this node, or another setting: every Service may be touched."""
        if surroundings == self.surroundings:
            return set()
        before, self.surroundings = self.surroundings, surroundings
        routing = msgspec.structs.replace(surroundings, service_cidrs=before.service_cidrs)
        return set() if routing == before else set(self)

    def _forget(self, key: str) -> Touched:
        owner = self._service_of.pop(key, "")
        if not owner:
            return set()
        slices = self._slices[owner]
        del slices[key]
        if not slices:
            del self._slices[owner]
        return {owner}

    # --- what follows --------------------------------------------------------------------------------

    def __contains__(self, key: object) -> bool:
        return key in self._services

    def __iter__(self) -> Iterator[str]:
        """The Services, and what stands for the host ports if there are any."""
        return iter((*self._services, HOST_PORTS) if self._host_pods else self._services)

    def __len__(self) -> int:
        return len(self._services)

    def slices(self, key: str) -> tuple[EndpointSlice, ...]:
        """The slices that count for a Service."""
        return tuple(self._slices.get(key, {}).values())

    def winner(self, frontend: Frontend) -> str:
        """The Service that has this frontend; "" if none."""
        families = [
            family for family in FAMILIES if not frontend.address or (family == "IPv6") == (":" in frontend.address)
        ]
        found = (self._claims.winner(place_of(frontend, family)) for family in families)
        return next(filter(None, found), "")

    def routes(self, key: str) -> ServiceRoutes | None:
        """The routes of a Service, or the host ports; None if there is no such Service."""
        if key == HOST_PORTS:
            return self._routes_of_pods()
        service = self._services.get(key)
        if service is None:
            return None
        if (reason := ignored(service)) is not None:
            return ServiceRoutes(key, ignored=reason)
        node, spec = self.surroundings.node, service.spec
        slices = self._slices.get(key, {}).values()
        checked = spec.type == LOAD_BALANCER and spec.external_traffic_policy == "Local" and spec.health_check_node_port
        routes: list[Route] = []
        checks: list[HealthCheck] = []
        left_out = 0
        room = MOST_BACKENDS
        for family in families_of(service):
            ranges = self._allowed(service, family)
            addresses = addresses_of(service, family)
            left_out += addresses.left_out * len(spec.ports)
            listed = ListedPorts(slices, family)
            healthy: set[str] = set()
            for port in spec.ports:
                won: list[Frontend] = []
                lost: list[Shadowed] = []
                for frontend in frontends_of(service, port, addresses):
                    winner = self._claims.winner(place_of(frontend, family))
                    if winner == key:
                        won.append(frontend)
                    else:
                        lost.append(Shadowed(frontend, winner))
                if not checked and not any(map(self._served, won)):
                    continue
                if room <= 0:
                    left_out += len(won)
                    continue
                backends = listed.backends_of(port, node.name)
                room -= len(backends)
                if checked:
                    healthy |= _local_and_ready(backends)
                routes.append(
                    Route(
                        key,
                        port.name,
                        port.protocol,
                        family,
                        tuple(won),
                        for_cluster(backends, node.name, node.zone),
                        for_node(backends),
                        _policy(spec.internal_traffic_policy),
                        _policy(spec.external_traffic_policy),
                        affinity_seconds(service),
                        ranges,
                        tuple(lost),
                    )
                )
            if checked:
                checks.append(HealthCheck(spec.health_check_node_port, family, len(healthy)))
        return ServiceRoutes(key, tuple(routes), service.cluster_addresses, tuple(checks), left_out=left_out)

    def _routes_of_pods(self) -> ServiceRoutes | None:
        """Host ports that no Service has; of two Pods with the same, the first has it."""
        taken: set[Place] = set()
        found: list[Route] = []
        node = self.surroundings.node
        for route in (each for pod in self._host_pods.values() for each in routes_of(pod, node)):
            places = {place_of(each, route.family): each for each in route.frontends}
            won = [each for place, each in places.items() if place not in taken and not self._claims.winner(place)]
            taken |= places.keys()
            if won:
                found.append(msgspec.structs.replace(route, frontends=tuple(won)))
        return ServiceRoutes(HOST_PORTS, tuple(found)) if found else None

    def _allowed(self, service: Service, family: Family) -> tuple[str, ...]:
        """Who may use its load-balancer addresses.

        Where such an address is also set up on the node, the node's own connections to it come *from* it; so a range
        that admits the node admits that address, too.
        """
        ranges = source_ranges(service, family)
        if not any(within(address, ranges) for address in self.surroundings.node.addresses):
            return ranges
        own = (each for each in service.ingress_addresses if (":" in each) == (family == "IPv6"))
        return (*ranges, *(f"{each}/{128 if ':' in each else 32}" for each in own))


def _policy(text: str) -> Policy:
    return "Local" if text == "Local" else "Cluster"


def _local_and_ready(backends: tuple[Backend, ...]) -> set[str]:
    return {backend.address for backend in backends if backend.local and backend.ready}
