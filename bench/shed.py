"""Ten times more than the server can do: what good clients still get, what memory it takes, how soon it is over.

Good clients send a create, a get and a delete in turn, at a rate that the server takes easily.  Bad ones, of another
user, never pause: they list everything, write large objects anew, and open watches that they do not read.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import tempfile
import time
from collections.abc import Iterator
from itertools import cycle
from multiprocessing.synchronize import Event
from pathlib import Path

import msgspec
from bench.rig.load import Client, Server, drive, request, resident_megabytes, server_of_users

USERS = {"bad": "bad-token", "good": "good-token"}
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
BINDING = {
    "metadata": {"name": "bench"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
    "subjects": [{"kind": "User", "name": name, "apiGroup": "rbac.authorization.k8s.io"} for name in USERS],
}


LARGE = 300  # objects of 100 kB


def large(number: int) -> bytes:
    return json.dumps({"metadata": {"name": f"large-{number}"}, "data": {"k": "x" * 100_000}}).encode()


class Careless(Client):
    """A client that takes any answer for one."""

    def on_message_complete(self) -> None:
        self._answered += 1
        self.send()


def storm(server: Server, clients: int, unread: int, at_work: Event) -> None:
    """Until the process is ended; ``at_work`` is set once all are connected."""
    puts = [request(server, "PUT", f"{CONFIGMAPS}/large-{n}", large(n)) for n in range(LARGE)]

    def endless() -> Iterator[bytes]:
        for put in cycle(puts):
            yield request(server, "GET", "/api/v1/configmaps")
            yield put

    async def main() -> None:
        loop = asyncio.get_running_loop()
        work, watches = endless(), []
        for _ in range(unread):
            _, writer = await asyncio.open_connection(server.host, server.port, ssl=server.tls)
            writer.write(request(server, "GET", "/api/v1/configmaps?watch=true"))
            writer.transport.pause_reading()  # type: ignore[attr-defined]  # a transport that reads, too
            watches.append(writer)
        for _ in range(clients):
            _, client = await loop.create_connection(
                lambda: Careless(work, loop.create_future()), server.host, server.port, ssl=server.tls
            )
            client.send()
        at_work.set()
        await loop.create_future()

    asyncio.run(main())


class Good:
    """Clients that send a request every so often, and note the time of each answer they wanted."""

    def __init__(self, server: Server, clients: int, rate: float) -> None:
        self._server, self._pause = server, clients / rate
        self.answered: list[float] = []
        self.longest: list[float] = []
        self._tasks = [asyncio.ensure_future(self._work(number)) for number in range(clients)]

    async def _work(self, number: int) -> None:
        server, path = self._server, f"{CONFIGMAPS}/good-{number}"
        made = json.dumps({"metadata": {"name": f"good-{number}"}}).encode()
        reader, writer = await asyncio.open_connection(server.host, server.port, ssl=server.tls)
        steps = (("POST", CONFIGMAPS, made), ("GET", path, b""), ("DELETE", path, b""))
        due = time.monotonic()
        while True:
            for method, where, body in steps:
                due = max(due + self._pause, time.monotonic() - self._pause)
                await asyncio.sleep(max(0.0, due - time.monotonic()))
                begun = time.monotonic()
                writer.write(request(server, method, where, body))
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                await reader.readexactly(int(head.partition(b"content-length: ")[2].split(b"\r\n")[0]))
                if head.split()[1][:1] == b"2":
                    self.answered.append(time.monotonic())
                    self.longest.append(self.answered[-1] - begun)

    async def rate(self, seconds: float) -> tuple[float, float]:
        """Answers per second from now on, and the 99th percentile of how long one took (ms)."""
        before, begun = len(self.answered), time.monotonic()
        await asyncio.sleep(seconds)
        took = sorted(self.longest[before:])
        return len(took) / (time.monotonic() - begun), 1e3 * took[int(0.99 * len(took))] if took else float("inf")

    def stop(self) -> None:
        for task in self._tasks:
            task.cancel()


async def measure(server: Server, options: argparse.Namespace) -> None:
    good_server, bad_server = (msgspec.structs.replace(server, token=USERS[name]) for name in ("good", "bad"))
    bodies = [json.dumps({"metadata": {"name": f"c{n}"}}).encode() for n in range(options.objects)]
    await drive(server, [request(server, "POST", CONFIGMAPS, body) for body in bodies], 16)
    await drive(server, [request(server, "POST", CONFIGMAPS, large(n)) for n in range(LARGE)], 16)
    binding = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
    await drive(server, [request(server, "POST", binding, json.dumps(BINDING).encode())], 1)
    good = Good(good_server, options.good, options.rate)
    await good.rate(1)
    alone, alone_took = await good.rate(options.seconds)
    memory = resident_megabytes(*server.pids)
    at_work = multiprocessing.Event()
    other = multiprocessing.Process(target=storm, args=(bad_server, options.bad, options.unread, at_work), daemon=True)
    other.start()
    await asyncio.to_thread(at_work.wait)
    beside, beside_took = await good.rate(options.seconds)
    halfway = resident_megabytes(*server.pids)
    again, _ = await good.rate(options.seconds)
    during = resident_megabytes(*server.pids)
    other.kill()
    after, after_took = await good.rate(1)
    good.stop()
    print(f"good clients alone                  {alone:8.0f} /s, 99 % within {alone_took:6.0f} ms, {memory:5.0f} MB")
    print(f"beside {options.bad} bad ones and {options.unread} unread watches {beside:8.0f} /s, "
          f"99 % within {beside_took:6.0f} ms, {halfway:5.0f} MB")  # fmt: skip
    print(f"for {options.seconds:.0f} s more                         {again:8.0f} /s,{'':24} {during:5.0f} MB")
    print(f"in the first second after           {after:8.0f} /s, 99 % within {after_took:6.0f} ms")
    print(f"kept                                {min(beside, again) / alone:8.0%}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench shed", description=__doc__)
    parser.add_argument("--objects", type=int, default=1500, help="how many objects a list has")
    parser.add_argument("--good", type=int, default=10, help="good clients")
    parser.add_argument("--rate", type=float, default=100, help="requests per second of all good clients together")
    parser.add_argument("--bad", type=int, default=100, help="bad clients, of which ten use up a core")
    parser.add_argument("--unread", type=int, default=50, help="watches that nobody reads")
    parser.add_argument("--seconds", type=float, default=8)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, server_of_users(Path(folder), USERS) as server:
        asyncio.run(measure(server, options))
    return 0
