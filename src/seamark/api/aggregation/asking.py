"""What an aggregated server says it serves: its discovery, in the aggregated form, and its OpenAPI documents."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

import msgspec

from seamark.api.aggregation.backends import PASSED, Backend, Condition, Foreign, trouble
from seamark.api.aggregation.reaching import Servers, identity
from seamark.api.authorization import MASTERS, User
from seamark.api.openapi.discovery import AGGREGATED
from seamark.api.outgoing.calling import CallFailed, whole
from seamark.errors import Object

_log = logging.getLogger(__name__)

SECONDS = 5.0
# What is decoded and compared on the event loop, every 30 seconds, and is part of each discovery document from here.
LONGEST_DOCUMENT = 4 << 20
MOST_RESOURCES = 5000
AGGREGATOR = User("system:kube-aggregator", (MASTERS,))


async def checked(servers: Servers, backend: Backend) -> Condition:
    """Whether the server answers for its version, asked without a look at its certificate, as Kubernetes does."""
    found = trouble(backend, *servers.service(backend))
    if found is not None:
        return found
    url = backend.path
    try:
        url = servers.url(backend) + backend.path
        client = servers.client(backend, checked=False)
        async with asyncio.timeout(SECONDS):
            async with servers.answer(client, "GET", backend.path, headers=identity(AGGREGATOR)) as answer:
                if 200 <= answer.status < 300:
                    return PASSED
                wrong = f"bad status from {url}: {answer.status}"
    except CallFailed as error:
        wrong = f'Get "{url}": {error}'
    except TimeoutError:
        wrong = f'Get "{url}": context deadline exceeded'
    return Condition("False", "FailedDiscoveryCheck", f"failing or missing response from {url}: {wrong}")


async def _get(servers: Servers, backend: Backend, path: str, accept: str) -> tuple[str, Any]:
    """The content type and the JSON of a document; None if it cannot be had, or is too long."""
    import aiohttp

    headers = [*identity(AGGREGATOR), ("Accept", accept)]
    try:
        async with asyncio.timeout(SECONDS):
            async with servers.answer(servers.client(backend), "GET", path, headers=headers) as answer:
                if answer.status != 200:
                    return "", None
                return answer.headers.get("Content-Type", ""), msgspec.json.decode(
                    await whole(answer, LONGEST_DOCUMENT)
                )
    except (CallFailed, TimeoutError, OSError, aiohttp.ClientError, msgspec.DecodeError, RecursionError):
        return "", None


async def discovered(servers: Servers, backend: Backend, before: Foreign | None) -> Foreign:
    """What the version has now; if that cannot be found out, what it had ``before``, marked as stale."""
    resources = await _resources(servers, backend) if backend.available else None
    if resources is None or len(resources) > MOST_RESOURCES:
        if backend.available and (before is None or not before.stale):
            _log.warning(
                "the server of %s/%s has no discovery of at most %d resources and %d MiB: kinds may be missing",
                backend.group,
                backend.version,
                MOST_RESOURCES,
                LONGEST_DOCUMENT >> 20,
            )
        known = before or _foreign(backend, (), stale=True, openapi={})
        return _foreign(backend, known.resources, stale=True, openapi=known.openapi)
    return _foreign(backend, resources, stale=False, openapi=await _openapi(servers, backend))


def _foreign(backend: Backend, resources: Sequence[Object], *, stale: bool, openapi: Object) -> Foreign:
    return Foreign(
        backend.group,
        backend.version,
        backend.group_priority,
        backend.version_priority,
        resources,
        stale,
        openapi,
    )


async def _resources(servers: Servers, backend: Backend) -> Sequence[Object] | None:
    try:
        kind, document = await _get(servers, backend, "/apis", f"{AGGREGATED},application/json")
        if "as=APIGroupDiscoveryList" in kind:
            found = [
                version.get("resources") or ()
                for item in document["items"]
                if item["metadata"]["name"] == backend.group
                for version in item["versions"]
                if version["version"] == backend.version
            ]
            if found:
                return list(found[0])
        _, document = await _get(servers, backend, backend.path, "application/json")
        return None if document is None else gathered(document.get("resources") or (), backend.group, backend.version)
    except (KeyError, TypeError, AttributeError):
        return None  # it is no discovery document


def gathered(listed: Sequence[Object], group: str, version: str) -> list[Object]:
    """The resources of an APIResourceList in the aggregated form: subresources are part of their resource."""

    def response(entry: Object) -> Object:
        return {"group": entry.get("group") or group, "version": entry.get("version") or version, "kind": entry["kind"]}

    found: dict[str, Object] = {}
    for entry in listed:
        plural, _, sub = entry["name"].partition("/")
        if not sub:
            found[plural] = {
                "resource": plural,
                "responseKind": response(entry),
                "scope": "Namespaced" if entry.get("namespaced") else "Cluster",
                "singularResource": entry.get("singularName", ""),
                "verbs": entry.get("verbs") or [],
            }
            found[plural] |= {key: entry[key] for key in ("shortNames", "categories") if entry.get(key)}
        elif plural in found:
            one = {"subresource": sub, "responseKind": response(entry), "verbs": entry.get("verbs") or []}
            found[plural].setdefault("subresources", []).append(one)
    return list(found.values())


async def _openapi(servers: Servers, backend: Backend) -> Object:
    """The address of its document of v3, and its part of v2; what is not there is left out."""
    _, index = await _get(servers, backend, "/openapi/v3", "application/json")
    _, whole = await _get(servers, backend, "/openapi/v2", "application/json")
    found: Object = {}
    if isinstance(index, dict) and (entry := (index.get("paths") or {}).get(backend.path[1:])):
        found["v3"] = entry
    if isinstance(whole, dict):
        paths = {path: said for path, said in (whole.get("paths") or {}).items() if path.startswith(backend.path)}
        found["v2"] = {"paths": paths, "definitions": whole.get("definitions") or {}}
    return found
