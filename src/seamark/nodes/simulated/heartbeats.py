"""The heartbeats of our nodes: each renews its Lease every few seconds, as kubelets do, by one small write."""

from __future__ import annotations

from seamark import errors
from seamark.access.clock import Clock
from seamark.access.cluster import Cluster
from seamark.errors import Object
from seamark.kinds.resource import LEASES
from seamark.kinds.values import times
from seamark.nodes.simulated.registration import LEASE_NAMESPACE
from seamark.nodes.simulated.roster import Member, Roster
from seamark.nodes.simulated.settings import NodeSettings
from seamark.nodes.work import Key, Work


class Heartbeats:
    """Keeps the Leases of the nodes that are switched on."""

    def __init__(self, cluster: Cluster, *, roster: Roster, settings: NodeSettings, clock: Clock) -> None:
        self._cluster = cluster
        self._roster = roster
        self._settings = settings
        self._clock = clock
        self._beating: set[str] = set()
        self.work = Work("heartbeat", self._handle, clock=clock, workers=8)

    def node_changed(self, member: Member) -> None:
        if member.switched_on and member.name not in self._beating:
            self._beating.add(member.name)
            self.work.add(member.name)

    async def _handle(self, key: Key) -> None:
        member = self._roster.get(key)
        if member is None or not member.switched_on:
            self._beating.discard(key)
            return
        now = self._clock.now()
        renewal = {"spec": {"renewTime": times.micro_text(now), "holderIdentity": key}}
        try:
            await self._cluster.patch(LEASES, key, renewal, namespace=LEASE_NAMESPACE, field_manager="kubelet")
        except errors.NotFound:
            await self._cluster.create(LEASES, self._lease(member, now), namespace=LEASE_NAMESPACE)
        self.work.add_at(key, now + self._settings.heartbeat)

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
