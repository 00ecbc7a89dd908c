"""Pods whose node is gone: nobody will ever stop them, so they are removed.

A Node of ours that is gone stays gone, and its Pods go at once.  A foreign Node that was there and is gone gets some
time to come back.  Pods of a Node that was never there are left alone: they are somebody's experiment.
"""

from __future__ import annotations

from seamark import errors
from seamark.access.clock import Clock
from seamark.access.cluster import Cluster
from seamark.access.informer import Index, Informer
from seamark.kinds.resource import NODES, PODS
from seamark.nodes.simulated.evictions import disrupt
from seamark.nodes.simulated.kubelet import node_of
from seamark.nodes.simulated.settings import NodeSettings
from seamark.nodes.work import Key, Work
from seamark.rules.objects.node import Node
from seamark.rules.objects.pod import Pod


class Orphans:
    """Removes Pods of Nodes that no longer exist."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        pods: Informer[Pod],
        nodes: Informer[Node],
        settings: NodeSettings,
        clock: Clock,
    ) -> None:
        self._cluster = cluster
        self._pods = pods
        self._on_node: Index[Pod] = pods.index("node", node_of)
        self._nodes = nodes
        self._settings = settings
        self._clock = clock
        self._lost: dict[str, float] = {}  # nodes that are gone, and from when on their Pods are orphans
        self.work = Work("orphaned pods", self._handle, clock=clock, workers=settings.workers)
        nodes.on_change(self._node_changed)
        pods.on_change(self._pod_changed)

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        if new is not None:
            self._lost.pop(new.name, None)
        elif old is not None:
            grace = 0.0 if old.simulated else self._settings.orphan_after
            self._lost[old.name] = self._clock.now() + grace
            for key in self._on_node.keys(old.name):
                self.work.add_at(key, self._lost[old.name])

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if new is not None and new.spec.node_name in self._lost:
            self.work.add_at(new.metadata.key, self._lost[new.spec.node_name])

    def look_around(self) -> None:
        """Once all is known: Pods of a node of ours that went while nobody was looking."""
        for name in self._on_node.values():
            if isinstance(name, str) and self._nodes.get(name) is None and self._settings.number(name) is not None:
                self._lost.setdefault(name, self._clock.now())
                for key in self._on_node.keys(name):
                    self.work.add(key)

    async def _handle(self, key: Key) -> None:
        pod = self._pods.by_key(key)
        if pod is None:
            return
        due = self._lost.get(pod.spec.node_name)
        if due is None:
            return
        now = self._clock.now()
        if now < due:
            self.work.add_at(key, due)
            return
        if await self._exists(pod.spec.node_name):
            return
        meta = pod.metadata
        if not pod.finished:
            reason = ("DeletionByPodGC", "PodGC: node no longer exists")
            await disrupt(self._cluster, pod, reason, manager="pod-garbage-collector", now=now, phase="Failed")
        try:
            await self._cluster.delete(PODS, meta.name, namespace=meta.namespace, uid=meta.uid, grace_seconds=0)
        except (errors.NotFound, errors.Conflict):
            return  # gone already

    async def _exists(self, name: str) -> bool:
        """Our copy may be behind: ask before removing anything."""
        try:
            await self._cluster.get(NODES, name, as_=Node)
        except errors.NotFound:
            return False
        return True
