"""Admission about storage: the finalizers that guard volumes and claims, the default class, and who may grow a claim.

The classes are plug-ins of admission (:mod:`seamark.kinds.admission`).
"""

from __future__ import annotations

from decimal import Decimal

from seamark.errors import Object
from seamark.kinds.admission import Operation, Plugin, Request
from seamark.kinds.kind import Kind
from seamark.kinds.resource import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES
from seamark.kinds.storage.persistentvolumeclaim import class_of
from seamark.kinds.storage.storageclass import is_default
from seamark.kinds.values.metadata import newest
from seamark.kinds.values.quantity import amount

CLAIM_FINALIZER = "kubernetes.io/pvc-protection"
VOLUME_FINALIZER = "kubernetes.io/pv-protection"

_GUARDS = {PERSISTENT_VOLUME_CLAIMS: CLAIM_FINALIZER, PERSISTENT_VOLUMES: VOLUME_FINALIZER}


class StorageProtection(Plugin):
    """StorageObjectInUseProtection: a finalizer keeps volumes and claims until nothing uses them."""

    resources = frozenset(_GUARDS)
    operations = ("CREATE",)

    def mutate(self, request: Request) -> None:
        meta, guard = request.obj["metadata"], _GUARDS[request.kind.resource]
        if guard not in (meta.get("finalizers") or ()):
            meta["finalizers"] = [*(meta.get("finalizers") or ()), guard]


class DefaultStorageClass(Plugin):
    """A new claim that names no class gets the default one; of several defaults the newest."""

    resources = frozenset({PERSISTENT_VOLUME_CLAIMS})
    operations = ("CREATE",)

    def mutate(self, request: Request) -> None:
        spec = request.obj["spec"]
        if "storageClassName" in spec or class_of(request.obj):
            return
        defaults = [found["metadata"] for found in request.others.all(STORAGE_CLASSES) if is_default(found)]
        if defaults:
            spec["storageClassName"] = newest(defaults)


class ClaimResize(Plugin):
    """PersistentVolumeClaimResize: only a bound claim grows, and only if its class allows it."""

    resources = frozenset({PERSISTENT_VOLUME_CLAIMS})
    operations = ("UPDATE",)

    def validate(self, request: Request) -> None:
        obj, old = request.obj, request.old
        if old is None or _size(obj) <= _size(old):
            return
        if old["status"].get("phase") != "Bound":
            raise request.forbidden("Only bound persistent volume claims can be expanded")
        found = request.others.get(STORAGE_CLASSES, class_of(old)) if class_of(old) else None
        if not (found or {}).get("allowVolumeExpansion"):
            raise request.forbidden(
                "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must "
                "support resize"
            )


class PhaseTime(Plugin):
    """A volume whose phase changes is told when, unless the writer says it."""

    def concerns(self, kind: Kind, operation: Operation, part: str) -> bool:
        return kind.resource == PERSISTENT_VOLUMES and part == "status"

    def mutate(self, request: Request) -> None:
        assert request.old is not None
        status, before = request.obj["status"], request.old["status"]
        told, said = status.get("lastPhaseTransitionTime"), before.get("lastPhaseTransitionTime")
        if status.get("phase") != before.get("phase") and told in (None, said):
            status["lastPhaseTransitionTime"] = request.now


def _size(claim: Object) -> Decimal:
    return amount(((claim["spec"].get("resources") or {}).get("requests") or {}).get("storage") or "0")
