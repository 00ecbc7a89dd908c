"""The network of the machine: nodes as network namespaces joined by routes, and each Pod with a cable to its node.

::

    fabric (the machine's own namespace): a bridge with the first address of each node range;
      │                                   the API server and DNS listen here, and routes lead to every node's Pods
      ├── node-1: eth0 with the node's addresses; forwards; rules of the proxy
      │     ├── Pod: eth0 with the Pod's addresses, everything else by way of the node
      │     └── Pod
      └── node-2 …

A Pod is alone on its cable: all it sends passes the node's routing, also to Pods of the same node, so that the rules
for Services see both directions of every connection.  (Pods on one bridge would answer each other directly.)
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from ipaddress import ip_address, ip_network

import msgspec

from seamark.linux.links import Links
from seamark.linux.netlink import NetlinkError
from seamark.nodes.running.machine.machine import FABRIC, Machine

_BRIDGE = "fabric"
_NEXT_HOP = {4: "169.254.1.1", 6: "fe80::1"}  # the node's end of every Pod's cable
_EVERYTHING = {4: "0.0.0.0/0", 6: "::/0"}
_FORWARDS = {
    "net/ipv4/ip_forward": "1",
    "net/ipv6/conf/all/forwarding": "1",
    "net/ipv6/conf/default/accept_dad": "0",
    "net/ipv4/conf/all/route_localnet": "1",  # host ports at 127.0.0.1 lead to Pods
}
# As container runtimes set it: any user of a Pod may listen on port 80, and ping.
_POD = {
    "net/ipv6/conf/default/accept_dad": "0",
    "net/ipv4/ip_unprivileged_port_start": "0",
    "net/ipv4/ping_group_range": "0 0",
}


class NodeNetwork(msgspec.Struct, frozen=True):
    """The addresses of a node, and the ranges that its Pods have theirs from."""

    name: str
    addresses: tuple[str, ...]
    pod_ranges: tuple[str, ...]

    @property
    def namespace(self) -> str:
        return f"node/{self.name}"


class _Node:
    """A node's namespace, seen from here."""

    def __init__(self, network: NodeNetwork, links: Links, interface: str) -> None:
        self.network = network
        self.links = links
        self.interface = interface  # its port of the fabric's bridge
        self.pods: dict[str, str] = {}  # the node's end of each Pod's cable, by Pod
        self.count = 0
        self.busy = asyncio.Lock()


class Network:
    """Creates and removes what is described above.  Calls about one node or Pod must not overlap."""

    def __init__(self, machine: Machine, fabric: Links, node_ranges: Sequence[str]) -> None:
        self._machine = machine
        self._fabric = fabric
        self._ranges = [ip_network(each) for each in node_ranges]
        self._nodes: dict[str, _Node] = {}
        self._count = 0

    @classmethod
    async def create(cls, machine: Machine, node_ranges: Sequence[str]) -> Network:
        fabric = await machine.links(FABRIC)
        network = cls(machine, fabric, node_ranges)
        fabric.add_bridge(_BRIDGE)
        for node_range, address in zip(network._ranges, network.gateways, strict=True):
            fabric.add_address(_BRIDGE, address, node_range.prefixlen)
        fabric.up(_BRIDGE)
        return network

    @property
    def gateways(self) -> tuple[str, ...]:
        """The fabric's own addresses, at which nodes and Pods reach the API server and DNS."""
        return tuple(str(each[1]) for each in self._ranges)

    def close(self) -> None:
        """Close what is open here; the namespaces end with the machine."""
        for node in self._nodes.values():
            node.links.close()
        self._fabric.close()

    # --- nodes -------------------------------------------------------------------------------------

    async def add_node(self, network: NodeNetwork) -> None:
        self._count += 1
        interface = f"node{self._count}"
        namespace = await self._machine.namespace(network.namespace, network.name, _FORWARDS)
        try:
            self._fabric.add_pair(interface, "eth0", namespace)
        finally:
            os.close(namespace)
        self._fabric.up(interface, bridge=_BRIDGE)
        links = await self._machine.links(network.namespace)
        links.up("lo")
        for address in network.addresses:
            links.add_address("eth0", address, self._length(address))
        links.up("eth0")
        for gateway in self.gateways:
            links.add_route(_EVERYTHING[ip_address(gateway).version], by=gateway)
        for pod_range in network.pod_ranges:  # otherwise packets for a Pod that is gone would go back by the gateway
            links.refuse_route(pod_range)
        for other in self._nodes.values():
            _route(links, other.network)
            async with other.busy:
                _route(other.links, network)
        _route(self._fabric, network)
        self._nodes[network.name] = _Node(network, links, interface)

    def switch(self, name: str, *, on: bool) -> None:
        """Cut a node off from all others, or connect it again."""
        node = self._nodes.get(name)
        if node is not None and on:
            self._fabric.up(node.interface, bridge=_BRIDGE)
        elif node is not None:
            self._fabric.down(node.interface)

    async def remove_node(self, name: str) -> None:
        """Remove a node; its Pods must be gone."""
        node = self._nodes.pop(name)
        for pod_range in node.network.pod_ranges:
            _ignoring_absence(self._fabric.delete_route, pod_range)
            for other in self._nodes.values():
                async with other.busy:
                    _ignoring_absence(other.links.delete_route, pod_range)
        _ignoring_absence(self._fabric.delete, node.interface)
        node.links.close()
        await self._machine.forget(node.network.namespace)

    def _length(self, address: str) -> int:
        parsed = ip_address(address)
        return next((each.prefixlen for each in self._ranges if parsed in each), parsed.max_prefixlen)

    # --- Pods --------------------------------------------------------------------------------------

    async def add_pod(
        self,
        pod: str,
        node: str,
        addresses: Iterable[str],
        hostname: str,
        *,
        settings: Mapping[str, str] = {},
        shares_memory: bool = False,
    ) -> None:
        """A namespace for a Pod, named as the Pod is, with these addresses; it may share the IPC of its node."""
        home = self._nodes[node]
        home.count += 1
        cable = f"pod{home.count}"
        namespace = await self._machine.namespace(
            pod,
            hostname,
            {**_POD, **settings},
            shared_memory_of=home.network.namespace if shares_memory else "",
        )
        inside = await self._machine.links(pod)
        home.pods[pod] = cable
        try:
            async with home.busy:  # the kernel takes milliseconds, so it is asked in a thread
                await asyncio.to_thread(_wire, home, cable, namespace, inside, list(addresses))
        finally:
            os.close(namespace)
            inside.close()

    async def remove_pod(self, pod: str, node: str) -> None:
        home = self._nodes.get(node)
        cable = home.pods.pop(pod, None) if home is not None else None
        if home is not None and cable is not None:
            async with home.busy:
                await asyncio.to_thread(_ignoring_absence, home.links.delete, cable)
        await self._machine.forget(pod)


def _wire(home: _Node, cable: str, namespace: int, inside: Links, addresses: list[str]) -> None:
    home.links.add_pair(cable, "eth0", namespace)
    home.links.up(cable)
    inside.up("lo")
    inside.up("eth0")
    own = {ip_address(each).version: each for each in reversed(home.network.addresses)}
    for address in addresses:
        version = ip_address(address).version
        hop = _NEXT_HOP[version]
        home.links.add_address(cable, hop, 64 if version == 6 else None)
        home.links.add_route(address, over=cable, source=own.get(version, ""))  # so that Pods see the node's address
        inside.add_address("eth0", address)
        if version == 4:  # the next hop is in no network of the Pod's: say that it is on the cable
            inside.add_route(hop, over="eth0")
        inside.add_route(_EVERYTHING[version], by=hop, over="eth0")


def _route(links: Links, network: NodeNetwork) -> None:
    """The way to the Pods of a node: by the node's address of the same family."""
    by = {ip_address(each).version: each for each in reversed(network.addresses)}
    for pod_range in network.pod_ranges:
        version = ip_network(pod_range).version
        if version in by:
            links.add_route(pod_range, by=by[version])


def _ignoring_absence(action: Callable[[str], None], argument: str) -> None:
    try:
        action(argument)
    except NetlinkError:
        return
