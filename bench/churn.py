"""An hour in the life of `seamark up`: objects change, watchers come and go, and nothing may grow.

200 changes a second by clients: Pods and Services are replaced by others of new names, labels and data are patched,
namespaces come and go with what is in them, a Deployment rolls, ServiceAccounts get tokens; names are asked of DNS.
What the nodes and controllers write because of that comes on top.  Every few seconds the memory, descriptors, tasks
and store size of the server are read.  At the end each is shown as a curve (``--plot FILE.svg``) and as the growth of
its second half, in per cent per hour; with ``--limit PERCENT`` more growth than that fails.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import os
import random
import socket
import struct
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import uvloop
from bench.rig.load import (
    Connection,
    Server,
    connect,
    cpu_seconds,
    environment,
    request,
    resident_megabytes,
    seamark_server,
)
from bench.rig.plot import Curve, growth, plot

PODS = "/api/v1/namespaces/default/pods"
SERVICES = "/api/v1/namespaces/default/services"
MAPS = "/api/v1/namespaces/default/configmaps"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
JSON, MERGE = "application/json", "application/merge-patch+json"
HANDS = 32  # connections that changes are sent over
APPS = 40  # labels that Services select and Pods have
SETTINGS = "[surroundings]\nkeep_events_seconds = {}\n"


class Sample(msgspec.Struct, frozen=True):
    """What the server takes at one moment."""

    minute: float
    megabytes: float
    descriptors: int
    tasks: int
    store_megabytes: float
    changes: int
    cpu: float
    rate: float  # changes a second since the sample before
    load: float  # of the machine: tasks that run or want to, its one-minute average


class Churn:
    """The clients: a crowd of Pods, Services and watchers whose size stays, and whose members do not."""

    def __init__(self, server: Server, dns: tuple[str, int], seed: int) -> None:
        self._server = server
        self._dns = dns
        self._random = random.Random(seed)
        self._names = (f"n{number}" for number in itertools.count())
        self._pods: list[str] = []
        self._services: list[str] = []
        self._maps: list[str] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._free: asyncio.Queue[Connection] = asyncio.Queue()
        self.changes = 0
        self.refused: dict[str, int] = {}

    async def _send(self, method: str, path: str, body: Any = None, media: str = JSON) -> bytes:
        sent = request(self._server, method, path, b"" if body is None else msgspec.json.encode(body), media)
        connection = await self._free.get()
        status, answer = await connection.ask(sent)
        self._free.put_nowait(connection)
        if status >= 400:
            key = f"{method} {status}"
            self.refused[key] = self.refused.get(key, 0) + 1
        self.changes += method != "GET"
        return answer

    async def metric(self, name: str) -> int:
        lines = (await self._send("GET", "/metrics")).decode().splitlines()
        return next(int(float(line.split()[-1])) for line in lines if line.startswith(f"{name} "))

    # --- single changes ------------------------------------------------------------------------------

    def _app(self) -> str:
        return f"app{self._random.randrange(APPS)}"

    async def create_pod(self) -> None:
        name = next(self._names)
        metadata = {"name": name, "labels": {"app": self._app()}}
        spec = {"containers": [{"name": "c", "image": "example/web:1", "ports": [{"containerPort": 80}]}]}
        await self._send("POST", PODS, {"metadata": metadata, "spec": {**spec, "terminationGracePeriodSeconds": 1}})
        self._pods.append(name)

    async def delete_pod(self) -> None:
        name = self._pods.pop(self._random.randrange(len(self._pods)))
        await self._send("DELETE", f"{PODS}/{name}")

    async def move_pod(self) -> None:
        """Another label: it leaves the endpoints of one Service and joins another's."""
        body = {"metadata": {"labels": {"app": self._app()}}}
        await self._send("PATCH", f"{PODS}/{self._random.choice(self._pods)}", body, MERGE)

    async def create_service(self) -> None:
        name = next(self._names)
        spec = {"selector": {"app": self._app()}, "ports": [{"port": 80}]}
        await self._send("POST", SERVICES, {"metadata": {"name": name}, "spec": spec})
        self._services.append(name)

    async def delete_service(self) -> None:
        name = self._services.pop(self._random.randrange(len(self._services)))
        await self._send("DELETE", f"{SERVICES}/{name}")

    async def create_map(self) -> None:
        name = next(self._names)
        await self._send("POST", MAPS, {"metadata": {"name": name}, "data": {"text": "x" * 400}})
        self._maps.append(name)

    async def delete_map(self) -> None:
        name = self._maps.pop(self._random.randrange(len(self._maps)))
        await self._send("DELETE", f"{MAPS}/{name}")

    async def change_map(self) -> None:
        body = {"data": {"text": str(self._random.random()) * 20}}
        await self._send("PATCH", f"{MAPS}/{self._random.choice(self._maps)}", body, MERGE)

    async def fill(self) -> None:
        """Make the crowd: its Pods, Services and ConfigMaps, and a Deployment that will be rolled."""
        for _ in range(HANDS):
            self._free.put_nowait(await connect(self._server))
        for make, count in ((self.create_service, APPS), (self.create_map, 200), (self.create_pod, 300)):
            for _ in range(count):
                await make()
        labels = {"app": "rolling"}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "example/web:1"}]}}
        spec = {"replicas": 10, "selector": {"matchLabels": labels}, "template": template}
        await self._send("POST", DEPLOYMENTS, {"metadata": {"name": "rolling"}, "spec": spec})

    # --- what goes on ----------------------------------------------------------------------------------

    async def change(self, rate: float) -> None:
        """Changes at this rate.  While all connections are busy it waits, and catches up by a second at most."""
        pairs = (
            (5, (self.create_pod, self.delete_pod)),
            (3, (self.create_service, self.delete_service)),
            (15, (self.create_map, self.delete_map)),
            (7, (self.move_pod, self.change_map)),
            (70, (self.change_map, self.change_map)),
        )
        weights = [weight for weight, _ in pairs]
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            for act in self._random.choices(pairs, weights)[0][1]:
                due = max(due + 1 / rate, loop.time() - 1)
                await asyncio.sleep(max(0.0, due - loop.time()))
                while len(self._tasks) >= 2 * HANDS:
                    await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
                self._spawn(act())

    def _spawn(self, work: Any) -> None:
        self._tasks.add(task := asyncio.ensure_future(work))
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            key = type(error).__name__
            self.refused[key] = self.refused.get(key, 0) + 1

    async def every(self, seconds: float, act: Callable[[], Awaitable[None]]) -> None:
        while True:
            await asyncio.sleep(seconds)
            self._spawn(act())

    async def come_and_go(self) -> None:
        """A namespace with a few objects, deleted as soon as it is full."""
        name = next(self._names)
        await self._send("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        for number in range(3):
            body = {"metadata": {"name": f"m{number}"}, "data": {"n": str(number)}}
            await self._send("POST", f"/api/v1/namespaces/{name}/configmaps", body)
        await self._send("DELETE", f"/api/v1/namespaces/{name}")

    async def roll(self) -> None:
        template = {"metadata": {"annotations": {"turn": next(self._names)}}}
        await self._send("PATCH", f"{DEPLOYMENTS}/rolling", {"spec": {"template": template}}, MERGE)

    async def use_token(self) -> None:
        """A ServiceAccount comes, gets a token, and goes."""
        name = next(self._names)
        await self._send("POST", ACCOUNTS, {"metadata": {"name": name}})
        await self._send("POST", f"{ACCOUNTS}/{name}/token", {"spec": {}})
        await self._send("DELETE", f"{ACCOUNTS}/{name}")

    async def watch(self) -> None:
        """One more watcher; it stays for up to a minute and leaves without a word."""
        selector = self._random.choice(["", f"&labelSelector=app%3D{self._app()}"])
        path = self._random.choice([PODS, SERVICES, SLICES, MAPS])
        connection = await connect(self._server)
        connection.watch(request(self._server, "GET", f"{path}?watch=true&resourceVersion=0{selector}"))
        asyncio.get_running_loop().call_later(self._random.uniform(1, 60), connection.transport.abort)

    async def ask_names(self) -> None:
        """Ask for Services that are there, and for some that are not."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
            for name in (*self._random.sample(self._services, 4), next(self._names)):
                labels = f"{name}.default.svc.cluster.local".encode().split(b".")
                question = b"".join(bytes([len(label)]) + label for label in labels) + b"\0\0\1\0\1"
                udp.sendto(struct.pack(">6H", 1, 0x0100, 1, 0, 0, 0) + question, self._dns)

    @contextlib.asynccontextmanager
    async def going_on(self, rate: float) -> AsyncIterator[None]:
        routines = [
            self.change(rate),
            self.every(1.0, self.use_token),
            self.every(10.0, self.come_and_go),
            self.every(20.0, self.roll),
            self.every(0.5, self.watch),
            self.every(0.25, self.ask_names),
        ]
        tasks = [asyncio.create_task(routine) for routine in routines]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
            await asyncio.gather(*self._tasks, return_exceptions=True)
            for error in (each for each in ended if not isinstance(each, asyncio.CancelledError)):
                raise error if isinstance(error, BaseException) else RuntimeError("a routine ended")


def take(server: Server, data: Path, before: Sample, *, began: float, tasks: int, changes: int, cpu: float) -> Sample:
    minute = (time.monotonic() - began) / 60
    return Sample(
        minute,
        resident_megabytes(*server.pids),
        sum(1 for pid in server.pids for _ in Path(f"/proc/{pid}/fd").iterdir()),
        tasks,
        sum(file.stat().st_size for file in data.glob("store.db*")) / 1e6,
        changes,
        (cpu_seconds(server.pids) or 0.0) - cpu,
        (changes - before.changes) / (minute - before.minute) / 60,
        os.getloadavg()[0],
    )


async def measure(
    server: Server, data: Path, options: argparse.Namespace, keep: Callable[[list[Sample]], None]
) -> list[Sample]:
    samples: list[Sample] = []
    running = msgspec.json.decode((data / "running.json").read_bytes())
    host, _, port = running["dns"][0].rpartition(":")
    churn = Churn(server, (host, int(port)), options.seed)
    await churn.fill()
    began, changes, cpu = time.monotonic(), churn.changes, cpu_seconds(server.pids) or 0.0
    async with churn.going_on(options.rate):
        while time.monotonic() - began < options.minutes * 60:
            await asyncio.sleep(options.every)
            tasks = await churn.metric("seamark_tasks")
            before = samples[-1] if samples else Sample(0, 0, 0, 0, 0, 0, 0, 0, 0)
            sample = take(server, data, before, began=began, tasks=tasks, changes=churn.changes - changes, cpu=cpu)
            samples.append(sample)
            keep(samples)
            if len(samples) % 6 == 0:
                print(
                    f"  minute {sample.minute:5.1f}: {sample.changes / sample.minute / 60:4.0f} changes/s,"
                    f" {sample.megabytes:4.0f} MB, {sample.descriptors} descriptors, {sample.tasks} tasks,"
                    f" store {sample.store_megabytes:4.0f} MB, {sample.cpu / sample.minute / 0.6:4.1f} % of a core",
                    flush=True,
                )
    if churn.refused:
        print("  refused: " + ", ".join(f"{key} {count}" for key, count in sorted(churn.refused.items())))
    return samples


def curves(samples: list[Sample]) -> list[Curve]:
    minutes = [sample.minute for sample in samples]
    return [
        Curve("resident memory, MB", minutes, [s.megabytes for s in samples]),
        Curve("descriptors", minutes, [float(s.descriptors) for s in samples]),
        Curve("tasks", minutes, [float(s.tasks) for s in samples]),
        Curve("store on disk, MB", minutes, [s.store_megabytes for s in samples]),
    ]


def surroundings(samples: list[Sample]) -> list[Curve]:
    """What the server was given to do, and who else wanted the machine: not to be flat, but to be known."""
    minutes = [sample.minute for sample in samples]
    return [
        Curve("changes a second, by clients", minutes, [s.rate for s in samples]),
        Curve("load of the machine", minutes, [s.load for s in samples]),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument("--rate", type=float, default=200.0, help="changes a second that clients make")
    parser.add_argument("--every", type=float, default=10.0, metavar="SECONDS", help="between two samples")
    parser.add_argument("--events", type=float, default=300.0, metavar="SECONDS", help="how long Events are kept")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", metavar="FILE", help="keep the samples")
    parser.add_argument("--plot", metavar="FILE.svg", help="draw the curves")
    parser.add_argument("--limit", type=float, metavar="PERCENT", help="fail if anything grows by more in an hour")
    options = parser.parse_args()

    def keep(samples: list[Sample]) -> None:
        if options.json:
            Path(options.json).write_bytes(msgspec.json.encode(samples))
        if options.plot and len(samples) > 1:
            Path(options.plot).write_text(plot([*curves(samples), *surroundings(samples)], "minutes"))

    with tempfile.TemporaryDirectory() as folder:
        data, settings = Path(folder) / "data", Path(folder) / "settings.toml"
        settings.write_text(SETTINGS.format(options.events))
        flags = ("--dns-port", "0", "--config", str(settings))
        with seamark_server(data, "up", *flags, env=environment(f"{folder}/compiled")) as server:
            samples = uvloop.run(measure(server, data, options, keep))
    grown = {curve.name: growth(curve) for curve in curves(samples)}
    for name, percent in grown.items():
        print(f"  {name:<22} {percent:+6.1f} % per hour, in the second half")
    return int(options.limit is not None and max(grown.values()) > options.limit)


if __name__ == "__main__":
    sys.exit(main())
