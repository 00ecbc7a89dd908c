"""Hints that keep traffic in its zone: asked for, but not there, and what would bring them back."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from seamark.kinds.values.addresses import Family
from seamark.kinds.values.quantity import QuantityError, amount
from seamark.kinds.wellknown import (
    CONTROL_PLANE_LABELS,
    OLD_TOPOLOGY_ANNOTATION,
    TOPOLOGY_ANNOTATION,
    TRAFFIC_DISTRIBUTIONS,
)
from seamark.rules.objects.node import Node
from seamark.why.case import Case, listed, plural
from seamark.why.codes import Code
from seamark.why.finding import Command, Finding, Fix, Severity, merge_patch
from seamark.why.views import Service

ANNOTATIONS = (OLD_TOPOLOGY_ANNOTATION, TOPOLOGY_ANNOTATION)
OVERLOAD = 1.2  # times its share that a zone's endpoints may be made to carry


def findings(case: Case) -> Iterator[Finding]:
    service = case.service
    if case.world.nodes is None or not case.ready or not service.managed:
        return
    if by_topology(service):
        yield from _topology(case, case.world.nodes)
    elif service.spec.traffic_distribution in TRAFFIC_DISTRIBUTIONS:
        yield from _without_zone(case, f"trafficDistribution {service.spec.traffic_distribution}")
        yield from _unwritten(case)


def by_topology(service: Service) -> bool:
    annotations = service.metadata.annotations
    value = next((annotations[key] for key in ANNOTATIONS if key in annotations), "")
    return value in ("Auto", "auto")


# --- shared out by CPUs ----------------------------------------------------------------------------


def _topology(case: Case, nodes: dict[str, Node]) -> Iterator[Finding]:
    counted = [node for node in nodes.values() if _counts(node)]
    incomplete = sorted(node.metadata.name for node in counted if not node.zone or not cpus(node))
    shares = zone_shares(counted)
    if incomplete:
        first = nodes[incomplete[0]]
        lacks = "zone label (topology.kubernetes.io/zone)" if not first.zone else "allocatable CPU"
        yield _refused(
            case,
            Code.HINTS_NODES_INCOMPLETE,
            f"{'node' if len(incomplete) == 1 else 'nodes'} {listed(incomplete)} lack{'s' * (len(incomplete) == 1)} a"
            f" {lacks}, and one such node switches hints off for every Service",
            Fix(
                "Say in which zone each node is (the label), or do without the safeguards of this mode:",
                (_plain_distribution(case),),
            ),
        )
    elif len(shares) < 2:
        yield _refused(
            case,
            Code.HINTS_ONE_ZONE,
            f"all ready nodes are in {'zone ' + next(iter(shares)) if shares else 'no zone at all'}, and there is"
            " nothing to choose between",
            Fix("Nothing needs to be done; hints come back once ready nodes are in two zones or more."),
        )
    else:
        for family in case.service.families:
            yield from _shared_out(case, family, shares)


def _shared_out(case: Case, family: Family, shares: dict[str, float]) -> Iterator[Finding]:
    ready = [each for each in case.ready if each.verdict.addresses(family)]
    count, least = len(ready), least_needed(shares, len(ready))
    if not ready:
        return
    if count < len(shares):
        yield _refused(
            case,
            Code.HINTS_TOO_FEW_ENDPOINTS,
            f"there are fewer ready endpoints ({count}) than zones ({len(shares)}: {listed(sorted(shares))})",
            Fix(
                f"Run at least {len(shares)} ready Pods, or prefer the own zone without counting:",
                (_plain_distribution(case),),
            ),
        )
    elif least > count:
        yield _refused(
            case,
            Code.HINTS_UNBALANCED,
            f"{plural(count, 'ready endpoint')} cannot be shared out among {len(shares)} zones by their CPUs without"
            f" overloading one ({least} would be needed)",
            Fix(
                f"Run at least {least} ready Pods, or prefer the own zone without counting:",
                (_plain_distribution(case),),
            ),
        )
    else:
        missing = list(_without_zone(case, "topology-mode Auto"))
        yield from missing
        if not missing:
            yield from _unwritten(case)


def _counts(node: Node) -> bool:
    return node.ready and not any(role in node.metadata.labels for role in CONTROL_PLANE_LABELS)


def cpus(node: Node) -> float:
    try:
        return float(amount(str(node.status.allocatable.get("cpu") or "0")))
    except QuantityError:
        return 0.0


def zone_shares(nodes: Iterable[Node]) -> dict[str, float]:
    """Each zone's part of the CPUs."""
    by_zone: dict[str, float] = {}
    for node in nodes:
        if node.zone:
            by_zone[node.zone] = by_zone.get(node.zone, 0.0) + cpus(node)
    total = sum(by_zone.values())
    return {zone: part / total for zone, part in by_zone.items()} if total else {}


def least_needed(shares: dict[str, float], count: int) -> int:
    """How many of ``count`` endpoints the zones need at least, each enough not to be overloaded."""
    return sum(math.ceil(share * count / OVERLOAD) for share in shares.values())


# --- own zone --------------------------------------------------------------------------------------


def _without_zone(case: Case, asked: str) -> Iterator[Finding]:
    homeless = [each for each in case.ready if not each.verdict.zone]
    if not homeless:
        return
    nodes = sorted({each.pod.spec.node_name for each in homeless})
    yield Finding(
        Code.HINTS_ENDPOINT_WITHOUT_ZONE,
        Severity.WARNING,
        f"{asked} is asked for, but {plural(len(homeless), 'ready endpoint')} on {listed(f'node {n}' for n in nodes)}"
        " lacks a zone: proxies ignore all hints unless every ready endpoint has one.",
        Fix("Label the nodes with their zone (topology.kubernetes.io/zone); the endpoints follow when next written."),
        weight=len(homeless),
    )


def _unwritten(case: Case) -> Iterator[Finding]:
    if not case.world.bookkept or any(not each.verdict.zone for each in case.ready):
        return
    bare = [
        e for s in case.controller_slices for e in s.endpoints or () if e.ready and not (e.hints and e.hints.for_zones)
    ]
    if not bare:
        return
    yield Finding(
        Code.HINTS_MISSING,
        Severity.WARNING,
        f"Hints are asked for and nothing stands in their way, but {plural(len(bare), 'ready endpoint')} in its"
        f" EndpointSlices {'has' if len(bare) == 1 else 'have'} none.",
        Fix("Wait for the next change of its Pods, which computes them anew; else check the EndpointSlice controller."),
        weight=len(bare),
    )


def _refused(case: Case, code: Code, why: str, fix: Fix) -> Finding:
    return Finding(
        code,
        Severity.WARNING,
        f"Topology-aware hints are asked for but withheld: {why}.",
        fix,
    )


def _plain_distribution(case: Case) -> Command:
    annotations = {key: None for key in ANNOTATIONS if key in case.service.metadata.annotations}
    patch = {"metadata": {"annotations": annotations}, "spec": {"trafficDistribution": "PreferClose"}}
    return merge_patch("service", case.key, patch)
