"""Deletes Pods when their node is gone, because no kubelet will ever stop them.

A simulated Node that is gone does not come back, so its Pods are deleted at once.  Any other Node gets some time to
come back.  Pods of a Node that never existed are left alone: a user must have put them there on purpose.
"""

from __future__ import annotations

from seamark import errors
from seamark.access.cluster import Cluster
from seamark.access.informer import Index, Informer
from seamark.kinds.resource import NODES, PODS
from seamark.nodes.simulated.evictions import disrupt
from seamark.nodes.simulated.kubelet import RETRY, node_of
from seamark.nodes.simulated.settings import NodeSettings
from seamark.rules.objects.node import Node
from seamark.rules.objects.pod import Pod
from seamark.runtime.controller import Again, Controller
from seamark.runtime.manager import Manager
from seamark.runtime.queue import Key


class Orphans(Controller):
    """Removes Pods of Nodes that no longer exist."""

    def __init__(
        self,
        manager: Manager,
        cluster: Cluster,
        *,
        pods: Informer[Pod],
        nodes: Informer[Node],
        settings: NodeSettings,
    ) -> None:
        super().__init__("orphaned-pods", manager, workers=settings.workers, retry=RETRY)
        self._cluster = cluster
        self._nodes = self.watch(nodes, self._node_changed)
        self._pods = self.watch(pods, self._pod_changed)
        self._on_node: Index[Pod] = pods.index("node", node_of)
        self._settings = settings
        self._clock = manager.clock
        # When the Pods of each Node that is gone become orphans.  Never reset, because informers cannot repeat it.
        self._lost: dict[str, float] = {}

    def _node_changed(self, name: Key, old: Node | None, new: Node | None) -> None:
        if new is not None:
            self._lost.pop(name, None)
        elif old is not None:
            grace = 0.0 if old.simulated else self._settings.orphan_after
            self._lost[name] = self._clock.time() + grace
            for key in self._on_node.keys(name):
                self.queue.add_after(key, grace)

    def _pod_changed(self, key: Key, old: Pod | None, new: Pod | None) -> None:
        if new is not None and (due := self._lost.get(new.spec.node_name)) is not None:
            self.queue.add_after(key, due - self._clock.time())

    def look_around(self) -> None:
        """Find Pods of simulated nodes that were deleted before this process started."""
        for name in self._on_node.values():
            if isinstance(name, str) and self._nodes.get(name) is None and self._settings.number(name) is not None:
                self._lost.setdefault(name, self._clock.time())
                for key in self._on_node.keys(name):
                    self.queue.add(key)

    async def reconcile(self, key: Key) -> None:
        pod = self._pods.by_key(key)
        if pod is None:
            return
        due = self._lost.get(pod.spec.node_name)
        if due is None:
            return
        now = self._clock.time()
        if now < due:
            raise Again(due - now)
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
        """Ask the server whether the Node exists, because the informer may be behind."""
        try:
            await self._cluster.get(NODES, name, as_=Node)
        except errors.NotFound:
            return False
        return True
