"""What the API server asks about Pods that run here: :class:`seamark.access.pod_streams.PodStreams`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from errno import ECONNREFUSED
from ipaddress import ip_address, ip_network
from socket import AF_INET, AF_INET6, SOCK_STREAM, socket

from seamark import errors
from seamark.access.pod_streams import Command, Connection, LogOptions, Session, unverified
from seamark.kinds.autoscaling.usage import Measurement
from seamark.nodes.running.hosting import Hosting
from seamark.nodes.running.life import OpenContainer, PodLife
from seamark.nodes.running.machine.machine import FABRIC
from seamark.nodes.running.streaming import log_reading
from seamark.nodes.running.streaming.sessions import Attachment, Execution

CONNECT_SECONDS = 30.0


class RunningPods:
    """The Pods of ``hosting``; ``ranges`` are those of the addresses of Pods and nodes."""

    def __init__(self, hosting: Hosting, ranges: tuple[str, ...]) -> None:
        self._hosting = hosting
        self._ranges = [ip_network(each) for each in ranges]

    def measured(self) -> Measurement:
        return self._hosting.meter.last

    def runs(self, pod: str) -> bool:
        return pod in self._hosting.lives

    def _life(self, pod: str) -> PodLife:
        life = self._hosting.lives.get(pod)
        if life is None:
            raise errors.NotFound("pod does not exist", details={})
        return life

    def logs(self, pod: str, container: str, options: LogOptions) -> AsyncIterator[bytes]:
        life = self._life(pod)
        opened = life.open.get(container)
        console = opened.console if opened is not None and opened.run == options.run else None
        return log_reading.read(life.folder / "logs" / container, options, console)

    def _opened(self, pod: str, container: str) -> OpenContainer:
        opened = self._life(pod).open.get(container)
        if opened is None:
            raise errors.InternalError(f'unable to upgrade connection: container not found ("{container}")')
        return opened

    def check_open(self, pod: str, container: str) -> None:
        self._opened(pod, container)

    async def open(self, pod: str, container: str, command: Command) -> Session:
        opened = self._opened(pod, container)
        if not command.words:
            return Attachment(opened, command)
        return await Execution.start(self._hosting.machine, opened, command)

    async def dial(self, pod: str, port: int) -> Connection:
        namespace = self._life(pod).namespace
        try:
            return await self._connect(namespace, "127.0.0.1", port)
        except OSError as error:
            try:
                return await self._connect(namespace, "::1", port)
            except OSError:
                raise error from None

    async def reach(self, address: str, port: int, *, tls: bool = False) -> Connection | None:
        return await self._connect(FABRIC, address, port, tls=tls) if self._is_inside(address) else None

    async def socket(self, address: str) -> socket | None:
        if not self._is_inside(address):
            return None
        if not hasattr(self._hosting, "machine"):  # it is still being started, and the address is of an earlier run
            raise ConnectionRefusedError(ECONNREFUSED, f"no Pod runs at {address} yet")
        return await self._hosting.machine.open(FABRIC, AF_INET6 if ":" in address else AF_INET, SOCK_STREAM)

    def _is_inside(self, address: str) -> bool:
        return any(ip_address(address) in each for each in self._ranges)

    async def _connect(self, namespace: str, address: str, port: int, *, tls: bool = False) -> Connection:
        family = AF_INET6 if ":" in address else AF_INET
        opened: socket = await self._hosting.machine.open(namespace, family, SOCK_STREAM)
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await asyncio.get_running_loop().sock_connect(opened, (address, port))
                if not tls:
                    return await asyncio.open_connection(sock=opened)
                return await asyncio.open_connection(sock=opened, ssl=unverified(), server_hostname=address)
        except BaseException:
            opened.close()
            raise
