"""Lets simulated volumes grow to what their claims ask for; volumes of other drivers are left to those."""

from __future__ import annotations

from contextlib import suppress
from typing import Literal

from seamark import errors
from seamark.access.cluster import Cluster, Receipt
from seamark.access.correlation import Reference
from seamark.kinds.resource import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES
from seamark.kinds.values.quantity import amount
from seamark.rules.objects.storage import Claim, StorageClass, Volume
from seamark.rules.volumes import PROVISIONED_BY, PROVISIONER
from seamark.runtime.controller import Controller
from seamark.runtime.manager import Manager
from seamark.runtime.queue import Key

NAME = "expand-controller"


class ExpansionController(Controller):
    """One key is one claim."""

    def __init__(self, manager: Manager, cluster: Cluster) -> None:
        super().__init__(NAME, manager)
        self._cluster = cluster
        self._recorder = manager.recorder(cluster, "volume_expand")
        informers = manager.informers
        self._classes = self.watch(informers.of(STORAGE_CLASSES, as_=StorageClass), lambda key, old, new: None)
        self._volumes = self.watch(informers.of(PERSISTENT_VOLUMES, as_=Volume), self._volume_changed)
        self._claims = self.watch(informers.of(PERSISTENT_VOLUME_CLAIMS, as_=Claim), self._claim_changed)

    def _claim_changed(self, key: Key, old: Claim | None, new: Claim | None) -> None:
        if new is not None and new.bound and _wants_more(new):
            self.queue.add(key)

    def _volume_changed(self, name: Key, old: Volume | None, new: Volume | None) -> None:
        if old is not None and new is not None and old.spec.capacity != new.spec.capacity and new.claim:
            self.queue.add(new.claim)

    async def reconcile(self, key: Key) -> None:
        claim = self._claims.by_key(key)
        if claim is None or not claim.bound or not _wants_more(claim):
            return
        volume = self._volumes.by_key(claim.spec.volume_name)
        chosen = self._classes.by_key(claim.storage_class)
        if volume is None or chosen is None or not chosen.allow_volume_expansion:
            return
        if volume.metadata.annotations.get(PROVISIONED_BY) != PROVISIONER:
            self._tell(
                claim,
                "Normal",
                "ExternalExpanding",
                "Ignoring the PVC: didn't find a plugin capable of expanding the volume; waiting for an external "
                "controller to process this PVC.",
            )
            return
        with suppress(errors.Conflict, errors.NotFound):  # the change is seen, and the claim looked at again
            await self._grow(claim, volume)

    async def _grow(self, claim: Claim, volume: Volume) -> None:
        """The volume grows first, so that a claim never shows more than its volume has."""
        if amount(volume.spec.capacity.get("storage", "0")) < amount(claim.size):
            meta = volume.metadata
            self._tell(claim, "Normal", "Resizing", f"External resizer is resizing volume {meta.name}")
            larger = {"metadata": {"uid": meta.uid}, "spec": {"capacity": {"storage": claim.size}}}
            await self._cluster.patch(PERSISTENT_VOLUMES, meta.name, larger, as_=Receipt)
        meta = claim.metadata
        going_on = ("Resizing", "FileSystemResizePending")
        status = {
            "capacity": {**claim.status.capacity, "storage": claim.size},
            "conditions": [each for each in claim.status.conditions if each.get("type") not in going_on] or None,
        }
        await self._cluster.patch(
            PERSISTENT_VOLUME_CLAIMS,
            meta.name,
            {"metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version}, "status": status},
            namespace=meta.namespace,
            subresource="status",
            as_=Receipt,
        )
        self._tell(claim, "Normal", "VolumeResizeSuccessful", "Resize volume succeeded")

    def _tell(self, claim: Claim, type: Literal["Normal", "Warning"], reason: str, message: str) -> None:
        about = Reference.of(PERSISTENT_VOLUME_CLAIMS, claim.metadata)
        self._recorder.record(about, type, reason=reason, message=message)


def _wants_more(claim: Claim) -> bool:
    has = claim.status.capacity.get("storage")
    return has is not None and amount(claim.size) > amount(has)
