"""A cluster as the everyday verbs see it: discovery, tables, whole objects, in the server's own words."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import msgspec

from seamark import errors
from seamark.access.transport import Request, Transport
from seamark.cli.server_kinds import ServerKind, ServerKinds, aggregated, unaggregated
from seamark.errors import Object
from seamark.kinds.resource import Resource

PAGE = 500  # objects per request
WATCH_SECONDS = 3600
GRACE = 30.0

_DISCOVERY = ",".join(
    [f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList" for version in ("v2", "v2beta1")]
    + ["application/json"]
)
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
_NAMES = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"

Query = Mapping[str, str]


class Server:
    """Requests to one server; ``accept`` chooses between objects and tables."""

    def __init__(self, transport: Transport, warn: Callable[[str], None] = lambda text: None) -> None:
        self._transport = transport
        self.warn = warn
        self._kinds: ServerKinds | None = None

    @property
    def namespace(self) -> str:
        """The namespace meant where none is named."""
        return self._transport.connection.namespace

    # --- what there is -----------------------------------------------------------------------------

    async def kinds(self) -> ServerKinds:
        """All kinds; asked once."""
        if self._kinds is None:
            core, groups = await self._ask("/api", accept=_DISCOVERY), await self._ask("/apis", accept=_DISCOVERY)
            if core.get("kind") == groups.get("kind") == "APIGroupDiscoveryList":
                found = aggregated(core) + aggregated(groups)
            else:
                found = await self._older(core, groups)
            self._kinds = ServerKinds(found)
        return self._kinds

    async def _older(self, core: Object, groups: Object) -> list[ServerKind]:
        """Discovery as it was before Kubernetes 1.26: a document for each version of each group."""
        paths = [(version, f"/api/{version}") for version in core.get("versions") or ()]
        for group in groups.get("groups") or ():
            preferred = group.get("preferredVersion", {}).get("groupVersion")
            versions = [version["groupVersion"] for version in group["versions"]]
            paths += [(each, f"/apis/{each}") for each in sorted(versions, key=lambda each: each != preferred)]
        found = []
        for group_version, path in paths:
            try:
                found += unaggregated(group_version, await self._ask(path))
            except errors.ServiceUnavailable:
                continue  # an extension that is down hides its own kinds only
        return found

    # --- reading -----------------------------------------------------------------------------------

    async def get(
        self,
        resource: Resource,
        name: str,
        *,
        namespace: str,
        accept: str = "application/json",
        query: Query | None = None,
    ) -> Object:
        return await self._ask(resource.path(namespace=namespace, name=name), query, accept=accept)

    async def pages(
        self,
        resource: Resource,
        *,
        namespace: str,
        query: Query,
        accept: str = "application/json",
        size: int | None = None,
    ) -> AsyncIterator[Object]:
        """A whole list, page by page; of size 0, all at once."""
        path, more = resource.path(namespace=namespace), ""
        size = PAGE if size is None else size
        while True:
            asked = {**query, **({"limit": str(size)} if size else {}), **({"continue": more} if more else {})}
            try:
                page = await self._ask(path, asked, accept=accept)
            except errors.Expired as error:
                # Reading took longer than the server remembers: it offers to go on with what is there now.
                more = str(error.metadata.get("continue") or "")
                if not more:
                    raise
                continue
            yield page
            more = page.get("metadata", {}).get("continue", "")
            if not more:
                return

    async def count(self, resource: Resource) -> int:
        """How many objects of a kind there are, without reading them."""
        page = await self._ask(resource.path(), {"limit": "1"}, accept=_NAMES)
        left = page.get("metadata", {}).get("remainingItemCount", 0)
        return len(page.get("items") or ()) + int(left)

    async def watch(
        self, resource: Resource, *, namespace: str, query: Query, since: str, accept: str = "application/json"
    ) -> AsyncIterator[Object]:
        """Events after a version, until the server ends the watch; errors among them are raised."""
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

    async def _ask(self, path: str, query: Query | None = None, *, accept: str = "application/json") -> Object:
        return await self._answer(Request("GET", path, tuple((query or {}).items()), accept=accept))

    async def _answer(self, request: Request) -> Object:
        body = await self._transport.send(request)
        try:
            return msgspec.json.decode(body, type=dict)
        except msgspec.DecodeError as error:
            server = self._transport.connection.server
            raise errors.InternalError(f"{server} answered {request.path} with what is not JSON: {error}") from error


class Warnings:
    """Prints what the server warns of, each sentence once."""

    def __init__(self) -> None:
        self._said: set[str] = set()

    def __call__(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            print(f"Warning: {text}", file=sys.stderr)
