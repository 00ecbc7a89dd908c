"""How kubelets write the status of a Pod, and remove one that has ended."""

from __future__ import annotations

from typing import Any

from seamark import errors
from seamark.access.cluster import Cluster, Receipt
from seamark.errors import Object
from seamark.kinds.resource import PODS
from seamark.rules.objects.pod import Pod, PodStatus


async def write(cluster: Cluster, pod: Pod, status: PodStatus, *, remove: bool = False) -> str:
    """Write what differs and return the Pod's new version; "" if the Pod was deleted or changed meanwhile."""
    meta = pod.metadata
    version = meta.resource_version
    try:
        if status != pod.status:
            patch = {
                "metadata": {"uid": meta.uid, "resourceVersion": version},
                "status": difference(pod.status, status),
            }
            written = await cluster.patch(
                PODS,
                meta.name,
                patch,
                namespace=meta.namespace,
                subresource="status",
                field_manager="kubelet",
                as_=Receipt,
            )
            version = written.version
        if remove:
            await cluster.delete(PODS, meta.name, namespace=meta.namespace, uid=meta.uid, grace_seconds=0)
    except (errors.NotFound, errors.Conflict):
        # Deleted, or changed by another writer: when the informer shows that, the Pod is handled again.
        return ""
    return version


def difference(old: PodStatus, new: PodStatus) -> Object:
    """The merge patch from one status to the other; fields that became empty are null."""
    patch: dict[str, Any] = {}
    for field, name in _FIELDS:
        value = getattr(new, field)
        if value != getattr(old, field):
            patch[name] = value or None
    return patch


_FIELDS = tuple(zip(PodStatus.__struct_fields__, PodStatus.__struct_encode_fields__, strict=True))
