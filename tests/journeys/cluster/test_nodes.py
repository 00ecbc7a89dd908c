"""Simulated nodes as people meet them: by kubectl, by `seamark node`, and over HTTPS against a server that dies."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from commands import Kubectl
from seamark_process import Seamark, Start
from waiting import until

from free_ports import free_port
from seamark import errors
from seamark.access import kubeconfig
from seamark.access.informers import Informers
from seamark.access.remote import RemoteCluster
from seamark.errors import Object
from seamark.kinds.resource import NODES, PODS
from seamark.nodes.simulated.settings import NodeSettings
from seamark.nodes.simulated.simulation import Simulation
from seamark.runtime.manager import Manager


def pod(name: str, **annotations: str) -> Object:
    orders = {f"seamark.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "web"}, "annotations": orders},
        "spec": {"containers": [{"name": "main", "image": "example/app:1"}]},
    }


def table(text: str) -> dict[str, dict[str, str]]:
    """What kubectl prints, by name and column."""
    head, *rows = [line.split() for line in text.splitlines()]
    return {row[0]: dict(zip(head, row, strict=False)) for row in rows}


@pytest.fixture
def up(start: Start) -> Seamark:
    return start("--dns-port", "0", "--nodes", "2", verb="up")


@pytest.fixture
def kubectl(up: Seamark, make_kubectl: Callable[[Seamark], Kubectl]) -> Kubectl:
    return make_kubectl(up)


def test_kubectl_sees_nodes_and_pods_of_every_kind(kubectl: Kubectl) -> None:
    nodes = table(kubectl("get", "nodes"))
    assert {name: node["STATUS"] for name, node in nodes.items()} == {"node-1": "Ready", "node-2": "Ready"}
    many = [
        pod("plain"),
        pod("crash", fail_after="50ms"),
        pod("shy", ready="never"),
        pod("slow", start_after="1h"),
        {**pod("job", complete_after="50ms"), "spec": {**pod("job")["spec"], "restartPolicy": "Never"}},
        {**pod("homeless"), "spec": {**pod("homeless")["spec"], "nodeSelector": {"no": "such"}}},
        pod("typo", start_after="soon"),
    ]
    kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": many}))
    expected = {
        "plain": ("1/1", "Running"),
        "crash": ("0/1", "CrashLoopBackOff"),
        "shy": ("0/1", "Running"),
        "slow": ("0/1", "ContainerCreating"),
        "job": ("0/1", "Completed"),
        "homeless": ("0/1", "Pending"),
        "typo": ("1/1", "Running"),
    }

    def seen() -> dict[str, tuple[str, str]]:
        return {name: (row["READY"], row["STATUS"]) for name, row in table(kubectl("get", "pods")).items()}

    until(lambda: seen() == expected)
    told = until(lambda: kubectl("get", "events", "--field-selector", "involvedObject.name=homeless"))
    assert "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector." in told
    complaint = until(lambda: kubectl("get", "events", "--field-selector", "involvedObject.name=typo"))
    assert "annotation seamark.dev/start-after: 'soon' is not a duration" in complaint
    kubectl.wait("--for=condition=Ready", "pod/plain")
    kubectl("annotate", "pod", "plain", "seamark.dev/ready=never")
    kubectl.wait("--for=condition=Ready=false", "pod/plain")
    kubectl("delete", "pod", "plain", "slow", "--wait=true")
    assert {"plain", "slow"}.isdisjoint(seen())


def test_a_node_is_stopped_and_started_from_another_process(up: Seamark, kubectl: Kubectl) -> None:
    for name in ("node-1", "node-2"):
        manifest = pod(f"on-{name}")
        manifest["spec"]["nodeName"] = name
        kubectl("apply", "-f", "-", stdin=json.dumps(manifest))
    kubectl.wait("--for=condition=Ready", "pods", "--all")

    def switch(what: str) -> None:
        command = [sys.executable, "-m", "seamark", "node", what, "node-2", "--data-dir", str(up.directory)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    switch("stop")
    assert table(kubectl("get", "nodes"))["node-2"]["STATUS"] == "NotReady"
    kubectl.wait("--for=condition=Ready=false", "pod/on-node-2")
    kubectl.wait("--for=condition=Ready", "pod/on-node-1")
    switch("start")
    assert table(kubectl("get", "nodes"))["node-2"]["STATUS"] == "Ready"
    kubectl.wait("--for=condition=Ready", "pod/on-node-2")


# --- over HTTPS ----------------------------------------------------------------------------------------------


@asynccontextmanager
async def simulated(server: Seamark, settings: NodeSettings) -> AsyncIterator[Simulation]:
    """Nodes in this process, on a server in another."""
    async with RemoteCluster(kubeconfig.load(server.kubeconfig, environ={})) as cluster:
        manager = Manager(Informers(cluster))
        simulation = Simulation(manager, cluster, settings)
        running = asyncio.create_task(manager.run())
        try:
            await simulation.ready.wait()
            yield simulation
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


async def until_so(look: Callable[[], Awaitable[Any]]) -> Any:
    while True:
        try:
            if seen := await look():
                return seen
        except errors.ServiceUnavailable:
            pass  # the server is away
        await asyncio.sleep(0.05)


async def ready_pods(cluster: RemoteCluster) -> dict[str, tuple[str, ...]]:
    """The addresses of all Pods that are Ready."""
    found = (await cluster.list(PODS, namespace="default")).items
    return {
        p["metadata"]["name"]: tuple(a["ip"] for a in p["status"]["podIPs"])
        for p in found
        if any(c["type"] == "Ready" and c["status"] == "True" for c in p["status"].get("conditions") or ())
    }


async def test_nodes_over_https_get_over_a_server_that_is_killed(start: Start) -> None:
    port = str(free_port())
    server = start("--api-port", port)
    connection = kubeconfig.load(server.kubeconfig, environ={})
    async with (
        simulated(server, NodeSettings(count=3, workers=8)),
        RemoteCluster(connection) as cluster,
    ):
        await asyncio.gather(*(cluster.create(PODS, pod(f"a-{n}"), namespace="default") for n in range(20)))
        before = await until_so(lambda: _all(cluster, 20))
        server.kill()
        start("--api-port", port)
        await until_so(lambda: cluster.get(NODES, "node-1"))
        await asyncio.gather(*(cluster.create(PODS, pod(f"b-{n}"), namespace="default") for n in range(20)))
        after = await until_so(lambda: _all(cluster, 40))
    assert {name: after[name] for name in before} == before
    addresses = [address for pair in after.values() for address in pair]
    assert len(set(addresses)) == len(addresses) == 80


async def _all(cluster: RemoteCluster, count: int) -> dict[str, tuple[str, ...]] | None:
    found = await ready_pods(cluster)
    return found if len(found) == count else None
