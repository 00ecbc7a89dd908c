"""Traffic policies that keep traffic on its node, and nodes that have nobody to give it to."""

from __future__ import annotations

from collections.abc import Iterator

from seamark.kinds.wellknown import CONTROL_PLANE_LABELS
from seamark.rules.objects.node import Node
from seamark.why.case import Case, listed, plural
from seamark.why.codes import Code
from seamark.why.finding import Finding, Fix, Severity, merge_patch


def findings(case: Case) -> Iterator[Finding]:
    spec = case.service.spec
    if "Local" not in (spec.internal_traffic_policy, spec.external_traffic_policy) or case.service.headless:
        return
    if case.world.nodes is None or not case.ready_addresses:
        return
    with_endpoint = _nodes_with_endpoint(case)
    lacking = sorted(
        node.metadata.name
        for node in case.world.nodes.values()
        if _takes_part(node) and node.metadata.name not in with_endpoint
    )
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
            weight=len(lacking),
            facts=_where(with_endpoint),
        )
    # A load balancer asks the nodes' health checks and leaves such nodes out; with node ports nobody does.
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
            weight=len(lacking),
            facts=_where(with_endpoint),
        )


def _nodes_with_endpoint(case: Case) -> set[str]:
    if case.service.managed:
        return {each.pod.spec.node_name for each in case.ready}
    return {e.node_name for s in case.slices for e in s.endpoints or () if e.ready and e.node_name}


def _takes_part(node: Node) -> bool:
    """Whether ordinary Pods run there, and so send something."""
    if any(role in node.metadata.labels for role in CONTROL_PLANE_LABELS):
        return False
    return node.ready and not node.spec.unschedulable


def _nodes(names: list[str]) -> str:
    if len(names) == 1:
        return f"node {names[0]} has"
    return f"{plural(len(names), 'node')} ({listed(names)}) have"


def _where(names: set[str]) -> tuple[str, ...]:
    return (f"ready endpoints are on {listed(sorted(names), 5)}",) if names else ("no endpoint names its node",)
