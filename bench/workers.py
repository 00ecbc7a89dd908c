"""One process and several (``--workers``) under the same load, in turns: what each operation costs, and whom.

The figure that counts is the CPU time per operation of the *busiest* process: with a core for each process, it decides
how many operations there can be.  So the ratio shows what more processes bring also on a machine that is too small, or
too busy, to show it as a rate.  Each client sends as many requests as the others, and each event reaches all watchers
before the next, so the work of a process does not depend on what else the machine does.  Figures are medians over the
rounds; of the ratios within each round, the median and the quartiles are shown.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import uvloop
from bench.api import NAMESPACE, one, pod
from bench.rig.load import (
    Result,
    Server,
    common_megabytes,
    connect,
    cpu_of_each,
    drive,
    measured,
    request,
    seamark_server,
)

PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
WATCHED = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
WRITERS = 8  # of the objects that are watched, in turns
SETTLE_SECONDS = 0.5  # until a server has nothing left to do for clients that have come or gone

Operation = Callable[[Server, int], Awaitable[Result]]  # on a server, in the round of this number


class Watcher(asyncio.Protocol):
    """A client that watches, and tells of every event once."""

    def __init__(self, asked: bytes, seen: Callable[[], None]) -> None:
        self._asked, self._seen = asked, seen
        self._tail = b""
        self.mark = b"\n"  # how the event is known that it waits for

    def connection_made(self, transport: Any) -> None:
        transport.write(self._asked)

    def data_received(self, data: bytes) -> None:
        self._tail = self._tail[-64:] + data
        if self.mark and self.mark in self._tail:
            self.mark = b""
            self._seen()


class Audience:
    """The watchers of one server."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._watchers: list[Watcher] = []
        self._missing = 0
        self._all = asyncio.Event()
        self._changes = 0

    async def gather(self, count: int) -> None:
        server, loop = self._server, asyncio.get_running_loop()
        await one(server, "POST", WATCHED, msgspec.json.encode({"metadata": {"name": "w"}, "data": {"pad": "x" * 900}}))
        asked = request(server, "GET", f"{WATCHED}?watch=true&resourceVersion=0")
        self._missing = count
        for _ in range(count):
            _, watcher = await loop.create_connection(
                lambda: Watcher(asked, self._seen), server.host, server.port, ssl=server.tls
            )
            self._watchers.append(watcher)
        await self._all.wait()
        # Several, so that each process has some: where the change is made is a tenth of what an event costs.
        self._writers = [await connect(server) for _ in range(WRITERS)]

    def _seen(self) -> None:
        self._missing -= 1
        if not self._missing:
            self._all.set()

    async def events(self, count: int) -> Result:
        """Change the object so many times, each once all watchers have seen the change before."""
        before, began = cpu_of_each(self._server.pids), time.perf_counter()
        for _ in range(count):
            self._changes += 1
            body = msgspec.json.encode({"data": {"n": f"change {self._changes}"}})
            self._missing = len(self._watchers)
            self._all.clear()
            for watcher in self._watchers:
                watcher.mark = f'"n":"change {self._changes}"'.encode()
            change = request(self._server, "PATCH", f"{WATCHED}/w", body, "application/merge-patch+json")
            writer = self._writers[self._changes % WRITERS]
            await asyncio.gather(writer.ask(change), self._all.wait())
        return measured(self._server, before, count * len(self._watchers), time.perf_counter() - began)


async def create(server: Server, turn: int, *, pods: int, clients: int) -> Result:
    return await drive(
        server, [request(server, "POST", PODS, pod(f"p{turn}-{number}")) for number in range(pods)], clients
    )


async def get(server: Server, turn: int, *, requests: int, pods: int, clients: int) -> Result:
    paths = (f"{PODS}/p{turn}-{number % pods}" for number in range(requests))
    return await drive(server, [request(server, "GET", path) for path in paths], clients)


async def listing(server: Server, turn: int, *, lists: int, clients: int) -> Result:
    return await drive(server, [request(server, "GET", f"{PODS}?limit=500")] * lists, clients)


class Comparison:
    """The results of all servers, by operation and number of processes."""

    def __init__(self, servers: dict[int, Server]) -> None:
        self._servers = servers
        self._results: dict[str, dict[int, list[Result]]] = {}

    async def round(self, turn: int, operations: dict[str, Operation]) -> None:
        order = list(self._servers.items())[:: 1 if turn % 2 else -1]
        for what, operation in operations.items():
            for workers, server in order:
                await asyncio.sleep(SETTLE_SECONDS)
                result = await operation(server, turn)
                self._results.setdefault(what, {}).setdefault(workers, []).append(result)

    def show(self) -> None:
        first, *others = self._servers
        print("  µs of CPU per operation: of each process; then how many times as many operations the busiest allows")
        for what, found in self._results.items():
            alone = found[first]
            cells = [_parts(alone)]
            for workers in others:
                ratios = [one.busiest / each.busiest for one, each in zip(alone, found[workers], strict=True)]
                low, middle, high = statistics.quantiles(ratios) if len(ratios) > 1 else ratios * 3
                cells.append(f"{_parts(found[workers])}  {middle:5.2f} × ({low:.2f} – {high:.2f})")
            print(f"  {what:<24} {'  |  '.join(cells)}", flush=True)


def _parts(results: Iterable[Result]) -> str:
    """The processes' medians, from the main one on."""
    return " ".join(
        f"{statistics.median(each):7.1f}" for each in zip(*(result.parts for result in results), strict=True)
    )


def show_memory(what: str, servers: dict[int, Server]) -> None:
    megabytes = [common_megabytes(*server.pids) for server in servers.values()]
    print(
        f"  MB, {what:<20} {'  |  '.join(f'{each:7.1f}  {each / megabytes[0]:5.2f} ×' for each in megabytes)}",
        flush=True,
    )


async def run(options: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as running:
        servers = {
            workers: running.enter_context(
                seamark_server(Path(folder) / str(workers), options.verb, "--workers", str(workers), *options.more)
            )
            for workers in options.workers
        }
        for server in servers.values():
            await one(server, "POST", "/api/v1/namespaces", msgspec.json.encode({"metadata": {"name": NAMESPACE}}))
        await asyncio.sleep(SETTLE_SECONDS)
        show_memory("idle", servers)
        requests = {
            "create": partial(create, pods=options.pods, clients=options.clients),
            "get": partial(get, requests=options.requests, pods=options.pods, clients=options.clients),
            "list of 500 Pods": partial(listing, lists=options.lists, clients=options.clients),
        }
        comparison = Comparison(servers)
        for turn in range(options.rounds):
            await comparison.round(turn, requests)
        show_memory(f"{options.pods * options.rounds} Pods", servers)
        audiences = {server.port: Audience(server) for server in servers.values()}
        for audience in audiences.values():
            await audience.gather(options.watchers)
        show_memory(f"{options.watchers} watchers", servers)

        async def event(server: Server, turn: int) -> Result:
            return await audiences[server.port].events(options.events)

        for turn in range(options.rounds):
            await comparison.round(turn, {f"event, {options.watchers} watchers": event})
    comparison.show()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=lambda text: [int(each) for each in text.split(",")], default=[1, 2])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--pods", type=int, default=512, help="made in each round")
    parser.add_argument("--requests", type=int, default=2048, help="gets in each round")
    parser.add_argument("--lists", type=int, default=128, help="in each round")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--watchers", type=int, default=1000)
    parser.add_argument("--events", type=int, default=10, help="in each round")
    parser.add_argument("--verb", default="apiserver")
    parser.add_argument("more", nargs="*", help="further options of the server")
    uvloop.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
