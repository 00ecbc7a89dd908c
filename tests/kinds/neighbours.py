"""The other objects of a cluster as admission sees them, without a server, and the steps that look at a write."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from seamark.api.admission import PLAIN
from seamark.api.authorization import User
from seamark.errors import Object
from seamark.kinds.admission import Operation, Plugin, Request
from seamark.kinds.kind import Kind
from seamark.kinds.resource import Resource

NOW = "2038-01-19T03:14:07Z"


class Neighbours:
    """Objects by resource; those of a namespace name it in their metadata."""

    def __init__(self, objects: Mapping[Resource, Sequence[Object]] | None = None) -> None:
        self._objects = dict(objects or {})

    def get(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        return next((obj for obj in self.all(resource, namespace) if obj["metadata"]["name"] == name), None)

    def all(self, resource: Resource, namespace: str = "", *, containing: bytes = b"") -> Iterable[Object]:
        for obj in self._objects.get(resource, ()):
            if obj["metadata"].get("namespace", "") == namespace:
                yield obj

    def count(self, resource: Resource, namespace: str) -> int:
        return len(list(self.all(resource, namespace)))

    def labels_of(self, resource: Resource, name: str) -> Mapping[str, str] | None:
        obj = self.get(resource, name)
        return None if obj is None else obj["metadata"].get("labels") or {}


def request(
    kind: Kind, obj: Object, old: Object | None = None, part: str = "", neighbours: Neighbours | None = None
) -> Request:
    return Request(
        kind=kind,
        operation="CREATE" if old is None else "UPDATE",
        obj=obj,
        old=old,
        part=part,
        user=User("someone"),
        now=NOW,
        dry_run=False,
        others=neighbours or Neighbours(),
    )


def concerned(request: Request) -> list[Plugin]:
    """The plug-ins of a plain server that look at this write, in their order."""
    operation: Operation = request.operation
    return [plugin for plugin in PLAIN if plugin.concerns(request.kind, operation, request.part)]
