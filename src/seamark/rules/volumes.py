"""Which volume a claim takes, and what a volume that is made for a claim looks like.  Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal

from seamark.errors import Object
from seamark.kinds.resource import PERSISTENT_VOLUME_CLAIMS
from seamark.kinds.values.quantity import amount
from seamark.kinds.values.selectors import from_label_selector
from seamark.rules.objects.node import Node
from seamark.rules.objects.storage import Claim, StorageClass, Volume
from seamark.rules.placement import node_terms

PROVISIONER = "simulated.seamark.dev"  # makes volumes that hold no data

BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
PROVISIONER_ANNOTATION = "volume.kubernetes.io/storage-provisioner"
SELECTED_NODE = "volume.kubernetes.io/selected-node"  # the scheduler chose this node for the claim's first Pod
OLD_PROVISIONER_ANNOTATION = "volume.beta.kubernetes.io/storage-provisioner"


def belongs(volume: Volume, claim: Claim) -> bool:
    """Whether the volume names this claim as the one that has it."""
    found = volume.spec.claim_ref
    if found is None or volume.claim != claim.metadata.key:
        return False
    return found.uid in ("", claim.metadata.uid)


def usable(volume: Volume, node: Node) -> bool:
    """Whether Pods on the node can use the volume."""
    if not volume.tied:
        return True
    return any(term.matches(node) for term in node_terms(volume.spec.node_affinity["required"]))


def waiting(pods: Sequence[str]) -> tuple[str, str]:
    """The reason and the sentence about a claim that waits for its first Pod; ``pods`` are those without a node."""
    if not pods:
        return "WaitForFirstConsumer", "waiting for first consumer to be created before binding"
    names = ",".join(key.partition("/")[2] for key in pods)
    return "WaitForPodScheduled", f"waiting for {'pod' if len(pods) == 1 else 'pods'} {names} to be scheduled"


def best(
    claim: Claim, volumes: Iterable[Volume], *, reserved_only: bool = False, node: Node | None = None
) -> Volume | None:
    """The volume that a claim without one takes: the one reserved for it, else the smallest that is large enough.

    ``reserved_only``: the claim waits for its first Pod, so it takes no volume that any claim may take.  ``node``: only
    one that Pods on this node can use.
    """
    selector = None if claim.spec.selector is None else from_label_selector(claim.spec.selector)
    size = amount(claim.size)
    found: Volume | None = None
    for volume in volumes:
        spec = volume.spec
        if (
            volume.metadata.deletion_timestamp is not None
            or volume.storage_class != claim.storage_class
            or (spec.volume_mode or "Filesystem") != (claim.spec.volume_mode or "Filesystem")
            or not set(claim.spec.access_modes) <= set(spec.access_modes)
            or _size(volume) < size
            or (node is not None and not usable(volume, node))
        ):
            continue
        if belongs(volume, claim):
            return volume
        if reserved_only or spec.claim_ref is not None or volume.status.phase != "Available":
            continue
        if selector is not None and not selector.matches(volume.metadata.labels):
            continue
        if found is None or (_size(volume), volume.metadata.name) < (_size(found), found.metadata.name):
            found = volume
    return found


def _size(volume: Volume) -> Decimal:
    return amount(volume.spec.capacity.get("storage", "0"))


def reference(claim: Claim) -> Object:
    """How a volume refers to the claim that has it."""
    meta = claim.metadata
    return {
        "apiVersion": PERSISTENT_VOLUME_CLAIMS.api_version,
        "kind": PERSISTENT_VOLUME_CLAIMS.kind,
        "namespace": meta.namespace,
        "name": meta.name,
        "uid": meta.uid,
        "resourceVersion": meta.resource_version,
    }


def new_volume(claim: Claim, storage_class: StorageClass) -> Object:
    """The simulated volume for a claim."""
    name = f"pvc-{claim.metadata.uid}"
    spec: Object = {
        "capacity": {"storage": claim.size},
        "accessModes": list(claim.spec.access_modes),
        "persistentVolumeReclaimPolicy": storage_class.reclaim_policy,
        "storageClassName": storage_class.metadata.name,
        "volumeMode": claim.spec.volume_mode or "Filesystem",
        "claimRef": reference(claim),
        "csi": {"driver": PROVISIONER, "volumeHandle": name},
    }
    if storage_class.mount_options:
        spec["mountOptions"] = list(storage_class.mount_options)
    return {"metadata": {"name": name, "annotations": {PROVISIONED_BY: PROVISIONER}}, "spec": spec}
