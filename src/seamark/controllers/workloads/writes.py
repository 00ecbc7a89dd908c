"""Writes of workload controllers: statuses, and knowing whether an informer has seen what was written.

An informer is always a little behind.  Acting on what it showed before our own last write would do things twice, so
a key whose writes have not come back yet is left alone: the write's own event wakes it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from seamark.access.cluster import Cluster, Receipt
from seamark.access.informer import Informer
from seamark.errors import ApiError
from seamark.kinds.resource import Resource
from seamark.rules.objects.metadata import Metadata

Key = str


class OwnWrites:
    """What was written of one resource on behalf of each key, by version."""

    def __init__(self, informer: Informer[Any]) -> None:
        self._informer = informer
        self._versions: dict[Key, int] = {}

    def wrote(self, key: Key, version: str) -> None:
        """A write on behalf of the key made this version."""
        self._versions[key] = max(int(version), self._versions.get(key, 0))

    def seen(self, key: Key) -> bool:
        """Whether the informer has got as far as the key's last write."""
        version = self._versions.get(key)
        if version is None:
            return True
        if int(self._informer.last_version or 0) < version:
            return False
        del self._versions[key]
        return True

    def forget(self, key: Key) -> None:
        self._versions.pop(key, None)


def difference(old: msgspec.Struct, new: msgspec.Struct, *, always: Collection[str] = ()) -> dict[str, Any]:
    """The merge patch that makes one status of the other; what is zero or empty is left out of an object.

    Fields named in ``always`` are written even if they are zero.
    """
    before, after = msgspec.to_builtins(old), msgspec.to_builtins(new)
    for field in always:
        before.setdefault(field, 0)
        after.setdefault(field, 0)
    changed = {field: value for field, value in after.items() if before.get(field) != value}
    return changed | {field: None for field in before if field not in after}


async def patch_status(
    cluster: Cluster,
    resource: Resource,
    metadata: Metadata,
    *,
    status: Mapping[str, Any],
    annotations: Mapping[str, str] | None = None,
) -> str:
    """Patch the status of just this version of an object; ``Conflict`` if it has changed since.  The new version."""
    about: dict[str, Any] = {"uid": metadata.uid, "resourceVersion": metadata.resource_version}
    if annotations:
        about["annotations"] = dict(annotations)
    patch: dict[str, Any] = {"metadata": about}
    if status:
        patch["status"] = dict(status)
    written = await cluster.patch(
        resource, metadata.name, patch, namespace=metadata.namespace, subresource="status", as_=Receipt
    )
    return written.version


def uncertain(error: ApiError) -> bool:
    """Whether a write may have been done although it failed: a refusal is certain, a lost answer is not."""
    return error.code >= 500


def namespace_terminating(error: ApiError) -> bool:
    """Whether nothing can be created because the namespace is going away, and everything in it with it."""
    return any(cause.reason == "NamespaceTerminating" for cause in error.causes)
