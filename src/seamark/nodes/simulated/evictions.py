"""Pods that have to leave: a taint of their node, and their own patience with it, say when.  Our nodes only."""

from __future__ import annotations

import msgspec

from seamark import errors
from seamark.access.clock import Clock
from seamark.access.cluster import Cluster
from seamark.access.events import EventRecorder, Reference
from seamark.access.informer import Index, Informer
from seamark.errors import Object
from seamark.kinds.resource import PODS
from seamark.kinds.values import times
from seamark.nodes.simulated.kubelet import node_of
from seamark.nodes.work import Key, Work
from seamark.rules.objects.conditions import Condition
from seamark.rules.objects.node import Node
from seamark.rules.objects.pod import Pod
from seamark.rules.placement import eviction_time


class Evictions:
    """Deletes Pods that their node's ``NoExecute`` taints drive away."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        pods: Informer[Pod],
        nodes: Informer[Node],
        events: EventRecorder,
        clock: Clock,
        workers: int,
    ) -> None:
        self._cluster = cluster
        self._pods = pods
        self._on_node: Index[Pod] = pods.index("node", node_of)
        self._nodes = nodes
        self._events = events
        self._clock = clock
        self.work = Work("taint eviction", self._handle, clock=clock, workers=workers)
        nodes.on_change(self._node_changed)
        pods.on_change(self._pod_changed)

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        if new is not None and new.simulated and (old is None or old.spec.taints != new.spec.taints):
            for key in self._on_node.keys(new.name):
                self.work.add(key)

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if new is None or not new.spec.node_name:
            return
        if old is not None and (old.spec.tolerations, old.spec.node_name) == (new.spec.tolerations, new.spec.node_name):
            return
        node = self._nodes.get(new.spec.node_name)
        if node is not None and node.simulated and node.spec.taints:
            self.work.add(new.metadata.key)

    async def _handle(self, key: Key) -> None:
        pod = self._pods.by_key(key)
        if pod is None or pod.terminating or pod.finished:
            return
        node = self._nodes.get(pod.spec.node_name)
        if node is None or not node.simulated:
            return
        now = self._clock.now()
        due = eviction_time(node.spec.taints, pod.spec.tolerations, now=now)
        if due is None:
            return
        if now < due:
            self.work.add_at(key, due)
            return
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
    """Say on a Pod that the cluster takes it away and why, so that whoever counts failures does not count this one."""
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
