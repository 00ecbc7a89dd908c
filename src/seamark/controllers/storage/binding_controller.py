"""Gives claims their volumes, makes simulated ones, and reclaims volumes whose claims are gone.

A key with a slash is a claim, one without is a volume.  What is written refers to the version that was read: when
something else changed meanwhile, the write is refused, and the key is looked at again once that change is seen.
"""

from __future__ import annotations

from typing import Literal

from seamark import errors
from seamark.access.cluster import Cluster, Receipt
from seamark.access.correlation import Reference
from seamark.errors import Object
from seamark.kinds.resource import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS, STORAGE_CLASSES, Resource
from seamark.rules import volumes
from seamark.rules.objects.metadata import Metadata
from seamark.rules.objects.pod import Pod
from seamark.rules.objects.storage import Claim, StorageClass, Volume
from seamark.runtime.controller import Controller
from seamark.runtime.manager import Manager
from seamark.runtime.queue import Key

NAME = "persistent-volume-binder"


class BindingController(Controller):
    """Keeps claims and volumes together."""

    def __init__(self, manager: Manager, cluster: Cluster) -> None:
        super().__init__(NAME, manager)
        self._cluster = cluster
        self._recorder = manager.recorder(cluster, "persistentvolume-controller")
        informers = manager.informers
        self._wanted: dict[Key, set[Key]] = {}  # claim → the Pods without a node that need it
        self._unbound: set[Key] = set()  # claims that name no volume
        self._naming: dict[Key, set[Key]] = {}  # volume → the claims that name it
        self._refused: set[Key] = set()  # those whose write was refused because of a change that is not seen yet
        self._classes = self.watch(informers.of(STORAGE_CLASSES, as_=StorageClass), self._class_changed)
        self._volumes = self.watch(informers.of(PERSISTENT_VOLUMES, as_=Volume), self._volume_changed)
        self._claims = self.watch(informers.of(PERSISTENT_VOLUME_CLAIMS, as_=Claim), self._claim_changed)
        self.watch(informers.of(PODS, as_=Pod), self._pod_changed)

    def reset(self) -> None:
        self._wanted.clear()
        self._unbound.clear()
        self._naming.clear()
        self._refused.clear()

    # --- following ---------------------------------------------------------------------------------

    def _class_changed(self, name: Key, old: StorageClass | None, new: StorageClass | None) -> None:
        for key in self._unbound:
            self.queue.add(key)

    def _look_again(self) -> None:
        for key in self._refused:
            self.queue.add(key)
        self._refused.clear()

    def _volume_changed(self, name: Key, old: Volume | None, new: Volume | None) -> None:
        self._look_again()
        self.queue.add(name)
        if new is None and not self._naming.get(name):
            self._naming.pop(name, None)
        for volume in (old, new):
            if volume is not None and volume.claim:
                self.queue.add(volume.claim)
        for key in self._naming.get(name, ()):
            self.queue.add(key)
        if new is not None and not new.claim:
            for key in self._unbound:
                self.queue.add(key)

    def _claim_changed(self, key: Key, old: Claim | None, new: Claim | None) -> None:
        if new is not None and not new.spec.volume_name:
            self._unbound.add(key)
        else:
            self._unbound.discard(key)
        self._look_again()
        self.queue.add(key)
        if old is not None and old.spec.volume_name:
            self._naming.get(old.spec.volume_name, set()).discard(key)
            self.queue.add(old.spec.volume_name)
        if new is not None and new.spec.volume_name:
            self._naming.setdefault(new.spec.volume_name, set()).add(key)
            self.queue.add(new.spec.volume_name)

    def _pod_changed(self, key: Key, old: Pod | None, new: Pod | None) -> None:
        was = old.claims if old is not None and _seeks_node(old) else ()
        now = new.claims if new is not None and _seeks_node(new) else ()
        for claim in was:
            if claim not in now and (pods := self._wanted.get(claim)) is not None:
                pods.discard(key)
                if not pods:
                    del self._wanted[claim]
        for claim in now:
            if claim not in was:
                self._wanted.setdefault(claim, set()).add(key)
                if claim in self._unbound:
                    self.queue.add(claim)

    # --- one key -----------------------------------------------------------------------------------

    async def reconcile(self, key: Key) -> None:
        try:
            if "/" in key:
                await self._look_after_claim(key)
            else:
                await self._look_after_volume(key)
        except (errors.Conflict, errors.NotFound):
            self._refused.add(key)

    async def _look_after_claim(self, key: Key) -> None:
        claim = self._claims.by_key(key)
        if claim is None:
            return
        if not claim.spec.volume_name:
            await self._find_volume(key, claim)
            return
        volume = self._volumes.by_key(claim.spec.volume_name)
        if volume is not None and (volume.spec.claim_ref is None or volumes.belongs(volume, claim)):
            await self._bind(claim, volume)
        elif volumes.BIND_COMPLETED in claim.metadata.annotations and claim.status.phase != "Lost":
            lost = "Bound claim has lost its PersistentVolume. Data on the volume is lost!"
            if volume is not None:
                lost = "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!"
            await self._write_status(PERSISTENT_VOLUME_CLAIMS, claim.metadata, {"phase": "Lost"})
            self._tell(claim, "Warning", "ClaimLost", lost)

    async def _find_volume(self, key: Key, claim: Claim) -> None:
        if claim.spec.storage_class_name is None and not claim.storage_class:
            default = self._default_class()
            if default is not None:
                spec = {"spec": {"storageClassName": default.metadata.name}}
                await self._patch(PERSISTENT_VOLUME_CLAIMS, claim.metadata, spec)
                return
        chosen = self._classes.by_key(claim.storage_class) if claim.storage_class else None
        waits = chosen is not None and chosen.waits and volumes.SELECTED_NODE not in claim.metadata.annotations
        volume = volumes.best(claim, self._volumes.objects(), reserved_only=waits)
        if volume is not None:
            await self._bind(claim, volume)
        elif waits:
            self._tell(claim, "Normal", *volumes.waiting(sorted(self._wanted.get(key, ()))))
        elif chosen is not None:
            await self._provision(claim, chosen)
        elif claim.storage_class:
            sentence = f'storageclass.storage.k8s.io "{claim.storage_class}" not found'
            self._tell(claim, "Warning", "ProvisioningFailed", sentence)
        else:
            sentence = "no persistent volumes available for this claim and no storage class is set"
            self._tell(claim, "Normal", "FailedBinding", sentence)

    def _default_class(self) -> StorageClass | None:
        """The default class; of several the newest, of equally old ones the first by name."""
        defaults = sorted((c for c in self._classes.objects() if c.default), key=lambda c: c.metadata.name)
        return max(defaults, key=lambda c: c.metadata.creation_timestamp or "", default=None)

    async def _provision(self, claim: Claim, chosen: StorageClass) -> None:
        if claim.metadata.deletion_timestamp is not None:
            return
        provisioner, annotations = chosen.provisioner, claim.metadata.annotations
        if annotations.get(volumes.PROVISIONER_ANNOTATION) != provisioner:
            said = dict.fromkeys((volumes.PROVISIONER_ANNOTATION, volumes.OLD_PROVISIONER_ANNOTATION), provisioner)
            await self._patch(PERSISTENT_VOLUME_CLAIMS, claim.metadata, {"metadata": {"annotations": said}})
            return  # the change of the claim brings us back
        if provisioner != volumes.PROVISIONER:
            if provisioner != "kubernetes.io/no-provisioner":
                self._tell(
                    claim,
                    "Normal",
                    "ExternalProvisioning",
                    f"Waiting for a volume to be created either by the external provisioner '{provisioner}' or "
                    "manually by the system administrator. If volume creation is delayed, please verify that the "
                    "provisioner is running and correctly registered.",
                )
            return
        made = volumes.new_volume(claim, chosen)
        try:
            await self._cluster.create(PERSISTENT_VOLUMES, made, as_=Receipt)
        except errors.AlreadyExists:
            return
        sentence = f"Successfully provisioned volume {made['metadata']['name']}"
        self._tell(claim, "Normal", "ProvisioningSucceeded", sentence)

    # --- binding -----------------------------------------------------------------------------------

    async def _bind(self, claim: Claim, volume: Volume) -> None:
        """Write what is missing: the volume names the claim, then the claim names the volume."""
        found = volume.spec.claim_ref
        if found is None or found.uid != claim.metadata.uid:
            patch: Object = {"spec": {"claimRef": volumes.reference(claim)}}
            if found is None:
                patch["metadata"] = {"annotations": {volumes.BOUND_BY_CONTROLLER: "yes"}}
            await self._patch(PERSISTENT_VOLUMES, volume.metadata, patch)
        await self._set_phase(volume, "Bound")
        annotations = claim.metadata.annotations
        if volumes.BIND_COMPLETED not in annotations or not claim.spec.volume_name:
            added = {volumes.BIND_COMPLETED: "yes"}
            if not claim.spec.volume_name:
                added[volumes.BOUND_BY_CONTROLLER] = "yes"
            patch = {"metadata": {"annotations": added}, "spec": {"volumeName": volume.metadata.name}}
            await self._patch(PERSISTENT_VOLUME_CLAIMS, claim.metadata, patch)
        status = claim.status
        if status.phase != "Bound" or status.access_modes != volume.spec.access_modes or not status.capacity:
            wanted = {
                "phase": "Bound",
                "accessModes": list(volume.spec.access_modes),
                "capacity": volume.spec.capacity,
            }
            await self._write_status(PERSISTENT_VOLUME_CLAIMS, claim.metadata, wanted)

    async def _look_after_volume(self, name: Key) -> None:
        volume = self._volumes.by_key(name)
        if volume is None:
            return
        found = volume.spec.claim_ref
        claim = self._claims.by_key(volume.claim) if found is not None else None
        if found is None or not found.uid:
            await self._set_phase(volume, "Available")
        elif claim is None or claim.metadata.uid != found.uid:
            await self._reclaim(volume)
        elif claim.spec.volume_name == name:
            await self._set_phase(volume, "Bound")
        elif claim.spec.volume_name:
            # The claim took another volume.
            if volumes.PROVISIONED_BY in volume.metadata.annotations:
                await self._reclaim(volume)
            else:
                await self._patch(PERSISTENT_VOLUMES, volume.metadata, {"spec": {"claimRef": None}})
        else:
            self.queue.add(volume.claim)

    async def _reclaim(self, volume: Volume) -> None:
        """The claim is gone: keep the volume as it is, delete it, or make it free again."""
        await self._set_phase(volume, "Released")
        policy, meta = volume.spec.persistent_volume_reclaim_policy, volume.metadata
        if policy == "Delete" and meta.annotations.get(volumes.PROVISIONED_BY) == volumes.PROVISIONER:
            if meta.deletion_timestamp is None:
                await self._cluster.delete(PERSISTENT_VOLUMES, meta.name)
        elif policy == "Recycle":
            await self._patch(PERSISTENT_VOLUMES, meta, {"spec": {"claimRef": None}}, versioned=False)

    async def _set_phase(self, volume: Volume, phase: str) -> None:
        if volume.status.phase != phase:
            await self._write_status(PERSISTENT_VOLUMES, volume.metadata, {"phase": phase})

    # --- writing -----------------------------------------------------------------------------------

    async def _patch(
        self, resource: Resource, meta: Metadata, patch: Object, *, subresource: str = "", versioned: bool = True
    ) -> None:
        known: Object = {"uid": meta.uid}
        if versioned:
            known["resourceVersion"] = meta.resource_version
        body = {**patch, "metadata": {**patch.get("metadata", {}), **known}}
        await self._cluster.patch(
            resource, meta.name, body, namespace=meta.namespace, subresource=subresource, as_=Receipt
        )

    async def _write_status(self, resource: Resource, meta: Metadata, status: Object) -> None:
        await self._patch(resource, meta, {"status": status}, subresource="status", versioned=False)

    def _tell(self, claim: Claim, type: Literal["Normal", "Warning"], reason: str, message: str) -> None:
        self._recorder.record(
            Reference.of(PERSISTENT_VOLUME_CLAIMS, claim.metadata), type, reason=reason, message=message
        )


def _seeks_node(pod: Pod) -> bool:
    return not pod.spec.node_name and not pod.finished
