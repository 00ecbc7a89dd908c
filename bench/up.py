"""`seamark up` as a whole: start to ready, idle memory, Pods from creation to Ready, a rollout, the delay of slices.

For comparison the same run measures as many durable writes (three per Pod) to etcd alone, and to HTTP, TLS and the
SQLite store without anything of Kubernetes in between.

With ``--workers 1 2`` it is measured with one process and with two, in turns, ``--rounds`` times; ``--before`` names
the program of an earlier version, which then has its turn in each round, with one process.  Beside the rate are the
µs of CPU that each process took per Pod: where every process has a core for itself, the busiest decides the rate.  The
first Pods of a server are slower than later ones, which are measured after as many were deleted again.

Run: ``python -m bench.up [--pods 1000] [--workers 1 2] [--rounds 3] [--before /old/bin/seamark]``
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import shlex
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import uvloop
from bench.api import pod
from bench.rig.load import (
    Server,
    cpu_of_each,
    cpu_seconds,
    drive,
    environment,
    python_server,
    request,
    resident_megabytes,
    seamark_server,
)

from seamark.store.opening import open_store
from seamark.store.protocol import Write

WRITES_PER_POD = 3  # created, bound, ready
IN_FLIGHT = 64

TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "c", "image": "example/web:1"}]},
}


class Watching:
    """Watches the ready Pods of the Deployment and the ready addresses in its slices."""

    def __init__(self) -> None:
        self.pods: dict[str, tuple[str, bool]] = {}  # name → address, and whether it is ready and not being deleted
        self.slices: dict[str, set[str]] = {}
        self.ready_since: dict[str, float] = {}
        self.lags: list[float] = []
        self.changed = asyncio.Event()

    def pod(self, type: str, obj: dict[str, Any]) -> None:
        name, status = obj["metadata"]["name"], obj.get("status", {})
        ready = any(c["type"] == "Ready" and c["status"] == "True" for c in status.get("conditions", ()))
        ready = ready and "deletionTimestamp" not in obj["metadata"] and type != "DELETED"
        address = status.get("podIP", "")
        if ready and not self.pods.get(name, ("", False))[1]:
            self.ready_since[address] = time.perf_counter()
        if not ready:
            self.ready_since.pop(address, None)
        if type == "DELETED":
            self.pods.pop(name, None)
        else:
            self.pods[name] = (address, ready)
        self._check()

    def slice(self, type: str, obj: dict[str, Any]) -> None:
        name = obj["metadata"]["name"]
        if type == "DELETED":
            self.slices.pop(name, None)
        else:
            self.slices[name] = {
                address
                for endpoint in obj.get("endpoints") or ()
                if endpoint["conditions"].get("ready")
                for address in endpoint["addresses"]
            }
        self._check()

    def _check(self) -> None:
        now = time.perf_counter()
        listed = set().union(*self.slices.values()) if self.slices else set()
        for address in [a for a in self.ready_since if a in listed]:
            self.lags.append(now - self.ready_since.pop(address))
        self.changed.set()

    @property
    def ready(self) -> int:
        return sum(1 for _, ready in self.pods.values() if ready)

    @property
    def listed(self) -> int:
        return len(set().union(*self.slices.values())) if self.slices else 0

    async def until(self, done: Any) -> None:
        while not done(self):
            self.changed.clear()
            await self.changed.wait()


async def follow(session: aiohttp.ClientSession, path: str, tell: Any) -> None:
    async with session.get(path) as answer:
        async for line in answer.content:
            event = msgspec.json.decode(line)
            tell(event["type"], event["object"])


@contextlib.contextmanager
def etcd_server(directory: Path) -> Iterator[tuple[str, int]]:
    """A real etcd with one member: yields its address and process.  The tests' helper finds the program."""
    sys.path.append(str(Path(__file__).parent.parent / "tests"))
    from etcd_server import EtcdCluster  # type: ignore[import-not-found]  # beside the tests, not a package

    directory.mkdir()
    cluster = EtcdCluster(directory)
    try:
        cluster.start()
        yield cluster.addresses[0], cluster.members[0].pid
    finally:
        cluster.stop()


async def put_all(address: str, count: int) -> float:
    """Seconds for a number of durable writes of a Pod's size."""
    store = open_store(f"etcd://{address}/bench")
    await store.open()
    value = pod("bare")
    numbers = iter(range(count))

    async def hand() -> None:
        for number in numbers:
            await store.commit([Write(f"/pods/{number}", value)])

    began = time.perf_counter()
    await asyncio.gather(*(hand() for _ in range(IN_FLIGHT)))
    seconds = time.perf_counter() - began
    await store.close()
    return seconds


async def write_all(server: Server, count: int) -> float:
    result = await drive(server, [request(server, "POST", "/", pod(f"bare{n}")) for n in range(count)], IN_FLIGHT)
    return result.seconds


class Spent(msgspec.Struct):
    """How long Pods took until all were in the slices, and the CPU of each process meanwhile."""

    pods: int
    seconds: float
    cpu: list[float]

    @property
    def busiest(self) -> float:
        """µs per Pod."""
        return max(self.cpu) / self.pods * 1e6

    @property
    def rate(self) -> float:
        """Pods per second, on the clock."""
        return self.pods / self.seconds

    def __str__(self) -> str:
        each = " + ".join(f"{seconds / self.pods * 1e6:.0f}" for seconds in self.cpu)
        return f"{self.rate:5.0f}/s   CPU µs per Pod {each}, busiest {self.busiest:.0f}: {1e6 / self.busiest:.0f}/s"


class Beside(msgspec.Struct):
    """The times of the peers for as many writes as the Pods need."""

    floor: float
    etcd: float


def started(name: str, began: float, *pids: int) -> None:
    took = time.perf_counter() - began
    print(f"  {name:<38} ready after {took * 1e3:5.0f} ms   {resident_megabytes(*pids):4.0f} MB", flush=True)


def beside(folder: Path, count: int, env: dict[str, str]) -> Beside:
    writes = WRITES_PER_POD * count
    began = time.perf_counter()
    with etcd_server(folder / "etcd") as (address, pid):
        started("etcd alone", began, pid)
        etcd = uvloop.run(put_all(address, writes))
    with python_server("bench.rig.floor", folder / "compiling", env=env):
        pass  # so that its modules are compiled, as installed ones are
    began = time.perf_counter()
    with python_server("bench.rig.floor", folder / "floor", env=env) as server:
        started("floor: HTTP, TLS and SQLite", began, *server.pids)
        floor = uvloop.run(write_all(server, writes))
    print(f"  {writes} durable writes, {IN_FLIGHT} at once    floor {floor:6.2f} s   etcd {etcd:6.2f} s", flush=True)
    return Beside(floor, etcd)


class Slices:
    """Counts the ready endpoints in the slices of a Service, and reads no more, to leave the cores to the server."""

    def __init__(self) -> None:
        self.ready: dict[str, int] = {}
        self.changed = asyncio.Event()

    def told(self, type: str, obj: dict[str, Any]) -> None:
        endpoints = () if type == "DELETED" else obj.get("endpoints") or ()
        self.ready[obj["metadata"]["name"]] = sum(1 for each in endpoints if each["conditions"].get("ready"))
        self.changed.set()

    async def until(self, count: int) -> None:
        while sum(self.ready.values()) != count:
            self.changed.clear()
            await self.changed.wait()


async def deployed(session: aiohttp.ClientSession, server: Server, count: int, name: str) -> Spent:
    """Create a Deployment and wait until all its Pods are in the slices; then delete it and wait until none is left."""
    seen, selector = Slices(), {"app": name}
    of_service = f"kubernetes.io%2Fservice-name%3D{name}"
    slices = f"/apis/discovery.k8s.io/v1/namespaces/default/endpointslices?watch=true&labelSelector={of_service}"
    following = asyncio.create_task(follow(session, slices, seen.told))
    service = {"metadata": {"name": name}, "spec": {"selector": selector, "ports": [{"port": 80}]}}
    await session.post("/api/v1/namespaces/default/services", json=service)
    template = {**TEMPLATE, "metadata": {"labels": selector}}
    spec = {"replicas": count, "selector": {"matchLabels": selector}, "template": template}
    before, began = cpu_of_each(server.pids), time.perf_counter()
    deployments = "/apis/apps/v1/namespaces/default/deployments"
    await session.post(deployments, json={"metadata": {"name": name}, "spec": spec})
    await seen.until(count)
    seconds = time.perf_counter() - began
    after = cpu_of_each(server.pids)
    await session.delete(f"{deployments}/{name}")
    await seen.until(0)
    pods = f"/api/v1/namespaces/default/pods?limit=1&labelSelector=app%3D{name}"
    left = True
    while left:
        await asyncio.sleep(0.2)
        async with session.get(pods) as answer:
            left = bool((await answer.json())["items"])
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)
    return Spent(count, seconds, [new - old for new, old in zip(after, before, strict=True)])


def session_with(server: Server) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        f"https://{server.host}:{server.port}",
        headers={"Authorization": f"Bearer {server.token.strip()}"},
        connector=aiohttp.TCPConnector(ssl=server.tls or False),
        timeout=aiohttp.ClientTimeout(total=None),
        read_bufsize=2**24,
    )


async def first_and_later(server: Server, count: int) -> tuple[Spent, Spent]:
    async with session_with(server) as session:
        return await deployed(session, server, count, "first"), await deployed(session, server, count, "later")


class Contestant(msgspec.Struct):
    """A program whose Deployments are measured, and what was measured: the first Pods and later ones."""

    name: str
    program: list[str]
    options: list[str]
    first: list[Spent] = []
    later: list[Spent] = []

    def run(self, folder: Path, env: dict[str, str], pods: int) -> None:
        with seamark_server(folder, "up", "--dns-port", "0", *self.options, env=env, program=self.program) as server:
            first, later = uvloop.run(first_and_later(server, pods))
        for which, spent in (("first", first), ("later", later)):
            print(f"  {self.name}, {which:<6} {pods} Pods in the slices  {spent}", flush=True)
        self.first.append(first)
        self.later.append(later)


def contestants(options: argparse.Namespace) -> list[Contestant]:
    ours = [sys.executable, "-m", "seamark"]
    now = [Contestant(f"{n} processes", ours, ["--workers", str(n)]) for n in options.workers]
    return [Contestant("before", shlex.split(options.before), []), *now] if options.before else now


def in_turns(folder: Path, env: dict[str, str], options: argparse.Namespace) -> None:
    """The same Deployment by each program, in turns."""
    all_of_them = contestants(options)
    for number in range(options.rounds):
        for each in all_of_them:
            each.run(folder / f"round{number}-{each.name}", env, options.pods)
    for which in ("first", "later"):
        baseline = statistics.median(spent.rate for spent in getattr(all_of_them[0], which))
        for each in all_of_them:
            found: list[Spent] = getattr(each, which)
            rate, best = statistics.median(spent.rate for spent in found), max(spent.rate for spent in found)
            busiest = statistics.median(spent.busiest for spent in found)
            beside = f"{rate / baseline:.2f} × {all_of_them[0].name}"
            clock = f"median {rate:.0f}/s on the clock ({beside}), best {best:.0f}/s"
            print(f"  {each.name}, {which}: {clock}; the busiest process {busiest:.0f} µs per Pod")


async def measure(server: Server, count: int, others: Beside) -> None:
    idle = resident_megabytes(*server.pids)
    async with session_with(server) as session:
        seen = Watching()
        labels = "app%3Dweb%2Cside%3Dours"
        pods, slices = "/api/v1/namespaces/default/pods", "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
        tasks = [
            asyncio.create_task(follow(session, f"{pods}?watch=true&labelSelector={labels}", seen.pod)),
            asyncio.create_task(
                follow(session, f"{slices}?watch=true&labelSelector=kubernetes.io%2Fservice-name%3Dweb", seen.slice)
            ),
        ]
        template = {**TEMPLATE, "metadata": {"labels": {"app": "web", "side": "ours"}}}
        selector = {"app": "web", "side": "ours"}
        service = {"metadata": {"name": "web"}, "spec": {"selector": selector, "ports": [{"port": 80}]}}
        await session.post("/api/v1/namespaces/default/services", json=service)
        before, began = cpu_seconds(server.pids), time.perf_counter()
        deployment = {
            "metadata": {"name": "web"},
            "spec": {"replicas": count, "selector": {"matchLabels": selector}, "template": template},
        }
        await session.post("/apis/apps/v1/namespaces/default/deployments", json=deployment)
        await seen.until(lambda s: s.ready == count)
        ready = time.perf_counter() - began
        await seen.until(lambda s: s.listed == count)
        after = cpu_seconds(server.pids)
        print(
            f"  {count} Pods scheduled and Ready  {ready:6.2f} s   {ready / others.floor:5.2f} × the floor's writes"
            f"   {ready / others.etcd:5.2f} × etcd's   {((after or 0) - (before or 0)) / count * 1e6:5.0f} µs CPU each,"
            " slices included"
        )
        seen.lags.clear()
        began = time.perf_counter()
        patch = {"spec": {"template": {"metadata": {"annotations": {"restarted": "yes"}}}}}
        await session.patch(
            "/apis/apps/v1/namespaces/default/deployments/web",
            data=msgspec.json.encode(patch),
            headers={"Content-Type": "application/merge-patch+json"},
        )
        # Every Pod is replaced, so as many new ones must appear as ready in the slices.
        await seen.until(lambda s: len(s.lags) >= count and s.listed == count and s.ready == count)
        lags = sorted(seen.lags)
        print(
            f"  rollout of {count} Pods            {time.perf_counter() - began:6.2f} s   ready Pod to slice:"
            f" p50 {lags[len(lags) // 2] * 1e3:.0f} ms, p99 {lags[int(len(lags) * 0.99)] * 1e3:.0f} ms,"
            f" longest {lags[-1] * 1e3:.0f} ms"
        )
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    print(f"  resident: idle {idle:.0f} MB, now {resident_megabytes(*server.pids):.0f} MB with {count} Pods")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pods", type=int, default=1000)
    parser.add_argument("--workers", type=int, nargs="+", default=[], help="numbers of processes to compare")
    parser.add_argument("--rounds", type=int, default=3, help="how often, with --workers")
    parser.add_argument("--before", metavar="COMMAND", help="an earlier version's program, beside --workers")
    parser.add_argument("--batch", type=float, default=0.0, help="the discovery controllers' batch period in seconds")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        env = environment(f"{folder}/compiled")
        if options.workers:
            in_turns(folder, env, options)
            return
        others = beside(folder, options.pods, env)
        settings = folder / "settings.toml"
        settings.write_text(f"[discovery]\nbatch = {options.batch}\n")
        for state in ("first, compiling", "again"):
            began = time.perf_counter()
            with seamark_server(folder / "data", "up", "--dns-port", "0", "--config", str(settings), env=env) as server:
                started(f"seamark up, three nodes, {state}", began, *server.pids)
                if state == "again":
                    uvloop.run(measure(server, options.pods, others))


if __name__ == "__main__":
    main()
