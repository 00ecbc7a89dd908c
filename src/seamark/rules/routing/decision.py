"""What becomes of one connection: whether it is let in, which choice it gets, whose address the backend sees (pure).

The nftables engine writes these rules as chains; this is the same in Python, for the userspace engine and ``why``.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from seamark.rules.routing.model import Choice, Empty, Frontend, Kind, Policy, Route
from seamark.rules.routing.surroundings import Surroundings, within

Origin = Literal["pod", "node", "outside"]


class Decision(msgspec.Struct, frozen=True, gc=False):
    """``verdict`` is "accept" if one of the choice's backends gets the connection."""

    verdict: Literal["accept"] | Empty
    choice: Choice
    policy: Policy
    masquerade: bool  # whether the backend sees the node instead of the client
    blocked: bool = False  # whether the source ranges of the Service keep this client out
    bypassed: bool = False  # whether the policy Local is passed over, because the client is in the cluster


def origin_of(source: str, surroundings: Surroundings) -> Origin:
    """What a client address is to this node."""
    if source in surroundings.node.addresses or within(source, ("127.0.0.0/8", "::1/128")):
        return "node"
    return "pod" if surroundings.is_pod(source) else "outside"


def decide(route: Route, frontend: Frontend, origin: Origin, source: str, surroundings: Surroundings) -> Decision:
    """Where a connection to this frontend goes.  ``source`` may be empty if the client's address is not known.

    Connections to a cluster IP follow the internal policy.  All others follow the external one, but with the policy
    Local, Pods and the node itself reach every endpoint, as if they had used the cluster IP.  A connection from
    outside is masqueraded where its answer would not come back through this node otherwise.
    """
    if frontend.kind is Kind.CLUSTER_IP:
        policy, bypassed = route.internal, False
        masquerade = surroundings.masquerade_all or (bool(surroundings.cluster_cidrs) and origin != "pod")
    else:
        bypassed = route.external == "Local" and origin != "outside"
        policy = "Cluster" if bypassed else route.external
        masquerade = origin == "node" if route.external == "Local" else True
    choice = route.local if policy == "Local" else route.cluster
    blocked = (
        frontend.kind is Kind.LOAD_BALANCER
        and bool(route.source_ranges)
        and bool(source)
        and not within(source, route.source_ranges)
    )
    verdict: Literal["accept"] | Empty = "drop" if blocked else "accept" if choice.backends else choice.empty
    return Decision(verdict, choice, policy, masquerade, blocked, bypassed)
