"""What the cluster demands of a write beyond the object's own rules: its namespace must exist and not be going.

Admission runs on every write, also on those of components in this process.
"""

from __future__ import annotations

from collections.abc import Mapping

from seamark import errors
from seamark.api.state.cache import Cache
from seamark.errors import Object
from seamark.kinds.kind import Kind
from seamark.kinds.resource import NAMESPACES, Resource
from seamark.kinds.values.refusals import missing, named


class Admission:
    """The checks and edits of every new object."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._namespaces = cache.of(NAMESPACES)

    def create(self, kind: Kind, obj: Object) -> None:
        meta = obj["metadata"]
        if kind.resource.namespaced:
            self._check_namespace(kind, meta["namespace"], meta.get("name", ""))
        kind.admit(obj, self.labels_of)

    def labels_of(self, resource: Resource, name: str) -> Mapping[str, str] | None:
        """The labels of a cluster-wide object."""
        entry = self._cache.of(resource).get(name)
        return None if entry is None else entry.labels

    def _check_namespace(self, kind: Kind, namespace: str, name: str) -> None:
        entry = self._namespaces.get(namespace)
        if entry is None:
            raise missing(NAMESPACES, namespace)
        # Decoding every time would cost more than the rest of this check: look for the word first.
        if b'"deletionTimestamp"' in entry.tail and "deletionTimestamp" in entry.decode()["metadata"]:
            raise errors.Forbidden(
                f'{kind.resource.qualified} "{name}" is forbidden: unable to create new content in namespace '
                f"{namespace} because it is being terminated",
                details=named(kind.resource, name),
                causes=[
                    errors.Cause(
                        reason="NamespaceTerminating",
                        message=f"namespace {namespace} is being terminated",
                        field="metadata.namespace",
                    )
                ],
            )
