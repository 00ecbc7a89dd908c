"""The heartbeats of simulated nodes: each renews its Lease every few seconds by one small write, as kubelets do."""

from __future__ import annotations

from seamark import errors
from seamark.access.cluster import Cluster
from seamark.errors import Object
from seamark.kinds.resource import LEASES
from seamark.kinds.values import times
from seamark.nodes.simulated.kubelet import RETRY
from seamark.nodes.simulated.registration import LEASE_NAMESPACE
from seamark.nodes.simulated.roster import Member, Roster
from seamark.nodes.simulated.settings import NodeSettings
from seamark.runtime.controller import Again, Controller
from seamark.runtime.manager import Manager
from seamark.runtime.queue import Key

# Heartbeats that are due within so many seconds are written at once, so many of them in one commit: alone, each would
# take twice the time, which counts where thousands of nodes are idle.
TICK = 0.1
TOGETHER = 32


def next_beat(now: float, heartbeat: float) -> float:
    """When a node beats again: at about its time, together with others."""
    tick = min(TICK, heartbeat / 10)
    return round((now + heartbeat) / tick) * tick


class Heartbeats(Controller):
    """Renews the Leases of the nodes that are switched on."""

    def __init__(self, manager: Manager, cluster: Cluster, *, roster: Roster, settings: NodeSettings) -> None:
        super().__init__("heartbeat", manager, workers=TOGETHER, retry=RETRY)
        self._cluster = cluster
        self._roster = roster
        self._settings = settings
        self._clock = manager.clock
        self._beating: set[str] = set()

    def reset(self) -> None:
        self._beating.clear()

    def node_changed(self, member: Member) -> None:
        if member.switched_on and member.name not in self._beating:
            self._beating.add(member.name)
            self.queue.add(member.name)

    def late(self, node: str) -> bool:
        """Whether the node's heartbeat is due and not written yet, because this process has too much to do."""
        return node in self.queue

    async def reconcile(self, key: Key) -> None:
        member = self._roster.get(key)
        if member is None or not member.switched_on:
            self._beating.discard(key)
            return
        now = self._clock.time()
        renewal = {"spec": {"renewTime": times.micro_text(now), "holderIdentity": key}}
        try:
            await self._cluster.patch(LEASES, key, renewal, namespace=LEASE_NAMESPACE, field_manager="kubelet")
        except errors.NotFound:
            await self._cluster.create(LEASES, self._lease(member, now), namespace=LEASE_NAMESPACE)
        raise Again(next_beat(now, self._settings.heartbeat) - self._clock.time())

    def _lease(self, member: Member, now: float) -> Object:
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {
                "name": member.name,
                "namespace": LEASE_NAMESPACE,
                "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": member.name, "uid": member.uid}],
            },
            "spec": {
                "holderIdentity": member.name,
                "leaseDurationSeconds": self._settings.lease,
                "renewTime": times.micro_text(now),
            },
        }
