"""The elements that a Service's routes ask for (pure)."""

from __future__ import annotations

import socket
from ipaddress import collapse_addresses, ip_network

import msgspec

from seamark.proxy.nftables import expressions as x
from seamark.proxy.nftables import layout
from seamark.proxy.nftables.ruleset import Elements, Ruleset
from seamark.rules.routing.model import Backend, Choice, Frontend, Kind, Route, ServiceRoutes

PROTOCOLS = {"TCP": socket.IPPROTO_TCP, "UDP": socket.IPPROTO_UDP, "SCTP": socket.IPPROTO_SCTP}

Picking = tuple[int, int, int]  # family, way, number of endpoints
Hairpin = tuple[int, bytes]  # family, and an endpoint's address twice


class Wanted(msgspec.Struct):
    """What one Service asks for: for itself alone, and what it shares with others."""

    own: Ruleset = msgspec.field(default_factory=Ruleset)
    hairpins: set[Hairpin] = msgspec.field(default_factory=set)
    pickings: set[Picking] = msgspec.field(default_factory=set)


def wanted(routes: ServiceRoutes | None) -> Wanted:
    found = Wanted()
    for route in routes.routes if routes is not None else ():
        _Writer(found, route).write()
    return found


def packed(address: str, family: int) -> bytes:
    return socket.inet_pton(family, address)


def place(frontend: Frontend, family: int) -> bytes:
    """The key of a frontend; that of a node port has no address."""
    address = packed(frontend.address, family) if frontend.address else b""
    return b"%b%c\0\0\0%b\0\0" % (address, PROTOCOLS[frontend.protocol], frontend.port.to_bytes(2))


def target(backend: Backend, family: int) -> bytes:
    return packed(backend.address, family) + backend.port.to_bytes(2) + b"\0\0"


class _Writer:
    """Writes down what one route asks for."""

    def __init__(self, into: Wanted, route: Route) -> None:
        self.into = into
        self.route = route
        self.family = layout.NUMBER[route.family]
        self.name = f"{route.service}/{route.protocol.lower()}/{route.port_name}"

    def write(self) -> None:
        for frontend in self.route.frontends:
            if frontend.protocol in PROTOCOLS:
                self._frontend(frontend, place(frontend, self.family))

    def _frontend(self, frontend: Frontend, key: bytes) -> None:
        route = self.route
        if frontend.kind is Kind.CLUSTER_IP:
            self._put("cluster_ips", packed(frontend.address, self.family))
            choice, suffix = (route.local, "-local") if route.internal == "Local" else (route.cluster, "")
            self._put("services", key, self._lead(key, choice, layout.TO, suffix))
        elif frontend.kind is Kind.NODE_PORT:
            self._put("node_ports", key, self._lead(key, route.cluster, layout.NODE_PORT_TO))
            local = layout.NODE_PORT_POLICY_LOCAL if route.external == "Local" else layout.MASQUERADED
            self._put("node_port_policies", key, local)
            if route.external == "Local":
                leading = self._lead(key, route.local, layout.NODE_PORT_LOCAL, "-local")
                self._put("node_port_locals", key, leading)
        else:
            self._put("services", key, self._lead(key, route.cluster, layout.TO))
            self._put("external", key, layout.POLICY_LOCAL if route.external == "Local" else layout.MASQUERADED)
            if route.external == "Local":
                self._put("locals", key, self._lead(key, route.local, layout.LOCAL, "-local"))
            if frontend.kind is Kind.LOAD_BALANCER and route.source_ranges:
                self._guard(key)

    def _lead(self, key: bytes, choice: Choice, way: int, suffix: str = "") -> bytes:
        """Write down the endpoints of a place, and return the verdict that leads to them."""
        if not choice.backends:
            return layout.REFUSE if choice.empty == "refuse" else layout.DROP
        targets = [target(backend, self.family) for backend in choice.backends]
        self.into.hairpins.update((self.family, 2 * packed(each.address, self.family)) for each in choice.backends)
        if self.route.affinity_seconds:
            name = f"{self.name}{suffix}"
            backends = {self._chain(each): to for each, to in zip(choice.backends, targets, strict=True)}
            self.into.own.add(layout.remembering(self.family, name, backends, self.route.affinity_seconds))
            return layout.goto(f"affinity-{name}")
        offset = layout.LOCAL_OFFSET if way in (layout.LOCAL, layout.NODE_PORT_LOCAL) else 0
        node_port = way in (layout.NODE_PORT_TO, layout.NODE_PORT_LOCAL)
        elements = self._elements("node_port_endpoints" if node_port else "endpoints")
        for position, each in enumerate(targets, offset):
            elements[key + x.word(position)] = each
        self.into.pickings.add((self.family, way, len(targets)))
        return layout.goto(layout.pick(way, len(targets)))

    def _chain(self, backend: Backend) -> str:
        return f"{self.name}/{backend.address.replace(':', '.')}/{backend.port}"

    def _guard(self, key: bytes) -> None:
        self._put("guarded", key)
        ranges = [ip_network(text) for text in self.route.source_ranges]
        for network in collapse_addresses(ranges):  # type: ignore[type-var]  # all of one family
            first, last = network.network_address.packed, network.broadcast_address.packed
            self._put("admitted", key + first + key + last)

    def _put(self, name: str, key: bytes, data: bytes = b"") -> None:
        self._elements(name)[key] = data

    def _elements(self, name: str) -> Elements:
        return self.into.own.elements.setdefault((self.family, name), {})
