"""A cluster in memory for the controllers' tests: versions, conflicts, generated names, watches, owners' garbage.

It defaults only what the controllers depend on and validates nothing; the real API server has tests of its own.
"""

import asyncio

import msgspec
from merge_patch import merged

from seamark import errors
from seamark.access.cluster import Change, Listing
from seamark.kinds.resource import ENDPOINT_SLICES, ENDPOINTS, NODES, PODS, SERVICES
from seamark.kinds.values.selectors import parse_labels

RESOURCES = {"Service": SERVICES, "Pod": PODS, "Node": NODES, "Endpoints": ENDPOINTS, "EndpointSlice": ENDPOINT_SLICES}


class MemoryCluster:
    def __init__(self):
        self.version = 1
        self.compacted = 0
        self.terminating = set()
        self.writes = []  # (verb, kind, name), for tests that count
        self.now = "2026-01-01T00:00:00Z"
        self._objects = {}
        self._log = []
        self._news = asyncio.Event()
        self._cuts = 0

    # --- reading -----------------------------------------------------------------------------------

    def objects(self, resource, namespace=""):
        return [
            msgspec.to_builtins(obj)
            for (kind, ns, _), obj in self._objects.items()
            if kind == resource.kind and namespace in ("", ns)
        ]

    def written(self, *kinds):
        """What has been written of these kinds, as (verb, kind, name)."""
        return [write for write in self.writes if write[1] in (kinds or ("Endpoints", "EndpointSlice"))]

    async def get(self, resource, name, *, namespace="", subresource="", as_=dict):
        return msgspec.convert(msgspec.to_builtins(self._find(resource, namespace, name)), as_)

    async def list(self, resource, *, namespace="", labels="", fields="", as_=dict):
        await asyncio.sleep(0)
        selector = parse_labels(labels)
        items = [o for o in self.objects(resource, namespace) if selector.matches(o["metadata"].get("labels", {}))]
        return Listing([msgspec.convert(obj, as_) for obj in items], str(self.version))

    async def watch(self, resource, *, since, namespace="", labels="", fields="", as_=dict):
        await asyncio.sleep(0)
        at, cuts = int(since), self._cuts
        if at < self.compacted:
            raise errors.Expired("too old resource version")
        while self._cuts == cuts:
            news = self._news
            for version, type_, kind, obj in [entry for entry in self._log if entry[0] > at]:
                at = version
                if kind == resource.kind and namespace in ("", obj["metadata"].get("namespace", "")):
                    yield Change(type_, msgspec.convert(msgspec.to_builtins(obj), as_), str(version))
            await news.wait()

    def cut_watches(self, *, compact=False):
        """End every watch; with ``compact`` they also cannot resume."""
        self._cuts += 1
        if compact:
            self.compacted = self.version + 1
            self.version += 1
        self._wake()

    # --- writing -----------------------------------------------------------------------------------

    async def create(self, resource, object, *, namespace="", name="", subresource="", as_=dict):
        obj = msgspec.to_builtins(object)
        meta = obj.setdefault("metadata", {})
        namespace = namespace or meta.get("namespace", "")
        if namespace in self.terminating:
            cause = errors.Cause(reason="NamespaceTerminating", message="being terminated", field="metadata.namespace")
            raise errors.Forbidden("namespace is being terminated", causes=[cause])
        if resource.namespaced:
            meta["namespace"] = namespace
        if not meta.get("name"):
            meta["name"] = f"{meta['generateName']}{self.version:05d}"
        key = (resource.kind, namespace, meta["name"])
        if key in self._objects:
            raise errors.AlreadyExists(f"{meta['name']} already exists")
        meta["uid"] = f"uid-{self.version + 1}"
        meta["creationTimestamp"] = self.now
        if resource is ENDPOINT_SLICES:
            meta["generation"] = 1
        self._default(resource, obj)
        self._put("ADDED", key, obj)
        self.writes.append(("create", resource.kind, meta["name"]))
        return msgspec.convert(msgspec.to_builtins(obj), as_)

    async def update(self, resource, object, *, namespace="", subresource="", as_=dict):
        obj = msgspec.to_builtins(object)
        meta = obj["metadata"]
        old = self._find(resource, namespace or meta.get("namespace", ""), meta["name"])
        before = old["metadata"]
        if meta.get("resourceVersion", before["resourceVersion"]) != before["resourceVersion"]:
            raise errors.Conflict(f"{meta['name']} has been modified")
        for key in ("namespace", "uid", "creationTimestamp", "generation", "resourceVersion", "deletionTimestamp"):
            if key in before:
                meta[key] = before[key]
        self._default(resource, obj)
        self.writes.append(("update", resource.kind, meta["name"]))
        if obj == old:
            return msgspec.convert(msgspec.to_builtins(old), as_)
        if resource is ENDPOINT_SLICES and _content(obj) != _content(old):
            meta["generation"] = before["generation"] + 1
        self._put("MODIFIED", (resource.kind, before.get("namespace", ""), meta["name"]), obj)
        return msgspec.convert(msgspec.to_builtins(obj), as_)

    async def patch(self, resource, name, patch, *, namespace="", type="merge", subresource="", as_=dict, **more):
        assert type in ("merge", "strategic")  # the same thing where there are no lists
        old = self._find(resource, namespace, name)
        return await self.update(resource, merged(old, patch), namespace=namespace, as_=as_)

    async def delete(self, resource, name, *, namespace="", uid="", version="", grace_seconds=None, propagation=None):
        obj = self._find(resource, namespace, name)
        meta = obj["metadata"]
        if uid not in ("", meta["uid"]) or version not in ("", meta["resourceVersion"]):
            raise errors.Conflict("the precondition does not hold")
        key = (resource.kind, meta.get("namespace", ""), name)
        self.writes.append(("delete", resource.kind, name))
        if resource is PODS and grace_seconds != 0:
            obj = msgspec.to_builtins(obj)
            obj["metadata"]["deletionTimestamp"] = self.now
            self._put("MODIFIED", key, obj)
            return
        self._remove(key)

    async def going(self, resource, name, *, namespace=""):
        """It is deleted, and a finalizer keeps it for now."""
        obj = msgspec.to_builtins(self._find(resource, namespace, name))
        obj["metadata"]["deletionTimestamp"] = self.now
        obj["metadata"]["generation"] += 1
        self._put("MODIFIED", (resource.kind, namespace, name), obj)

    async def delete_all(self, resource, *, namespace, labels="", options=None):
        selector = parse_labels(labels)
        for obj in self.objects(resource, namespace):
            if selector.matches(obj["metadata"].get("labels", {})):
                await self.delete(resource, obj["metadata"]["name"], namespace=namespace, grace_seconds=0)

    # --- inside ------------------------------------------------------------------------------------

    def _find(self, resource, namespace, name):
        found = self._objects.get((resource.kind, namespace if resource.namespaced else "", name))
        if found is None:
            raise errors.NotFound(f'{resource.qualified} "{name}" not found')
        return found

    def _put(self, type_, key, obj):
        self.version += 1
        obj["metadata"]["resourceVersion"] = str(self.version)
        self._objects[key] = obj
        self._record(type_, key[0], obj)

    def _remove(self, key):
        obj = msgspec.to_builtins(self._objects.pop(key))
        self.version += 1
        obj["metadata"]["resourceVersion"] = str(self.version)
        self._record("DELETED", key[0], obj)
        for owned, child in list(self._objects.items()):
            owners = child["metadata"].get("ownerReferences") or ()
            if any(owner["uid"] == obj["metadata"]["uid"] for owner in owners) and owned in self._objects:
                self._remove(owned)

    def _record(self, type_, kind, obj):
        self._log.append((self.version, type_, kind, msgspec.to_builtins(obj)))
        self._wake()

    def _wake(self):
        self._news.set()
        self._news = asyncio.Event()

    def _default(self, resource, obj):
        if resource is SERVICES:
            _default_service(obj)
        if resource is PODS:
            for container in obj["spec"].get("containers", []) + obj["spec"].get("initContainers", []):
                for port in container.get("ports", []):
                    port.setdefault("protocol", "TCP")
        if resource is ENDPOINT_SLICES:
            for port in obj.get("ports") or ():
                port.setdefault("name", "")
                port.setdefault("protocol", "TCP")
        if resource is ENDPOINTS:
            for subset in obj.get("subsets") or ():
                for port in subset.get("ports") or ():
                    port.setdefault("protocol", "TCP")
            if not obj.get("subsets"):
                obj.pop("subsets", None)


def _content(obj):
    return [{k: v for k, v in obj.items() if k != "metadata"}, obj["metadata"].get("labels")]


def _default_service(obj):
    spec = obj["spec"]
    spec.setdefault("type", "ClusterIP")
    if not spec.get("selector"):
        spec.pop("selector", None)
    for port in spec.get("ports", []):
        port.setdefault("protocol", "TCP")
        if not port.get("targetPort"):
            port["targetPort"] = port["port"]
    if spec["type"] == "ExternalName":
        for key in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
            spec.pop(key, None)
        return
    families = list(spec.get("ipFamilies", ()))
    policy = spec.setdefault("ipFamilyPolicy", "SingleStack")
    if spec.get("clusterIP") == "None" and not spec.get("selector"):
        policy = spec["ipFamilyPolicy"] = "RequireDualStack"
    families = families or ["IPv4"]
    if policy != "SingleStack" and len(families) == 1:
        families.append("IPv6" if families[0] == "IPv4" else "IPv4")
    spec["ipFamilies"] = families if policy != "SingleStack" else families[:1]
    spec.setdefault("clusterIP", "10.96.0.10" if spec["ipFamilies"][0] == "IPv4" else "fd00:96::10")
