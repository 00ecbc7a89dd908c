"""Several processes on one port: a supervisor that keeps N workers running and serves their combined status.

Each worker has its own sockets at the same addresses (with ``SO_REUSEPORT`` the kernel distributes the clients) and
its own informers.  The supervisor opens the sockets and keeps them open, so that queries wait in them while a worker
that died is restarted.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import msgspec

from seamark.access.backoff import Backoff
from seamark.access.status import Page, StatusServer
from seamark.dns.config import DnsConfig
from seamark.dns.server import Pair, bind, listen_status
from seamark.dns.sockets.addresses import Address
from seamark.dns.worker import Assignment
from seamark.kinds.values.hosts import bracketed

log = logging.getLogger(__name__)

_LONG_LIFE = 30.0
_ANSWER_SECONDS = 5.0
_END_SECONDS = 5.0
_LONGEST_LINE = 16 * 1024 * 1024


class Channel:
    """Questions to a worker and its answers, a line each, in the same order."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._owed = 0

    async def ask(self, what: str) -> bytes:
        """The answer; empty at the end of the channel.

        May be cancelled: an answer that comes later, from a worker that was busy or still starting, is dropped by the
        next question.
        """
        self._writer.write(what.encode() + b"\n")
        self._owed += 1
        await self._writer.drain()
        while True:
            answer = await self._reader.readline()
            self._owed -= 1
            if not (self._owed and answer):
                return answer

    def close(self) -> None:
        self._writer.close()


class Worker:
    """One process and the channel to it."""

    def __init__(self, number: int, config: DnsConfig, pairs: Sequence[Pair], kubeconfig: str, context: str) -> None:
        self.number = number
        self.restarts = 0
        self._config = config
        self._pairs = pairs
        self._kubeconfig = kubeconfig
        self._context = context
        self._channel: Channel | None = None
        self._asking = asyncio.Lock()

    async def run(self) -> None:
        """Keep the process running until cancelled."""
        backoff = Backoff(base=0.1, cap=10.0)
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            code = await self._live()
            self.restarts += 1
            log.error("DNS worker %d ended with code %s; starting it again", self.number, code)
            if loop.time() - began > _LONG_LIFE:
                backoff.reset()
            await asyncio.sleep(backoff.next())

    async def ask(self, what: str) -> bytes | None:
        """The worker's answer, or None if there is no worker or it does not answer in time."""
        async with self._asking:
            if self._channel is None:
                return None
            try:
                async with asyncio.timeout(_ANSWER_SECONDS):
                    return await self._channel.ask(what) or None
            except (OSError, TimeoutError):
                return None

    async def _live(self) -> int | None:
        ours, theirs = socket.socketpair()
        descriptors = tuple(sock.fileno() for pair in self._pairs for sock in pair)
        assignment = Assignment(self._config, descriptors, theirs.fileno(), self._kubeconfig, self._context)
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "seamark.dns.worker",
            stdin=asyncio.subprocess.PIPE,
            pass_fds=(*descriptors, theirs.fileno()),
        )
        theirs.close()
        try:
            assert process.stdin is not None
            process.stdin.write(msgspec.json.encode(assignment))
            process.stdin.close()
            self._channel = Channel(*await asyncio.open_unix_connection(sock=ours, limit=_LONGEST_LINE))
            return await process.wait()
        finally:
            if self._channel is not None:
                self._channel.close()
                self._channel = None
            if process.returncode is None:
                await _end(process)


async def _end(process: asyncio.subprocess.Process) -> None:
    process.terminate()
    try:
        async with asyncio.timeout(_END_SECONDS):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()


class WorkerPool:
    """The workers of one server, and their combined status."""

    def __init__(self, config: DnsConfig, *, kubeconfig: str = "", context: str = "") -> None:
        self.config = config
        self.addresses: list[Address] = []
        self.workers: list[Worker] = []
        self.status = StatusServer(ready=self.ready, metrics=self.metrics)
        self._kubeconfig = kubeconfig
        self._context = context

    @asynccontextmanager
    async def running(self) -> AsyncIterator[WorkerPool]:
        first = bind(self.config.listen, shared=True)
        self.addresses = [udp.getsockname()[:2] for udp, _ in first]
        listen = tuple(f"{bracketed(host)}:{port}" for host, port in self.addresses)
        sets = [first, *(bind(listen, shared=True) for _ in range(self.config.workers - 1))]
        self.workers = [
            Worker(number, msgspec.structs.replace(self.config, listen=listen, status=""), pairs, *self._identity)
            for number, pairs in enumerate(sets)
        ]
        try:
            async with asyncio.TaskGroup() as tasks:
                running = [
                    tasks.create_task(worker.run(), name=f"DNS worker {worker.number}") for worker in self.workers
                ]
                try:
                    await listen_status(self.status, self.config.status)
                    yield self
                finally:
                    await self.status.close()
                    for task in running:
                        task.cancel()
        finally:
            for sock in (sock for pairs in sets for pair in pairs for sock in pair):
                sock.close()

    @property
    def _identity(self) -> tuple[str, str]:
        return self._kubeconfig, self._context

    async def ready(self) -> Page:
        """Ready if every worker is, because the kernel may send a query to any of them."""
        pages = await asyncio.gather(*(worker.ask("ready") for worker in self.workers))
        code, lines = 200, []
        for worker, page in zip(self.workers, pages, strict=True):
            number, text = msgspec.json.decode(page, type=Page) if page else (503, "not running\n")
            code = max(code, number)
            lines.append(f"worker {worker.number}: {text}")
        return code, "".join(lines)

    async def metrics(self) -> str:
        texts = await asyncio.gather(*(worker.ask("metrics") for worker in self.workers))
        restarts = "seamark_dns_worker_restarts_total"
        lines = [f"# HELP {restarts} Workers started again.", f"# TYPE {restarts} counter"]
        lines += [f'{restarts}{{worker="{worker.number}"}} {worker.restarts}' for worker in self.workers]
        by_number = {
            worker.number: msgspec.json.decode(text, type=str)
            for worker, text in zip(self.workers, texts, strict=True)
            if text
        }
        return "\n".join(lines) + "\n" + merged(by_number)


def merged(texts: dict[int, str]) -> str:
    """The metrics of all workers as one text; each sample gets a label with its worker's number."""
    families: dict[str, list[str]] = {}
    for number, text in texts.items():
        family: list[str] = []
        for line in text.splitlines():
            if line.startswith("# HELP "):
                family = families.setdefault(line, [])
            elif line.startswith("#"):
                if line not in family:
                    family.append(line)
            else:
                family.append(_labelled(line, number))
    return "".join(f"{head}\n" + "".join(f"{line}\n" for line in lines) for head, lines in families.items())


def _labelled(sample: str, number: int) -> str:
    label = f'worker="{number}"'
    name, value = sample.rsplit(" ", 1)
    if name.endswith("}"):
        return f"{name[:-1]},{label}}} {value}"
    return f"{name}{{{label}}} {value}"
