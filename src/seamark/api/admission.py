"""What the cluster demands of a write beyond the object's own rules: does its namespace exist, where is its node.

Admission runs on every write, whoever makes it; the in-process cluster does not go around it.
"""

from __future__ import annotations

from seamark import errors
from seamark.api.state.cache import Cache
from seamark.api.state.read import missing, named
from seamark.errors import Object
from seamark.kinds.kind import Kind
from seamark.kinds.resource import NAMESPACES, NODES, PODS
from seamark.kinds.wellknown import REGION_LABEL, ZONE_LABEL


class Admission:
    """The checks and edits every write goes through."""

    def __init__(self, cache: Cache) -> None:
        self._namespaces = cache.of(NAMESPACES)
        self._nodes = cache.of(NODES)

    def create(self, kind: Kind, obj: Object) -> None:
        """A new object: its namespace must be there and not on its way out; a Pod on a node learns its zone."""
        meta = obj["metadata"]
        if kind.resource.namespaced:
            self._check_namespace(kind, meta["namespace"], meta.get("name", ""))
        if kind.resource == PODS and (node := obj["spec"].get("nodeName")):
            self.copy_topology(obj, node)

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

    def copy_topology(self, pod: Object, node: str) -> None:
        """A Pod carries its node's zone and region as labels once it has a node."""
        entry = self._nodes.get(node)
        if entry is None:
            return
        for key in (ZONE_LABEL, REGION_LABEL):
            if value := entry.labels.get(key):
                labels = pod["metadata"].get("labels") or {}
                if key not in labels:
                    pod["metadata"]["labels"] = {**labels, key: value}
