"""Reads what is needed to explain a Service from a ``Cluster``, by get and list only.

A list that may not be read is noted, and the report goes without it.  Services and Pods are required: without them
:class:`CannotLook` names the missing permission.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import TypeVar

import msgspec

from seamark import errors
from seamark.access.cluster import Cluster, Listing
from seamark.clock import Clock
from seamark.kinds.resource import (
    DAEMON_SETS,
    DEPLOYMENTS,
    ENDPOINT_SLICES,
    ENDPOINTS,
    EVENTS,
    NAMESPACES,
    NODES,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    SERVICE_CIDRS,
    SERVICES,
    STATEFUL_SETS,
    Resource,
)
from seamark.kinds.wellknown import SERVICE_NAME_LABEL
from seamark.rules import probing
from seamark.rules.objects.namespace import Namespace
from seamark.rules.objects.network import ServiceCIDR
from seamark.rules.objects.node import Node
from seamark.rules.routing.model import HEALTH_CHECK_NOT_SERVED, NOT_SERVED
from seamark.why.case import Case, pairs
from seamark.why.checks import probed
from seamark.why.checks.external import in_cluster_target
from seamark.why.views import AnyWorkload, Endpoints, EndpointSlice, Event, Key, Pod, Service
from seamark.why.world import LeftOut, Refused, Seen, World

T = TypeVar("T")

WORKLOADS = (DEPLOYMENTS, STATEFUL_SETS, DAEMON_SETS, REPLICA_SETS, REPLICATION_CONTROLLERS)


class CannotLook(Exception):
    """Not enough can be read for a report; the text says why, in one line."""


class _Reader:
    """Reads lists of one cluster, and notes those that were refused and objects that cannot be decoded."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.refused: list[Refused | LeftOut] = []

    async def required(self, resource: Resource, type: type[T], namespace: str) -> Sequence[T]:
        try:
            return self._items(resource, await self._cluster.list(resource, namespace=namespace, as_=type))
        except errors.Forbidden as error:
            raise CannotLook(str(Refused(resource, namespace, error.message))) from error
        except errors.ApiError as error:
            raise CannotLook(f"cannot list {resource.qualified}: {error.message}") from error

    async def optional(
        self, resource: Resource, type: type[T], namespace: str = "", *, labels: str = "", fields: str = ""
    ) -> Sequence[T] | None:
        try:
            listing = await self._cluster.list(resource, namespace=namespace, labels=labels, fields=fields, as_=type)
            return self._items(resource, listing)
        except errors.Forbidden as error:
            self.refused.append(Refused(resource, namespace, error.message))
            return None
        except (errors.NotFound, errors.MethodNotAllowed, errors.BadRequest):
            return None  # older servers have no such kind, or cannot select by such a field
        except errors.ApiError as error:
            raise CannotLook(f"cannot list {resource.qualified}: {error.message}") from error

    def _items(self, resource: Resource, listing: Listing[T]) -> Sequence[T]:
        if listing.unreadable:
            self.refused.append(LeftOut(resource, tuple(listing.unreadable)))
        return listing.items

    async def namespace(self, name: str) -> Sequence[Namespace] | None:
        """The namespace of that name, or all of them."""
        if not name:
            return await self.optional(NAMESPACES, Namespace)
        try:
            return [await self._cluster.get(NAMESPACES, name, as_=Namespace)]
        except (errors.Forbidden, errors.NotFound):
            return None
        except errors.ApiError as error:
            raise CannotLook(f"cannot get namespace {name}: {error.message}") from error

    async def complaints(self, services: Iterable[Service], namespace: str) -> Sequence[Event] | None:
        """Events of proxies that could not serve a port of one of these Services."""
        reasons = [
            reason
            for reason, concerned in (
                (NOT_SERVED, any(service.node_ports or service.is_load_balancer for service in services)),
                (HEALTH_CHECK_NOT_SERVED, any(service.spec.health_check_node_port for service in services)),
            )
            if concerned
        ]
        found = [await self.optional(EVENTS, Event, namespace, fields=f"reason={reason}") for reason in reasons]
        return [event for events in found for event in events or ()] if found else None

    async def workloads(self, namespace: str) -> Sequence[AnyWorkload] | None:
        found: list[AnyWorkload] = []
        known = False
        for resource in WORKLOADS:
            items = await self.optional(resource, AnyWorkload, namespace)
            known = known or items is not None
            found += [msgspec.structs.replace(each, kind=resource.kind) for each in items or ()]
        return found if known else None


async def observe(cluster: Cluster, namespace: str, *, clock: Clock) -> World:
    """Everything in a namespace (``""``: in all of them), each list read once."""
    reader = _Reader(cluster)
    namespaces = await reader.namespace(namespace)
    services, pods, nodes, endpoints, slices, cidrs = await asyncio.gather(
        reader.required(SERVICES, Service, namespace),
        reader.required(PODS, Pod, namespace),
        reader.optional(NODES, Node),
        reader.optional(ENDPOINTS, Endpoints, namespace),
        reader.optional(ENDPOINT_SLICES, EndpointSlice, namespace),
        reader.optional(SERVICE_CIDRS, ServiceCIDR),
    )
    world = World(
        Seen(
            services=services,
            pods=pods,
            nodes=nodes,
            endpoints=endpoints,
            slices=slices,
            cidrs=cidrs,
            namespaces=namespaces,
            namespace=namespace,
            now=clock.time(),
        )
    )
    # Workloads matter only where a Service has no Pods.
    if any(service.managed and not world.pods_of(service) for service in services):
        world.learn(workloads=await reader.workloads(namespace))
    world.learn(events=await reader.complaints(services, namespace), refused=tuple(reader.refused))
    return world


async def observe_service(cluster: Cluster, key: Key, *, clock: Clock) -> World:
    """The namespace of a Service, and what else its report needs."""
    namespace, name = key
    reader = _Reader(cluster)
    world = await observe(cluster, namespace, clock=clock)
    service = world.services.get(key)
    if service is None:
        namesakes = await reader.optional(SERVICES, Service, fields=f"metadata.name={name}")
        world.add_services(namesakes or ())
    else:
        await _learn_more(reader, world, service)
    world.learn(refused=(*world.seen.refused, *reader.refused))
    return world


async def _learn_more(reader: _Reader, world: World, service: Service) -> None:
    """Read what only a Service in this state needs: Pods elsewhere, Events about its Pods, the target of an alias."""
    namespace = service.metadata.namespace
    case = Case(world, service)
    if service.managed and not case.candidates:
        # Pods of other namespaces are only a hint, so the report can go without them.
        found = await reader.optional(PODS, Pod, labels=pairs(service.spec.selector))
        world.learn(elsewhere=[pod for pod in found or () if pod.metadata.namespace != namespace])
        others = sorted({pod.metadata.namespace for pod in world.seen.elsewhere})[:5]
        await _also(reader, world, others)
    elif not service.managed and not service.external and not case.slices and case.endpoints is None:
        await _misplaced(reader, world, service)
    elif any(not each.would_serve for each in case.candidates):
        events = await reader.optional(EVENTS, Event, namespace, fields="involvedObject.kind=Pod,type=Warning")
        world.learn(events=[*(world.seen.events or ()), *(events or ())])
    elif not service.managed and probed.probed(case):
        failed = await reader.optional(EVENTS, Event, namespace, fields=f"reason={probing.UNHEALTHY}")
        invalid = await reader.optional(EVENTS, Event, namespace, fields=f"reason={probing.INVALID}")
        world.learn(events=[*(world.seen.events or ()), *(failed or ()), *(invalid or ())])
    target = in_cluster_target(service) if service.external else None
    if target is not None and target[0] != namespace:
        await _also(reader, world, [target[0]])


async def observe_services(cluster: Cluster) -> Sequence[Service]:
    """The Services of all namespaces, for their names."""
    return await _Reader(cluster).required(SERVICES, Service, "")


async def observe_pod(cluster: Cluster, key: Key, *, clock: Clock) -> World:
    return await observe(cluster, key[0], clock=clock)


async def _misplaced(reader: _Reader, world: World, service: Service) -> None:
    """Read Endpoints and slices that may have been written for it in another namespace."""
    name = service.metadata.name
    slices = await reader.optional(ENDPOINT_SLICES, EndpointSlice, labels=f"{SERVICE_NAME_LABEL}={name}")
    endpoints = await reader.optional(ENDPOINTS, Endpoints, fields=f"metadata.name={name}")
    services = await reader.optional(SERVICES, Service, fields=f"metadata.name={name}")
    here = service.metadata.namespace
    if services is not None:
        world.add_services(services)
        world.learn(
            slices=[*(world.seen.slices or ()), *(e for e in slices or () if e.metadata.namespace != here)],
            endpoints=[*(world.seen.endpoints or ()), *(e for e in endpoints or () if e.metadata.namespace != here)],
        )


async def _also(reader: _Reader, world: World, namespaces: Sequence[str]) -> None:
    """Read the Services of other namespaces."""
    for namespace in namespaces:
        found = await reader.optional(SERVICES, Service, namespace)
        if found is not None:
            world.add_services(found)
            world.learn(also=(*world.seen.also, namespace))
