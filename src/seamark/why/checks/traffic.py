"""Where traffic may go: policies that keep it on its node, and hints that keep it in its zone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from seamark.kinds.values.addresses import Family
from seamark.kinds.wellknown import OLD_TOPOLOGY_ANNOTATION, TOPOLOGY_ANNOTATION, ZONE_LABEL
from seamark.rules import hints
from seamark.rules.hints import Refusal, Withheld
from seamark.rules.objects.endpointslice import Endpoint
from seamark.rules.objects.node import Node
from seamark.rules.slices.objects import identity
from seamark.why import evidence
from seamark.why.case import Case, listed, plural
from seamark.why.codes import Code
from seamark.why.evidence import Evidence
from seamark.why.finding import Command, Finding, Fix, Severity, merge_patch

_OF_NODES = (f"metadata.labels[{ZONE_LABEL}]", "status.allocatable.cpu", "status.conditions[Ready].status")


def findings(case: Case) -> Iterator[Finding]:
    if case.world.nodes is None:
        return
    yield from _policies(case, case.world.nodes)
    if case.ready and case.service.managed:
        yield from _hints(case, case.world.nodes)


# --- policies --------------------------------------------------------------------------------------


def _policies(case: Case, nodes: dict[str, Node]) -> Iterator[Finding]:
    """Nodes without an endpoint, where a policy keeps traffic on its node."""
    spec = case.service.spec
    if "Local" not in (spec.internal_traffic_policy, spec.external_traffic_policy) or case.service.headless:
        return
    if not case.ready_addresses:
        return
    with_endpoint = _nodes_with_endpoint(case)
    lacking = sorted(name for name, node in nodes.items() if _runs_pods(node) and name not in with_endpoint)
    if not lacking:
        return
    if spec.internal_traffic_policy == "Local":
        yield Finding(
            Code.INTERNAL_LOCAL_WITHOUT_ENDPOINT,
            Severity.WARNING if with_endpoint else Severity.ERROR,
            f"internalTrafficPolicy is Local, and {_nodes(lacking)} no ready endpoint: what Pods there send to it is"
            " dropped.",
            Fix(
                "Run one of its Pods on every node (a DaemonSet does), or let traffic leave the node:",
                (merge_patch("service", case.key, {"spec": {"internalTrafficPolicy": "Cluster"}}),),
            ),
            (*case.seen("spec.internalTrafficPolicy"), *_places(case, nodes, lacking)),
            weight=len(lacking),
            facts=_where(with_endpoint),
        )
    # A load balancer leaves such nodes out, by their health checks; clients of node ports do not.
    exposed = spec.type == "NodePort" or (spec.type == "LoadBalancer" and not with_endpoint)
    if spec.external_traffic_policy == "Local" and exposed:
        yield Finding(
            Code.EXTERNAL_LOCAL_WITHOUT_ENDPOINT,
            Severity.WARNING if with_endpoint else Severity.ERROR,
            f"externalTrafficPolicy is Local, and {_nodes(lacking)} no ready endpoint: what comes to node ports there"
            " from outside is dropped.",
            Fix(
                "Send only to nodes that run its Pods, or let traffic be passed on:",
                (merge_patch("service", case.key, {"spec": {"externalTrafficPolicy": "Cluster"}}),),
            ),
            (*case.seen("spec.externalTrafficPolicy", "spec.type"), *_places(case, nodes, lacking)),
            weight=len(lacking),
            facts=_where(with_endpoint),
        )


def _places(case: Case, nodes: dict[str, Node], lacking: list[str]) -> tuple[Evidence, ...]:
    """The nodes without an endpoint, and where the endpoints are."""
    if case.service.managed:
        ready = evidence.each((each.pod for each in case.ready), "spec.nodeName")
    else:
        ready = evidence.each(case.slices, "endpoints")
    there = evidence.each((nodes[name] for name in lacking), "status.conditions[Ready].status")
    return *there, evidence.search(case.world, "Node", ""), *ready


def _nodes_with_endpoint(case: Case) -> set[str]:
    if case.service.managed:
        return {each.pod.spec.node_name for each in case.ready}
    return {e.node_name for s in case.slices for e in s.endpoints or () if e.ready and e.node_name}


def _runs_pods(node: Node) -> bool:
    """Whether ordinary Pods run there, which may send something to the Service."""
    return node.ready and not node.control_plane and not node.spec.unschedulable


def _nodes(names: list[str]) -> str:
    if len(names) == 1:
        return f"node {names[0]} has"
    return f"{plural(len(names), 'node')} ({listed(names)}) have"


def _where(names: set[str]) -> tuple[str, ...]:
    return (f"ready endpoints are on {listed(sorted(names), 5)}",) if names else ("no endpoint names its node",)


# --- hints -----------------------------------------------------------------------------------------


def _hints(case: Case, nodes: dict[str, Node]) -> Iterator[Finding]:
    """Hints that are asked for but missing, and why."""
    match hints.mode(case.service):
        case "":
            return
        case "topology":
            yield from _topology(case, nodes)
        case distribution:
            if distribution != "PreferSameNode":  # its hints are for nodes; those for zones only come second
                yield from _without_zone(case, f"trafficDistribution {distribution}")
            wanted = [endpoint for family in case.service.families for _, endpoint in case.wanted_slices.wanted(family)]
            yield from _unwritten(case, wanted)


def _topology(case: Case, nodes: dict[str, Node]) -> Iterator[Finding]:
    zones = hints.ZoneCpus(nodes.values())
    shares = zones.shares
    if zones.unknown:
        yield _nodes_unknown(case, sorted(zones.unknown.values(), key=lambda node: node.name))
    elif shares is None:
        where = f"zone {next(iter(zones.cpus))}" if zones.cpus else "no zone at all"
        yield _withheld(
            case,
            Code.HINTS_ONE_ZONE,
            f"all ready nodes are in {where}, and there is nothing to choose between",
            Fix("Nothing needs to be done; hints come back once ready nodes are in two zones or more."),
        )
    else:
        for family in case.service.families:
            yield from _shared_out(case, family, shares)


def _nodes_unknown(case: Case, unknown: list[Node]) -> Finding:
    lacks = "allocatable CPU" if unknown[0].zone else "zone label (topology.kubernetes.io/zone)"
    one = len(unknown) == 1
    return _withheld(
        case,
        Code.HINTS_NODES_INCOMPLETE,
        f"{'node' if one else 'nodes'} {listed(node.name for node in unknown)} lack{'s' if one else ''} a {lacks}, and"
        " one such node switches hints off for every Service",
        Fix(
            "Say in which zone each node is (the label), or do without the safeguards of this mode:",
            (_plain_distribution(case),),
        ),
    )


def _shared_out(case: Case, family: Family, shares: dict[str, float]) -> Iterator[Finding]:
    endpoints = [endpoint for _, endpoint in case.wanted_slices.wanted(family)]
    count = sum(endpoint.marked_ready for endpoint in endpoints)
    if not count:
        return
    outcome = hints.share_out([endpoints], [True], shares)
    if not isinstance(outcome, Refusal):
        yield from _unwritten(case, outcome.contents[0])
        return
    match outcome.reason:
        case Withheld.TOO_FEW:
            code = Code.HINTS_TOO_FEW_ENDPOINTS
            why = f"there are fewer ready endpoints ({count}) than zones ({len(shares)}: {listed(sorted(shares))})"
        case Withheld.OVERLOAD:
            code = Code.HINTS_UNBALANCED
            why = (
                f"{plural(count, 'ready endpoint')} cannot be shared out among {len(shares)} zones by their CPUs"
                f" without overloading one ({outcome.needed} would be needed)"
            )
        case _:
            yield from _without_zone(case, "topology-mode Auto")
            return
    fix = f"Run at least {outcome.needed} ready Pods, or prefer the own zone without counting:"
    yield _withheld(case, code, why, Fix(fix, (_plain_distribution(case),)))


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
        (
            *_asked(case),
            *evidence.each((each.pod for each in homeless), "spec.nodeName"),
            *evidence.each((case.world.nodes or {})[name] for name in nodes if name in (case.world.nodes or {})),
        ),
        weight=len(homeless),
    )


def _unwritten(case: Case, wanted: Iterable[Endpoint]) -> Iterator[Finding]:
    """Endpoints that are written without the hints that they should have."""
    if not case.world.bookkept:
        return
    hinted = {identity(endpoint) for endpoint in wanted if endpoint.hints is not None}
    written = [endpoint for each in case.controller_slices for endpoint in each.endpoints or ()]
    bare = [each for each in written if each.ready and each.hints is None and identity(each) in hinted]
    if not bare:
        return
    yield Finding(
        Code.HINTS_MISSING,
        Severity.WARNING,
        f"Hints are asked for and nothing stands in their way, but {plural(len(bare), 'ready endpoint')} in its"
        f" EndpointSlices {'has' if len(bare) == 1 else 'have'} none.",
        Fix("Wait for the next change of its Pods, which computes them anew; else check the EndpointSlice controller."),
        (*_asked(case), *evidence.each(case.controller_slices, "endpoints")),
        weight=len(bare),
    )


def _withheld(case: Case, code: Code, why: str, fix: Fix) -> Finding:
    nodes = evidence.each((case.world.nodes or {}).values(), *_OF_NODES)
    ready = evidence.each((each.pod for each in case.ready), "spec.nodeName")
    cause = f"Topology-aware hints are asked for but withheld: {why}."
    return Finding(code, Severity.WARNING, cause, fix, (*_asked(case), *nodes, *ready, case.pods_found()))


def _asked(case: Case) -> tuple[Evidence, ...]:
    """What asks for hints."""
    return case.seen(
        "spec.trafficDistribution",
        f"metadata.annotations[{TOPOLOGY_ANNOTATION}]",
        f"metadata.annotations[{OLD_TOPOLOGY_ANNOTATION}]",
    )


def _plain_distribution(case: Case) -> Command:
    known = (OLD_TOPOLOGY_ANNOTATION, TOPOLOGY_ANNOTATION)
    annotations = {key: None for key in known if key in case.service.metadata.annotations}
    patch = {"metadata": {"annotations": annotations}, "spec": {"trafficDistribution": "PreferClose"}}
    return merge_patch("service", case.key, patch)
