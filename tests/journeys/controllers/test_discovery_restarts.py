"""The discovery controllers over HTTPS while the API server dies and comes back, and while there are two of them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest
import scenery
from seamark_process import Seamark, Start

from free_ports import free_port
from seamark.access.informers import Informers
from seamark.access.kubeconfig import load
from seamark.access.remote import RemoteCluster
from seamark.controllers.discovery.discovery import add_discovery
from seamark.kinds.resource import ENDPOINT_SLICES, PODS
from seamark.runtime.manager import Manager


@contextlib.asynccontextmanager
async def controllers(server: Seamark) -> AsyncIterator[asyncio.Task[None]]:
    async with RemoteCluster(load(server.kubeconfig)) as cluster:
        manager = Manager(Informers(cluster))
        add_discovery(manager, lambda _: cluster)
        task = asyncio.create_task(manager.run())
        try:
            yield task
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
    # The event loop closes aborted TLS connections later.
    await asyncio.sleep(0.1)


async def becomes_right(cluster: RemoteCluster, *, endpoints: int) -> None:
    """Wait until the slices hold so many endpoints and everything is as it should be."""
    while True:
        found = (
            await cluster.list(ENDPOINT_SLICES, namespace=scenery.NS, labels="kubernetes.io/service-name=web")
        ).items
        if sum(len(each.get("endpoints") or ()) for each in found) == endpoints:
            with contextlib.suppress(AssertionError):
                await scenery.assert_right(cluster)
                return
        await asyncio.sleep(0.05)


async def put(cluster: RemoteCluster, *objects: dict[str, object]) -> None:
    """Create them; a Pod's status is a matter of its own."""
    await scenery.put(cluster, *objects)
    for each in objects:
        if each["kind"] == "Pod":
            await scenery.report(cluster, each)


@pytest.mark.parametrize("end", ["kill", "stop"])
async def test_the_api_server_goes_and_comes_back(start: Start, end: str) -> None:
    port = str(free_port())
    server = start("--api-port", port)
    async with controllers(server):
        async with RemoteCluster(load(server.kubeconfig)) as cluster:
            pods = [scenery.pod(f"p{i}") for i in range(30)]
            await put(cluster, scenery.node(), scenery.service(), *pods)
            await becomes_right(cluster, endpoints=30)
        for round_ in range(2):
            getattr(server, end)()
            await asyncio.sleep(0.2)
            server = start("--api-port", port)
            async with RemoteCluster(load(server.kubeconfig)) as cluster:
                await put(cluster, scenery.pod(f"p{100 + round_}"))
                await cluster.delete(PODS, f"p{round_}", namespace=scenery.NS, grace_seconds=0)
                await becomes_right(cluster, endpoints=30)


async def test_killed_in_the_middle_of_a_rollout_and_taken_over(start: Start) -> None:
    server = start()
    async with RemoteCluster(load(server.kubeconfig)) as cluster:
        await put(cluster, scenery.node(), scenery.service())
        for generation in range(3):
            async with controllers(server) as running:
                pods = [scenery.pod(f"p{generation}{i:03d}", number=generation * 1000 + i) for i in range(110)]
                await put(cluster, *pods)
                running.cancel()  # in the middle of its work
        async with controllers(server):
            await becomes_right(cluster, endpoints=330)


async def test_two_at_once_agree(start: Start) -> None:
    server = start()
    async with RemoteCluster(load(server.kubeconfig)) as cluster, controllers(server), controllers(server):
        await put(cluster, scenery.node(), scenery.service(), *[scenery.pod(f"p{i}") for i in range(120)])
        await becomes_right(cluster, endpoints=120)
        for i in range(60):
            await cluster.delete(PODS, f"p{i}", namespace=scenery.NS, grace_seconds=0)
        await becomes_right(cluster, endpoints=60)
