"""Asks a server what it remembers: watches begun at the oldest version it still knows, until they reach the present.

A Seamark server replays its store's revisions; Kubernetes those its etcd has not compacted, which is about five
minutes.  What no server remembers is told by Events and by the times objects carry, and said to be incomplete.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import msgspec

from seamark import errors
from seamark.access.cluster import Cluster
from seamark.kinds.resource import ENDPOINT_SLICES, EVENTS, PODS, SERVICES, Resource
from seamark.kinds.wellknown import SERVICE_NAME_LABEL
from seamark.why.history import Change
from seamark.why.observe import CannotLook
from seamark.why.views import EndpointSlice, Event, Key, Pod, Service

_OLDEST = re.compile(r"too old resource version: \d+ \((\d+)\)")
_PROBES = 24
_SILENCE = 0.5  # a watch that has something to tell begins within this, and one refused as well


class Memory(msgspec.Struct, frozen=True):
    """What was remembered, from ``oldest`` on (None: nothing at all), and what Events tell."""

    changes: tuple[Change, ...]
    events: tuple[Event, ...]
    oldest: int | None
    newest: int


async def recall(cluster: Cluster, key: Key) -> Memory:
    """Everything the server remembers about a Service, the Pods of its namespace and its EndpointSlices."""
    namespace, name = key
    try:
        newest = int((await cluster.list(SERVICES, namespace=namespace, as_=Service)).version)
    except ValueError:
        newest = 0  # a server whose versions are no numbers is not asked for more
    except errors.ApiError as error:
        raise CannotLook(f"cannot list services: {error.message}") from error
    oldest = await _oldest(cluster, namespace, newest) if newest else None
    changes: list[Change] = []
    if oldest is not None:
        sources: tuple[tuple[Resource, dict[str, str], Any], ...] = (
            (SERVICES, {"fields": f"metadata.name={name}"}, Service),
            (PODS, {}, Pod),
            (ENDPOINT_SLICES, {"labels": f"{SERVICE_NAME_LABEL}={name}"}, EndpointSlice),
        )
        for resource, selection, type in sources:
            replayed = _replay(cluster, resource, namespace, since=oldest, until=newest, as_=type, **selection)
            changes += [change async for change in replayed if _concerns(change, name)]
    return Memory(tuple(changes), await _events(cluster, key), oldest, newest)


def _concerns(change: Change, name: str) -> bool:
    """Not every server can select what it replays."""
    match change.object:
        case Service() as service:
            return service.metadata.name == name
        case EndpointSlice() as endpoint_slice:
            return endpoint_slice.service_name == name
    return True


async def _events(cluster: Cluster, key: Key) -> tuple[Event, ...]:
    try:
        listing = await cluster.list(EVENTS, namespace=key[0], as_=Event)
    except (errors.Forbidden, errors.NotFound):
        return ()
    return tuple(listing.items)


# --- the oldest version ----------------------------------------------------------------------------


async def _oldest(cluster: Cluster, namespace: str, newest: int) -> int | None:
    """The oldest version a watch may begin at.  Servers that do not say are asked by halving."""
    low, high = 1, newest  # low may be forgotten, high is known
    refusal = await _refused(cluster, namespace, low)
    if refusal is None:
        return low
    if told := _OLDEST.search(refusal):
        at = min(int(told[1]), newest)
        return at if await _refused(cluster, namespace, at) is None else None
    for _ in range(_PROBES):
        if high - low <= 1:
            break
        middle = (low + high) // 2
        if await _refused(cluster, namespace, middle) is None:
            high = middle
        else:
            low = middle
    return high


async def _refused(cluster: Cluster, namespace: str, since: int) -> str | None:
    """Why a watch cannot begin there; None if it can."""
    try:
        async with asyncio.timeout(_SILENCE), aclosing(_watch(cluster, PODS, namespace, since)) as changes:
            async for change in changes:
                if change.type != "BOOKMARK":
                    return None
    except TimeoutError:
        return None  # nothing to tell since then, but no refusal either
    except (errors.Expired, errors.Gone) as error:
        return error.message
    except errors.ApiError as error:
        raise CannotLook(f"cannot watch pods: {error.message}") from error
    return None


# --- replaying -------------------------------------------------------------------------------------


def _watch(cluster: Cluster, resource: Resource, namespace: str, since: int, **more: Any) -> Any:
    return cluster.watch(resource, since=str(since), namespace=namespace, **more)


async def _replay(
    cluster: Cluster, resource: Resource, namespace: str, *, since: int, until: int, **more: Any
) -> AsyncIterator[Change]:
    """The changes between two versions; once it falls silent, there are no more."""
    async with aclosing(_watch(cluster, resource, namespace, since, **more)) as changes:
        while True:
            try:
                change = await asyncio.wait_for(anext(changes), _SILENCE)
            except (TimeoutError, StopAsyncIteration):
                return
            except errors.ApiError as error:
                raise CannotLook(f"cannot watch {resource.qualified}: {error.message}") from error
            revision = int(change.version)
            if revision > until:
                return
            if change.type != "BOOKMARK" and change.object is not None:
                yield Change(revision, change.type, change.object)
