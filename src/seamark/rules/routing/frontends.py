"""The addresses and ports that a Service asks for, and who gets one that several Services ask for (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import NamedTuple

import msgspec

from seamark.kinds.service.defaults import AFFINITY_SECONDS
from seamark.kinds.service.types import EXTERNAL_NAME, LOAD_BALANCER, NODE_PORT
from seamark.kinds.values.addresses import Family, canonical, family, parse_network
from seamark.kinds.wellknown import HEADLESS_LABEL, PROXY_NAME_LABEL
from seamark.rules.objects.service import Service, ServicePort
from seamark.rules.routing.model import Frontend, Ignored, Kind

FAMILIES: tuple[Family, ...] = ("IPv4", "IPv6")
_RANK = {kind: position for position, kind in enumerate(Kind)}

# Addresses with ports that one Service can have in a family, beside its cluster IPs.  A short object can ask for
# a hundred million.
MOST_FRONTENDS = 10_000

Place = tuple[Family, str, str, int]  # family, address, protocol and port: only one Service can have it


def ignored(service: Service) -> Ignored | None:
    """Why a proxy leaves this Service alone; None if it does not."""
    if PROXY_NAME_LABEL in service.metadata.labels:
        return Ignored.OTHER_PROXY
    if HEADLESS_LABEL in service.metadata.labels:
        return Ignored.HEADLESS_LABEL
    if service.spec.type == EXTERNAL_NAME:
        return Ignored.EXTERNAL_NAME
    if service.headless:
        return Ignored.HEADLESS
    return None if service.has_cluster_ip else Ignored.NO_ADDRESS


def families_of(service: Service) -> tuple[Family, ...]:
    """The families it has a cluster IP in."""
    held = {family(address) for address in service.addresses}
    return tuple(each for each in FAMILIES if each in held)


class Addresses(NamedTuple):
    """The addresses of a Service, and how many more it asks for than are served."""

    kinds: Mapping[str, Kind]
    left_out: int


def addresses_of(service: Service, which: Family) -> Addresses:
    """Its addresses in this family; one that is listed in two ways counts as the first of them."""
    spec = service.spec
    found = dict.fromkeys(_of_family(service.addresses, which), Kind.CLUSTER_IP)
    most = len(found) + MOST_FRONTENDS // max(1, len(spec.ports))
    if spec.type == LOAD_BALANCER:
        served = (each.ip for each in service.status.load_balancer.ingress if each.ip and each.ip_mode != "Proxy")
        for address in _of_family(served, which):
            found.setdefault(address, Kind.LOAD_BALANCER)
    for address in _of_family(spec.external_ips, which):
        found.setdefault(address, Kind.EXTERNAL_IP)
    if len(found) <= most:
        return Addresses(found, 0)
    return Addresses(dict(islice(found.items(), most)), len(found) - most)


def frontends_of(service: Service, port: ServicePort, addresses: Addresses) -> tuple[Frontend, ...]:
    """Where clients reach this port in the family of these addresses of the Service."""
    spec = service.spec
    frontends = [Frontend(kind, address, port.protocol, port.port) for address, kind in addresses.kinds.items()]
    if port.node_port and spec.type in (NODE_PORT, LOAD_BALANCER):
        frontends.append(Frontend(Kind.NODE_PORT, "", port.protocol, port.node_port))
    return tuple(frontends)


def place_of(frontend: Frontend, which: Family) -> Place:
    return which, frontend.address, frontend.protocol, frontend.port


def _of_family(addresses: Iterable[str], which: Family) -> list[str]:
    return list(dict.fromkeys(canonical(address) for address in addresses if family(address) == which))


def affinity_seconds(service: Service) -> int:
    if service.spec.session_affinity != "ClientIP":
        return 0
    config = service.spec.session_affinity_config
    stated = config.client_ip.timeout_seconds if config and config.client_ip else None
    return stated or AFFINITY_SECONDS


def source_ranges(service: Service, which: Family) -> tuple[str, ...]:
    """Who may use its load-balancer addresses of this family; empty if everybody may."""
    found: dict[str, None] = {}
    for text in service.spec.load_balancer_source_ranges:
        parsed = parse_network(text.strip())
        if parsed is None or (parsed.network.version == 4) != (which == "IPv4"):
            continue
        if parsed.network.prefixlen == 0:
            return ()
        found[str(parsed.network)] = None
    return tuple(found)


# --- who gets what several ask for -------------------------------------------------------------------


class PlaceClaim(msgspec.Struct, frozen=True, order=True, gc=False):
    """One Service's wish for a place.  The least one wins: cluster IPs first, then the older Service."""

    rank: int
    created: str
    service: str


class PlaceClaims:
    """Who asks for which place.  Nearly every place has one claim; only external addresses can be asked for twice."""

    def __init__(self) -> None:
        self._single: dict[Place, PlaceClaim] = {}
        self._several: dict[Place, list[PlaceClaim]] = {}  # sorted; only places with two claims or more
        self._places: dict[str, tuple[tuple[Place, PlaceClaim], ...]] = {}

    def put(self, service: Service) -> set[str]:
        """Take in what a Service asks for now; returns the other Services that win or lose a place by it."""
        wanted: dict[Place, PlaceClaim] = {}
        key = service.metadata.key
        if ignored(service) is None:
            created = service.metadata.creation_timestamp or ""
            for which in families_of(service):
                addresses = addresses_of(service, which)
                for port in service.spec.ports:
                    for frontend in frontends_of(service, port, addresses):
                        wanted.setdefault(place_of(frontend, which), PlaceClaim(_RANK[frontend.kind], created, key))
        before = self._places.get(key, ())
        after = tuple(wanted.items())
        if before == after:
            return set()
        others: set[str] = set()
        for place, claim in before:
            others |= self._withdraw(place, claim)
        for place, claim in after:
            others |= self._add(place, claim)
        if after:
            self._places[key] = after
        else:
            self._places.pop(key, None)
        return others - {key}

    def remove(self, key: str) -> set[str]:
        others: set[str] = set()
        for place, claim in self._places.pop(key, ()):
            others |= self._withdraw(place, claim)
        return others - {key}

    def winner(self, place: Place) -> str:
        """The Service that has this place; "" if none asks for it."""
        claim = self._single.get(place)
        return "" if claim is None else claim.service

    def _add(self, place: Place, claim: PlaceClaim) -> set[str]:
        first = self._single.setdefault(place, claim)
        if first is claim:
            return set()
        claims = sorted([*self._several.get(place, [first]), claim])
        self._several[place] = claims
        self._single[place] = claims[0]
        return {each.service for each in claims}

    def _withdraw(self, place: Place, claim: PlaceClaim) -> set[str]:
        if place not in self._several:
            del self._single[place]
            return set()
        claims = self._several[place]
        claims.remove(claim)
        self._single[place] = claims[0]
        if len(claims) == 1:
            del self._several[place]
        return {each.service for each in claims}
