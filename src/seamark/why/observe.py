"""Reads what is needed to explain a Service from a ``Cluster``, by get and list only.

A list that may not be read is noted, and the report goes without it.  Services and Pods are required: without them
:class:`CannotLook` names the missing permission.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from seamark import errors
from seamark.access.blocking import together
from seamark.access.cluster import Cluster, Listing
from seamark.clock import Clock
from seamark.kinds.resource import (
    CRON_JOBS,
    DAEMON_SETS,
    DEPLOYMENTS,
    ENDPOINT_SLICES,
    ENDPOINTS,
    EVENTS,
    INGRESS_CLASSES,
    INGRESSES,
    JOBS,
    NAMESPACES,
    NETWORK_POLICIES,
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
from seamark.why.views import (
    AnyWorkload,
    Endpoints,
    EndpointSlice,
    Event,
    Ingress,
    IngressClass,
    Key,
    NetworkPolicy,
    Pod,
    Service,
)
from seamark.why.world import LeftOut, Refused, Seen, World

T = TypeVar("T")

_HOPS = 4  # from one alias to the next that are followed into other namespaces
_BALANCER_FAILED = "SyncLoadBalancerFailed"  # the reason of a cloud's Events
WORKLOADS = (DEPLOYMENTS, STATEFUL_SETS, DAEMON_SETS, REPLICA_SETS, REPLICATION_CONTROLLERS, JOBS, CRON_JOBS)


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
        """Events of proxies and clouds that could not serve a port or an address of one of these Services."""
        reasons = [
            reason
            for reason, concerned in (
                (NOT_SERVED, any(service.node_ports or service.is_load_balancer for service in services)),
                (HEALTH_CHECK_NOT_SERVED, any(service.spec.health_check_node_port for service in services)),
                (_BALANCER_FAILED, any(s.is_load_balancer and not s.ingress_addresses for s in services)),
            )
            if concerned
        ]
        found = [await self.optional(EVENTS, Event, namespace, fields=f"reason={reason}") for reason in reasons]
        return [event for events in found for event in events or ()] if found else None

    async def workloads(self, namespace: str) -> Sequence[AnyWorkload] | None:
        found: list[AnyWorkload] = []
        known = False
        lists = await together(*(self.optional(resource, AnyWorkload, namespace) for resource in WORKLOADS))
        for resource, items in zip(WORKLOADS, lists, strict=True):
            known = known or items is not None
            found += [each.of_kind(resource.kind) for each in items or ()]
        return found if known else None


async def observe(cluster: Cluster, namespace: str, *, clock: Clock, only: Key | None = None) -> World:
    """Everything in a namespace (``""``: in all of them), each list read once; for one Service if ``only`` names it."""
    reader = _Reader(cluster)
    (services, pods, nodes, endpoints, slices, cidrs), (ingresses, policies, namespaces) = await together(
        together(
            reader.required(SERVICES, Service, namespace),
            reader.required(PODS, Pod, namespace),
            reader.optional(NODES, Node),
            reader.optional(ENDPOINTS, Endpoints, namespace),
            reader.optional(ENDPOINT_SLICES, EndpointSlice, namespace),
            reader.optional(SERVICE_CIDRS, ServiceCIDR),
        ),
        together(
            reader.optional(INGRESSES, Ingress, namespace),
            reader.optional(NETWORK_POLICIES, NetworkPolicy, namespace),
            reader.namespace(namespace),
        ),
    )
    world = World(
        Seen(
            services=services,
            pods=pods,
            nodes=nodes,
            endpoints=endpoints,
            slices=slices,
            cidrs=cidrs,
            ingresses=ingresses,
            ingress_classes=await reader.optional(INGRESS_CLASSES, IngressClass) if ingresses else None,
            policies=policies,
            namespaces=namespaces,
            namespace=namespace,
            now=clock.time(),
        )
    )
    world.learn(events=await reader.complaints(services, namespace))
    await _learn_more(reader, world, services if only is None else [s for s in services if s.key == only])
    world.learn(refused=tuple(reader.refused))
    return world


async def observe_service(cluster: Cluster, key: Key, *, clock: Clock) -> World:
    """The namespace of a Service, and what else its report needs."""
    namespace, name = key
    world = await observe(cluster, namespace, clock=clock, only=key)
    if key not in world.services:
        reader = _Reader(cluster)
        world.add_services(await reader.optional(SERVICES, Service, fields=f"metadata.name={name}") or ())
        world.learn(refused=(*world.seen.refused, *reader.refused))
    return world


async def _learn_more(reader: _Reader, world: World, services: Sequence[Service]) -> None:
    """Read what only Services in some states need: Pods elsewhere, workloads, Events, the targets of aliases.

    It is the same for one Service and for all of them, so that each has one cause, whichever way it is asked about.
    """
    cases = [Case(world, service) for service in services]
    empty = [case for case in cases if case.service.managed and not case.candidates]
    if empty:
        await _learn_workloads(reader, world)
        await _learn_elsewhere(reader, world, empty)
    if any(not each.would_serve for case in cases for each in case.candidates) or _close(empty):
        await _learn_events(reader, world, "involvedObject.kind=Pod,type=Warning")
    if any(not each.pod.spec.node_name and each.pod.claims for case in cases for each in case.candidates):
        await _learn_events(reader, world, "involvedObject.kind=PersistentVolumeClaim")
    bare = [case for case in cases if not case.service.managed and not case.service.external]
    for case in bare:
        if not case.slices and case.endpoints is None:
            await _misplaced(reader, world, case.service)
    if any(probed.probed(case) for case in bare):
        await _learn_events(reader, world, f"reason={probing.UNHEALTHY}", f"reason={probing.INVALID}")
    aliases = [case.service for case in cases if case.service.external]
    for _ in range(_HOPS):
        targets = sorted({target for each in aliases if (target := in_cluster_target(each))})
        await _also(reader, world, sorted({namespace for namespace, _ in targets}))
        await _learn_beyond(reader, world, targets)
        aliases = [each for key in targets if (each := world.services.get(key)) is not None and each.external]


def _close(empty: Sequence[Case]) -> bool:
    """Whether a selector almost matches Pods that are not ready: Events may say why."""
    return any(not pod.ready for case in empty for miss in case.near_misses for pod in miss.shape.pods)


async def _learn_workloads(reader: _Reader, world: World) -> None:
    """Workloads matter only where a Service has no Pods; where one has made none, its Events may say why."""
    namespace = world.seen.namespace
    workloads = await reader.workloads(namespace)
    world.learn(workloads=workloads)
    if any(each.wanted != 0 and not each.status.replicas for each in workloads or ()):
        await _learn_events(reader, world, "reason=FailedCreate")


async def _learn_elsewhere(reader: _Reader, world: World, empty: Sequence[Case]) -> None:
    """Pods of other namespaces that these selectors match are only a hint, so the report can go without them."""
    namespace = world.seen.namespace
    if not namespace:
        return
    selectors = [case.service.spec.selector or {} for case in empty]
    # Several Services share one list of all Pods.
    labels = pairs(selectors[0]) if len(selectors) == 1 else ""
    found = [
        pod for pod in await reader.optional(PODS, Pod, labels=labels) or () if pod.metadata.namespace != namespace
    ]
    world.learn(elsewhere=[pod for pod in found if any(s.items() <= pod.metadata.labels.items() for s in selectors)])
    await _also(reader, world, sorted({pod.metadata.namespace for pod in world.seen.elsewhere})[:5])


async def _learn_events(reader: _Reader, world: World, *selectors: str) -> None:
    for fields in selectors:
        events = await reader.optional(EVENTS, Event, world.seen.namespace, fields=fields)
        world.learn(events=[*(world.seen.events or ()), *(events or ())])


async def _learn_beyond(reader: _Reader, world: World, targets: Sequence[Key]) -> None:
    """The slices of Services of other namespaces, to see whether anything answers there."""
    found = {
        (namespace, name): await reader.optional(
            ENDPOINT_SLICES, EndpointSlice, namespace, labels=f"{SERVICE_NAME_LABEL}={name}"
        )
        for namespace, name in targets
        if namespace in world.seen.also
    }
    if found:
        read = {key: slices for key, slices in found.items() if slices is not None}
        world.learn(beyond={**world.seen.beyond, **read})


async def observe_services(cluster: Cluster) -> Sequence[Service]:
    """The Services of all namespaces, for their names."""
    return await _Reader(cluster).required(SERVICES, Service, "")


async def observe_pod(cluster: Cluster, key: Key, *, clock: Clock) -> World:
    return await observe(cluster, key[0], clock=clock)


async def observe_namespace(cluster: Cluster, world: World, namespace: str) -> None:
    """Add the labels and the NetworkPolicies of another namespace, that of a client."""
    reader = _Reader(cluster)
    if namespace == world.seen.namespace:
        return
    world.learn(
        namespaces=[*(world.seen.namespaces or ()), *(await reader.namespace(namespace) or ())],
        policies=[
            *(world.seen.policies or ()),
            *(await reader.optional(NETWORK_POLICIES, NetworkPolicy, namespace) or ()),
        ],
        refused=(*world.seen.refused, *reader.refused),
    )


async def _misplaced(reader: _Reader, world: World, service: Service) -> None:
    """Read Endpoints and slices that may have been written for it in another namespace."""
    if not world.seen.namespace:
        return  # everything was read
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
    read = world.seen.namespace
    for namespace in namespaces:
        if not read or namespace in (read, *world.seen.also):
            continue
        found = await reader.optional(SERVICES, Service, namespace)
        if found is not None:
            world.add_services(found)
            world.learn(also=(*world.seen.also, namespace))
