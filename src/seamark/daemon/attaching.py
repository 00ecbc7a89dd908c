"""Connects a daemon to the machine that its Pods run on.

The API server and DNS also listen at the fabric's own addresses, where Pods reach them; each node's network gets the
proxy's rules from this process, over sockets of that network.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from ipaddress import ip_network

from seamark.access.informers import Informers
from seamark.api.http.listener import Listener
from seamark.config import Config
from seamark.dns.server import Pair
from seamark.metrics import Registry
from seamark.nodes.running.machine.machine import FABRIC, Machine
from seamark.nodes.running.network import Network, NodeNetwork

DNS_PORT = 53


def gateways(config: Config) -> tuple[str, ...]:
    """The addresses at which Pods reach this process; none if Pods do not run."""
    if config.pods.mode != "processes":
        return ()
    return tuple(str(ip_network(each)[1]) for each in config.nodes.node_ranges)


class Attaching:
    """``listener`` is the API server's; ``answer`` serves names on pairs of a UDP and a TCP socket."""

    def __init__(
        self,
        config: Config,
        informers: Informers,
        *,
        listener: Listener,
        answer: Callable[[list[Pair]], Awaitable[None]],
    ) -> None:
        self._config = config
        self._informers = informers
        self._listener = listener
        self._answer = answer

    @asynccontextmanager
    async def fabric(self, machine: Machine, network: Network) -> AsyncIterator[None]:
        opened, pairs = [], []
        try:
            for address in network.gateways:
                bound = await _bound(machine, address, self._listener.address[1], socket.SOCK_STREAM)
                opened.append(bound)
                self._listener.add(bound)
                udp = await _bound(machine, address, DNS_PORT, socket.SOCK_DGRAM)
                pairs.append((udp, await _bound(machine, address, DNS_PORT, socket.SOCK_STREAM)))
            await self._answer(pairs)
            yield
        finally:
            for bound in opened:
                self._listener.remove(bound)
            for each in (sock for pair in pairs for sock in pair):
                each.close()

    @asynccontextmanager
    async def node(self, machine: Machine, node: NodeNetwork) -> AsyncIterator[None]:
        from seamark.proxy.feed import RouteFeed
        from seamark.proxy.nftables.engine import NftablesEngine
        from seamark.rules.routing.surroundings import Surroundings, ThisNode

        sockets = (await machine.netfilter(node.namespace), await machine.netfilter(node.namespace))
        around = Surroundings(ThisNode(node.name), cluster_cidrs=self._config.nodes.pod_ranges)
        feed = RouteFeed(self._informers, NftablesEngine(sockets=sockets), around, metrics=Registry())
        ready = asyncio.Event()
        running = asyncio.create_task(feed.run(ready.set), name=f"proxy of {node.name}")
        waiting = asyncio.create_task(ready.wait())
        await asyncio.wait([running, waiting], return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        try:
            if running.done():
                running.result()
            yield
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


async def _bound(machine: Machine, address: str, port: int, kind: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    opened = await machine.open(FABRIC, family, kind)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    opened.bind((address, port))
    return opened
