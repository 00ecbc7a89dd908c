"""Notices that something has changed, by watching; where that is not allowed, by looking again and again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from seamark import errors
from seamark.access.cluster import Cluster
from seamark.kinds.resource import ENDPOINT_SLICES, ENDPOINTS, NODES, PODS, SERVICES, Resource
from seamark.rules.objects.namespace import Namespace

log = logging.getLogger(__name__)

WATCHED = (SERVICES, PODS, NODES, ENDPOINTS, ENDPOINT_SLICES)
_PAUSE = 2.0  # between two looks where watching is not allowed, and before a broken watch is begun again


@asynccontextmanager
async def following(cluster: Cluster, namespace: str) -> AsyncIterator[asyncio.Event]:
    """An event that is set whenever something of interest changes in the namespace (``""``: anywhere)."""
    changed = asyncio.Event()
    tasks = [asyncio.create_task(_follow(cluster, resource, namespace, changed)) for resource in WATCHED]
    try:
        yield changed
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _follow(cluster: Cluster, resource: Resource, namespace: str, changed: asyncio.Event) -> None:
    where = namespace if resource.namespaced else ""
    while True:
        try:
            # Only the versions matter here, so the objects are read as the least there is.
            since = (await cluster.list(resource, namespace=where, fields="metadata.name=", as_=Namespace)).version
            async for change in cluster.watch(resource, since=since, namespace=where, as_=Namespace):
                if change.type != "BOOKMARK":
                    changed.set()
        except errors.ApiError as error:
            log.debug("not following %s: %s", resource.qualified, error)
            changed.set()
        await asyncio.sleep(_PAUSE)
