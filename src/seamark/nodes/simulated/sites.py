"""Gives each node its own part of every Pod range and its own address in every node range."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import ip_address, ip_network

import msgspec

from seamark.nodes.simulated.settings import Network, NodeSettings, part_length, parts
from seamark.rules.objects.node import Node

FIRST_ADDRESS = 2  # 0 is the network's own, 1 the gateway's


class Site(msgspec.Struct, frozen=True):
    """The Pod ranges and addresses of one node."""

    pod_cidrs: tuple[str, ...]
    addresses: tuple[str, ...]


class NoRoom(Exception):
    """The ranges have no room for another node."""


class Sites:
    """What existing Nodes have taken of the ranges, and what is free."""

    def __init__(self, settings: NodeSettings, nodes: Iterable[Node]) -> None:
        self._settings = settings
        self._pod_ranges = [_Parts(ip_network(text), settings.pods) for text in settings.pod_ranges]
        self._node_ranges = [_Addresses(ip_network(text)) for text in settings.node_ranges]
        for node in nodes:
            for cidr in node.spec.pod_cidrs:
                for pod_range in self._pod_ranges:
                    pod_range.occupy(ip_network(cidr, strict=False))
            for address in node.status.addresses:
                for node_range in self._node_ranges:
                    node_range.occupy(address.address)

    def take(self, name: str) -> Site:
        """A site for another node; ``node-7`` gets the seventh part and address if these are free."""
        wish = (self._settings.number(name) or 1) - 1
        return Site(
            tuple(pod_range.take(wish) for pod_range in self._pod_ranges),
            tuple(node_range.take(wish) for node_range in self._node_ranges),
        )


class _Parts:
    """A Pod range, divided into parts of one size; Nodes that are not ours may have parts of another size."""

    def __init__(self, network: Network, pods: int) -> None:
        self._network = network
        self._length = part_length(network, pods)
        self._count = parts(network, pods)
        self._size = 1 << (network.max_prefixlen - self._length)
        self._taken: set[int] = set()

    def occupy(self, part: Network) -> None:
        if part.version != self._network.version or not part.overlaps(self._network):
            return
        base = int(self._network.network_address)
        first = max(0, int(part.network_address) - base) // self._size
        last = min(int(part.broadcast_address), int(self._network.broadcast_address)) - base
        self._taken.update(range(first, last // self._size + 1))

    def take(self, wish: int) -> str:
        if len(self._taken) >= self._count:
            raise NoRoom(f"the Pod range {self._network} has no part left for one more node")
        number = wish % self._count
        while number in self._taken:
            number = (number + 1) % self._count
        self._taken.add(number)
        return f"{self._network.network_address + number * self._size}/{self._length}"


class _Addresses:
    """A range of node addresses."""

    def __init__(self, network: Network) -> None:
        self._network = network
        # The last IPv4 address is for broadcast.
        self._count = network.num_addresses - FIRST_ADDRESS - (network.version == 4)
        self._taken: set[int] = set()

    def occupy(self, text: str) -> None:
        try:
            address = ip_address(text)
        except ValueError:
            return  # a host name
        if address in self._network:
            self._taken.add(int(address) - int(self._network.network_address) - FIRST_ADDRESS)

    def take(self, wish: int) -> str:
        if len(self._taken) >= self._count:
            raise NoRoom(f"every address of the node range {self._network} is taken")
        number = wish % self._count
        while number in self._taken:
            number = (number + 1) % self._count
        self._taken.add(number)
        return str(self._network.network_address + FIRST_ADDRESS + number)
