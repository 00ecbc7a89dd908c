"""Lets go of claims and volumes that are being deleted, once nothing uses them.

Admission adds the finalizers that keep them (``seamark.kinds.storage.admission``).  A key with a slash is a claim, one
without is a volume.
"""

from __future__ import annotations

from contextlib import suppress

from seamark import errors
from seamark.access.cluster import Cluster, Receipt
from seamark.kinds.resource import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS, Resource
from seamark.kinds.storage.admission import CLAIM_FINALIZER, VOLUME_FINALIZER
from seamark.rules.objects.metadata import Metadata
from seamark.rules.objects.pod import Pod
from seamark.rules.objects.storage import Claim, Volume
from seamark.runtime.controller import Controller
from seamark.runtime.manager import Manager
from seamark.runtime.queue import Key

NAME = "pvc-protection-controller"


class ProtectionController(Controller):
    """Removes the finalizers of claims that no Pod uses, and of volumes that no claim has."""

    def __init__(self, manager: Manager, cluster: Cluster) -> None:
        super().__init__(NAME, manager)
        self._cluster = cluster
        informers = manager.informers
        self._users: dict[Key, set[Key]] = {}  # claim → the Pods on nodes that use it
        self._pods = self.watch(informers.of(PODS, as_=Pod), self._pod_changed)
        self._claims = self.watch(informers.of(PERSISTENT_VOLUME_CLAIMS, as_=Claim), self._claim_changed)
        self._volumes = self.watch(informers.of(PERSISTENT_VOLUMES, as_=Volume), self._volume_changed)

    def reset(self) -> None:
        self._users.clear()

    def _pod_changed(self, key: Key, old: Pod | None, new: Pod | None) -> None:
        for claim in () if old is None else old.claims:
            users = self._users.get(claim, set())
            users.discard(key)
            if not users:
                self._users.pop(claim, None)
                self.queue.add(claim)
        if new is not None and new.spec.node_name and not new.finished:
            for claim in new.claims:
                self._users.setdefault(claim, set()).add(key)

    def _claim_changed(self, key: Key, old: Claim | None, new: Claim | None) -> None:
        if new is not None and new.metadata.deletion_timestamp is not None:
            self.queue.add(key)

    def _volume_changed(self, name: Key, old: Volume | None, new: Volume | None) -> None:
        if new is not None and new.metadata.deletion_timestamp is not None:
            self.queue.add(name)

    async def reconcile(self, key: Key) -> None:
        if "/" in key:
            claim = self._claims.by_key(key)
            if claim is not None and key not in self._users:
                await self._let_go(PERSISTENT_VOLUME_CLAIMS, claim.metadata, CLAIM_FINALIZER)
        else:
            volume = self._volumes.by_key(key)
            if volume is not None and volume.status.phase != "Bound":
                await self._let_go(PERSISTENT_VOLUMES, volume.metadata, VOLUME_FINALIZER)

    async def _let_go(self, resource: Resource, meta: Metadata, finalizer: str) -> None:
        if meta.deletion_timestamp is None or finalizer not in meta.finalizers:
            return
        patch = {"metadata": {"uid": meta.uid, "$deleteFromPrimitiveList/finalizers": [finalizer]}}
        with suppress(errors.NotFound, errors.Conflict):
            await self._cluster.patch(
                resource, meta.name, patch, namespace=meta.namespace, type="strategic", as_=Receipt
            )
