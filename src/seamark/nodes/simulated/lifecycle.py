"""Decides whether simulated nodes are alive, and writes their conditions and taints, and the readiness of their Pods.

A node is alive as long as its Lease is renewed; one that a user has stopped is dead at once.  A node whose heartbeat
waits for this very process, which has too much to do, is not dead: taking all nodes for dead would only add to that.
Nodes that Seamark does not simulate are left alone.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from seamark import errors
from seamark.access.cluster import Cluster, Receipt
from seamark.access.events import EventRecorder, Reference
from seamark.access.informer import Index, Informer, split_key
from seamark.errors import Object
from seamark.kinds.resource import NODES, PODS
from seamark.kinds.values import times
from seamark.nodes.simulated import node_objects
from seamark.nodes.simulated.kubelet import RETRY, node_of
from seamark.nodes.simulated.registration import LEASE_NAMESPACE
from seamark.nodes.simulated.settings import NodeSettings
from seamark.rules.objects.conditions import Condition
from seamark.rules.objects.node import Lease, Node
from seamark.rules.objects.pod import Pod
from seamark.runtime.controller import Again, Controller
from seamark.runtime.manager import Manager
from seamark.runtime.queue import Key

MANAGER = "node-controller"
LATE_SECONDS = 5.0  # between two looks at a node whose heartbeat is late


class Lifecycle(Controller):
    """Writes to every simulated Node whether it is alive."""

    def __init__(
        self,
        manager: Manager,
        cluster: Cluster,
        *,
        nodes: Informer[Node],
        leases: Informer[Lease],
        settings: NodeSettings,
        events: EventRecorder,
        died: Callable[[str], None],
        late: Callable[[str], bool],
    ) -> None:
        """``died`` is called with the name of a node that is found dead; ``late`` says whether its heartbeat waits."""
        super().__init__("node-lifecycle", manager, workers=8, retry=RETRY)
        self._cluster = cluster
        self._nodes = self.watch(nodes, self._node_changed)
        self.watch(leases, self._lease_changed)
        self._settings = settings
        self._events = events
        self._died = died
        self._late = late
        self._clock = manager.clock
        self._heard: dict[str, float] = {}  # when a node's Lease was last seen renewed
        self._renewals: dict[str, str | None] = {}  # the renewal time in its Lease then

    def reset(self) -> None:
        """Keep when each node was last heard of, because informers cannot repeat that."""
        self._heard = {name: at for name, at in self._heard.items() if self._nodes.get(name) is not None}

    def alive(self, node: Node) -> bool:
        heard = self._clock.time() < self._heard.get(node.name, 0.0) + self._settings.grace
        return not node.stopped and (heard or self._late(node.name))

    # --- following ---------------------------------------------------------------------------------

    def _node_changed(self, name: Key, old: Node | None, new: Node | None) -> None:
        if new is None:
            self._heard.pop(name, None)
            self._renewals.pop(name, None)
        elif new.simulated:
            # A node that is new to this process gets the whole grace period from now, even if its Lease is old.
            self._heard.setdefault(name, self._clock.time())
            self.queue.add(name)

    def _lease_changed(self, key: Key, old: Lease | None, new: Lease | None) -> None:
        namespace, name = split_key(key)
        if new is None or namespace != LEASE_NAMESPACE or name not in self._heard:
            return
        if self._renewals.get(name) == new.spec.renew_time:
            return
        now = self._clock.time()
        was_silent = now >= self._heard[name] + self._settings.grace
        self._heard[name] = now
        self._renewals[name] = new.spec.renew_time
        if was_silent:
            self.queue.add(name)

    # --- one node ----------------------------------------------------------------------------------

    async def reconcile(self, key: Key) -> None:
        node = self._nodes.get(key)
        if node is None or not node.simulated:
            return
        now, alive = self._clock.time(), self.alive(node)
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
            return  # changed meanwhile: when the informer shows that, it is handled again
        if not alive:
            self._died(key)
        elif key in self._heard:
            left = self._heard[key] + self._settings.grace - self._clock.time()
            raise Again(left if left > 0 else LATE_SECONDS)

    def _announce(self, node: Node, *, alive: bool) -> None:
        if node.ready == alive:
            return
        word = "NodeReady" if alive else "NodeNotReady"
        about = Reference("Node", node.name, uid=node.metadata.uid, api_version="v1")
        self._events.record(about, "Normal", reason=word, message=f"Node {node.name} status is now: {word}")


class Silence(Controller):
    """Marks the Pods of dead nodes as not ready, because no kubelet reports their state."""

    def __init__(
        self,
        manager: Manager,
        cluster: Cluster,
        *,
        pods: Informer[Pod],
        nodes: Informer[Node],
        settings: NodeSettings,
        events: EventRecorder,
        alive: Callable[[Node], bool],
    ) -> None:
        super().__init__("pods-of-dead-nodes", manager, workers=settings.workers, retry=RETRY)
        self._cluster = cluster
        self._pods = self.watch(pods, self._pod_changed)
        self._on_node: Index[Pod] = pods.index("node", node_of)
        self._nodes = nodes
        self._events = events
        self._alive = alive
        self._clock = manager.clock

    def died(self, node: str) -> None:
        for pod in self._on_node.objects(node):
            if pod.ready:
                self.queue.add(pod.metadata.key)

    def _pod_changed(self, key: Key, old: Pod | None, new: Pod | None) -> None:
        if new is not None and new.ready and self._dead(new.spec.node_name):
            self.queue.add(key)

    def _dead(self, name: str) -> bool:
        node = self._nodes.get(name)
        return node is not None and node.simulated and not self._alive(node)

    async def reconcile(self, key: Key) -> None:
        pod = self._pods.by_key(key)
        if pod is None or not pod.ready or not self._dead(pod.spec.node_name):
            return
        was, meta = pod.condition("Ready"), pod.metadata
        assert was is not None  # because the Pod is ready
        now = times.text(self._clock.time())
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
        about = Reference.of(PODS, meta)
        self._events.record(about, "Warning", reason="NodeNotReady", message="Node is not ready")
