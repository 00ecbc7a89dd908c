"""Looks again whenever a cluster has changed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from seamark import errors
from seamark.access.cluster import Cluster
from seamark.clock import Clock
from seamark.kinds.resource import ENDPOINT_SLICES, ENDPOINTS, NODES, PODS, SERVICES, Resource
from seamark.rules.objects.namespace import Namespace
from seamark.why.look import Survey, look_at_all

log = logging.getLogger(__name__)

WATCHED = (SERVICES, PODS, NODES, ENDPOINTS, ENDPOINT_SLICES)
PACE = 5.0  # seconds: a survey reads whole lists
SAFETY_NET = 60.0  # seconds after which a survey is made whatever changed: the clock makes causes, too
_PAUSE = 2.0  # between two looks where watching is not allowed, and before a broken watch is begun again


@asynccontextmanager
async def following(cluster: Cluster, namespace: str) -> AsyncIterator[asyncio.Event]:
    """An event that is set whenever a list that ``why`` reads changes in the namespace (``""``: anywhere).

    Where watching is not allowed, it is set every two seconds instead.
    """
    changed = asyncio.Event()
    tasks = [asyncio.create_task(_follow(cluster, resource, namespace, changed)) for resource in WATCHED]
    try:
        yield changed
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def surveys(cluster: Cluster, namespace: str, *, clock: Clock) -> AsyncIterator[Survey]:
    """A survey at once, and another whenever something has changed, but no more often than every ``PACE`` seconds."""
    async with following(cluster, namespace) as changed:
        while True:
            changed.clear()
            yield await look_at_all(cluster, namespace, clock=clock)
            await clock.sleep(PACE)
            try:
                await asyncio.wait_for(changed.wait(), SAFETY_NET)
            except TimeoutError:
                continue


async def _follow(cluster: Cluster, resource: Resource, namespace: str, changed: asyncio.Event) -> None:
    where = namespace if resource.namespaced else ""
    while True:
        try:
            # Only the versions matter, so the objects are decoded into the smallest view.
            since = (await cluster.list(resource, namespace=where, fields="metadata.name=", as_=Namespace)).version
            async for change in cluster.watch(resource, since=since, namespace=where, as_=Namespace):
                if change.type != "BOOKMARK":
                    changed.set()
        except errors.ApiError as error:
            log.debug("not following %s: %s", resource.qualified, error)
            changed.set()
        await asyncio.sleep(_PAUSE)
