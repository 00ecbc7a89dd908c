"""One `seamark up` as large as a large cluster: 5,000 nodes, 5,000 Services, 150,000 Pods.

A tenth of the Pods is created through the API and becomes Ready.  What is measured at that size: one change, lists, a
Deployment and its rollout, an idle while.  Then nine copies of each Pod are written to the store, with addresses of
their own, and the server starts twice: first it finds out what follows from them, then it has nothing to do.  The same
is measured again, beside the figures before; what a change costs should stay the same.  ``--whole`` creates all Pods
through the API instead, in ten steps.

``--peer`` measures the way beyond one process: two API servers with their controllers over one etcd, of which the
leader is killed.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import ipaddress
import os
import signal
import sys
import tempfile
import time
import urllib.parse
import uuid
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import uvloop
from bench.rig.load import (
    Connection,
    Server,
    connect,
    cpu_seconds,
    drive,
    environment,
    request,
    resident_megabytes,
    seamark_server,
)
from bench.up import etcd_server

from seamark.store.opening import open_store
from seamark.store.protocol import Row, Write, prefix_end

STEPS, CLIENTS, NAMESPACES = 10, 32, 100
APART = 12  # between the addresses of two copies of a Pod; no node has more Pods before they are copied
MERGE = "application/merge-patch+json"


def settings(nodes: int) -> str:
    """Nodes of 110 Pods, as they usually are, with addresses for all."""
    return (
        f'[nodes]\ncount = {nodes}\npods = 110\npod_ranges = ["10.240.0.0/12", "fd00:10:240::/48"]\n'
        'node_ranges = ["172.18.0.0/16", "fd00:172:18::/64"]\n'
    )


def namespace(number: int) -> str:
    return f"ns-{number % NAMESPACES}"


def pod(number: int, services: int) -> dict[str, Any]:
    metadata = {"name": f"p{number}", "labels": {"app": f"s{number % services}"}}
    container = {"name": "c", "image": "example/web:1", "ports": [{"containerPort": 80}]}
    return {"metadata": metadata, "spec": {"containers": [container]}}


class Figure(msgspec.Struct, frozen=True):
    """Something that was done, in seconds and in milliseconds of the server's CPU time."""

    what: str
    seconds: float
    cpu: float


class _ListMetadata(msgspec.Struct):
    next: str = msgspec.field(name="continue", default="")


class _Listed(msgspec.Struct):
    metadata: _ListMetadata


class Measuring:
    """Asks one server, and reads the CPU time and memory of its process."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._connection: Connection | None = None

    async def ask(self, method: str, path: str, body: Any = None, media: str = "application/json") -> bytes:
        self._connection = self._connection or await connect(self.server)
        encoded = b"" if body is None else msgspec.json.encode(body)
        status, answer = await self._connection.ask(request(self.server, method, path, encoded, media))
        if status >= 300:
            raise RuntimeError(f"{method} {path}: {status} {answer[:300]!r}")
        return answer

    async def send(self, requests: list[tuple[str, str, Any]], media: str = "application/json") -> None:
        made = [request(self.server, method, path, msgspec.json.encode(body), media) for method, path, body in requests]
        await drive(self.server, made, CLIENTS)

    async def count(self, path: str) -> int:
        """How many there are, without reading them: those of the first page, and those that remain."""
        found = msgspec.json.decode(await self.ask("GET", f"{path}{'&' if '?' in path else '?'}limit=1"))
        return len(found["items"]) + (found["metadata"].get("remainingItemCount") or 0)

    async def quiet(self) -> None:
        """Return when controllers have had no key to look at three times in a row; heartbeats are always due."""
        times = 0
        while times < 3:
            await asyncio.sleep(0.5)
            lines = (await self.ask("GET", "/metrics")).decode().splitlines()
            depths = [line for line in lines if line.startswith("workqueue_depth{") and '"heartbeat"' not in line]
            times = 0 if any(line.split()[-1] != "0" for line in depths) else times + 1

    async def settled(self) -> None:
        """Return when there is nothing to do, and all Pods run.  Asking for those that do not looks at all of them."""
        while True:
            await self.quiet()
            if await self.count("/api/v1/pods?fieldSelector=status.phase%3DPending") == 0:
                return

    async def timed(self, work: Callable[[], Awaitable[object]]) -> tuple[float, float]:
        """Seconds, and seconds of the server's CPU time."""
        cpu, began = cpu_seconds(self.server.pids) or 0.0, time.perf_counter()
        await work()
        return time.perf_counter() - began, (cpu_seconds(self.server.pids) or 0.0) - cpu

    def say(self, what: str, text: str) -> None:
        print(f"  {what:<44} {text}   {resident_megabytes(*self.server.pids):6.0f} MB", flush=True)


async def fill(m: Measuring, options: argparse.Namespace) -> None:
    """Services, then Pods in steps, with the cost at each size."""

    async def services() -> None:
        await m.send([("POST", "/api/v1/namespaces", {"metadata": {"name": namespace(n)}}) for n in range(NAMESPACES)])
        await m.send(
            [
                (
                    "POST",
                    f"/api/v1/namespaces/{namespace(n)}/services",
                    {"metadata": {"name": f"s{n}"}, "spec": {"selector": {"app": f"s{n}"}, "ports": [{"port": 80}]}},
                )
                for n in range(options.services)
            ]
        )
        await m.settled()

    took, cpu = await m.timed(services)
    m.say(f"{options.services} Services", f"{took:6.1f} s, {cpu / options.services * 1e6:6.0f} µs CPU each")
    step = options.pods // STEPS
    for number in range(STEPS if options.whole else 1):
        first = number * step

        async def pods(first: int = first) -> None:
            numbers = range(first, first + step)
            paths = {n: f"/api/v1/namespaces/{namespace(n % options.services)}/pods" for n in numbers}
            await m.send([("POST", paths[n], pod(n, options.services)) for n in numbers])
            await m.settled()

        took, cpu = await m.timed(pods)
        change = await one_change(m, options)
        m.say(
            f"{first + step} Pods Ready",
            f"{took:6.1f} s, {cpu / step * 1e6:6.0f} µs CPU each; one change {change:5.0f} µs",
        )


async def one_change(m: Measuring, options: argparse.Namespace) -> float:
    """µs of CPU for one Pod that leaves a Service, or joins it again, with all that follows."""
    numbers = range(min(500, options.pods // STEPS))

    async def change() -> None:
        for there in (False, True):
            edits: list[tuple[str, str, Any]] = []
            for number in numbers:
                service = number % options.services
                labels = {"app": f"s{service}" if there else "none"}
                path = f"/api/v1/namespaces/{namespace(service)}/pods/p{number}"
                edits.append(("PATCH", path, {"metadata": {"labels": labels}}))
            await m.send(edits, MERGE)
            await m.quiet()

    period = heartbeats(options)
    _, idle = await m.timed(lambda: asyncio.sleep(period))
    took, cpu = await m.timed(change)
    return (cpu - idle * took / period) / (2 * len(numbers)) * 1e6


def heartbeats(options: argparse.Namespace) -> float:
    """Seconds in which every node has renewed its Lease once."""
    return max(10.0, options.nodes / 100)


async def use(m: Measuring, options: argparse.Namespace, name: str) -> list[Figure]:
    """What the cluster does at this size: lists, a Deployment of that name and its rollout, and nothing."""
    figures: list[Figure] = []

    async def note(what: str, work: Callable[[], Awaitable[object]], operations: int = 1) -> None:
        took, cpu = await m.timed(work)
        figures.append(Figure(what, took, cpu / operations * 1e3))
        m.say(what, f"{took:6.2f} s, {cpu / operations * 1e3:8.2f} ms CPU")

    for what, path in (
        ("list all Pods", "/api/v1/pods"),
        ("list the Pods of a namespace", "/api/v1/namespaces/ns-1/pods"),
    ):
        await note(what, lambda path=path: m.ask("GET", path))  # type: ignore[misc]  # a lambda with a default
    await note("list all Pods, in pages of 500", lambda: pages(m, "/api/v1/pods"))
    labels = {"app": name}
    deployments = "/apis/apps/v1/namespaces/ns-1/deployments"
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "example/web:1"}]}}
    spec = {"replicas": options.replicas, "selector": {"matchLabels": labels}, "template": template}
    deployment = {"metadata": {"name": name}, "spec": spec}

    async def available() -> None:
        counts: list[int] = []
        while counts != [options.replicas] * 3:
            await asyncio.sleep(0.2)
            found = msgspec.json.decode(await m.ask("GET", f"{deployments}/{name}"))
            status = found.get("status", {})
            if status.get("observedGeneration") == found["metadata"]["generation"]:
                counts = [status.get(each, 0) for each in ("replicas", "updatedReplicas", "availableReplicas")]

    async def create() -> None:
        await m.ask("POST", deployments, deployment)
        await available()

    async def roll() -> None:
        change = {"spec": {"template": {"metadata": {"annotations": {"turn": "2"}}}}}
        await m.ask("PATCH", f"{deployments}/{name}", change, MERGE)
        await available()

    await note(f"a Deployment of {options.replicas} is available, per Pod", create, options.replicas)
    await note("its rollout, per Pod", roll, options.replicas)
    await m.settled()
    seconds = int(3 * heartbeats(options))
    await note("idle, with all heartbeats, per second", lambda: asyncio.sleep(seconds), seconds)
    return figures


async def pages(m: Measuring, path: str) -> None:
    """All objects, 500 at a time."""
    token = ""
    while True:
        found = msgspec.json.decode(await m.ask("GET", f"{path}?limit=500{token}"), type=_Listed)
        if not found.metadata.next:
            return
        token = f"&continue={urllib.parse.quote(found.metadata.next)}"


async def ready_nodes(m: Measuring, count: int) -> None:
    found = 0
    while found < count:
        await asyncio.sleep(0.5)
        found = await m.count("/api/v1/nodes")
    await m.settled()


def one(folder: Path, options: argparse.Namespace) -> None:
    """A cluster grows, and starts again on what it has."""
    figures: list[list[Figure]] = []
    for state in ("empty",) if options.whole else ("empty", "copied", "on its data"):
        config = folder / "settings.toml"
        config.write_text(settings(options.nodes))
        flags = ("--dns-port", "0", "--config", str(config))
        began = time.perf_counter()
        with seamark_server(folder / "data", "up", *flags, env=environment(f"{folder}/compiled")) as server:
            m = Measuring(server)
            cpu = cpu_seconds(server.pids) or 0.0
            m.say(f"start, {state}", f"{time.perf_counter() - began:6.1f} s, {cpu:6.1f} s CPU")
            uvloop.run(life(m, options, state, figures))
            size = sum(file.stat().st_size for file in (folder / "data").glob("store.db*"))
            print(f"  {'store on disk':<44} {size / 1e6:.0f} MB", flush=True)
        if state == "empty" and not options.whole:
            uvloop.run(copy(folder / "data" / "store.db", options))
    for small, large in zip(*figures, strict=True) if len(figures) == 2 else ():
        print(f"  {small.what:<46} {small.cpu:9.2f} {large.cpu:9.2f} ms CPU   x {large.cpu / small.cpu:5.2f}")


async def life(m: Measuring, options: argparse.Namespace, state: str, figures: list[list[Figure]]) -> None:
    took, cpu = await m.timed(lambda: ready_nodes(m, options.nodes))
    m.say(f"{options.nodes} nodes, nothing left to do", f"{took:6.1f} s, {cpu:6.1f} s CPU more")
    if state == "empty":
        await fill(m, options)
    if state != "copied":
        change = Figure("one change", 0, await one_change(m, options) / 1e3)
        m.say(change.what, f"{change.cpu:8.2f} ms CPU")
        figures.append([change, *await use(m, options, f"rolled-{len(figures)}")])


async def copy(path: Path, options: argparse.Namespace) -> None:
    """Nine more of each Pod of the first step, on the same node, with a name, a uid and addresses of their own."""
    store = open_store(str(path))
    await store.open()
    prefix = "/core/pods/"
    rows = [row for row in (await store.read(prefix, prefix_end(prefix))).rows if row.key.rpartition("/")[2][0] == "p"]
    for number in range(1, STEPS):
        for at in range(0, len(rows), 500):
            await store.commit([_copied(row, number) for row in rows[at : at + 500]])
    await store.close()


def _copied(row: Row, number: int) -> Write:
    pod = msgspec.json.decode(row.value)
    name = pod["metadata"]["name"] = f"{pod['metadata']['name']}-{number}"
    pod["metadata"]["uid"] = str(uuid.uuid4())
    for each in pod["status"]["podIPs"]:
        each["ip"] = str(ipaddress.ip_address(each["ip"]) + APART * number)
    pod["status"]["podIP"] = pod["status"]["podIPs"][0]["ip"]
    return Write(f"{row.key.rpartition('/')[0]}/{name}", msgspec.json.encode(pod))


# --- two of each ------------------------------------------------------------------------------------


@contextlib.contextmanager
def member(folder: Path, store: str, flags: tuple[str, ...]) -> Iterator[Server]:
    with seamark_server(folder, "up", "--store", store, "--dns-port", "0", *flags) as server:
        yield server


async def failover(first: Measuring, second: Measuring, options: argparse.Namespace) -> None:
    await ready_nodes(first, options.nodes)
    await fill(first, options)
    print(f"  the other server: {resident_megabytes(*second.server.pids):.0f} MB", flush=True)
    path = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/seamark-controllers"

    async def holder() -> str:
        lease = msgspec.json.decode(await second.ask("GET", path))
        return str(lease["spec"].get("holderIdentity") or "")

    leader = first if f"_{first.server.pids[0]}_" in await holder() else second
    other = second if leader is first else first
    os.kill(leader.server.pids[0], signal.SIGKILL)
    began = time.perf_counter()
    await other.ask("GET", "/api/v1/namespaces/default")
    read = time.perf_counter() - began
    await other.ask(
        "PATCH", f"/api/v1/namespaces/{namespace(0)}/pods/p0", {"metadata": {"labels": {"app": "none"}}}, MERGE
    )
    written = time.perf_counter() - began
    slices = f"/apis/discovery.k8s.io/v1/namespaces/{namespace(0)}/endpointslices"
    slices += "?labelSelector=kubernetes.io%2Fservice-name%3Ds0"
    found = b'"p0"'
    while b'"p0"' in found:
        await asyncio.sleep(0.1)
        found = await other.ask("GET", slices)
    print(
        f"  the leader is killed: the other reads after {read * 1e3:.0f} ms, writes after {written * 1e3:.0f} ms,"
        f" its controllers have acted after {time.perf_counter() - began:.1f} s",
        flush=True,
    )


def two(folder: Path, options: argparse.Namespace) -> None:
    config = folder / "settings.toml"
    config.write_text(settings(options.nodes))
    with etcd_server(folder / "etcd") as (address, _):
        store = f"etcd://{address}/scale"
        flags = ("--config", str(config), "--no-node-ports")
        with member(folder / "a", store, flags) as first, member(folder / "b", store, flags) as second:
            uvloop.run(failover(Measuring(first), Measuring(second), options))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pods", type=int, default=2000)
    parser.add_argument("--services", type=int, default=100)
    parser.add_argument("--nodes", type=int, default=50)
    parser.add_argument("--whole", action="store_true", help="create all Pods through the API")
    parser.add_argument("--replicas", type=int, default=500, help="of the Deployment that is rolled")
    parser.add_argument("--peer", action="store_true", help="two servers over etcd, of which one is killed")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        (two if options.peer else one)(Path(folder), options)


if __name__ == "__main__":
    sys.exit(main())
