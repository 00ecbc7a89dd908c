"""A cheap load generator: requests are bytes made beforehand, and answers are only framed, not decoded."""

from __future__ import annotations

import asyncio
import contextlib
import os
import ssl
import subprocess
import sys
import time
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import httptools
import msgspec


class Server(msgspec.Struct):
    """The server to send load to, and the processes whose CPU time and memory to read (none: unknown)."""

    host: str
    port: int
    tls: ssl.SSLContext | None
    token: str
    pids: tuple[int, ...] = ()


class Result(msgspec.Struct):
    """``rate`` per second; ``cpu`` microseconds of the server's CPU time per request, None if unknown.

    ``parts`` are those of each process.
    """

    rate: float
    cpu: float | None
    seconds: float
    parts: tuple[float, ...] = ()

    @property
    def busiest(self) -> float:
        """The time of the process that has most of it: with enough cores, it decides the rate."""
        return max(self.parts, default=0.0)


def environment(folder: str) -> dict[str, str]:
    """The environment for a server, in which compiled modules are kept, as for an installed package."""
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": folder}


@contextlib.contextmanager
def seamark_server(
    directory: Path,
    verb: str,
    *options: str,
    env: Mapping[str, str] | None = None,
    program: Sequence[str] = (sys.executable, "-m", "seamark"),
    under: Sequence[str] = (),
) -> Iterator[Server]:
    """A private Seamark on free ports, with all its processes; the block runs once it is ready.

    ``under`` is a command that runs commands.
    """
    command = [*under, *program, verb, "--data-dir", str(directory), "--api-port", "0", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env)
    try:
        assert process.stdout is not None
        url = ""
        for line in process.stdout:
            url = url or (line.split()[-1] if "https://" in line else "")
            if line.strip() == "ready":
                break
        tls = ssl.create_default_context(cafile=str(directory / "pki" / "ca.crt"))
        token = (directory / "pki" / "admin.token").read_text()
        yield Server("127.0.0.1", int(urllib.parse.urlsplit(url).port or 0), tls, token, family(process.pid))
    finally:
        process.terminate()
        process.wait()


@contextlib.contextmanager
def server_of_users(folder: Path, users: Mapping[str, str], *groups: str) -> Iterator[Server]:
    """An API server that knows these users by their tokens, all of them in these groups."""
    tokens = folder / "tokens.csv"
    rest = f',"{",".join(groups)}"' if groups else ""
    tokens.write_text("".join(f"{token},{name},{name}{rest}\n" for name, token in users.items()))
    with seamark_server(
        folder / "data", "apiserver", "--token-file", str(tokens), env=environment(str(folder))
    ) as server:
        yield server


def family(pid: int) -> tuple[int, ...]:
    """A process and all that it started."""
    children = [
        int(child) for file in Path(f"/proc/{pid}/task").glob("*/children") for child in file.read_text().split()
    ]
    return (pid, *(each for child in children for each in family(child)))


@contextlib.contextmanager
def python_server(
    module: str, directory: Path, *arguments: str, env: Mapping[str, str] | None = None
) -> Iterator[Server]:
    """One of the benchmarks' own servers, which prints its port once it serves."""
    command = [sys.executable, "-m", module, str(directory), *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env)
    try:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        tls = ssl.create_default_context(cafile=str(directory / "ca.crt"))
        yield Server("127.0.0.1", port, tls, "none", (process.pid,))
    finally:
        process.terminate()
        process.wait()


def cpu_of_each(pids: Sequence[int]) -> list[float]:
    """User and system time of each process so far, in the nanoseconds of the scheduler where it tells them."""
    try:
        return [sum(map(_scheduled, Path(f"/proc/{pid}/task").iterdir())) / 1e9 for pid in pids]
    except FileNotFoundError:
        pass
    stats = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids]
    return [(int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") for fields in stats]


def _scheduled(thread: Path) -> int:
    return int((thread / "schedstat").read_text().split()[0])


def cpu_seconds(pids: Sequence[int]) -> float | None:
    """User and system time of these processes together."""
    return sum(cpu_of_each(pids)) if pids else None


def measured(server: Server, before: Sequence[float], operations: int, seconds: float) -> Result:
    """What so many operations took since ``before``, when each process had used so much CPU time."""
    used = [(now - then) / operations * 1e6 for now, then in zip(cpu_of_each(server.pids), before, strict=True)]
    return Result(operations / seconds, sum(used) if used else None, seconds, tuple(used))


def resident_megabytes(*pids: int) -> float:
    pages = sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in pids)
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def common_megabytes(*pids: int) -> float:
    """Memory of these processes; what they have in common, with one another or with others, counts in parts."""
    kilobytes = 0
    for pid in pids:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        kilobytes += next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return kilobytes * 1024 / 1e6


def request(server: Server, method: str, path: str, body: bytes = b"", media: str = "application/json") -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nHost: {server.host}\r\nAuthorization: Bearer {server.token}\r\n"
    head += "User-Agent: bench\r\nAccept: application/json\r\n"
    if body:
        head += f"Content-Type: {media}\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"\r\n" + body


class Client(asyncio.Protocol):
    """One keep-alive connection that sends the next request when the previous one is answered."""

    def __init__(self, work: Iterator[bytes], done: asyncio.Future[int]) -> None:
        self._work, self._done = work, done
        self._parser = httptools.HttpResponseParser(self)
        self._refusal = b""
        self._answered = 0
        self._transport: Any = None

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def send(self) -> None:
        """Send the next request; the one after it follows by itself."""
        try:
            self._transport.write(next(self._work))
        except StopIteration:
            self._transport.close()
            if not self._done.done():
                self._done.set_result(self._answered)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    # --- called by the parser, whether an answer has a length or comes in chunks ---------------------

    def on_body(self, body: bytes) -> None:
        if self._parser.get_status_code() >= 300:
            self._refusal += body

    def on_message_complete(self) -> None:
        if (code := self._parser.get_status_code()) >= 300:
            self._fail(RuntimeError(f"unexpected answer: {code} {self._refusal[:400]!r}"))
            return
        self._answered += 1
        self.send()

    def _fail(self, error: Exception) -> None:
        if not self._done.done():
            self._done.set_exception(error)
        self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._done.done():
            self._done.set_exception(exc or ConnectionError("the server hung up"))


class Connection(asyncio.Protocol):
    """A connection over which one request at a time is sent; what a watch brings is passed over."""

    def __init__(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._answer: asyncio.Future[bytes] | None = None
        self._body: list[bytes] = []
        self.transport: Any = None

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    async def ask(self, sent: bytes) -> tuple[int, bytes]:
        self._answer, self._body = asyncio.get_running_loop().create_future(), []
        self.transport.write(sent)
        body = await self._answer
        return self._parser.get_status_code(), body

    def watch(self, sent: bytes) -> None:
        self.transport.write(sent)

    def data_received(self, data: bytes) -> None:
        if self._answer is not None:
            self._parser.feed_data(data)

    def on_body(self, body: bytes) -> None:
        self._body.append(body)

    def on_message_complete(self) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(b"".join(self._body))

    def connection_lost(self, exc: Exception | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(exc or ConnectionError("the server hung up"))


async def connect(server: Server) -> Connection:
    loop = asyncio.get_running_loop()
    return (await loop.create_connection(Connection, server.host, server.port, ssl=server.tls))[1]


async def drive(server: Server, requests: Sequence[bytes], clients: int) -> Result:
    """Send all requests over a number of connections, as fast as they are answered; connecting is not counted.

    Each connection has an equal part of them, so that which process serves how many does not depend on their speed.
    """
    loop = asyncio.get_running_loop()
    connected = []
    for number in range(clients):
        done: asyncio.Future[int] = loop.create_future()
        work = iter(requests[number::clients])
        _, client = await loop.create_connection(
            lambda work=work, done=done: Client(work, done),  # type: ignore[misc]  # mypy cannot infer such a lambda
            server.host,
            server.port,
            ssl=server.tls,
            server_hostname=server.host if server.tls else None,
        )
        connected.append((client, done))
    before = cpu_of_each(server.pids)
    began = time.perf_counter()
    for client, _ in connected:
        client.send()
    answered = sum(await asyncio.gather(*(done for _, done in connected)))
    seconds = time.perf_counter() - began
    return measured(server, before, answered, seconds)
