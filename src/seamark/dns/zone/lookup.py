"""Looks names up in the zone: whether a name exists, what it points to, and why.

Each fact that is read is added to ``depends``, also if nothing was found, because the answer changes when it appears.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from seamark.dns.config import ZoneConfig
from seamark.dns.zone.names import (
    Apex,
    Branch,
    BranchName,
    NamespaceName,
    Nowhere,
    PodName,
    ReverseName,
    ServerName,
    ServiceName,
    Shape,
    VersionName,
    format_address,
    parse_address,
)
from seamark.dns.zone.records import Spelled, spell, spellable
from seamark.dns.zone.state import NO_PORT, ClusterZone, Fact, Listed, Port, port_of

Target = tuple[str, int, str]  # host, port, and the label of the endpoint (empty: the Service itself)
Depends = set[Fact]

# Ports of endpoints that are looked at beyond one of each: more than the records that the largest reply can hold.
_MOST_PORTS = 4096


class Found(msgspec.Struct, frozen=True, gc=False):
    """Whether a name exists, what it points to, and why."""

    exists: bool
    why: str
    targets: Sequence[Target] = ()


class Lookup:
    """Looks names up in one zone, with one configuration."""

    def __init__(self, zone: ClusterZone, config: ZoneConfig, *, local_addresses: Sequence[bytes]) -> None:
        """``local_addresses`` are the server's own; by them it finds the Service that it is an endpoint of."""
        self._zone = zone
        self._config = config
        self._primary: Spelled = tuple(label.encode() for label in config.primary)
        self._namespaces = frozenset(config.namespaces)
        self._filtered = bool(config.namespaces or config.namespace_labels)
        self._local_addresses = tuple(local_addresses)

    def find(self, shape: Shape, depends: Depends) -> Found:
        """Whether the named thing exists, and what it points to."""
        match shape:
            case ServiceName(namespace):
                return self._in_namespace(namespace, "svc", depends) or self._service(shape, depends)
            case PodName(namespace):
                return self._in_namespace(namespace, "pod", depends) or self._pod(shape, depends)
            case NamespaceName(branch, namespace):
                there = Found(True, f"there is a namespace {namespace}")
                return self._in_namespace(namespace, branch, depends) or there
            case Apex():
                return Found(True, "the zone is here")
            case BranchName(branch):
                return Found(True, f"{branch} has names below it")
            case ServerName():
                hosts = [(format_address(packed), 0, "") for _, packed in self.server_addresses((), depends)]
                return Found(True, "the server itself", hosts)
            case VersionName():
                return Found(False, "dns-version has text only")
            case ReverseName(address):
                return Found(False, f"{format_address(address)} has pointers only")
            case Nowhere(why):
                return Found(False, why)

    def names_at(self, address: bytes, depends: Depends) -> list[Spelled]:
        """The name of the Service with this cluster address, else the names of all endpoints at this address."""
        depends.add(("address", address))
        for namespace, service in self._zone.services_at(address):
            if self._named(namespace, depends):
                return [spelled_service(namespace, service, "", self._primary)]
        return [
            spelled_service(named.namespace, named.service, named.label, self._primary)
            for named in self._zone.endpoints_at(address)
            if self._named(named.namespace, depends)
        ]

    def server_addresses(self, zone_spelled: Spelled, depends: Depends) -> list[tuple[Spelled, bytes]]:
        """Names and addresses of the DNS Service that this server is an endpoint of; else its own addresses."""
        found: list[tuple[Spelled, bytes]] = []
        for local in self._local_addresses:
            depends.add(("address", local))
            for named in self._zone.endpoints_at(local):
                key = (named.namespace, named.service)
                depends.add(("service", *key))
                service = self._zone.services.get(key)
                if service is None:
                    continue
                places = [("", text) for text in service.addresses]
                if service.headless:
                    depends.add(("endpoints", *key))
                    places = [(label, host) for label, host, _ in self._zone.endpoints(*key)]
                found += [
                    (spelled_service(*key, label, zone_spelled), packed)
                    for label, host in places
                    if (packed := parse_address(host)) is not None
                ]
        if not found:
            found = [((b"ns", b"dns", *zone_spelled), local) for local in self._local_addresses]
        return list(dict.fromkeys(found))

    # --- namespaces --------------------------------------------------------------------------------

    def _in_namespace(self, namespace: str, branch: Branch, depends: Depends) -> Found | None:
        """Why no name in this namespace exists; None if names may exist."""
        depends.add(("namespace", namespace))
        if not self._exposed(namespace):
            return Found(False, f"there is no namespace {namespace}")
        if branch == "pod" and self._config.pods == "disabled":
            return Found(False, "names of Pods are not served (pods disabled)")
        return None

    def _exposed(self, namespace: str) -> bool:
        return namespace in self._zone.namespaces and (not self._namespaces or namespace in self._namespaces)

    def _named(self, namespace: str, depends: Depends) -> bool:
        """Whether addresses of this namespace get a PTR record: if namespaces are filtered, only exposed ones do."""
        if not self._filtered:
            return True
        depends.add(("namespace", namespace))
        return self._exposed(namespace)

    # --- Pods and Services -------------------------------------------------------------------------

    def _pod(self, name: PodName, depends: Depends) -> Found:
        address = name.address
        if parse_address(address) is None:
            return Found(False, f"{name.pod} is not a dashed address")
        if self._config.pods == "insecure":
            return Found(True, f"{address} is taken for a Pod unseen (pods insecure)", [(address, 0, "")])
        depends.add(("pod", name.namespace, address))
        count = self._zone.pods_at(name.namespace, address)
        if not count:
            return Found(False, f"no Pod in namespace {name.namespace} has the address {address}")
        return Found(True, f"a Pod in namespace {name.namespace} has the address {address}", [(address, 0, "")] * count)

    def _service(self, name: ServiceName, depends: Depends) -> Found:
        key = (name.namespace, name.service)
        depends.add(("service", *key))
        service = self._zone.services.get(key)
        if service is None:
            return Found(False, f"there is no Service {name.service} in namespace {name.namespace}")
        called = f"Service {name.service} in namespace {name.namespace}"
        if service.external:
            return _external(name, service.spec.external_name, called)
        if service.headless or name.endpoint:
            return self._endpoints(name, called, depends)
        if self._config.ignore_empty_services:
            depends.add(("endpoints", *key))
            if not self._zone.endpoints(*key).slices:
                return Found(False, f"{called} has no ready endpoints, and empty Services are ignored")
        ports = [port_of(port) for port in service.spec.ports] or [NO_PORT]
        wanted = [port for port in ports if _matches(port, name)]
        if not wanted:
            return Found(False, f"{called} has no port {_port_name(name)}")
        targets = [(host, number, "") for _, _, number in wanted for host in service.addresses if host]
        return Found(True, f"{called} has a cluster address", targets)

    def _endpoints(self, name: ServiceName, called: str, depends: Depends) -> Found:
        endpoints = self._zone.endpoints(name.namespace, name.service)
        if name.endpoint:
            depends.add(("endpoint", name.namespace, name.service, name.endpoint))
            places = endpoints.labelled(name.endpoint)
        else:
            depends.add(("endpoints", name.namespace, name.service))
            places = iter(endpoints)
        targets = _targets(places, name)
        if targets:
            return Found(True, f"{called} has ready endpoints", targets)
        if name.endpoint:
            return Found(False, f"{called} has no ready endpoint called {name.endpoint}")
        if endpoints.slices:
            return Found(False, f"{called} has no endpoint with a port {_port_name(name)}")
        return Found(False, f"{called} is headless and has no ready endpoints")


def _targets(places: Iterable[tuple[str, str, Listed]], name: ServiceName) -> list[Target]:
    """The endpoints with each of their ports that are asked for; of very many ports, some, but of every endpoint."""
    found: list[Target] = []
    room = _MOST_PORTS
    for label, host, listed in places:
        before = len(found)
        for ports in listed:
            matching = ports.matching(name.port, name.protocol)
            own = len(found) == before
            found += [(host, port[2], label) for port in matching[: room + own]]
            room -= min(room, max(len(matching) - own, 0))
    return found


def spelled_service(namespace: str, service: str, label: str, zone: Spelled) -> Spelled:
    """The name of a Service, or of its endpoint ``label``, which may contain dots if it is a Pod's name."""
    return (*spell(label), service.encode(), namespace.encode(), b"svc", *zone)


def _external(name: ServiceName, target: str, called: str) -> Found:
    """The target of an ExternalName, which must not be an address; as in CoreDNS, a final dot makes it a name."""
    if name.endpoint or name.port or name.protocol:
        return Found(False, f"{called} is an ExternalName, with nothing below it")
    if parse_address(target) is not None or not spell(target) or not spellable(spell(target)):
        return Found(False, f"{called} is an ExternalName, but {target or 'nothing'} is not a name")
    return Found(True, f"{called} is an ExternalName", [(target, 0, "")])


def _matches(port: Port, name: ServiceName) -> bool:
    return name.port in ("", port[0]) and name.protocol in ("", port[1])


def _port_name(name: ServiceName) -> str:
    return f"{name.port or 'any'}/{name.protocol or 'any'}"
