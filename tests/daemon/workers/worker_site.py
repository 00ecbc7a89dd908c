"""A main process and workers as one server, all of them in this process."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from seamark.access.kubeconfig import load
from seamark.access.transport import Request, Transport
from seamark.clock import SystemClock
from seamark.config import Config
from seamark.daemon import Component, Daemon
from seamark.daemon.workers import Birth, Board, Worker


class InThisProcess:
    """Runs workers as tasks instead of forking."""

    def __init__(self, config: Config, components: Collection[str] = ()) -> None:
        self._config = config
        self._components = frozenset(components)
        self.board = Board(config.api.workers)
        self.workers: list[Worker] = []
        self.running: list[asyncio.Task[None]] = []
        self.full = False  # whether there is no process to be had

    def fork(self, birth: Birth, *sockets: socket.socket) -> None:
        if self.full:
            raise BlockingIOError("Resource temporarily unavailable")
        given = msgspec.structs.replace(birth, sockets=tuple(os.dup(each.fileno()) for each in sockets))
        self.workers.append(Worker(self._config, self.board, given, self._components))
        self.running.append(asyncio.create_task(self.workers[-1].run()))

    def kill(self, pid: int) -> None:
        """All have the number of this process, so it ends the last."""
        self.running[-1].cancel()


class Gate(SystemClock):
    """A clock by which a part that failed starts again when the gate opens."""

    def __init__(self) -> None:
        self.open = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)  # others go on, also if the gate is open
        await self.open.wait()


class Site:
    """A daemon with workers, and clients that have one connection each."""

    def __init__(self, daemon: Daemon, forks: InThisProcess, gate: Gate) -> None:
        self.daemon, self.forks, self.gate = daemon, forks, gate
        self.clients: list[Transport] = []

    async def client(self) -> Transport:
        made = Transport(load(self.daemon.kubeconfig_path, environ={}))
        self.clients.append(made)
        await ask(made, "GET", "/version")  # it is connected, and stays with the process it came to
        return made

    async def page(self, client: Transport, path: str) -> tuple[int, str]:
        path, _, query = path.partition("?")
        code, body = await client.ask(Request("GET", path, ((query, ""),) if query else ()))
        return code, body.decode()


async def ask(client: Transport, method: str, path: str, body: Any = None) -> Any:
    code, answer = await client.ask(Request(method, path, body=None if body is None else msgspec.json.encode(body)))
    assert code < 300, answer
    return msgspec.json.decode(answer)


@asynccontextmanager
async def served(config: Config, components: Collection[Component] = ()) -> AsyncIterator[Site]:
    forks = InThisProcess(config, components)
    daemon = Daemon(config, components, forks)
    daemon.supervisor.clock = gate = Gate()
    async with daemon.running():
        made = Site(daemon, forks, gate)
        yield made
        for client in made.clients:
            await client.close()
    await asyncio.gather(*forks.running)
