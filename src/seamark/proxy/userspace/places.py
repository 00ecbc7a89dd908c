"""Where the engine listens, and what a connection there is decided by (pure but for affinity's time)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple, get_args

import msgspec

from seamark.kinds.values.addresses import family
from seamark.kinds.values.hosts import bracketed
from seamark.proxy.userspace.balancing import Balancer, Target
from seamark.rules.routing.decision import Decision, Origin, decide, origin_of
from seamark.rules.routing.model import Choice, Frontend, Kind, Route, ServiceRoutes
from seamark.rules.routing.surroundings import Surroundings, within

FORWARDED = ("TCP", "UDP")  # asyncio and the standard library know no SCTP
_MOST_DECISIONS = 1024  # kept per place, by client address

ORIGINS: tuple[Origin, ...] = get_args(Origin)


class Place(NamedTuple):
    """What one socket is bound to."""

    protocol: str
    address: str
    port: int

    def __str__(self) -> str:
        return f"{bracketed(self.address)}:{self.port}/{self.protocol}"


class Opening(msgspec.Struct, frozen=True):
    """What is served at a place."""

    route: Route
    frontend: Frontend


def openings(
    service: ServiceRoutes, surroundings: Surroundings, node_ports_at: Iterable[str]
) -> Iterator[tuple[Place, Opening]]:
    """Where a Service is served.  Node ports are at these addresses of the node.

    A frontend that refuses all has no place: without a socket, the kernel itself refuses, which is faster and
    looks right to every client.
    """
    for route in service.routes:
        if route.protocol not in FORWARDED:
            continue
        for frontend in route.frontends:
            if all(decide(route, frontend, each, "", surroundings).verdict == "refuse" for each in ORIGINS) and not (
                frontend.kind is Kind.LOAD_BALANCER and route.source_ranges
            ):
                continue
            node_port = frontend.kind is Kind.NODE_PORT
            addresses = [a for a in node_ports_at if family(a) == route.family] if node_port else [frontend.address]
            for address in addresses:
                yield Place(route.protocol, address, frontend.port), Opening(route, frontend)


def without(service: ServiceRoutes, silent: Sequence[str]) -> ServiceRoutes:
    """The same routes without the backends in these networks, where nothing can answer."""
    if not silent:
        return service

    def heard(choice: Choice) -> Choice:
        kept = tuple(each for each in choice.backends if not within(each.address, silent))
        return choice if len(kept) == len(choice.backends) else msgspec.structs.replace(choice, backends=kept)

    routes = (
        msgspec.structs.replace(each, cluster=heard(each.cluster), local=heard(each.local)) for each in service.routes
    )
    return msgspec.structs.replace(service, routes=tuple(routes))


def serving(route: Route) -> set[Target]:
    """The backends that still serve, whether new connections go there or not: UDP flows to them stay."""
    choices = (route.cluster, route.local)
    listed = (*(b for c in choices for b in c.backends), *(left.backend for c in choices for left in c.left_out))
    return {(each.address, each.port) for each in listed if each.serving}


class RoutePicker:
    """Decides about each connection at one place by the rules, and chooses by a balancer."""

    def __init__(self, opening: Opening, surroundings: Surroundings, balancer: Balancer) -> None:
        self._opening = opening
        self._surroundings = surroundings
        self._balancer = balancer
        self._decisions: dict[str, Decision] = {}

    def pick(self, client: str, tried: Sequence[Target] = ()) -> Target | Literal["refuse", "drop"]:
        decision = self._decisions.get(client) or self._decide(client)
        if decision.verdict != "accept":
            return decision.verdict
        affinity = self._opening.route.affinity_seconds
        return self._balancer.pick(decision.choice, client, affinity=affinity, tried=tried) or "refuse"

    def _decide(self, client: str) -> Decision:
        if len(self._decisions) >= _MOST_DECISIONS:
            self._decisions.clear()
        route, frontend = self._opening.route, self._opening.frontend
        # Where this machine has taken the address, its own connections to it come from it.
        origin: Origin = "node" if client == frontend.address else origin_of(client, self._surroundings)
        made = self._decisions[client] = decide(route, frontend, origin, client, self._surroundings)
        return made
