"""Connects a daemon to the machine that its Pods run on.

The API server and DNS also listen at the fabric's own addresses, where Pods reach them; each node's network gets the
proxy's rules from this process, over sockets of that network.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from ipaddress import ip_address, ip_network
from typing import Any

from seamark.access.informers import Informers
from seamark.api.bootstrap import DNS_PORT
from seamark.api.http.wire.listener import Listener
from seamark.config import Config
from seamark.dns.server import Pair
from seamark.metrics import Registry
from seamark.nodes.running.machine.machine import FABRIC, Machine
from seamark.nodes.running.network import Network, NodeNetwork
from seamark.proxy.userspace.sockets import Opened, OwnSockets, family_of

_DATAGRAM_SOCKETS = 16


class Attaching:
    """``listener`` is the API server's; ``answer`` serves names on pairs of a UDP and a TCP socket."""

    def __init__(
        self,
        config: Config,
        informers: Informers,
        *,
        listener: Listener,
        answer: Callable[[list[Pair]], Awaitable[None]],
        sockets: PodSockets,
        spare: list[Machine],
    ) -> None:
        self._config = config
        self._informers = informers
        self._listener = listener
        self._answer = answer
        self._sockets = sockets
        self._spare = spare  # started when it was tried whether Pods can run

    async def machine(self) -> Machine:
        return self._spare.pop() if self._spare else await Machine.start()

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
            self._sockets.use(machine)
            yield
        finally:
            self._sockets.use(None)
            for bound in opened:
                self._listener.remove(bound)
            for each in (sock for pair in pairs for sock in pair):
                each.close()

    @asynccontextmanager
    async def node(self, machine: Machine, node: NodeNetwork) -> AsyncIterator[None]:
        from seamark.proxy.feed import RouteFeed
        from seamark.proxy.health import Health, HealthChecks
        from seamark.proxy.nftables.engine import NftablesEngine
        from seamark.proxy.server import Watched
        from seamark.rules.routing.surroundings import Surroundings, ThisNode

        sockets = (await machine.netfilter(node.namespace), await machine.netfilter(node.namespace))
        around = Surroundings(ThisNode(node.name), cluster_cidrs=node.pod_ranges)
        metrics = Registry()
        health = Health(lambda: feed.waiting_since, lambda: feed.table.surroundings.node.eligible)
        checks = HealthChecks(health, bind=partial(_bound, machine, namespace=node.namespace))
        engine = Watched(NftablesEngine(sockets=sockets), checks, health, metrics, "nftables")
        feed = RouteFeed(self._informers, engine, around, host_ports=True, metrics=metrics)
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


class PodSockets:
    """Sockets that lead to Pods and nodes from the fabric, and to everything else from this process's own network."""

    def __init__(self, config: Config) -> None:
        self._inside = [ip_network(each) for each in (*config.nodes.pod_ranges, *config.nodes.node_ranges)]
        self._own = OwnSockets()
        self._machine: Machine | None = None
        self._datagrams: dict[int, deque[socket.socket]] = {}  # opened ahead, since a datagram cannot wait; by family
        self._tasks: set[asyncio.Task[None]] = set()

    def use(self, machine: Machine | None) -> None:
        """From now on this is the machine."""
        self._machine = machine
        for kept in self._datagrams.values():
            for each in kept:
                each.close()
        self._datagrams = {}
        if machine is not None:
            for family in (socket.AF_INET, socket.AF_INET6):
                self._datagrams[family] = deque()
                self._spawn(self._refill(machine, family))

    def tcp(self, address: str, then: Opened) -> None:
        if not self._is_inside(address):
            self._own.tcp(address, then)
        elif self._machine is None:
            then(None)
        else:
            self._spawn(self._open(self._machine, address, then))

    def udp(self, address: str) -> socket.socket:
        if not self._is_inside(address):
            return self._own.udp(address)
        kept = self._datagrams.get(family_of(address))
        if not kept or self._machine is None:
            raise OSError(errno.EAGAIN, "no socket is ready")
        self._spawn(self._refill(self._machine, family_of(address)))
        return kept.popleft()

    def _is_inside(self, address: str) -> bool:
        parsed = ip_address(address)
        return any(parsed in each for each in self._inside)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _open(self, machine: Machine, address: str, then: Opened) -> None:
        try:
            opened = await machine.open(FABRIC, family_of(address), socket.SOCK_STREAM)
        except OSError:
            then(None)
            return
        then(opened)

    async def _refill(self, machine: Machine, family: int) -> None:
        while self._machine is machine and len(self._datagrams[family]) < _DATAGRAM_SOCKETS:
            try:
                opened = await machine.open(FABRIC, family, socket.SOCK_DGRAM)
            except OSError:
                return
            if self._machine is machine:
                self._datagrams[family].append(opened)
            else:
                opened.close()


async def _bound(
    machine: Machine, address: str, port: int, kind: int = socket.SOCK_STREAM, *, namespace: str = FABRIC
) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    opened = await machine.open(namespace, family, kind)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    try:
        opened.bind((address, port))
    except OSError:
        opened.close()
        raise
    return opened
