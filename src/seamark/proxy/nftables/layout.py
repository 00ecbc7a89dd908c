"""Our tables: the sets, chains and rules there are, for each family (pure).

A packet is looked up by its *place*: destination address, protocol and port; for a node port only protocol and port.

- ``services``, ``node_ports``: place → where it leads: one of the chains below, or nowhere
- ``external``, ``node_port_policies``: place → a detour first, for places that are no cluster IP: to be masqueraded, or
  to ``policy-local``
- ``locals``, ``node_port_locals``: place → where connections from outside lead, for places with the policy Local
- ``endpoints``, ``node_port_endpoints``: place and a random number → address and port of an endpoint
- ``guarded``, ``admitted``: places with source ranges, and the sources that are let in
- ``cluster_ips``, ``service_ranges``: what is refused or dropped if no rule has led it elsewhere
- ``hairpin``: endpoints that may reach themselves; ``pods``, ``node_port_addresses``: ranges of addresses

There is a chain for each number of endpoints that a Service has, which draws a random number below that, so plain
Services need no chains of their own.  Only Services with session affinity have some: each remembers its clients.

nft 1.0 cannot print a rule in which the result of one map is the key of another, and gives up on the whole ruleset;
so there is none.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import collapse_addresses

from seamark.kinds.values.addresses import Family, parse_network
from seamark.proxy.nftables import expressions as x
from seamark.proxy.nftables.ruleset import (
    ADDRESS,
    MARK,
    PORT,
    PROTOCOL,
    Address,
    Chain,
    Elements,
    Hook,
    Rule,
    Ruleset,
    SetSpec,
)
from seamark.rules.routing.surroundings import Surroundings

TABLE = "seamark-proxy"
NUMBER: dict[Family, int] = {"IPv4": 2, "IPv6": 10}
MASQUERADE_BIT = 14  # as kube-proxy's

# How an endpoint is looked up: by the whole place or as a node port, among all endpoints or those on this node.
_WAYS = ("to", "local", "node-port-to", "node-port-local")
TO, LOCAL, NODE_PORT_TO, NODE_PORT_LOCAL = range(4)
LOCAL_OFFSET = 1 << 16  # of the random numbers that stand for the endpoints on this node

REFUSE = x.verdict_data(x.GOTO, "refuse")
DROP = x.verdict_data(x.DROP)
MASQUERADED = x.verdict_data(x.JUMP, "mark-for-masquerade")
POLICY_LOCAL = x.verdict_data(x.JUMP, "policy-local")
NODE_PORT_POLICY_LOCAL = x.verdict_data(x.JUMP, "node-port-policy-local")

_SOURCE = {2: 12, 10: 8}  # where addresses are in the network header
_DESTINATION = {2: 16, 10: 24}
_TCP = b"\x06"
_CLIENTS = 1 << 20  # that a Service with session affinity remembers at most


def goto(chain: str) -> bytes:
    return x.verdict_data(x.GOTO, chain)


def pick(way: int, count: int) -> str:
    """The chain that leads to one of so many endpoints."""
    return f"{_WAYS[way]}-{count}"


def set_specs(family: int) -> dict[str, SetSpec]:
    address = ADDRESS[family]
    place, port = (address, PROTOCOL, PORT), (PROTOCOL, PORT)
    return {
        "services": SetSpec(place, verdicts=True),
        "external": SetSpec(place, verdicts=True),
        "locals": SetSpec(place, verdicts=True),
        "endpoints": SetSpec((*place, MARK), (address, PORT)),
        "node_ports": SetSpec(port, verdicts=True),
        "node_port_policies": SetSpec(port, verdicts=True),
        "node_port_locals": SetSpec(port, verdicts=True),
        "node_port_endpoints": SetSpec((*port, MARK), (address, PORT)),
        "guarded": SetSpec(place),
        "admitted": SetSpec((*place, address), ranges=True),
        "cluster_ips": SetSpec((address,)),
        "hairpin": SetSpec((address, address)),
        "pods": SetSpec((address,), edges=True),
        "service_ranges": SetSpec((address,), edges=True),
        "node_port_addresses": SetSpec((address,), edges=True),
    }


SETS: dict[Address, SetSpec] = {
    (family, name): spec for family in NUMBER.values() for name, spec in set_specs(family).items()
}


# --- pieces of rules -------------------------------------------------------------------------------


class Loader:
    """Loads the parts of keys for one family."""

    def __init__(self, family: int) -> None:
        self.family = family
        self.size = ADDRESS[family].length
        self.words = self.size // 4

    def source(self, register: int = x.FIRST) -> bytes:
        return x.network_header(register, _SOURCE[self.family], self.size)

    def destination(self, register: int = x.FIRST) -> bytes:
        return x.network_header(register, _DESTINATION[self.family], self.size)

    def place(self, *, node_port: bool = False) -> bytes:
        register = self.behind_place(node_port=node_port)
        return (b"" if node_port else self.destination()) + x.protocol(register - 2) + x.destination_port(register - 1)

    def behind_place(self, *, node_port: bool = False) -> int:
        """The register behind a place."""
        return x.FIRST + 2 if node_port else x.FIRST + self.words + 2

    def lead_to(self, register: int) -> bytes:
        """Change the destination to the address and port in these registers."""
        return x.change_destination(self.family, register, register + self.words)


def rule(comment: str, *expressions: bytes) -> Rule:
    return Rule(comment, b"".join(expressions))


# --- fixed chains ----------------------------------------------------------------------------------


def skeleton(family: int, around: Surroundings, bit: int) -> Ruleset:
    """Everything in a table but what follows from Services."""
    load = Loader(family)
    pods = _of_family(around.cluster_cidrs, family)
    found = Ruleset({family}, {(family, name): spec for name, spec in set_specs(family).items()})
    for name, chain in _chains(load, 1 << bit, knows_pods=bool(pods), masquerade_all=around.masquerade_all).items():
        found.chains[family, name] = chain
    found.elements = {
        (family, "pods"): _edges(pods, family),
        (family, "service_ranges"): _edges(around.service_cidrs, family),
        (family, "node_port_addresses"): _edges(around.node_port_networks, family),
    }
    return found


def _chains(load: Loader, bit: int, *, knows_pods: bool, masquerade_all: bool) -> dict[str, Chain]:
    marking = x.verdict(x.JUMP, "mark-for-masquerade")
    new = [x.ct_state(x.FIRST), *x.any_bit(x.FIRST, x.CT_NEW)]
    unserved = rule("new connections that led nowhere", *new, x.verdict(x.JUMP, "unserved"))
    return {
        "refuse": Chain(
            (
                rule("a reset for TCP", x.protocol(8), x.compare(8, _TCP), x.reset()),
                rule("port unreachable", x.unreachable(load.family)),
            )
        ),
        "mark-for-masquerade": Chain(
            (
                rule(
                    "to be masqueraded when it leaves",
                    x.mark(8),
                    x.bits(8, x.word(0xFFFFFFFF ^ bit), x.word(bit)),
                    x.set_mark(8),
                ),
            )
        ),
        "unserved": Chain(
            (
                rule(
                    "a port that a Service does not offer",
                    load.destination(),
                    x.contained("cluster_ips", 8),
                    x.verdict(x.GOTO, "refuse"),
                ),
                rule(
                    "an address that no Service has",
                    load.destination(),
                    x.contained("service_ranges", 8),
                    x.verdict(x.DROP),
                ),
            )
        ),
        "policy-local": _policy_local(load, knows_pods=knows_pods, node_port=False),
        "node-port-policy-local": _policy_local(load, knows_pods=knows_pods, node_port=True),
        "services": Chain(_services(load, marking, knows_pods=knows_pods, masquerade_all=masquerade_all)),
        "node-ports": Chain(_dispatch(load, node_port=True)),
        "prerouting": Chain(_entry(load), Hook("nat", 0, -100)),
        "output": Chain(_entry(load), Hook("nat", 3, -100)),
        "postrouting": Chain(_postrouting(load, bit), Hook("nat", 4, 100)),
        "filter-forward": Chain((unserved,), Hook("filter", 2, 0)),
        "filter-output": Chain((unserved,), Hook("filter", 3, 0)),
    }


def _entry(load: Loader) -> tuple[Rule, ...]:
    if load.family == 2:
        not_loopback = x.bits(8, b"\xff\0\0\0", bytes(4)) + x.compare(8, b"\x7f\0\0\0", x.NOT_EQUAL)
    else:
        not_loopback = x.compare(8, bytes(15) + b"\x01", x.NOT_EQUAL)
    return (
        rule("addresses of Services", x.verdict(x.JUMP, "services")),
        rule(
            "node ports",
            x.destination_type(8),
            x.is_local(8),
            load.destination(),
            x.contained("node_port_addresses", 8),
            not_loopback,
            x.verdict(x.JUMP, "node-ports"),
        ),
    )


def _services(load: Loader, marking: bytes, *, knows_pods: bool, masquerade_all: bool) -> tuple[Rule, ...]:
    guard = rule(
        "source ranges",
        load.place(),
        x.contained("guarded", 8),
        load.source(load.behind_place()),
        x.contained("admitted", 8, inverted=True),
        x.verdict(x.DROP),
    )
    to_cluster_ip = load.destination() + x.contained("cluster_ips", 8)
    from_elsewhere = load.source() + x.contained("pods", 8, inverted=True)
    external, leading = _dispatch(load, node_port=False)
    if masquerade_all:
        return guard, external, rule("everything to cluster IPs", to_cluster_ip, marking), leading
    if knows_pods:
        return guard, external, rule("to cluster IPs, not from Pods", to_cluster_ip, from_elsewhere, marking), leading
    return guard, external, leading


def _dispatch(load: Loader, *, node_port: bool) -> tuple[Rule, Rule]:
    place = load.place(node_port=node_port)
    detours, leading = ("node_port_policies", "node_ports") if node_port else ("external", "services")
    return (
        rule("not cluster IPs", place, x.dispatched(detours, 8)),
        rule("where it leads", place, x.dispatched(leading, 8)),
    )


def _policy_local(load: Loader, *, knows_pods: bool, node_port: bool) -> Chain:
    """Pods and the node itself return, and reach all endpoints; others get those on this node."""
    own = x.source_type(8) + x.is_local(8)
    rules = [rule("Pods reach all", load.source(), x.contained("pods", 8), x.verdict(x.RETURN))] if knows_pods else []
    local = load.place(node_port=node_port) + x.dispatched("node_port_locals" if node_port else "locals", 8)
    return Chain(
        (
            *rules,
            rule("this node is masqueraded", own, x.verdict(x.JUMP, "mark-for-masquerade")),
            rule("this node reaches all", own, x.verdict(x.RETURN)),
            rule("endpoints on this node", local),
        )
    )


def _postrouting(load: Loader, bit: int) -> tuple[Rule, ...]:
    changed = [x.ct_status(8), *x.any_bit(8, x.CT_DESTINATION_CHANGED)]
    return (
        rule(
            "an endpoint that reaches itself",
            *changed,
            load.source(8),
            load.destination(8 + load.words),
            x.contained("hairpin", 8),
            x.masquerade(),
        ),
        rule(
            "marked for this",
            x.mark(8),
            *x.any_bit(8, bit),
            x.mark(8),
            x.bits(8, x.word(0xFFFFFFFF), x.word(bit)),
            x.set_mark(8),
            x.masquerade(),
        ),
    )


def _of_family(networks: Iterable[str], family: int) -> list[str]:
    return [each for each in networks if (":" in each) == (family == 10)]


def _edges(networks: Iterable[str], family: int) -> Elements:
    """The edges of these networks, of which some may contain others."""
    found: Elements = {}
    parsed = [each for text in _of_family(networks, family) if (each := parse_network(text))]
    size = ADDRESS[family].length
    for network in collapse_addresses([each.network for each in parsed]):  # type: ignore[type-var]
        first, behind = int(network.network_address), int(network.broadcast_address) + 1
        found[first.to_bytes(size) + b"\0"] = b""
        if behind < 1 << 8 * size:
            found[behind.to_bytes(size) + b"\1"] = b""
    return found


# --- chains that some Services need ----------------------------------------------------------------


def picking(family: int, way: int, count: int) -> Ruleset:
    """The chain that leads to one of so many endpoints."""
    load = Loader(family)
    node_port = way in (NODE_PORT_TO, NODE_PORT_LOCAL)
    leading = rule(
        "one of the endpoints",
        load.place(node_port=node_port),
        x.random(load.behind_place(node_port=node_port), count, LOCAL_OFFSET if way in (LOCAL, NODE_PORT_LOCAL) else 0),
        x.looked_up("node_port_endpoints" if node_port else "endpoints", 8, 8),
        load.lead_to(8),
    )
    return Ruleset(chains={(family, pick(way, count)): Chain((leading,))})


def remembering(family: int, name: str, backends: dict[str, bytes], seconds: int) -> Ruleset:
    """The chain of a Service port with session affinity, which leads each client to where it was led before.

    ``backends`` are the endpoints by the names of their chains.  Each has a set of the clients that are led to it; they
    go when ``seconds`` pass without a connection, or with the endpoint.
    """
    load = Loader(family)
    drawn = f"endpoints-{name}"
    as_before = [
        rule("as before", load.source(), x.contained(f"clients-{each}", 8), x.verdict(x.GOTO, f"endpoint-{each}"))
        for each in backends
    ]
    drawing = rule("one of the endpoints", x.random(8, len(backends)), x.dispatched(drawn, 8))
    found = Ruleset(
        sets={(family, drawn): SetSpec((MARK,), verdicts=True)},
        chains={(family, f"affinity-{name}"): Chain((*as_before, drawing))},
        elements={(family, drawn): {x.word(at): goto(f"endpoint-{each}") for at, each in enumerate(backends)}},
    )
    for each, target in backends.items():
        clients = f"clients-{each}"
        found.sets[family, clients] = SetSpec((ADDRESS[family],), seconds=seconds, size=_CLIENTS)
        remember = rule("remember the client", load.source(), x.remember(clients, 8, seconds * 1000))
        leading = rule("to the endpoint", x.constant(8, target), load.lead_to(8))
        found.chains[family, f"endpoint-{each}"] = Chain((remember, leading))
    return found
