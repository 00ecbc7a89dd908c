"""Switches simulated nodes off and on, from any process: it writes the wanted state on the Node, and the simulation
that runs the node follows at once."""

from __future__ import annotations

import asyncio

from seamark.access.cluster import Cluster
from seamark.kinds.resource import NODES
from seamark.kinds.wellknown import STOPPED_ANNOTATION
from seamark.rules.objects.node import Node

PAUSE_SECONDS = 0.05


class NotSimulated(Exception):
    """The Node is not simulated, so it cannot be switched off."""


async def stop(cluster: Cluster, name: str) -> None:
    """Stop a node, as if the machine lost power: it and its Pods become not ready."""
    await _wish(cluster, name, "true")


async def start(cluster: Cluster, name: str) -> None:
    """Start a stopped node."""
    await _wish(cluster, name, None)


async def settled(cluster: Cluster, name: str) -> Node:
    """Wait until the node has reached the wanted state; limit the wait with ``asyncio.timeout``."""
    while True:
        listing = await cluster.list(NODES, fields=f"metadata.name={name}", as_=Node)
        node = listing.items[0] if listing.items else await cluster.get(NODES, name, as_=Node)
        if node.ready != node.stopped:
            return node
        async for change in cluster.watch(NODES, since=listing.version, fields=f"metadata.name={name}", as_=Node):
            if change.object is not None and change.object.ready != change.object.stopped:
                return change.object
        await asyncio.sleep(PAUSE_SECONDS)  # the server ended the watch: start again


async def _wish(cluster: Cluster, name: str, stopped: str | None) -> None:
    node = await cluster.get(NODES, name, as_=Node)
    if not node.simulated:
        raise NotSimulated(f"node {name} is not a simulated one: it cannot be stopped or started from here")
    await cluster.patch(NODES, name, {"metadata": {"annotations": {STOPPED_ANNOTATION: stopped}}})
