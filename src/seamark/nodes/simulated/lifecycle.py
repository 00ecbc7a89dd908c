"""Whether our nodes are alive, and what follows: conditions, taints, and Pods that are not ready any more.

A node is alive as long as its Lease is renewed; one that somebody has stopped is dead at once.  Nodes that
Seamark does not simulate are left alone.
"""

from __future__ import annotations

import msgspec

from seamark import errors
from seamark.access.clock import Clock
from seamark.access.cluster import Cluster, Receipt
from seamark.access.events import EventRecorder, Reference
from seamark.access.informer import Index, Informer
from seamark.errors import Object
from seamark.kinds.resource import NODES, PODS
from seamark.kinds.values import times
from seamark.nodes.simulated import node_objects
from seamark.nodes.simulated.kubelet import node_of
from seamark.nodes.simulated.settings import NodeSettings
from seamark.nodes.work import Key, Work
from seamark.rules.objects.conditions import Condition
from seamark.rules.objects.node import Lease, Node
from seamark.rules.objects.pod import Pod

MANAGER = "node-controller"


class Lifecycle:
    """Says of every node of ours how it is."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        pods: Informer[Pod],
        nodes: Informer[Node],
        leases: Informer[Lease],
        settings: NodeSettings,
        events: EventRecorder,
        clock: Clock,
    ) -> None:
        self._cluster = cluster
        self._pods = pods
        self._on_node: Index[Pod] = pods.index("node", node_of)
        self._nodes = nodes
        self._settings = settings
        self._events = events
        self._clock = clock
        self._heard: dict[str, float] = {}  # when a node's Lease was last seen renewed
        self.work = Work("node lifecycle", self._handle, clock=clock, workers=8)
        self.silenced = Work("pods of dead nodes", self._silence, clock=clock, workers=settings.workers)
        nodes.on_change(self._node_changed)
        leases.on_change(self._lease_changed)
        pods.on_change(self._pod_changed)

    # --- what happens ------------------------------------------------------------------------------

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        if new is None:
            assert old is not None
            self._heard.pop(old.name, None)
        elif new.simulated:
            # Whoever is new to us has all the time there is from now on, however old its Lease.
            self._heard.setdefault(new.name, self._clock.now())
            self.work.add(new.name)

    def _lease_changed(self, old: Lease | None, new: Lease | None) -> None:
        if new is None or new.metadata.name not in self._heard:
            return
        name, now = new.metadata.name, self._clock.now()
        if old is None or old.spec.renew_time != new.spec.renew_time:
            was_silent = now >= self._heard[name] + self._settings.grace
            self._heard[name] = now
            if was_silent:
                self.work.add(name)

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if new is None or not new.ready:
            return
        node = self._nodes.get(new.spec.node_name)
        if node is not None and node.simulated and not self._alive(node):
            self.silenced.add(new.metadata.key)

    def _alive(self, node: Node) -> bool:
        return not node.stopped and self._clock.now() < self._heard.get(node.name, 0.0) + self._settings.grace

    # --- one node ----------------------------------------------------------------------------------

    async def _handle(self, key: Key) -> None:
        node = self._nodes.get(key)
        if node is None or not node.simulated:
            return
        now, alive = self._clock.now(), self._alive(node)
        conditions = (node_objects.healthy if alive else node_objects.lost)(node.status.conditions, now=now)
        taints = node_objects.taints(node, alive=alive, now=now)
        version: Object = {"metadata": {"resourceVersion": node.metadata.resource_version}}
        try:
            if conditions != node.status.conditions:
                patch = {**version, "status": {"conditions": msgspec.to_builtins(conditions)}}
                manager = "kubelet" if alive else MANAGER
                written = await self._cluster.patch(
                    NODES, key, patch, subresource="status", field_manager=manager, as_=Receipt
                )
                version = {"metadata": {"resourceVersion": written.version}}
                self._announce(node, alive=alive)
            if taints != node.spec.taints:
                patch = {**version, "spec": {"taints": msgspec.to_builtins(taints) or None}}
                await self._cluster.patch(NODES, key, patch, field_manager=MANAGER)
        except (errors.NotFound, errors.Conflict):
            return  # we shall hear what it is now, and look again then
        if alive:
            self.work.add_at(key, self._heard[key] + self._settings.grace)
        else:
            for pod in self._on_node.objects(key):
                if pod.ready:
                    self.silenced.add(pod.metadata.key)

    def _announce(self, node: Node, *, alive: bool) -> None:
        if node.ready == alive:
            return
        word = "NodeReady" if alive else "NodeNotReady"
        about = Reference("Node", node.name, uid=node.metadata.uid, api_version="v1")
        self._events.record(about, "Normal", reason=word, message=f"Node {node.name} status is now: {word}")

    # --- one Pod of a dead node --------------------------------------------------------------------

    async def _silence(self, key: Key) -> None:
        """Nobody knows how the Pod is: it is not ready."""
        pod = self._pods.by_key(key)
        if pod is None or not pod.ready:
            return
        node = self._nodes.get(pod.spec.node_name)
        if node is None or not node.simulated or self._alive(node):
            return
        was, meta = pod.condition("Ready"), pod.metadata
        assert was is not None
        now = times.text(self._clock.now())
        condition = Condition("Ready", "False", now, was.reason, was.message, was.observed_generation)
        patch = {"metadata": {"uid": meta.uid}, "status": {"conditions": [msgspec.to_builtins(condition)]}}
        try:
            await self._cluster.patch(
                PODS,
                meta.name,
                patch,
                namespace=meta.namespace,
                type="strategic",
                subresource="status",
                field_manager=MANAGER,
            )
        except (errors.NotFound, errors.Conflict):
            return  # gone
        self._events.record(
            Reference.of(PODS, pod.metadata), "Warning", reason="NodeNotReady", message="Node is not ready"
        )
