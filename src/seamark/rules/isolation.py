"""Which connections NetworkPolicies let through, as far as a network plugin enforces them (pure).

A Pod that no policy selects for a direction is open in that direction.  Where policies select it, a connection needs a
rule of one of them that allows its peer and its port.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from seamark.kinds.values.addresses import parse, parse_network
from seamark.kinds.values.label_selector import readable
from seamark.rules.objects.networkpolicy import NetworkPolicy, Peer, PolicyPort
from seamark.rules.objects.pod import Pod

INGRESS, EGRESS = "Ingress", "Egress"

P = TypeVar("P", bound=NetworkPolicy)


class Party(msgspec.Struct, frozen=True):
    """The other side of a connection: a Pod with its namespace's labels (None: not known), or just an address."""

    pod: Pod | None = None
    namespace_labels: Mapping[str, str] | None = None
    addresses: tuple[str, ...] = ()

    @property
    def all_addresses(self) -> tuple[str, ...]:
        return self.pod.ips if self.pod is not None else self.addresses


class Door(msgspec.Struct, frozen=True):
    """A port of the Pod that is connected to; ``names`` are the names that containers give it."""

    port: int
    protocol: str
    names: tuple[str, ...] = ()


def door(pod: Pod, port: int, protocol: str) -> Door:
    declared = [each for each in pod.container_ports() if (each.container_port, each.protocol) == (port, protocol)]
    return Door(port, protocol, tuple(each.name for each in declared if each.name))


def selecting(policies: Iterable[P], pod: Pod, direction: str) -> list[P]:
    """The policies that isolate a Pod in a direction."""
    return [
        each
        for each in policies
        if each.metadata.namespace == pod.metadata.namespace
        and direction in each.types
        and _matches(each.spec.pod_selector, pod.metadata.labels)
    ]


def admitted(policies: Sequence[NetworkPolicy], at: Door, party: Party) -> bool | None:
    """Whether policies that select a Pod let a party in; None where that depends on what is not known."""
    answers = [
        _peers(rule.from_, party, each.metadata.namespace)
        for each in policies
        for rule in each.spec.ingress
        if _ports(rule.ports, at)
    ]
    return _any(answers)


def let_out(policies: Sequence[NetworkPolicy], at: Door, party: Party) -> bool | None:
    """Whether policies that select a Pod let it connect to that port of a party; None where that is not known."""
    answers = [
        _peers(rule.to, party, each.metadata.namespace)
        for each in policies
        for rule in each.spec.egress
        if _ports(rule.ports, at)
    ]
    return _any(answers)


def closed(policies: Sequence[NetworkPolicy], at: Door) -> bool:
    """Whether policies that select a Pod let no peer at all in on a port."""
    return not any(_ports(rule.ports, at) for each in policies for rule in each.spec.ingress)


def speaks(policies: Sequence[NetworkPolicy], port: int) -> bool:
    """Whether policies that select a Pod let it connect to that port anywhere, over TCP or UDP."""
    doors = (Door(port, "UDP"), Door(port, "TCP"))
    return any(_ports(rule.ports, at) for each in policies for rule in each.spec.egress for at in doors)


# --- rules -----------------------------------------------------------------------------------------


def _any(answers: Iterable[bool | None]) -> bool | None:
    found = set(answers)
    return True if True in found else None if None in found else False


def _ports(ports: Sequence[PolicyPort], at: Door) -> bool:
    """Without ports, a rule is for every port."""
    return not ports or any(_port(each, at) for each in ports)


def _port(each: PolicyPort, at: Door) -> bool:
    if each.protocol != at.protocol:
        return False
    if each.port is None:
        return True
    if isinstance(each.port, str):
        return each.port in at.names
    return each.port <= at.port <= (each.end_port or each.port)


def _peers(peers: Sequence[Peer], party: Party, namespace: str) -> bool | None:
    """Without peers, a rule is for everyone."""
    return True if not peers else _any(_peer(each, party, namespace) for each in peers)


def _peer(peer: Peer, party: Party, namespace: str) -> bool | None:
    if peer.ip_block is not None:
        return any(
            within(address, peer.ip_block.cidr) and not any(within(address, each) for each in peer.ip_block.except_)
            for address in party.all_addresses
        )
    if party.pod is None:
        return False
    if peer.pod_selector is not None and not _matches(peer.pod_selector, party.pod.metadata.labels):
        return False
    if peer.namespace_selector is None:
        return party.pod.metadata.namespace == namespace
    if not peer.namespace_selector:
        return True
    if party.namespace_labels is None:
        return None
    return _matches(peer.namespace_selector, party.namespace_labels)


def within(address: str, cidr: str) -> bool:
    parsed, network = parse(address), parse_network(cidr)
    return parsed is not None and network is not None and parsed.address in network.network


def _matches(selector: dict[str, Any], labels: Mapping[str, str]) -> bool:
    parsed = readable(selector)
    return parsed is not None and parsed.matches(labels)
