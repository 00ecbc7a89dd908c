"""Carries out one action of a probe or a hook: a request, a connection or a command, as a kubelet does it.

Connections are made from the node's network.  Certificates are not checked, because a probe asks whether a server
answers, not who it is.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from ipaddress import ip_address
from socket import AF_INET, AF_INET6, SOCK_STREAM, socket
from typing import NoReturn
from urllib.parse import urljoin, urlsplit
from uuid import uuid4

from msgspec.structs import replace

from seamark.access import grpc_health
from seamark.access.pod_streams import unverified
from seamark.kinds.values.hosts import bracketed
from seamark.nodes.running.machine.machine import Machine
from seamark.nodes.running.machine.messages import Start
from seamark.nodes.running.probes import Answer, Errored, port_number
from seamark.nodes.running.spec import Action, Container, HttpGet

AGENT = "kube-probe/1.38"
LARGEST = 10 << 10  # bytes of an answer that are read
_REDIRECTS = 10
_HEAD = 64 << 10


class Checks:
    """Asks one Pod, from its node."""

    def __init__(self, machine: Machine, node: str, address: str) -> None:
        self._machine = machine
        self._namespace = f"node/{node}"
        self._address = address

    async def ask(
        self, action: Action, containers: Sequence[Container], start: Start | None, timeout: float | None
    ) -> Answer:
        """One question about the first of these containers; raises ``Errored``, and nothing for what the Pod does.

        ``start`` says how the container was started: a command joins it.
        """
        if action.exec is not None and start is not None:
            return await self._exec(action.exec.command, start, timeout)
        if action.http_get is not None:
            port = port_number(action.http_get.port, containers)
            return await self._http(action.http_get, port, timeout)
        if action.tcp_socket is not None:
            port = port_number(action.tcp_socket.port, containers)
            return await self._tcp(action.tcp_socket.host or self._address, port, timeout)
        if action.grpc is not None:
            return await self._grpc(action.grpc.port, action.grpc.service or "", timeout)
        raise Errored("missing probe handler")

    # --- connections -------------------------------------------------------------------------------

    async def _connect(self, host: str, port: int) -> socket:
        loop = asyncio.get_running_loop()
        try:
            family = AF_INET if ip_address(host).version == 4 else AF_INET6
        except ValueError:
            found = await loop.getaddrinfo(host, port, type=SOCK_STREAM)
            family, host = found[0][0], str(found[0][4][0])
        opened = await self._machine.open(self._namespace, family, SOCK_STREAM)
        try:
            await loop.sock_connect(opened, (host, port))
        except BaseException as error:
            opened.close()
            if isinstance(error, OSError):
                _refused(host, port, error)
            raise
        return opened

    async def _tcp(self, host: str, port: int, timeout: float | None) -> Answer:
        try:
            async with asyncio.timeout(timeout):
                (await self._connect(host, port)).close()
        except TimeoutError:
            return Answer(False, f"dial tcp {bracketed(host)}:{port}: i/o timeout")
        except OSError as error:
            return Answer(False, str(error))
        return Answer(True)

    async def _grpc(self, port: int, service: str, timeout: float | None) -> Answer:
        where = f"{bracketed(self._address)}:{port}"
        try:
            async with asyncio.timeout(timeout):
                reader, writer = await asyncio.open_connection(sock=await self._connect(self._address, port))
                try:
                    state = await grpc_health.ask(reader, writer, authority=where, service=service)
                finally:
                    writer.close()
        except (TimeoutError, OSError) as error:
            words = "context deadline exceeded" if isinstance(error, TimeoutError) else str(error)
            within = f" within {timeout:g}s" if timeout else ""
            return Answer(False, f'timeout: failed to connect service "{where}"{within}: {words}')
        except grpc_health.NoAnswer as error:
            return Answer(False, f"error: health rpc probe failed: {error}")
        if state == grpc_health.SERVING:
            return Answer(True, f"service healthy: {state}")
        return Answer(False, f'service unhealthy (responded with "{state}")')

    async def _http(self, asked: HttpGet, port: int, timeout: float | None) -> Answer:
        host = asked.host or self._address
        path = asked.path if asked.path.startswith("/") else f"/{asked.path}"
        url = f"{asked.scheme.lower() or 'http'}://{bracketed(host)}:{port}{path}"
        try:
            async with asyncio.timeout(timeout):
                return await self._followed(url, asked)
        except TimeoutError:
            words = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
            return Answer(False, f'Get "{url}": {words}')
        except (OSError, ValueError, EOFError) as error:
            return Answer(False, f'Get "{url}": {str(error) or "EOF"}')

    async def _followed(self, url: str, asked: HttpGet) -> Answer:
        """The answer at the end of redirects to the same host; one to another host is a success with a warning."""
        first = urlsplit(url).hostname
        for _ in range(_REDIRECTS):
            code, location, body = await self._get(url, asked)
            if not 300 <= code < 400 or not location:
                if 200 <= code < 400:
                    return Answer(True, body)
                return Answer(False, f"HTTP probe failed with statuscode: {code}")
            url = urljoin(url, location)
            if urlsplit(url).hostname != first:
                return Answer(True, body, f"Probe terminated redirects, Response body: {body}")
        return Answer(False, f'Get "{url}": stopped after {_REDIRECTS} redirects')

    async def _get(self, url: str, asked: HttpGet) -> tuple[int, str, str]:
        parts = urlsplit(url)
        host, secure = parts.hostname or "", parts.scheme == "https"
        opened = await self._connect(host, parts.port or (443 if secure else 80))
        headers = {"host": parts.netloc, "user-agent": AGENT, "accept": "*/*", "connection": "close"}
        headers |= {each.name.lower(): each.value for each in asked.http_headers}
        name = headers["host"].rpartition(":")[0].strip("[]") or host
        reader, writer = await asyncio.open_connection(
            sock=opened, ssl=unverified() if secure else None, server_hostname=name if secure else None, limit=_HEAD
        )
        try:
            target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            lines = "".join(f"{key.title()}: {value}\r\n" for key, value in headers.items() if value)
            writer.write(f"GET {target} HTTP/1.1\r\n{lines}\r\n".encode())
            line, *said = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            version, _, answer = line.partition(" ")
            if not version.startswith("HTTP/") or not answer[:3].isdecimal():
                raise ValueError(f"net/http: HTTP/1.x transport connection broken: malformed HTTP response {line!r}")
            fields = {key.lower(): value.strip() for key, _, value in (each.partition(":") for each in said)}
            body = await _beginning(reader) if 300 <= int(answer[:3]) < 400 else ""
            return int(answer[:3]), fields.get("location", ""), body
        finally:
            writer.close()

    # --- commands ----------------------------------------------------------------------------------

    async def _exec(self, command: tuple[str, ...], start: Start, timeout: float | None) -> Answer:
        """Run a command in the container, and end it when its time is over."""
        joining = replace(
            start,
            process=f"{start.process}/{uuid4().hex}",
            arguments=command,
            inside=start.process,
            root=(),
            terminal=False,
        )
        output = _Output()
        nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        try:
            try:
                process = await self._machine.run(joining, [nothing, output.writing, output.writing])
            except OSError as error:
                raise Errored(f"failed to exec in container: {command[0]}: {error.strerror or error}") from error
            finally:
                os.close(nothing)
            try:
                async with asyncio.timeout(timeout):
                    ended = await asyncio.shield(process.ended)
            except TimeoutError:
                words = " ".join(command)
                return Answer(False, f'command timed out: "{words}" timed out after {timeout:g}s')
            finally:
                if not process.ended.done():
                    with suppress(OSError):
                        await self._machine.signal(joining.process, signal.SIGKILL)
            return Answer(ended.code == 0, output.text())
        finally:
            output.close()


class _Output:
    """A pipe for what a command writes, of which the beginning is kept."""

    def __init__(self) -> None:
        self._reading, self.writing = os.pipe()
        os.set_blocking(self._reading, False)
        self._said = b""
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._reading, self._take)

    def _take(self) -> bool:
        """Whether more may come."""
        try:
            data = os.read(self._reading, _HEAD)
        except BlockingIOError:
            return False
        self._said += data[: LARGEST - len(self._said)]
        return bool(data)

    def text(self) -> str:
        """What was written up to now."""
        while self._take():
            pass
        return self._said.decode(errors="replace")

    def close(self) -> None:
        self._loop.remove_reader(self._reading)
        os.close(self._reading)
        os.close(self.writing)


def _refused(host: str, port: int, error: OSError) -> NoReturn:
    words = os.strerror(error.errno).lower() if error.errno else str(error)
    raise ConnectionError(f"dial tcp {bracketed(host)}:{port}: connect: {words}") from error


async def _beginning(reader: asyncio.StreamReader) -> str:
    return (await reader.read(LARGEST)).decode(errors="replace")
