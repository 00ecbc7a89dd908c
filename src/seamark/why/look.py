"""Looks at a cluster and reports.  What might be mere delay is looked at twice before it is called wrong."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import msgspec

from seamark.access.cluster import Cluster
from seamark.why.audit import Problem, audit
from seamark.why.codes import Code, Family
from seamark.why.explain import explain, unhealthy
from seamark.why.explain_pod import explain_pod
from seamark.why.observe import CannotLook, observe, observe_pod, observe_service
from seamark.why.render import worst_first
from seamark.why.report import Report
from seamark.why.views import Key

Clock = Callable[[], float]
Sleep = Callable[[float], Awaitable[None]]

# Lists are not read at one instant, and controllers take a moment: a difference must last this long to count.
PATIENCE = 1.5
# So many Services are looked at again one by one; if more are behind, it is no coincidence.
_LOOKED_AT_AGAIN = 20


class Survey(msgspec.Struct, frozen=True):
    """The Services that need attention, the worst first, out of how many."""

    reports: tuple[Report, ...]
    total: int
    notes: tuple[str, ...] = ()


async def look_at_service(
    cluster: Cluster, key: Key, *, clock: Clock = time.time, sleep: Sleep = asyncio.sleep
) -> Report:
    report = explain(await observe_service(cluster, key, clock=clock), key)
    if unsettled(report):
        await sleep(PATIENCE)
        report = explain(await observe_service(cluster, key, clock=clock), key)
    return report


async def look_at_pod(cluster: Cluster, key: Key, *, clock: Clock = time.time) -> Report:
    return explain_pod(await observe_pod(cluster, key, clock=clock), key)


async def look_at_all(
    cluster: Cluster, namespace: str, *, clock: Clock = time.time, sleep: Sleep = asyncio.sleep
) -> Survey:
    """Every Service of a namespace, or with ``""`` of the cluster."""
    world = await observe(cluster, namespace, clock=clock)
    reports = dict(unhealthy(world))
    again = [key for key, told in reports.items() if unsettled(told)]
    if 0 < len(again) <= _LOOKED_AT_AGAIN:
        await sleep(PATIENCE)
        for key in again:
            reports[key] = explain(await observe_service(cluster, key, clock=clock), key)
    ordered = worst_first(told for told in reports.values() if not told.healthy)
    return Survey(tuple(ordered), len(world.services), tuple(str(each) for each in world.seen.refused))


async def look_through(
    cluster: Cluster, namespace: str, *, clock: Clock = time.time, sleep: Sleep = asyncio.sleep
) -> tuple[list[Problem], tuple[str, ...]]:
    """What is wrong with Endpoints and slices and still is a moment later, and what could not be seen."""
    world = await observe(cluster, namespace, clock=clock)
    if world.seen.slices is None or world.seen.endpoints is None:
        raise CannotLook("; ".join(str(each) for each in world.seen.refused) or "there are no EndpointSlices here")
    found = audit(world)
    if found:
        await sleep(PATIENCE)
        world = await observe(cluster, namespace, clock=clock)
        before = {(each.resource.kind, each.key, each.defect) for each in found}
        found = [each for each in audit(world) if (each.resource.kind, each.key, each.defect) in before]
    return found, tuple(str(each) for each in world.seen.refused)


def unsettled(report: Report) -> bool:
    """Whether time alone might put it right."""
    return any(
        finding.code.family is Family.BOOKKEEPING or finding.code in (Code.ENDPOINTS_NOT_MIRRORED, Code.HINTS_MISSING)
        for finding in report.findings
    )
