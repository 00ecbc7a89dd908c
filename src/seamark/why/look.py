"""Reads a cluster and reports.  A difference that the controllers may be about to mend is reported if it lasts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from seamark import errors
from seamark.access.cluster import Cluster
from seamark.clock import SYSTEM_CLOCK, Clock
from seamark.kinds.resource import NAMESPACES, PODS
from seamark.rules.objects.namespace import Namespace
from seamark.rules.routing.decision import Origin
from seamark.why.codes import Code, Family
from seamark.why.explain import explain, unhealthy
from seamark.why.observe import CannotLook, observe, observe_namespace, observe_pod, observe_service
from seamark.why.render import worst_first
from seamark.why.report import Report
from seamark.why.views import Key, Pod
from seamark.why.world import World

if TYPE_CHECKING:
    from seamark.why.audit import Problem
    from seamark.why.explain_way import Client, Place

# Lists are not read at one instant, and controllers need a moment: a difference counts only if it lasts this long.
PATIENCE = 1.5
# Up to this many Services are read again, one by one.  If more are behind, the cause is a fault and not a delay.
_LOOKED_AT_AGAIN = 20


class Survey(msgspec.Struct, frozen=True):
    """The Services that need attention, the worst first, out of how many; and the uids of all Services."""

    reports: tuple[Report, ...]
    total: int
    notes: tuple[str, ...] = ()
    nowhere: str = ""  # that the namespace does not exist, if so
    uids: Mapping[Key, str] = msgspec.field(default_factory=dict)


async def look_at_service(cluster: Cluster, key: Key, *, clock: Clock = SYSTEM_CLOCK) -> Report:
    return (await look_behind(cluster, key, clock=clock))[1]


async def look_behind(cluster: Cluster, key: Key, *, clock: Clock) -> tuple[World, Report]:
    """The report on a Service, and the world that it was made from."""
    world = await observe_service(cluster, key, clock=clock)
    report = explain(world, key)
    if unsettled(report):
        await clock.sleep(PATIENCE)
        world = await observe_service(cluster, key, clock=clock)
        report = explain(world, key)
    return world, report


async def look_at_way(
    cluster: Cluster, key: Key, place: Place, port: int | None = None, *, clock: Clock = SYSTEM_CLOCK
) -> Report:
    """Where connections from that place to a Service go."""
    from seamark.why.explain_way import explain_way

    world = await observe_service(cluster, key, clock=clock)
    return explain_way(world, key, await _client(cluster, world, key, place), port)


async def _client(cluster: Cluster, world: World, key: Key, place: Place) -> Client:
    from seamark.why.explain_way import Client

    if place.origin == "outside":
        return Client("outside", place.address or "outside", address=place.address)
    if place.origin == "node":
        if world.nodes is not None and place.name not in world.nodes:
            raise CannotLook(f"there is no node {place.name}")
        return Client("node", f"node {place.name}", place.name)
    namespace = place.namespace or key[0]
    try:
        pod = await cluster.get(PODS, place.name, namespace=namespace, as_=Pod)
    except errors.ApiError as error:
        raise CannotLook(f"cannot read Pod {place.name} in namespace {namespace}: {error.message}") from error
    if not pod.spec.node_name:
        raise CannotLook(f"Pod {place.name} is not on a node yet, so no proxy would get its connections")
    # A Pod with the node's network is to a proxy what the node itself is.
    origin: Origin = "node" if pod.spec.host_network else "pod"
    await observe_namespace(cluster, world, namespace)
    return Client(origin, f"Pod {place.name}", pod.spec.node_name, pod.ips[0] if pod.ips else "", pod)


async def look_at_pod(cluster: Cluster, key: Key, *, clock: Clock = SYSTEM_CLOCK) -> Report:
    from seamark.why.explain_pod import explain_pod

    return explain_pod(await observe_pod(cluster, key, clock=clock), key)


async def look_at_all(cluster: Cluster, namespace: str, *, clock: Clock = SYSTEM_CLOCK) -> Survey:
    """Every Service of a namespace, or with ``""`` of the cluster."""
    world = await observe(cluster, namespace, clock=clock)
    reports = dict(unhealthy(world))
    again = [key for key, told in reports.items() if unsettled(told)]
    if 0 < len(again) <= _LOOKED_AT_AGAIN:
        await clock.sleep(PATIENCE)
        for key in again:
            reports[key] = explain(await observe_service(cluster, key, clock=clock), key)
    ordered = worst_first(told for told in reports.values() if not told.healthy)
    uids = {key: service.metadata.uid for key, service in world.surveyed.items()}
    notes = [str(each) for each in world.seen.refused]
    if world.surveyed or not (nowhere := await missing_namespace(cluster, namespace)):
        return Survey(tuple(ordered), len(world.surveyed), tuple(notes), uids=uids)
    return Survey(tuple(ordered), 0, (*notes, nowhere), nowhere)


async def missing_namespace(cluster: Cluster, namespace: str) -> str:
    """A sentence if there is no such namespace, as far as may be seen: lists of one that is mistyped are just empty."""
    if not namespace:
        return ""
    try:
        await cluster.get(NAMESPACES, namespace, as_=Namespace)
    except errors.NotFound:
        return f"there is no namespace {namespace}"
    except errors.ApiError:
        return ""
    return ""


async def look_through(cluster: Cluster, namespace: str, *, clock: Clock) -> tuple[list[Problem], tuple[str, ...]]:
    """What is wrong with Endpoints and slices, and still is a moment later; and which lists were refused."""
    from seamark.why.audit import audit

    world = await observe(cluster, namespace, clock=clock)
    if world.seen.slices is None or world.seen.endpoints is None:
        raise CannotLook("; ".join(str(each) for each in world.seen.refused) or "there are no EndpointSlices here")
    found = audit(world)
    if found:
        await clock.sleep(PATIENCE)
        world = await observe(cluster, namespace, clock=clock)
        before = {(each.resource.kind, each.key, each.defect) for each in found}
        found = [each for each in audit(world) if (each.resource.kind, each.key, each.defect) in before]
    return found, tuple(str(each) for each in world.seen.refused)


def unsettled(report: Report) -> bool:
    """Whether the controllers may still be about to put it right."""
    return any(
        finding.code.family is Family.BOOKKEEPING or finding.code in (Code.ENDPOINTS_NOT_MIRRORED, Code.HINTS_MISSING)
        for finding in report.findings
    )
