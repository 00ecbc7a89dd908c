"""Many clients at once, cheap enough for hundreds: writers that read through another server, watchers, and DNS queries.

Each writer counts up in a ConfigMap of its own.  It knows at each moment which counts the object may have: the one
acknowledged last, and those whose outcome is unknown.  Any other count in an answer is a stale read or a lost write.
"""

from __future__ import annotations

import asyncio
import json
import re
import struct
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast
from urllib.parse import urlsplit

from seamark_process import Seamark

NAMESPACE = "crowd"
CONFIGMAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
END = "end"
PAUSE_SECONDS = 0.005  # between two queries of a DNS client


class Line:
    """One connection of a client, for one request after the other; a new one whenever the server has closed it."""

    def __init__(self, server: Seamark) -> None:
        url = urlsplit(server.url)
        self._place = url.hostname, url.port
        self._token = server.token
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, method: str, path: str, body: Any = None) -> tuple[int, dict[str, str], Any]:
        """The answer: its code, its headers and what its JSON says."""
        if self._streams is None or self._streams[0].at_eof():
            self._streams = await asyncio.open_connection(*self._place)
        reader, writer = self._streams
        writer.write(request(method, path, self._token, body))
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
        said = await reader.readexactly(int(headers["content-length"]))
        return int(head[0].split()[1]), headers, json.loads(said) if said[:1] == b"{" else said.decode()

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()


def request(method: str, path: str, token: str, body: Any = None) -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
    if body is None:
        return f"{head}\r\n".encode()
    media = "application/merge-patch+json" if method == "PATCH" else "application/json"
    sent = json.dumps(body)
    return f"{head}Content-Type: {media}\r\nContent-Length: {len(sent)}\r\n\r\n{sent}".encode()


class Watcher(asyncio.Protocol):
    """Notes the version of each change it is told of, and goes on where it was when its watch ends."""

    _EVENT = re.compile(rb'^\{"type":"(\w+)"(?=.*?"name":"([^"]*)")(?=.*?"resourceVersion":"(\d+)")', re.M)

    def __init__(self, server: Seamark, version: str) -> None:
        self.versions: list[int] = [int(version)]
        self.ended = asyncio.get_running_loop().create_future()  # when it was told of the last change, or failed
        self.reconnects = -1
        self._server = server
        self._rest = b""
        self._transport: asyncio.BaseTransport | None = None

    async def connect(self) -> None:
        url = urlsplit(self._server.url)
        await asyncio.get_running_loop().create_connection(lambda: self, url.hostname, url.port)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.reconnects += 1
        self._rest = b""
        self._transport = transport
        path = f"{CONFIGMAPS}?watch=true&resourceVersion={self.versions[-1]}"
        cast(asyncio.Transport, transport).write(request("GET", path, self._server.token))

    def data_received(self, data: bytes) -> None:
        whole, newline, self._rest = (self._rest + data).rpartition(b"\n")
        for kind, name, version in self._EVENT.findall(whole + newline):
            if kind not in (b"ADDED", b"MODIFIED"):
                self._end(AssertionError(f"a watcher was told: {whole.decode()}"))
            self.versions.append(int(version))
            if name == END.encode():
                self._end(None)

    def _end(self, error: Exception | None) -> None:
        if not self.ended.done():
            self.ended.set_result(None) if error is None else self.ended.set_exception(error)

    def close(self) -> None:
        self.ended.cancel()
        if self._transport is not None:
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.ended.done():
            self._again = asyncio.ensure_future(self.connect())


class Names(asyncio.DatagramProtocol):
    """Asks a DNS server for one name again and again; every reply must hold the address."""

    def __init__(self, name: str) -> None:
        labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
        self._query = struct.pack("!6H", 7, 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack("!2H", 1, 1)
        self.answered = 0
        self.wrong: list[str] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)
        self._ask()

    def _ask(self) -> None:
        if not self._transport.is_closing():
            self._transport.sendto(self._query)

    def datagram_received(self, data: bytes, addr: Any) -> None:
        if data[3] & 15 or data[6:8] != b"\0\1":
            self.wrong.append(data.hex())
        self.answered += 1
        asyncio.get_running_loop().call_later(PAUSE_SECONDS, self._ask)

    def error_received(self, exc: Exception) -> None:
        self.wrong.append(str(exc))

    def close(self) -> None:
        self._transport.close()


class Crowd:
    """All of them at two servers.  ``acknowledged`` are the versions of writes answered 200, with the time of each."""

    def __init__(self, servers: Sequence[Seamark], *, writers: int) -> None:
        self._servers = servers
        self._count = writers
        self._stopping = False
        self._writing: list[asyncio.Task[None]] = []
        self.acknowledged: dict[int, float] = {}
        self.refused: Counter[int] = Counter()
        self.watchers: list[Watcher] = []
        self.names: list[Names] = []

    async def start(self, *, watchers: int, dns_port: int, dns_clients: int = 4) -> None:
        line = Line(self._servers[0])
        await line.ask("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        # The controllers put one ConfigMap into each namespace, and no other should be seen but those of the writers.
        while (await line.ask("GET", f"{CONFIGMAPS}/kube-root-ca.crt"))[0] != 200:
            await asyncio.sleep(0.05)
        version = (await line.ask("GET", CONFIGMAPS))[2]["metadata"]["resourceVersion"]
        line.close()
        self.watchers = [Watcher(self._servers[number % 2], version) for number in range(watchers)]
        for watcher in self.watchers:
            await watcher.connect()
        self._writing = [asyncio.ensure_future(self._write(number)) for number in range(self._count)]
        for _ in range(dns_clients):
            names = Names("kubernetes.default.svc.cluster.local")
            await asyncio.get_running_loop().create_datagram_endpoint(
                lambda names=names: names,  # type: ignore[misc]  # mypy cannot infer a lambda with a default
                remote_addr=("127.0.0.1", dns_port),
            )
            self.names.append(names)

    async def _write(self, number: int) -> None:
        here, there = Line(self._servers[number % 2]), Line(self._servers[1 - number % 2])
        path, count, possible = f"{CONFIGMAPS}/w{number}", 0, [0]
        body: Any = {"metadata": {"name": f"w{number}"}, "data": {"count": "0"}}
        while (await self._ask(here, "POST", CONFIGMAPS, body))[0] not in (201, 409):
            pass
        while not self._stopping:
            count += 1
            status, made = await self._ask(here, "PATCH", path, {"data": {"count": str(count)}})
            if status == 200:
                self.acknowledged[int(made["metadata"]["resourceVersion"])] = time.monotonic()
                possible = [count]
            elif status == 504:
                possible.append(count)
            status, found = await self._ask(there, "GET", path)
            if status == 200:
                shown = int(found["data"]["count"])
                assert shown in possible, f"w{number} is {shown}, but can only be one of {possible}"
                possible = [each for each in possible if each >= shown]
        here.close()
        there.close()

    async def _ask(self, line: Line, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """The answer.  Who is refused waits as long as the server says."""
        status, headers, said = await line.ask(method, path, body)
        if status == 503:
            self.refused[status] += 1
            await asyncio.sleep(int(headers["retry-after"]))
        elif status == 504:
            self.refused[status] += 1
            assert "may have been" in said["message"], said
        else:
            assert status in (200, 201, 409), said
        return status, said

    def check(self) -> None:
        """Fail if a server has ended, or a client saw what it must not see."""
        for server in self._servers:
            assert server.process.poll() is None, server.log
        for task in self._writing:
            if task.done():
                task.result()
        for watcher in self.watchers:
            if watcher.ended.done():
                watcher.ended.result()
        assert not [wrong for names in self.names for wrong in names.wrong]

    async def until(self, moment: float) -> None:
        while time.monotonic() < moment:
            await asyncio.sleep(0.1)
            self.check()

    async def until_more(self, count: int) -> None:
        """Until so many more writes were acknowledged."""
        wanted = len(self.acknowledged) + count
        while len(self.acknowledged) < wanted:
            await asyncio.sleep(0.02)
            self.check()

    def rate(self, since: float, until: float) -> float:
        """Acknowledged writes per second."""
        return sum(since <= at < until for at in self.acknowledged.values()) / (until - since)

    def recovered(self, since: float, rate: float) -> float:
        """Seconds from then until a second begins that has so many acknowledged writes."""
        times = sorted(at for at in self.acknowledged.values() if at >= since)
        for first, at in enumerate(times):
            last = first + max(1, int(rate)) - 1
            if last < len(times) and times[last] - at <= 1:
                return at - since
        return float("inf")

    async def finish(self) -> int:
        """End all clients; returns how many changes each watcher saw: all of them, in the same order, each once."""
        self._stopping = True
        await asyncio.gather(*self._writing)
        for names in self.names:
            names.close()
        line = Line(self._servers[0])
        status, _, made = await line.ask("POST", CONFIGMAPS, {"metadata": {"name": END}})
        assert status == 201, made
        line.close()
        for watcher in self.watchers:
            await watcher.ended
        self.check()
        seen = self.watchers[0].versions
        assert seen == sorted(set(seen))
        assert self.acknowledged.keys() <= set(seen)
        assert all(watcher.versions == seen for watcher in self.watchers)
        return len(seen) - 1


@asynccontextmanager
async def crowd(servers: Sequence[Seamark], *, writers: int, watchers: int, dns_port: int) -> AsyncIterator[Crowd]:
    """The clients, at work."""
    made = Crowd(servers, writers=writers)
    try:
        await made.start(watchers=watchers, dns_port=dns_port)
        yield made
    finally:
        for task in made._writing:
            task.cancel()
        for client in (*made.names, *made.watchers):
            client.close()
