"""This node, and on which of its addresses node ports answer (pure)."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import msgspec

from seamark.kinds.values.addresses import Family, canonical, family, parse, parse_network
from seamark.rules.objects.node import Node

PRIMARY = "primary"  # kube-proxy's word in --nodeport-addresses for the addresses in the Node's status
_LOOPBACK = ("127.0.0.0/8", "::1/128")
_TO_BE_DELETED = "ToBeDeletedByClusterAutoscaler"


class ThisNode(msgspec.Struct, frozen=True):
    """What routing needs of a Node: its name, zone, primary addresses (at most one per family) and Pod ranges."""

    name: str
    zone: str = ""
    addresses: tuple[str, ...] = ()
    pod_cidrs: tuple[str, ...] = ()
    eligible: bool = True  # for load balancers: not while the node is about to be deleted

    @classmethod
    def of(cls, node: Node) -> ThisNode:
        """The primary addresses are the first internal one, else the first external one, of each family."""
        found: dict[Family, str] = {}
        for wanted in ("InternalIP", "ExternalIP"):
            for each in node.status.addresses:
                if each.type == wanted and (which := family(each.address)):
                    found.setdefault(which, canonical(each.address))
        leaving = node.metadata.deletion_timestamp is not None
        doomed = any(taint.key == _TO_BE_DELETED for taint in node.spec.taints)
        return cls(
            node.name, node.zone, tuple(found.values()), node.spec.pod_cidrs, eligible=not leaving and not doomed
        )


class Surroundings(msgspec.Struct, frozen=True, dict=True):
    """What is around the Services: the node, and how the proxy on it was set up."""

    node: ThisNode
    cluster_cidrs: tuple[str, ...] = ()  # the Pods' addresses; empty: Pods cannot be told from other clients
    node_port_addresses: tuple[str, ...] = (PRIMARY,)
    masquerade_all: bool = False
    service_cidrs: tuple[str, ...] = ()

    @cached_property
    def node_port_networks(self) -> tuple[str, ...]:
        """The networks in which the node's own addresses serve node ports; loopback never does."""
        if PRIMARY in self.node_port_addresses:
            return tuple(f"{each}/{128 if ':' in each else 32}" for each in self.node.addresses)
        return self.node_port_addresses

    def serves_node_ports(self, address: str) -> bool:
        """Whether node ports answer on this address of the node."""
        return within(address, self.node_port_networks) and not within(address, _LOOPBACK)

    def is_pod(self, address: str) -> bool:
        return within(address, self.cluster_cidrs)


def within(address: str, networks: Iterable[str]) -> bool:
    """Whether an address is in one of the networks."""
    parsed = parse(address)
    if parsed is None:
        return False
    known = (parse_network(text) for text in networks)
    return any(network is not None and parsed.address in network.network for network in known)
