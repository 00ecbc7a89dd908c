"""Nodes and Pods as network namespaces: who reaches whom, over real sockets."""

from __future__ import annotations

import asyncio
import socket

import pytest

from seamark.nodes.running.machine.machine import FABRIC
from seamark.nodes.running.network import Network, NodeNetwork

NODES = (
    NodeNetwork("node-1", ("10.1.0.2", "fd01::2"), ("10.244.1.0/24", "fd44:1::/64")),
    NodeNetwork("node-2", ("10.1.0.3", "fd01::3"), ("10.244.2.0/24", "fd44:2::/64")),
)
PODS = {
    "a": ("node-1", ("10.244.1.5", "fd44:1::5")),
    "b": ("node-1", ("10.244.1.6", "fd44:1::6")),
    "c": ("node-2", ("10.244.2.5", "fd44:2::5")),
}


@pytest.fixture
async def network(machine):
    made = await Network.create(machine, ("10.1.0.0/24", "fd01::/64"))
    for node in NODES:
        await made.add_node(node)
    for pod, (node, addresses) in PODS.items():
        await made.add_pod(pod, node, addresses, pod)
    yield made
    made.close()


def family(address):
    return socket.AF_INET6 if ":" in address else socket.AF_INET


async def reach(machine, place, address, port):
    """Connect from a namespace; returns the address the other side sees, when one listens there."""
    opened = await machine.open(place, family(address), socket.SOCK_STREAM)
    try:
        await asyncio.get_running_loop().sock_connect(opened, (address, port))
        return opened.getsockname()[0]
    finally:
        opened.close()


async def listen(machine, place, address, port=80):
    opened = await machine.open(place, family(address), socket.SOCK_STREAM)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    opened.bind((address, port))
    opened.listen()
    return opened


async def test_everyone_reaches_everyone(machine, network):
    """Pods of one node and of two, nodes, and the fabric, by both families; each is seen with its own address."""
    places = {"": network.gateways} | {node.namespace: node.addresses for node in NODES}
    places |= {pod: addresses for pod, (_, addresses) in PODS.items()}
    for target, addresses in places.items():
        for address in addresses:
            listening = await listen(machine, target, address)
            for place, own in places.items():
                if place != target:
                    seen = await reach(machine, place, address, 80)
                    if place:  # the fabric has an address for each of its networks
                        assert seen in own
            listening.close()


async def test_a_port_without_a_listener_refuses(machine, network):
    with pytest.raises(ConnectionRefusedError):
        await reach(machine, "a", "10.244.2.5", 81)


async def test_a_pod_that_is_removed_is_gone(machine, network):
    await network.remove_pod("c", "node-2")
    with pytest.raises(OSError, match="Connect call failed"):
        await reach(machine, FABRIC, "10.244.2.5", 80)
    await network.add_pod("d", "node-2", ("10.244.2.5",), "d")
    listening = await listen(machine, "d", "10.244.2.5")
    await reach(machine, "a", "10.244.2.5", 80)
    listening.close()


async def test_a_node_comes_and_goes(machine, network):
    await network.remove_pod("c", "node-2")
    await network.remove_node("node-2")
    await network.add_node(NODES[1])
    await network.add_pod("c", *PODS["c"], "c")
    listening = await listen(machine, "c", "10.244.2.5")
    await reach(machine, "a", "10.244.2.5", 80)
    listening.close()
