"""The API server under load: create, get, update, list, watch fan-out, over HTTPS with keep-alive clients.

Against a private Seamark, or any API server: ``python -m bench api --kubeconfig FILE --pids PID,PID``.  For comparison
the same run measures upper limits: the same HTTP server answering fixed bytes, the same store without HTTP, and both in
one process.  ``--json FILE`` keeps the results; ``python -m bench compare A.json B.json`` shows two runs side by side.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
import tempfile
import time
import urllib.parse
from pathlib import Path
from typing import Any

import msgspec
import uvloop
from bench.rig.load import (
    Result,
    Server,
    cpu_of_each,
    drive,
    measured,
    python_server,
    request,
    resident_megabytes,
    seamark_server,
)
from bench.rig.report import Report
from bench.rig.rights import compare, count

from seamark import __version__
from seamark.access.kubeconfig import KubeconfigError, load
from seamark.access.sending import tls_context
from seamark.errors import ApiError

NAMESPACE = "bench"
NOBODY = "nobody"  # the scheduler of Pods that shall not run on the nodes of a cluster that is measured


def pod(name: str, scheduler: str = "default-scheduler") -> bytes:
    container = {
        "name": "c",
        "image": "example/app:1",
        "ports": [{"containerPort": 8080, "name": "http"}],
        "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
        "readinessProbe": {"httpGet": {"path": "/", "port": 8080}},
    }
    meta = {"name": name, "labels": {"app": "web", "pod-template-hash": "5d4f8c7b9"}}
    spec = {"containers": [container]} | ({} if scheduler == "default-scheduler" else {"schedulerName": scheduler})
    return msgspec.json.encode({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})


async def of_kubeconfig(path: str, pids: tuple[int, ...]) -> Server:
    """A running server, whose processes are ``pids``, as kubectl would find it: by the current context."""
    connection = load(path)
    identity = await connection.credentials.current()
    parts = urllib.parse.urlsplit(connection.server)
    tls = tls_context(connection, identity.certificate) if parts.scheme == "https" else None
    port = parts.port or (443 if tls else 80)
    return Server(parts.hostname or "", port, tls, identity.authorization.removeprefix("Bearer "), pids)


async def bare_store(size: int, count: int, clients: int) -> Result:
    """Commit values of a stored Pod's size, with as many in flight as there are clients."""
    from seamark.store.opening import open_store
    from seamark.store.protocol import Write

    with tempfile.TemporaryDirectory() as folder:
        store = open_store(f"sqlite://{folder}/store.db")
        await store.open()
        numbers = iter(range(count))
        value = b"x" * size

        async def write() -> None:
            for number in numbers:
                await store.commit([Write(f"/core/pods/bench/p{number}", value, 0)])

        began, cpu = time.perf_counter(), time.process_time()
        await asyncio.gather(*[write() for _ in range(clients)])
        seconds = time.perf_counter() - began
        cpu = time.process_time() - cpu
        await store.close()
    return Result(count / seconds, cpu / count * 1e6, seconds)


async def one(server: Server, method: str, path: str, body: bytes = b"") -> None:
    await drive(server, [request(server, method, path, body)], 1)


async def make_namespace(server: Server) -> None:
    """The namespace for everything that is made; refused if there is one, because it goes afterwards."""
    await one(server, "POST", "/api/v1/namespaces", msgspec.json.encode({"metadata": {"name": NAMESPACE}}))


async def fan_out(server: Server, watchers: int, events: int, name: str = "fan") -> Result:
    """Open watches, then change one object many times, until the last watcher has seen the last change."""
    loop = asyncio.get_running_loop()
    path = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
    last = f'"n":"{events}"'.encode()
    seen: list[asyncio.Future[None]] = []
    opened: list[asyncio.Future[None]] = []

    class Watcher(asyncio.Protocol):
        def __init__(self) -> None:
            self.tail = b""
            self.saw: asyncio.Future[None] = loop.create_future()
            self.open: asyncio.Future[None] = loop.create_future()
            seen.append(self.saw)
            opened.append(self.open)

        def connection_made(self, transport: Any) -> None:
            transport.write(request(server, "GET", f"{path}?watch=true&resourceVersion=0"))
            self.transport = transport

        def data_received(self, data: bytes) -> None:
            if not self.open.done():
                self.open.set_result(None)
            self.tail = self.tail[-64:] + data
            if last in self.tail and not self.saw.done():
                self.saw.set_result(None)
                self.transport.close()

    await one(
        server, "POST", path, msgspec.json.encode({"metadata": {"name": name}, "data": {"n": "0", "pad": "x" * 900}})
    )
    for _ in range(watchers):
        await loop.create_connection(
            Watcher, server.host, server.port, ssl=server.tls, server_hostname=server.host if server.tls else None
        )
    await asyncio.gather(*opened)
    await asyncio.sleep(0.5)
    changes = [
        request(
            server,
            "PATCH",
            f"{path}/{name}",
            msgspec.json.encode({"data": {"n": str(n)}}),
            "application/merge-patch+json",
        )
        for n in range(1, events + 1)
    ]
    before, began = cpu_of_each(server.pids), time.perf_counter()
    await drive(server, changes, 1)
    await asyncio.gather(*seen)
    seconds = time.perf_counter() - began
    return measured(server, before, watchers * events, seconds)


async def measure(
    server: Server, options: argparse.Namespace, report: Report, get: Result | None = None, post: Result | None = None
) -> None:
    pods = f"/api/v1/namespaces/{NAMESPACE}/pods"
    idle = resident_megabytes(*server.pids)
    creates = [request(server, "POST", pods, pod(f"p{n}", NOBODY)) for n in range(options.pods)]
    report.show(f"create, {options.clients} clients", await drive(server, creates, options.clients), post)
    lone = [request(server, "POST", pods, pod(f"lone{n}", NOBODY)) for n in range(300)]
    report.show("create, 1 client", await drive(server, lone, 1))
    if server.pids:
        report.memory("resident, idle", idle)
        report.memory(f"resident, {options.pods} Pods more", resident_megabytes(*server.pids) - idle)
    reads = [request(server, "GET", f"{pods}/p{n % options.pods}") for n in range(options.requests)]
    report.show(f"get, {options.clients} clients", await drive(server, reads, options.clients), get)
    flips = [
        request(
            server,
            "PATCH",
            f"{pods}/p{n % options.pods}/status",
            msgspec.json.encode({"status": {"conditions": [{"type": "Ready", "status": str(n % 2 == 0)}]}}),
            "application/strategic-merge-patch+json",
        )
        for n in range(options.pods)
    ]
    report.show(f"patch status, {options.clients} clients", await drive(server, flips, options.clients), post)
    lists = await drive(server, [request(server, "GET", pods)] * 10, 1)
    report.show(f"list {options.pods} Pods", lists)
    fan = await fan_out(server, options.watchers, options.events)
    report.show(f"events to {options.watchers} watchers", fan)


async def curve(server: Server, sizes: list[int], clients: int) -> None:
    """The cost of an operation over the number of stored objects."""
    print("  objects stored      create      get    patch   (µs of CPU each)")
    pods, made = f"/api/v1/namespaces/{NAMESPACE}/pods", 0
    for size in sizes:
        if size > made:
            filling = [request(server, "POST", pods, pod(f"c{n}")) for n in range(made, size)]
            await drive(server, filling, clients)
            made = size
        step = 500
        new = [request(server, "POST", pods, pod(f"x{size}-{n}")) for n in range(step)]
        reads = [request(server, "GET", f"{pods}/x{size}-{n}") for n in range(step)]
        body = b'{"metadata":{"labels":{"x":"y"}}}'
        edits = [
            request(server, "PATCH", f"{pods}/x{size}-{n}", body, "application/merge-patch+json") for n in range(step)
        ]
        costs = [(await drive(server, work, clients)).cpu or 0.0 for work in (new, reads * 4, edits)]
        print(f"  {made:>14} {costs[0]:>11.0f} {costs[1]:>8.0f} {costs[2]:>8.0f}", flush=True)


async def run(options: argparse.Namespace) -> None:
    report = Report("api", options.kubeconfig or f"seamark {__version__}")
    try:
        await _run(options, report)
    finally:
        if options.json:
            report.save(options.json)


async def _run(options: argparse.Namespace, report: Report) -> None:
    if options.kubeconfig:
        print(f"API server of {options.kubeconfig}")
        server = await of_kubeconfig(options.kubeconfig, tuple(options.pids))
        await make_namespace(server)
        try:
            await measure(server, options, report)
        finally:
            await one(server, "DELETE", f"/api/v1/namespaces/{NAMESPACE}")
        return
    with tempfile.TemporaryDirectory() as folder:
        if options.rights:
            print("what rights cost")
            await compare(Path(folder), options.rights, report)
            if shutil.which("callgrind_control"):
                await count(Path(folder))
            else:
                print("  instructions are not counted: there is no valgrind")
            return
        print("ceilings")
        with python_server("bench.rig.bare", Path(folder) / "bare", "2000") as bare:
            get = await drive(bare, [request(bare, "GET", "/")] * options.requests, options.clients)
            report.show("HTTPS alone, GET", get)
            post = await drive(bare, [request(bare, "POST", "/", pod("p"))] * options.requests, options.clients)
            report.show("HTTPS alone, POST", post)
        store = await bare_store(2000, options.requests, options.clients)
        report.show("store alone, commit", store)
        # A create is one HTTP request and one commit: the sum of their times is a limit, as is both in one process.
        report.show("both, times added up", Result(1 / (1 / post.rate + 1 / store.rate), None, 0.0))
        with python_server("bench.rig.floor", Path(folder) / "floor") as floor:
            writes = [request(floor, "POST", "/", pod("p"))] * options.requests
            both = await drive(floor, writes, options.clients)
            report.show("both in one process", both)
        store_option = ["--workers", str(options.workers), *(["--store", options.store] if options.store else [])]
        print("Seamark")
        with seamark_server(Path(folder) / "data", "apiserver", *store_option) as server:
            await make_namespace(server)
            await measure(server, options, report, get, both)
        if options.curve:
            print("cost over size")
            with seamark_server(Path(folder) / "curve", "apiserver", *store_option) as server:
                await make_namespace(server)
                await curve(server, [1000, 10_000, 30_000, 100_000], options.clients)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kubeconfig", metavar="FILE", help="measure this API server instead of a Seamark of our own")
    parser.add_argument(
        "--pids",
        type=lambda text: [int(pid) for pid in text.split(",")],
        default=[],
        metavar="PID,PID",
        help="with --kubeconfig: the server's processes, whose CPU time and memory are read",
    )
    parser.add_argument("--json", metavar="FILE", help="keep the results, for `bench compare A.json B.json`")
    parser.add_argument("--store", default="", metavar="URL", help="store of our own server")
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="processes of our own server")
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--watchers", type=int, default=1000)
    parser.add_argument("--events", type=int, default=20)
    parser.add_argument("--rights", type=int, default=0, metavar="ROUNDS", help="only what RBAC costs, on and off")
    parser.add_argument("--curve", action="store_true", help="also the cost per operation from 1,000 to 100,000 Pods")
    options = parser.parse_args()
    if options.pids and not options.kubeconfig:
        parser.error("--pids are those of the server that --kubeconfig names")
    try:
        uvloop.run(run(options))
    except (KubeconfigError, ApiError, RuntimeError, OSError) as error:
        sys.exit(f"bench api: {error}")


if __name__ == "__main__":
    main()
