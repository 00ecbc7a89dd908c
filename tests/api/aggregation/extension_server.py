"""A small aggregated API server: HTTPS, flunders of ``wardle.example.com/v1``, a watch, an upgrade, OpenAPI."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from aiohttp import web

from seamark.api.aggregation.front_proxy import FrontProxy
from seamark.api.certificates import Authority

GROUP, VERSION = "wardle.example.com", "v1"
ROOT = f"/apis/{GROUP}/{VERSION}"
RESOURCES = {
    "kind": "APIResourceList",
    "apiVersion": "v1",
    "groupVersion": f"{GROUP}/{VERSION}",
    "resources": [
        {
            "name": "flunders",
            "singularName": "flunder",
            "namespaced": True,
            "kind": "Flunder",
            "verbs": ["get", "list"],
        },
        {"name": "flunders/status", "singularName": "", "namespaced": True, "kind": "Flunder", "verbs": ["get"]},
    ],
}
AGGREGATED_FORM = [
    {
        "resource": "flunders",
        "responseKind": {"group": GROUP, "version": VERSION, "kind": "Flunder"},
        "scope": "Namespaced",
        "singularResource": "flunder",
        "verbs": ["get", "list"],
        "subresources": [
            {
                "subresource": "status",
                "responseKind": {"group": GROUP, "version": VERSION, "kind": "Flunder"},
                "verbs": ["get"],
            }
        ],
    }
]


class ExtensionServer:
    """Keeps the requests it got; ``broken`` makes it answer 500 to everything, ``breaks_off`` half of each document,
    ``says`` is its answer to everything, and ``resources`` what it serves."""

    def __init__(self, front_proxy: FrontProxy, directory: Path) -> None:
        authority = Authority(directory)
        authority.prepare(["sample.wardle.svc"])
        self.ca = authority.ca_pem
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._tls.load_cert_chain(authority.server_path, authority.server_key_path)
        self._tls.load_verify_locations(cadata=front_proxy.ca)
        self._tls.verify_mode = ssl.CERT_REQUIRED
        self.requests: list[web.Request] = []
        self.bodies: list[bytes] = []
        self.broken = False
        self.breaks_off = False
        self.says: bytes | None = None
        self.resources: dict[str, Any] = RESOURCES
        self.events: asyncio.Queue[bytes] = asyncio.Queue()
        self.port = 0

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[ExtensionServer]:
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", self._answer)
        runner = web.AppRunner(application, shutdown_timeout=0)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", self.port, ssl_context=self._tls)
        await site.start()
        self.port = runner.addresses[0][1]
        try:
            yield self
        finally:
            await runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(request)
        self.bodies.append(await request.read())
        if self.broken:
            return web.Response(status=500)
        if self.breaks_off:
            return await self._half(request)
        if self.says is not None:
            return web.Response(body=self.says, content_type="application/json")
        match request.path:
            case path if path == ROOT:
                return web.json_response(self.resources)
            case "/apis":
                return web.json_response({"kind": "APIGroupList", "apiVersion": "v1", "groups": []})
            case "/openapi/v3":
                entry = {"serverRelativeURL": f"/openapi/v3{ROOT}?hash=1"}
                return web.json_response({"paths": {ROOT[1:]: entry, "version": {}}})
            case "/openapi/v2":
                paths: dict[str, Any] = {f"{ROOT}/flunders": {"get": {}}, "/version": {}}
                return web.json_response({"paths": paths, "definitions": {"com.example.Flunder": {"type": "object"}}})
            case path if path == f"/openapi/v3{ROOT}":
                return web.json_response({"openapi": "3.0.0"})
            case path if path.endswith("/talk"):
                return await self._talk(request)
        if request.query.get("watch"):
            return await self._watch(request)
        if request.method == "POST":
            return web.Response(status=201, body=self.bodies[-1], content_type="application/json")
        listed = {"kind": "FlunderList", "apiVersion": f"{GROUP}/{VERSION}", "metadata": {}, "items": []}
        return web.json_response(listed, headers={"X-Sample": "yes"})

    async def _half(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json", "Content-Length": "100"})
        await response.prepare(request)
        await response.write(b"{")
        assert request.transport is not None
        request.transport.abort()
        return response

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        while event := await self.events.get():
            await response.write(event)
        return response

    async def _talk(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        async for message in socket:
            await socket.send_str(f"heard {message.data}")
        return socket

    def last(self, path: str) -> web.Request:
        """The last request for a path."""
        return next(request for request in reversed(self.requests) if request.path == path)
