"""API servers as processes of their own, over a file or an etcd, which can be killed and started again."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from clients import NAMESPACE, NODE_PORTS, RANGE
from seamark_process import Seamark

from free_ports import free_port
from seamark.access import kubeconfig
from seamark.access.cluster import Cluster
from seamark.access.remote import RemoteCluster
from seamark.kinds.resource import NAMESPACES
from seamark.presence import find

PAUSE_SECONDS = 0.02  # between two tries of a client whose server or store is away


class Machine:
    """One API server at one address, however often it is started."""

    def __init__(self, directory: Path, *arguments: str) -> None:
        self._directory = directory
        ranges = ("--service-range", RANGE, "--node-port-range", f"{NODE_PORTS[0]}-{NODE_PORTS[1]}")
        # The full profile writes ConfigMaps of its own, and the histories hold only what the clients wrote.
        address = ("--profile", "plain", "--plain-http", "--api-port", str(free_port()))
        self._arguments = (*address, *ranges, *arguments)
        self._server: Seamark | None = None
        self.up = asyncio.Event()

    async def start(self) -> None:
        """Returns when it is ready."""
        self._server = await asyncio.to_thread(Seamark, self._directory, *self._arguments)
        self.up.set()

    async def kill(self) -> None:
        """As ``kill -9`` does; safe to call twice."""
        self.up.clear()
        server, self._server = self._server, None
        if server is not None:
            await asyncio.to_thread(server.kill)

    def check(self) -> None:
        """Complain if the server has ended by itself."""
        server = self._server
        assert server is None or server.process.poll() is None, f"the server ended:\n{server.log}"

    @property
    def pid(self) -> int:
        assert self._server is not None
        return self._server.process.pid

    @property
    def workers(self) -> Sequence[int]:
        """The processes that serve beside the main one."""
        found = find(self._directory)
        return () if found is None else found.workers

    def remote(self) -> RemoteCluster:
        """A client that sends each write once.

        The HTTP library sends an update or a delete again if its connection breaks.  The second answer, a refusal,
        would hide that the first was done.
        """
        cluster = RemoteCluster(kubeconfig.load(self._directory / "kubeconfig"))
        cluster._transport._connections()._retry_connection = False
        return cluster


class Processes:
    """A site (see :class:`clients.Site`) of such servers."""

    def __init__(self, machines: Sequence[Machine], chance: random.Random) -> None:
        self.machines = machines
        self._clusters = [machine.remote() for machine in machines]
        self._chance = chance

    def cluster(self) -> Cluster:
        return self._chance.choice(self._clusters)

    async def reachable(self) -> None:
        await asyncio.sleep(PAUSE_SECONDS)
        for machine in self.machines:
            machine.check()
            await machine.up.wait()

    async def close(self) -> None:
        for cluster in self._clusters:
            await cluster.close()


@contextlib.asynccontextmanager
async def processes(machines: Sequence[Machine], chance: random.Random) -> AsyncIterator[Processes]:
    """The machines, running until the end."""
    try:
        for machine in machines:
            await machine.start()
        site = Processes(machines, chance)
        try:
            await site.cluster().create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
            yield site
        finally:
            await site.close()
    finally:
        for machine in machines:
            await machine.kill()
