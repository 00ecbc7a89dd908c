"""One part of a daemon fails: the API goes on, the part is named and starts again, and nothing of it is left behind."""

from __future__ import annotations

import asyncio
import gc
import os
import re
import socket
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import dns.asyncquery
import dns.message
import pytest

from free_ports import free_port
from seamark.access.informers import Informers
from seamark.access.kubeconfig import load
from seamark.access.leader import LeaderElection
from seamark.access.remote import RemoteCluster
from seamark.access.sending import Request
from seamark.access.transport import Transport
from seamark.api import bootstrap
from seamark.api.aggregation.following import Aggregation
from seamark.api.allocation.repair import PortRepair
from seamark.api.custom import Definitions
from seamark.api.http.wire.listener import Listener
from seamark.api.renewal import Renewal
from seamark.clock import SystemClock
from seamark.config import settled
from seamark.daemon import EVERYTHING, Daemon
from seamark.dns.sockets import mmsg
from seamark.errors import InternalError
from seamark.kinds.resource import CONFIGMAPS, ENDPOINT_SLICES, PODS, SERVICES
from seamark.proxy.feed import RouteFeed
from seamark.rules.objects.pod import Pod
from seamark.runtime.manager import Manager
from seamark.runtime.queue import Key
from seamark.runtime.workers import Workers
from seamark.store.metered import MeteredStore

PARTS = [
    *("store-checks", "definitions", "aggregation"),
    *("certificate", "informers", "dns", "connections", "own-objects", "proxy"),
    *("controllers", "identity", "node-ports", "discovery", "nodes", "cleaning"),
]


def test_the_manual_says_of_every_part_what_is_missing_without_it() -> None:
    page = (Path(__file__).parents[2] / "docs" / "operations.md").read_text()
    table = page.partition("| part | without it |")[2].partition("\n\n")[0]
    named = [name for row in table.splitlines()[2:] for name in re.findall("`([^`]+)`", row.split("|")[1])]
    of_workers, of_leaders = ("scheduler", "controllers-informers", "worker-1"), ("election", "leader-informers")
    assert sorted(named) == sorted([*PARTS, *of_workers, *of_leaders])


class Gate(SystemClock):
    """A clock by which a part that failed starts again at once, but not while the gate is closed."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.open.set()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)
        await self.open.wait()


class World:
    """A daemon of this process, and a client that reaches it over HTTPS."""

    def __init__(self, daemon: Daemon, gate: asyncio.Event, cluster: RemoteCluster, transport: Transport) -> None:
        self.daemon = daemon
        self.gate = gate
        self.cluster = cluster
        self._transport = transport

    async def page(self, path: str) -> tuple[int, str]:
        path, _, query = path.partition("?")
        code, body = await self._transport.ask(Request("GET", path, ((query, ""),) if query else ()))
        return code, body.decode()

    async def until(self, ask: Callable[[], bool]) -> None:
        while not ask():
            await asyncio.sleep(0.01)

    async def write(self, name: str) -> None:
        await self.cluster.create(CONFIGMAPS, {"metadata": {"name": name}}, namespace="default")

    async def resolve(self) -> str:
        host, port = self.daemon.dns_addresses[0]
        question = dns.message.make_query("kubernetes.default.svc.cluster.local.", "A")
        answer = await dns.asyncquery.udp(question, host, port=port)
        return str(answer.answer[0][0])

    def left(self) -> Counter[str]:
        """How much there is of what a part could leave behind: tasks, handlers, followers of kinds, descriptors.

        There may be less of it later, because clients close connections that they do not use for a while.
        """
        informers = self.daemon.informers._informers.values()
        tasks = [task.get_name() for task in asyncio.all_tasks()]
        return Counter(
            {
                **Counter(f"task {name}" for name in tasks if not name.startswith("Task-")),
                **{
                    f"handlers of {each.resource.qualified} {each._as.__name__}": len(each._handlers)
                    for each in informers
                },
                "followers of kinds": len(self.daemon.api.kinds._followers),
                "descriptors": len(os.listdir("/proc/self/fd")),
            }
        )


@asynccontextmanager
async def world(directory: Path) -> AsyncIterator[World]:
    said = {"data_dir": str(directory), "ephemeral": True, "api": {"port": 0}, "nodes": {"count": 1}}
    said["dns_port"] = free_port()  # some tests take it away and give it back
    daemon = Daemon(settled(said), EVERYTHING)
    daemon.supervisor.clock = clock = Gate()
    async with daemon.running():
        connection = load(daemon.kubeconfig_path)
        transport = Transport(connection)
        async with RemoteCluster(connection, agent="test") as cluster:
            made = World(daemon, clock.open, cluster, transport)
            await made.until(lambda: all(part.up for part in daemon.supervisor.parts.values()))
            await made.write("warm-up")  # the client's connections are open from here on
            await made.page("/readyz")
            gc.collect()  # descriptors of tests before this one
            try:
                yield made
            finally:
                await transport.close()


def breakable(
    patch: pytest.MonkeyPatch, owner: Any, method: str, which: Callable[..., bool] = lambda *_: True
) -> asyncio.Event:
    """Let this coroutine of a part fail at once, and at every start, while the event is set."""
    broken, original = asyncio.Event(), getattr(owner, method)

    async def work(*arguments: Any, **options: Any) -> None:
        if not which(*arguments):
            await original(*arguments, **options)
            return
        tasks = [
            asyncio.create_task(original(*arguments, **options), name="original"),
            asyncio.create_task(broken.wait(), name="broken"),
        ]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if tasks[1].done():
                raise ValueError("it\nbroke")
            await tasks[0]
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    patch.setattr(owner, method, work)
    return broken


def runs(controller: str) -> Callable[[Manager], bool]:
    return lambda manager: controller in [each.name for each in manager.controllers]


BREAKING: dict[str, tuple[Any, ...]] = {
    "store-checks": (MeteredStore, "mend"),
    "definitions": (Definitions, "run"),
    "aggregation": (Aggregation, "run"),
    "certificate": (Renewal, "follow"),
    "connections": (Listener, "sweep"),
    "own-objects": (bootstrap, "keep"),
    "informers": (Informers, "run"),
    "node-ports": (PortRepair, "run"),
    "controllers": (Manager, "work", runs("deployment-controller")),
    "identity": (Manager, "work", runs("tokens-controller")),
    "discovery": (Manager, "work", runs("endpointslices")),
    "nodes": (Manager, "work", runs("kubelet")),
    "proxy": (RouteFeed, "run"),
    "cleaning": (Manager, "work", runs("garbage-collector")),
}


@pytest.mark.parametrize("name", BREAKING)
async def test_a_part_that_fails_is_named_and_starts_again(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = breakable(monkeypatch, *BREAKING[name])
    async with world(tmp_path) as here:
        code, page = await here.page("/readyz?verbose")
        assert (code, page) == (
            200,
            "".join(f"[+]{each} ok\n" for each in ["ping", "store", *PARTS]) + "readyz check passed\n",
        )
        before, part = here.left(), here.daemon.supervisor.parts[name]
        broken.set()
        await here.until(lambda: part._failures > 3)  # while it runs, and then at every start
        here.gate.clear()
        await here.until(lambda: part.problem is not None)
        code, page = await here.page("/readyz")
        assert code == 500
        failing = [line for line in page.splitlines() if line.startswith("[-]")]
        assert failing == [f"[-]{name} failed: ValueError: it broke"], "the others do not notice"
        assert await here.page("/livez") == (200, "ok")
        await here.write("meanwhile")
        assert await here.resolve() == "10.96.0.1"
        broken.clear()
        here.gate.set()
        await here.until(lambda: part.up)
        assert await here.page("/readyz") == (200, "ok")
        await here.until(lambda: here.left() <= before)


async def test_a_dns_socket_that_fails_while_its_port_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with world(tmp_path) as here:
        assert await here.resolve() == "10.96.0.1"
        before = here.left()
        address, part = here.daemon.dns_addresses[0], here.daemon.supervisor.parts["dns"]

        def die(_: mmsg.Batch) -> int:
            raise OSError(9, "Bad file descriptor")

        here.gate.clear()
        with monkeypatch.context() as patch, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            patch.setattr(mmsg.Batch, "receive", die)
            client.sendto(b"to be read", address)
            await here.until(lambda: part.problem is not None)
        assert "[-]dns failed: OSError: [Errno 9] Bad file descriptor\n" in (await here.page("/readyz"))[1]
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as thief:
            thief.bind(address)
            here.gate.set()
            await here.until(lambda: "cannot listen" in (part.problem or ""))
            host, port = address
            code, page = await here.page("/readyz")
            assert code == 500
            assert f"[-]dns failed: cannot listen on {host}:{port}: Address already in use\n" in page
            await here.write("meanwhile")
        await here.until(lambda: part.up)
        assert here.daemon.dns_addresses[0] == address
        assert await here.resolve() == "10.96.0.1"
        await here.until(lambda: here.left() <= before)


async def test_a_controller_whose_error_is_not_limited_to_a_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It starts again with all it has to know: what was created meanwhile gets its slice."""
    original = Workers._attempt
    failed: list[Key] = []

    async def attempt(workers: Workers, key: Key) -> None:
        if workers._name == "endpointslices" and not failed:
            failed.append(key)
            raise ValueError("it broke")
        await original(workers, key)

    async with world(tmp_path) as here:
        monkeypatch.setattr(Workers, "_attempt", attempt)
        part = here.daemon.supervisor.parts["discovery"]
        service = {"metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}], "selector": {"app": "web"}}}
        await here.cluster.create(SERVICES, service, namespace="default")
        await here.until(lambda: part._failures > 0 and part.up)
        assert failed == ["default/web"]
        found: list[Any] = []
        while not found:
            found = list((await here.cluster.list(ENDPOINT_SLICES, labels="kubernetes.io/service-name=web")).items)


async def test_an_informer_that_fails_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with world(tmp_path) as here:
        informer = here.daemon.informers.of(PODS, as_=Pod)
        informer.last_error = InternalError("a defect")
        code, page = await here.page("/readyz")
        assert (code, "[-]informers failed: pods: a defect\n" in page) == (500, True)
        informer.last_error = None
        assert await here.page("/readyz/informers") == (200, "ok")


async def test_the_parts_of_a_leader_fail_on_their_own_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Controllers that fail start again, and the lease stays; an election that fails starts again with all of them."""
    monkeypatch.setattr("seamark.daemon.composition.is_shared", lambda url: True)
    managers = breakable(monkeypatch, Manager, "work", runs("endpointslices"))
    renewal = breakable(monkeypatch, LeaderElection, "run")
    async with world(tmp_path) as here:
        parts = here.daemon.supervisor.parts
        await here.until(lambda: {"discovery", "leader-informers"} <= set(parts) and all(p.up for p in parts.values()))
        before, discovery, election = here.left(), parts["discovery"], parts["election"]
        managers.set()
        await here.until(lambda: discovery._failures > 1)
        managers.clear()
        await here.until(lambda: discovery.up)
        assert election._failures == 0
        renewal.set()
        await here.until(lambda: election._failures > 1)
        renewal.clear()
        await here.until(lambda: "discovery" in parts and all(part.up for part in parts.values()))
        assert parts["discovery"] is not discovery
        assert await here.page("/readyz") == (200, "ok")
        await here.until(lambda: here.left() <= before)


async def test_this_process_is_shown_as_a_pod_that_runs(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        while True:
            listed = await made.cluster.list(PODS, namespace="kube-system")
            if [pod["status"].get("phase") for pod in listed.items] == ["Running"]:
                break
            await asyncio.sleep(0.01)
        pod = listed.items[0]
        assert pod["metadata"]["name"] == "seamark-node-1"
        assert ("Ready", "True") in [(each["type"], each["status"]) for each in pod["status"]["conditions"]]
        assert (await made.resolve()) == "10.96.0.1"


async def test_without_nodes_there_is_no_pod(tmp_path: Path) -> None:
    config = {"data_dir": str(tmp_path), "ephemeral": True, "dns_port": 0, "api": {"port": 0}, "nodes": {"count": 0}}
    daemon = Daemon(settled(config), EVERYTHING)
    async with daemon.running(), RemoteCluster(load(daemon.kubeconfig_path), agent="test") as cluster:
        while not all(part.up for part in daemon.supervisor.parts.values()):
            await asyncio.sleep(0.01)
        assert not (await cluster.list(PODS)).items
