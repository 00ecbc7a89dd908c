"""Reads the past from a server, by watches that begin at the oldest version it still knows and end at the present.

A Seamark server replays the revisions of its store, Kubernetes those that its etcd has not compacted yet: about five
minutes.  Of earlier times only Events and the times in objects tell, and the report says that it is incomplete.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

from seamark import errors
from seamark.access.cluster import Cluster
from seamark.kinds.resource import ENDPOINT_SLICES, EVENTS, PODS, SERVICES, Resource
from seamark.kinds.wellknown import SERVICE_NAME_LABEL
from seamark.why.history import Memory, Version
from seamark.why.observe import CannotLook
from seamark.why.views import EndpointSlice, Event, Key, Pod, Service

_OLDEST = re.compile(r"too old resource version: \d+ \((\d+)\)")
_PROBES = 24
_SILENCE = 0.5  # seconds; a watch that has something to send, or is refused, answers sooner


async def recall(cluster: Cluster, key: Key) -> Memory:
    """Everything the server remembers about a Service, the Pods of its namespace and its EndpointSlices."""
    namespace, name = key
    try:
        newest = int((await cluster.list(SERVICES, namespace=namespace, as_=Service)).version)
    except ValueError:
        newest = 0  # versions that are no numbers cannot be compared, so none are replayed
    except errors.ApiError as error:
        raise CannotLook(f"cannot list services: {error.message}") from error
    oldest = await _oldest(cluster, namespace, newest) if newest else None
    changes: list[Version] = []
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


def _concerns(change: Version, name: str) -> bool:
    """Whether the version belongs to this Service: not every server can select what it replays."""
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
    """The oldest version a watch may begin at; None if none.  If the server does not say, it is found by bisection."""
    low, high = 1, newest  # a watch may fail at low, and works at high
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
    """The server's reason why a watch cannot begin there; None if it can."""
    try:
        async with asyncio.timeout(_SILENCE), aclosing(_watch(cluster, PODS, namespace, since)) as changes:
            async for change in changes:
                if change.type != "BOOKMARK":
                    return None
    except TimeoutError:
        return None  # nothing has changed since then, but the watch is not refused
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
) -> AsyncIterator[Version]:
    """The changes between two versions.  When the watch falls silent, there are no more."""
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
                yield Version(revision, change.type, change.object)
