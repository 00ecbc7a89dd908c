"""An aggregated API server that keeps objects: several groups, namespaced or not, with discovery and OpenAPI."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from aiohttp import web
from tests.api.aggregation.extension_server import ExtensionServer

from seamark.api.aggregation.front_proxy import FrontProxy
from seamark.kinds.resource import API_SERVICES, NAMESPACES, SERVICES, Resource

FLUNDERS = Resource("wardle.example.com", "v1", "flunders", "Flunder")
POD_METRICS = Resource("metrics.k8s.io", "v1beta1", "pods", "PodMetrics")
NODE_METRICS = Resource("metrics.k8s.io", "v1beta1", "nodes", "NodeMetrics", namespaced=False)


class KeepingServer(ExtensionServer):
    """Serves these resources; a test may put objects into :attr:`objects` itself."""

    def __init__(self, front_proxy: FrontProxy, directory: Path, *resources: Resource) -> None:
        super().__init__(front_proxy, directory)
        self.resources = resources
        self.verbs = ["create", "delete", "deletecollection", "get", "list"]
        self.objects: dict[tuple[Resource, str, str], dict[str, Any]] = {}

    async def register(self, cluster: Any) -> None:
        """A Service that leads here, and an APIService per version."""
        await cluster.create(NAMESPACES, {"metadata": {"name": "wardle"}})
        service = {"metadata": {"name": "sample"}, "spec": {"type": "ExternalName", "externalName": "localhost"}}
        await cluster.create(SERVICES, service, namespace="wardle")
        for group, version in {(each.group, each.version) for each in self.resources}:
            spec = {
                "group": group,
                "version": version,
                "groupPriorityMinimum": 2000,
                "versionPriority": 200,
                "service": {"namespace": "wardle", "name": "sample", "port": self.port},
                "caBundle": base64.b64encode(self.ca).decode(),
            }
            await cluster.create(API_SERVICES, {"metadata": {"name": f"{version}.{group}"}, "spec": spec})

    def put(self, resource: Resource, name: str, namespace: str = "", **fields: Any) -> None:
        meta = {"name": name, "creationTimestamp": "2026-01-01T00:00:00Z", "resourceVersion": "1"}
        meta |= {"namespace": namespace} if namespace else {}
        labels = fields.pop("labels", None)
        meta |= {"labels": labels} if labels else {}
        head = {"apiVersion": resource.api_version, "kind": resource.kind}
        self.objects[resource, namespace, name] = {**head, "metadata": meta, **fields}

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(request)
        self.bodies.append(await request.read())
        if self.broken:
            return web.Response(status=500)
        path = request.path.strip("/").split("/")
        if path == ["apis"]:
            return web.json_response({"kind": "APIGroupList", "apiVersion": "v1", "groups": []})
        if path == ["openapi", "v2"]:
            return web.json_response({"paths": {}, "definitions": {}})
        if path == ["openapi", "v3"]:
            roots = {f"apis/{each.api_version}" for each in self.resources}
            return web.json_response({"paths": {root: {"serverRelativeURL": f"/openapi/v3/{root}"} for root in roots}})
        if path[0] == "openapi":
            return web.json_response(self._openapi("/".join(path[3:5])))
        api_version = "/".join(path[1:3])
        served = {each.plural: each for each in self.resources if each.api_version == api_version}
        rest = path[3:]
        if not rest:
            return web.json_response(_listed(api_version, list(served.values()), self.verbs))
        namespace = ""
        if rest[0] == "namespaces" and len(rest) > 2:
            namespace, rest = rest[1], rest[2:]
        resource = served.get(rest[0])
        if resource is None:
            return _failed(404, "NotFound", "the server could not find the requested resource")
        return self._served(request, resource, namespace, rest[1] if len(rest) > 1 else "")

    def _served(self, request: web.Request, resource: Resource, namespace: str, name: str) -> web.StreamResponse:
        if request.method == "POST":
            obj = json.loads(self.bodies[-1])
            self.put(resource, obj["metadata"]["name"], namespace, spec=obj.get("spec") or {})
            return web.json_response(self.objects[resource, namespace, obj["metadata"]["name"]], status=201)
        found = self.objects.get((resource, namespace, name))
        if name and found is None:
            return _failed(404, "NotFound", f'{resource.qualified} "{name}" not found')
        if request.method == "DELETE":
            gone = [key for key in self.objects if key[0] == resource and key[1] == namespace and name in ("", key[2])]
            for key in gone:
                del self.objects[key]
            return web.json_response({"kind": "Status", "apiVersion": "v1", "status": "Success"})
        if found is not None:
            return web.json_response(found)
        wanted = dict(each.split("=", 1) for each in request.query.get("labelSelector", "").split(",") if each)
        items = [
            obj
            for (kind, where, _), obj in self.objects.items()
            if kind == resource and namespace in ("", where)
            if wanted.items() <= obj["metadata"].get("labels", {}).items()
        ]
        head = {"apiVersion": resource.api_version, "kind": f"{resource.kind}List"}
        return web.json_response({**head, "metadata": {"resourceVersion": "1"}, "items": items})

    def _openapi(self, api_version: str) -> dict[str, Any]:
        paths, schemas = {}, {}
        for each in self.resources:
            if each.api_version != api_version:
                continue
            known = {"group": each.group, "version": each.version, "kind": each.kind}
            name = f"com.example.{each.kind}"
            where = "/namespaces/{namespace}" if each.namespaced else ""
            content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{name}"}}}
            get = {"responses": {"200": {"content": content}}, "x-kubernetes-group-version-kind": known}
            paths[f"/apis/{api_version}{where}/{each.plural}"] = {"get": {**get, "x-kubernetes-action": "list"}}
            schemas[name] = {
                "type": "object",
                "description": f"A {each.kind} is kept by another server.",
                "properties": {"spec": {"type": "object", "properties": {"fins": {"type": "integer"}}}},
                "x-kubernetes-group-version-kind": [known],
            }
        return {"openapi": "3.0.0", "paths": paths, "components": {"schemas": schemas}}


def _listed(api_version: str, resources: list[Resource], verbs: list[str]) -> dict[str, Any]:
    entries = [
        {
            "name": each.plural,
            "singularName": each.kind.lower(),
            "namespaced": each.namespaced,
            "kind": each.kind,
            "verbs": verbs,
            "shortNames": [each.kind[:2].lower()],
        }
        for each in resources
    ]
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api_version, "resources": entries}


def _failed(code: int, reason: str, message: str) -> web.Response:
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": message}
    return web.json_response({**status, "code": code}, status=code)
