"""The reading half of the ``Cluster`` seam in memory: what DNS needs, with outages at the tests' command."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from seamark import errors
from seamark.access.cluster import Change, Listing
from seamark.kinds.resource import ENDPOINT_SLICES, ENDPOINTS, NAMESPACES, PODS, SERVICES, Resource
from seamark.kinds.values.selectors import parse_labels

RESOURCES = {r.kind: r for r in (NAMESPACES, SERVICES, ENDPOINT_SLICES, ENDPOINTS, PODS)}


class WatchedCluster:
    def __init__(self) -> None:
        self.down = False
        self.missing: set[Resource] = set()  # kinds this cluster does not serve
        self.refused: set[Resource] = set()  # kinds that the client may not read
        self._version = 1
        self._objects: dict[tuple[Resource, str, str], dict[str, Any]] = {}
        self._log: list[tuple[int, str, Resource, dict[str, Any]]] = []
        self._news = asyncio.Event()
        self._seen: dict[Resource, int] = {}

    @property
    def behind(self) -> bool:
        """Whether a watcher has not been told everything yet."""
        return any(seen < self._version for seen in self._seen.values())

    # --- what happens to it ------------------------------------------------------------------------

    def put(self, obj: dict[str, Any]) -> None:
        resource = RESOURCES[obj["kind"]]
        metadata = obj["metadata"]
        key = (resource, metadata.get("namespace", ""), metadata["name"])
        kind = "MODIFIED" if key in self._objects else "ADDED"
        self._objects[key] = obj
        self._tell(kind, resource, obj)

    def remove(self, kind: str, namespace: str, name: str) -> None:
        resource = RESOURCES[kind]
        self._tell("DELETED", resource, self._objects.pop((resource, namespace, name)))

    def lose(self) -> None:
        """Be out of reach, for those who watch already too."""
        self.down = True
        self._wake()

    def recover(self) -> None:
        self.down = False

    def _tell(self, kind: str, resource: Resource, obj: dict[str, Any]) -> None:
        self._version += 1
        self._log.append((self._version, kind, resource, obj))
        self._wake()

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    # --- the seam ----------------------------------------------------------------------------------

    async def list(
        self, resource: Resource, *, namespace: str = "", labels: str = "", fields: str = "", as_: Any = dict
    ) -> Any:
        await asyncio.sleep(0)
        self._check(resource)
        selector = parse_labels(labels)
        items = [
            msgspec.convert(obj, as_)
            for (kind, _, _), obj in self._objects.items()
            if kind == resource and selector.matches(obj["metadata"].get("labels", {}))
        ]
        return Listing(items, str(self._version))

    async def watch(
        self,
        resource: Resource,
        *,
        since: str,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        as_: Any = dict,
    ) -> Any:
        self._check(resource)
        selector = parse_labels(labels)
        at = int(since)
        yield Change("BOOKMARK", None, since)
        while True:
            news = self._news
            for version, kind, of, obj in [entry for entry in self._log if entry[0] > at]:
                at = version
                if of == resource and selector.matches(obj["metadata"].get("labels", {})):
                    yield Change(kind, msgspec.convert(obj, as_), str(version))
            self._seen[resource] = at
            self._check(resource)
            await news.wait()

    def _check(self, resource: Resource) -> None:
        if self.down:
            raise errors.ServiceUnavailable("out of reach")
        if resource in self.missing:
            raise errors.NotFound("the server could not find the requested resource")
        if resource in self.refused:
            raise errors.Forbidden(f"{resource.plural} is forbidden")


def namespace(name: str) -> dict[str, Any]:
    return {"kind": "Namespace", "metadata": {"name": name}}


def service(name: str, address: str, *, namespace: str = "default", **spec: Any) -> dict[str, Any]:
    ports = [{"name": "http", "port": 80, "protocol": "TCP"}]
    addresses = {"clusterIP": address, "clusterIPs": [address]} if address else {}
    metadata = {"name": name, "namespace": namespace}
    return {"kind": "Service", "metadata": metadata, "spec": {"ports": ports, **addresses, **spec}}


def slice_of(service: str, *endpoints: dict[str, Any], name: str = "", **fields: Any) -> dict[str, Any]:
    """An EndpointSlice; endpoints are ``endpoint(…)``."""
    labels = {"kubernetes.io/service-name": service}
    ports = [{"name": "http", "port": 8080, "protocol": "TCP"}]
    metadata = {"name": name or f"{service}-1", "namespace": "default", "labels": labels}
    return {"kind": "EndpointSlice", "metadata": metadata, "endpoints": list(endpoints), "ports": ports, **fields}


def endpoint(address: str, hostname: str | None = None, *, ready: bool | None = True, pod: str = "") -> dict[str, Any]:
    target = {"targetRef": {"kind": "Pod", "name": pod}} if pod else {}
    return {"addresses": [address], "hostname": hostname, "conditions": {"ready": ready}, **target}
