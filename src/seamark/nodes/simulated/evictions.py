"""Deletes Pods from simulated nodes with a taint, as soon as they no longer tolerate it."""

from __future__ import annotations

import msgspec

from seamark import errors
from seamark.access.cluster import Cluster
from seamark.access.events import EventRecorder, Reference
from seamark.access.informer import Index, Informer
from seamark.errors import Object
from seamark.kinds.resource import PODS
from seamark.kinds.values import times
from seamark.nodes.simulated.kubelet import RETRY, node_of
from seamark.nodes.simulated.settings import NodeSettings
from seamark.rules.objects.conditions import Condition
from seamark.rules.objects.node import Node
from seamark.rules.objects.pod import Pod
from seamark.rules.placement import eviction_time
from seamark.runtime.controller import Again, Controller
from seamark.runtime.manager import Manager
from seamark.runtime.queue import Key


class Evictions(Controller):
    """Deletes Pods that do not tolerate a ``NoExecute`` taint of their node."""

    def __init__(
        self,
        manager: Manager,
        cluster: Cluster,
        *,
        pods: Informer[Pod],
        nodes: Informer[Node],
        settings: NodeSettings,
        events: EventRecorder,
    ) -> None:
        super().__init__("taint-eviction", manager, workers=settings.workers, retry=RETRY)
        self._cluster = cluster
        self._nodes = self.watch(nodes, self._node_changed)
        self._pods = self.watch(pods, self._pod_changed)
        self._on_node: Index[Pod] = pods.index("node", node_of)
        self._events = events
        self._clock = manager.clock
        # From when the patience of a Pod counts, by its uid, if a taint does not say when it was added.
        self._since: dict[str, float] = {}

    def reset(self) -> None:
        self._since.clear()

    def _node_changed(self, name: Key, old: Node | None, new: Node | None) -> None:
        if new is not None and new.simulated and (old is None or old.spec.taints != new.spec.taints):
            for key in self._on_node.keys(name):
                self.queue.add(key)

    def _pod_changed(self, key: Key, old: Pod | None, new: Pod | None) -> None:
        if new is None:
            if old is not None:
                self._since.pop(old.metadata.uid, None)
            return
        if not new.spec.node_name:
            return
        if old is not None and (old.spec.tolerations, old.spec.node_name) == (new.spec.tolerations, new.spec.node_name):
            return
        node = self._nodes.get(new.spec.node_name)
        if node is not None and node.simulated and node.spec.taints:
            self.queue.add(key)

    async def reconcile(self, key: Key) -> None:
        pod = self._pods.by_key(key)
        if pod is None or pod.terminating or pod.finished:
            return
        node = self._nodes.get(pod.spec.node_name)
        if node is None or not node.simulated:
            return
        now = self._clock.time()
        since = self._since.setdefault(pod.metadata.uid, now)
        due = eviction_time(node.spec.taints, pod.spec.tolerations, now=since)
        if due is None:
            del self._since[pod.metadata.uid]
            return
        if now < due:
            raise Again(due - now)
        self._events.record(
            Reference.of(PODS, pod.metadata),
            "Normal",
            reason="TaintManagerEviction",
            message=f"Marking for deletion Pod {key}",
        )
        reason = ("DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint")
        await disrupt(self._cluster, pod, reason, manager="taint-eviction-controller", now=now)
        try:
            await self._cluster.delete(PODS, pod.metadata.name, namespace=pod.metadata.namespace, uid=pod.metadata.uid)
        except (errors.NotFound, errors.Conflict):
            return  # gone already


async def disrupt(
    cluster: Cluster, pod: Pod, why: tuple[str, str], *, manager: str, now: float, phase: str = ""
) -> None:
    """Write on a Pod why the cluster removes it, so that this does not count as a failure of the Pod."""
    meta = pod.metadata
    reason, message = why
    condition = Condition("DisruptionTarget", "True", times.text(now), reason, message, meta.generation)
    status: Object = {"conditions": [msgspec.to_builtins(condition)]}
    if phase:
        status["phase"] = phase
    patch = {"metadata": {"uid": meta.uid}, "status": status}
    try:
        await cluster.patch(
            PODS,
            meta.name,
            patch,
            namespace=meta.namespace,
            type="strategic",
            subresource="status",
            field_manager=manager,
        )
    except (errors.NotFound, errors.Conflict):
        return  # gone already
