"""Switching simulated nodes off and on, from any process: what is wished is written on the Node, and the simulation
that runs it obeys at once."""

from __future__ import annotations

import asyncio

from seamark.access.cluster import Cluster
from seamark.kinds.resource import NODES
from seamark.kinds.wellknown import STOPPED_ANNOTATION
from seamark.rules.objects.node import Node


class NotSimulated(Exception):
    """A real Node cannot be switched off from here."""


async def stop(cluster: Cluster, name: str) -> None:
    """As if the machine lost power: NotReady, and its Pods with it."""
    await _wish(cluster, name, "true")


async def start(cluster: Cluster, name: str) -> None:
    """Have a stopped node back."""
    await _wish(cluster, name, None)


async def settled(cluster: Cluster, name: str, *, pause: float = 0.05) -> Node:
    """Wait until the node is as it was wished to be; bound it by ``asyncio.timeout``."""
    while True:
        listing = await cluster.list(NODES, fields=f"metadata.name={name}", as_=Node)
        node = listing.items[0] if listing.items else await cluster.get(NODES, name, as_=Node)
        if node.ready != node.stopped:
            return node
        async for change in cluster.watch(NODES, since=listing.version, fields=f"metadata.name={name}", as_=Node):
            if change.object is not None and change.object.ready != change.object.stopped:
                return change.object
        await asyncio.sleep(pause)  # the server ended the watch: begin again


async def _wish(cluster: Cluster, name: str, stopped: str | None) -> None:
    node = await cluster.get(NODES, name, as_=Node)
    if not node.simulated:
        raise NotSimulated(f"node {name} is not a simulated one: it cannot be stopped or started from here")
    await cluster.patch(NODES, name, {"metadata": {"annotations": {STOPPED_ANNOTATION: stopped}}})
