"""Views of volumes, of the claims that take them, and of the classes that make them."""

from typing import Any

import msgspec

from seamark.kinds.storage.persistentvolumeclaim import CLASS_ANNOTATION
from seamark.kinds.storage.storageclass import DEFAULT_ANNOTATION
from seamark.rules.objects.metadata import ObjectReference, ObjectView, View


class ClaimSpec(View, frozen=True):
    access_modes: tuple[str, ...] = ()
    resources: dict[str, Any] = msgspec.field(default_factory=dict)
    selector: dict[str, Any] | None = None
    storage_class_name: str | None = None
    volume_name: str = ""
    volume_mode: str | None = None


class ClaimStatus(View, frozen=True):
    phase: str = ""
    access_modes: tuple[str, ...] = ()
    capacity: dict[str, str] = msgspec.field(default_factory=dict)
    conditions: tuple[dict[str, Any], ...] = ()


class Claim(ObjectView, frozen=True):
    """A PersistentVolumeClaim."""

    spec: ClaimSpec = ClaimSpec()
    status: ClaimStatus = ClaimStatus()

    @property
    def storage_class(self) -> str:
        return self.metadata.annotations.get(CLASS_ANNOTATION) or self.spec.storage_class_name or ""

    @property
    def size(self) -> str:
        return str((self.spec.resources.get("requests") or {}).get("storage", "0"))

    @property
    def bound(self) -> bool:
        """Whether it has its volume, for good."""
        return self.status.phase == "Bound" and bool(self.spec.volume_name)


class VolumeSpec(View, frozen=True):
    capacity: dict[str, str] = msgspec.field(default_factory=dict)
    access_modes: tuple[str, ...] = ()
    claim_ref: ObjectReference | None = None
    persistent_volume_reclaim_policy: str = "Retain"
    storage_class_name: str = ""
    volume_mode: str | None = None
    node_affinity: dict[str, Any] = msgspec.field(default_factory=dict)


class VolumeStatus(View, frozen=True):
    phase: str = ""


class Volume(ObjectView, frozen=True):
    """A PersistentVolume."""

    spec: VolumeSpec = VolumeSpec()
    status: VolumeStatus = VolumeStatus()

    @property
    def storage_class(self) -> str:
        return self.metadata.annotations.get(CLASS_ANNOTATION) or self.spec.storage_class_name

    @property
    def tied(self) -> bool:
        """Whether it can be used on some nodes only."""
        return bool(self.spec.node_affinity.get("required"))

    @property
    def claim(self) -> str:
        """The key of the claim that has it, or may have it; empty if any may."""
        found = self.spec.claim_ref
        return f"{found.namespace}/{found.name}" if found is not None else ""


class StorageClass(ObjectView, frozen=True):
    provisioner: str = ""
    reclaim_policy: str = "Delete"
    volume_binding_mode: str = "Immediate"
    mount_options: tuple[str, ...] = ()
    allow_volume_expansion: bool = False
    allowed_topologies: tuple[dict[str, Any], ...] = ()

    @property
    def default(self) -> bool:
        return self.metadata.annotations.get(DEFAULT_ANNOTATION) == "true"

    @property
    def waits(self) -> bool:
        """Whether its claims get a volume only once a Pod needs them."""
        return self.volume_binding_mode == "WaitForFirstConsumer"
