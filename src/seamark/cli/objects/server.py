"""The requests of the everyday verbs: discovery, tables or whole objects, server-side apply, deletion."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

import msgspec

from seamark import errors
from seamark.access.sending import Request
from seamark.access.transport import Transport
from seamark.cli.objects.kinds import ServerKinds, discovered
from seamark.errors import Object
from seamark.kinds.resource import Resource

PAGE = 500  # objects per request
WATCH_SECONDS = 3600
GRACE = 30.0

_DISCOVERY = ",".join(
    f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList" for version in ("v2", "v2beta1")
)
OBJECTS = "application/json"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
_NAMES = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"

Query = Mapping[str, str]


class Server:
    """Requests to one server; ``accept`` chooses between objects and tables."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._kinds: ServerKinds | None = None

    @property
    def namespace(self) -> str:
        """The namespace of the kubeconfig's context."""
        return self._transport.connection.namespace

    async def kinds(self) -> ServerKinds:
        """All kinds of the server; requested once."""
        if self._kinds is None:
            core = await self._get("/api", accept=_DISCOVERY)
            groups = await self._get("/apis", accept=_DISCOVERY)
            self._kinds = ServerKinds(discovered(core) + discovered(groups))
        return self._kinds

    async def failing(self) -> dict[str, str]:
        """The checks of ``/readyz`` that fail, and why."""
        _, body = await self._transport.ask(Request("GET", "/readyz", (("verbose", ""),), accept="*/*"))
        lines = body.decode(errors="replace").splitlines()
        failed = (line.removeprefix("[-]").partition(" failed: ") for line in lines if line.startswith("[-]"))
        return {name: why for name, _, why in failed}

    # --- reading -----------------------------------------------------------------------------------

    async def get(self, resource: Resource, name: str, *, namespace: str, accept: str = OBJECTS) -> Object:
        return await self._get(resource.path(namespace=namespace, name=name), accept=accept)

    async def pages(
        self, resource: Resource, *, namespace: str, query: Query, accept: str = OBJECTS
    ) -> AsyncIterator[Object]:
        """A whole list, page by page."""
        path, more = resource.path(namespace=namespace), ""
        while True:
            asked = {**query, "limit": str(PAGE), **({"continue": more} if more else {})}
            try:
                page = await self._get(path, asked, accept=accept)
            except errors.Expired as error:
                # Reading took longer than the server keeps history; its answer says how to go on with newer state.
                more = str(error.metadata.get("continue") or "")
                if not more:
                    raise
                continue
            yield page
            more = page.get("metadata", {}).get("continue", "")
            if not more:
                return

    async def count(self, resource: Resource) -> int:
        """How many objects of a kind there are, without reading them all."""
        page = await self._get(resource.path(), {"limit": "1"}, accept=_NAMES)
        left = page.get("metadata", {}).get("remainingItemCount", 0)
        return len(page.get("items") or ()) + int(left)

    async def watch(
        self, resource: Resource, *, namespace: str, query: Query, since: str, accept: str = OBJECTS
    ) -> AsyncIterator[Object]:
        """Events after a version, until the server ends the watch; an ERROR event is raised."""
        asked = {**query, "watch": "true", "resourceVersion": since, "allowWatchBookmarks": "true"}
        asked["timeoutSeconds"] = str(WATCH_SECONDS)
        request = Request("GET", resource.path(namespace=namespace), tuple(asked.items()), accept=accept)
        async for lines in self._transport.stream(request, lifetime=WATCH_SECONDS + GRACE):
            for line in lines:
                event: Object = msgspec.json.decode(line)
                if event["type"] == "ERROR":
                    raise errors.from_status(event["object"])
                yield event

    # --- writing -----------------------------------------------------------------------------------

    async def apply(self, path: str, content: Any, query: Query) -> Object:
        body = msgspec.json.encode(content)
        return await self._answer(
            Request("PATCH", path, tuple(query.items()), body, content_type="application/apply-patch+yaml")
        )

    async def delete(self, resource: Resource, name: str, *, namespace: str, options: Mapping[str, Any]) -> Object:
        body = msgspec.json.encode({"kind": "DeleteOptions", "apiVersion": "v1", **options})
        return await self._answer(Request("DELETE", resource.path(namespace=namespace, name=name), body=body))

    # --- one request -------------------------------------------------------------------------------

    async def _get(self, path: str, query: Query | None = None, *, accept: str) -> Object:
        return await self._answer(Request("GET", path, tuple((query or {}).items()), accept=accept))

    async def _answer(self, request: Request) -> Object:
        body = await self._transport.send(request)
        try:
            return msgspec.json.decode(body, type=dict)
        except msgspec.DecodeError as error:
            server = self._transport.connection.server
            raise errors.InternalError(f"{server} answered {request.path} with what is not JSON: {error}") from error
