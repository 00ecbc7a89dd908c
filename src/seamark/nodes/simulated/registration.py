"""Creates the Nodes of the settings, completes those that users create, and removes those of earlier settings."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable

from seamark import errors
from seamark.access.cluster import Cluster
from seamark.kinds.resource import LEASES, NODES, PODS
from seamark.nodes.simulated import node_objects
from seamark.nodes.simulated.node_objects import System
from seamark.nodes.simulated.settings import NodeSettings
from seamark.nodes.simulated.sites import Sites
from seamark.rules.objects.metadata import Written
from seamark.rules.objects.node import Node
from seamark.runtime.controller import Controller
from seamark.runtime.manager import Manager
from seamark.runtime.queue import Key

log = logging.getLogger(__name__)

LEASE_NAMESPACE = "kube-node-lease"
ATTEMPTS = 5


class Registrations(Controller):
    """Completes all Nodes marked as simulated, including those that users create."""

    def __init__(self, manager: Manager, cluster: Cluster, settings: NodeSettings, system: System) -> None:
        super().__init__("node-registration", manager, workers=8)
        self._cluster = cluster
        self._settings = settings
        self._system = system

    async def reconcile(self, key: Key) -> None:
        nodes = (await self._cluster.list(NODES, as_=Node)).items
        node = next((node for node in nodes if node.name == key), None)
        if node is not None and node.simulated:
            await _update(self._cluster, self._settings, node, Sites(self._settings, nodes), self._system)


async def register(cluster: Cluster, settings: NodeSettings, system: System, *, now: float) -> None:
    """Create every Node of the settings, or update it if it exists."""
    found = {node.name: node for node in (await cluster.list(NODES, as_=Node)).items}
    for node in list(found.values()):
        if _surplus(node, settings):
            await _dismiss(cluster, node)
            del found[node.name]
    sites = Sites(settings, found.values())
    writes = []
    for name in settings.names:
        known = found.get(name)
        if known is None:
            planned = node_objects.new(settings, name, sites.take(name), now=now, system=system)
            writes.append(_create(cluster, name, planned))
        elif not known.simulated:
            log.warning("there is a node %s already that is not simulated: it is left alone", name)
        else:
            writes.append(_update(cluster, settings, known, sites, system))
    await asyncio.gather(*writes)


async def _update(cluster: Cluster, settings: NodeSettings, node: Node, sites: Sites, system: System) -> None:
    """Add what a simulated Node lacks, and write the description of its machine."""
    for _ in range(ATTEMPTS):
        changes, status = node_objects.registration(settings, node, sites, system)
        version = {"resourceVersion": node.metadata.resource_version}
        try:
            if changes:
                changes["metadata"] = {**changes.get("metadata", {}), **version}
                await cluster.patch(NODES, node.name, changes, field_manager="kubelet")
            if status:
                await cluster.patch(NODES, node.name, {"status": status}, subresource="status", field_manager="kubelet")
            return
        except errors.Conflict:
            node = await cluster.get(NODES, node.name, as_=Node)
    raise errors.Conflict(f"node {node.name} is changed by others all the time")


async def _create(cluster: Cluster, name: str, planned: errors.Object) -> None:
    try:
        await cluster.create(NODES, planned)
    except errors.AlreadyExists:
        log.warning("another client has just made a node %s: it is left alone", name)


def _surplus(node: Node, settings: NodeSettings) -> bool:
    number = settings.number(node.name)
    return node.simulated and number is not None and number > settings.count


async def _dismiss(cluster: Cluster, node: Node) -> None:
    """Delete a Node that is no longer wanted, and its Pods, because no kubelet runs them any more."""
    log.info("node %s is one too many: it is removed, its Pods with it", node.name)
    await _gone(cluster.delete(NODES, node.name, uid=node.metadata.uid))
    await _gone(cluster.delete(LEASES, node.name, namespace=LEASE_NAMESPACE))
    pods = (await cluster.list(PODS, fields=f"spec.nodeName={node.name}", as_=Written)).items
    for pod in pods:
        meta = pod.metadata
        await _gone(cluster.delete(PODS, meta.name, namespace=meta.namespace, uid=meta.uid, grace_seconds=0))


async def dismiss_all(cluster: Cluster, settings: NodeSettings) -> None:
    """Delete the Nodes of an earlier run, because no nodes are wanted now."""
    for node in (await cluster.list(NODES, as_=Node)).items:
        if _surplus(node, settings):
            await _dismiss(cluster, node)


async def _gone(deletion: Awaitable[None]) -> None:
    try:
        await deletion
    except (errors.NotFound, errors.Conflict):
        return  # already deleted, or replaced by another Node of the same name, which stays
