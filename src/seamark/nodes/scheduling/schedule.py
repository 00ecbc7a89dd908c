"""Chooses the node for a Pod, or says why there is none.  Pure: it reads only the given :class:`Occupancy`.

First it excludes unsuitable nodes, each with a reason in Kubernetes' words.  Of the others it takes the best, by:

1. what the Pod itself prefers: node affinity, being near or far from other Pods, nodes without discouraging taints
2. spreading as its ``topologySpreadConstraints`` wish
3. zones, then nodes, with the fewest siblings: Pods of the same controller
4. the least full node
5. chance, which is reproducible for the same seed, Pod and nodes

In a large cluster the best of the first hundred suitable nodes is good enough, as in Kubernetes.  The nodes are looked
at in an order that begins elsewhere for each Pod and jumps across all of them; the cost does not grow with the cluster.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from zlib import crc32

import msgspec

from seamark.kinds.wellknown import UNSCHEDULABLE_TAINT, ZONE_LABEL
from seamark.nodes.scheduling import requests
from seamark.nodes.scheduling.occupancy import Occupancy, Room, siblings_of
from seamark.nodes.scheduling.requests import HostPort
from seamark.nodes.scheduling.volumes import NONE_TO_BIND, OUT_OF_REACH
from seamark.rules import placement
from seamark.rules.objects.node import Node, Taint
from seamark.rules.objects.pod import Pod, SpreadConstraint
from seamark.rules.placement import PodSet

NO_NODES = "no nodes available to schedule pods"
_UNSCHEDULABLE = Taint(UNSCHEDULABLE_TAINT, "NoSchedule")
ENOUGH = 100  # suitable nodes to choose from
_DISLIKE = 10  # the weight of a PreferNoSchedule taint, compared with the 1 to 100 of preferences

Score = tuple[float, ...]
Reach = Callable[[Node], str]  # why the Pod's volumes cannot be used on a node; empty if they can


class Decision(msgspec.Struct, frozen=True):
    """The node; or the reason why there is none, and whether a change of other Pods could help."""

    node: str = ""
    message: str = ""
    hopes_for_space: bool = False


def choose(pod: Pod, occupancy: Occupancy, reach: Reach | None = None, *, seed: int = 0) -> Decision:
    """Choose the node for a Pod; ``reach`` says which nodes its volumes can be used on."""
    if not occupancy.rooms:
        return Decision(message=NO_NODES)
    question = Question(pod, occupancy, reach)
    possible: list[Room] = []
    refusals: list[tuple[str, ...]] = []
    rooms: Iterable[Room] = occupancy.rooms.values()
    if len(occupancy.rooms) > ENOUGH:
        rooms = _across(list(rooms), crc32(f"{seed}/{pod.metadata.key}".encode()))
    for room in rooms:
        refused = question.refuses(room)
        if refused:
            refusals.append(refused)
        else:
            possible.append(room)
            if len(possible) == ENOUGH:
                break
    if not possible:
        return _unschedulable(len(occupancy.rooms), refusals)
    if len(possible) == 1:
        return Decision(possible[0].name)
    best: list[str] = []
    least: Score | None = None
    for room in possible:
        score = question.score(room)
        if least is None or score < least:
            best, least = [room.name], score
        elif score == least:
            best.append(room.name)
    if len(best) == 1:
        return Decision(best[0])
    return Decision(min(best, key=lambda name: (crc32(f"{seed}/{pod.metadata.key}/{name}".encode()), name)))


def _across(rooms: Sequence[Room], start: int) -> Iterator[Room]:
    """Each of the rooms once, from ``start`` on in steps of 0.6 of their number, which leave no part out for long."""
    count = len(rooms)
    step = next(step for step in range(count * 618 // 1000, count) if math.gcd(step, count) == 1)
    return (rooms[(start + number * step) % count] for number in range(count))


# Reasons that only a change of Nodes or of the Pod itself can remove.
_LASTING = (
    "node(s) didn't match Pod's node affinity/selector",
    "node(s) were unschedulable",
    "node(s) were not ready",
    OUT_OF_REACH,
    NONE_TO_BIND,
)


def _unschedulable(nodes: int, refusals: Sequence[tuple[str, ...]]) -> Decision:
    counted = Counter(reason for reasons in refusals for reason in reasons)
    sentences = sorted(f"{count} {reason}" for reason, count in counted.items())
    hopeless = all(map(lasting, refusals))
    return Decision(message=f"0/{nodes} nodes are available: {', '.join(sentences)}.", hopes_for_space=not hopeless)


def lasting(reasons: Sequence[str]) -> bool:
    """Whether a node stays unsuitable for these reasons, whichever Pods go."""
    return any(reason in _LASTING or "untolerated taint" in reason for reason in reasons)


class Question:
    """One Pod and the occupancy; values that are the same for all nodes are computed once."""

    def __init__(self, pod: Pod, occupancy: Occupancy, reach: Reach | None = None) -> None:
        self.pod, self.occupancy, self.reach = pod, occupancy, reach
        spec = pod.spec
        self.wanted = placement.affinity_of(spec.affinity, pod.metadata.namespace)
        self.needs = [(name, much) for name, much in requests.requested(pod).items() if much]
        self.ports = requests.host_ports(pod)
        self.choosy = bool(spec.node_selector) or self.wanted.nodes is not None
        self.spreads = [_Spread(self, c) for c in spec.topology_spread_constraints]
        self.together = [
            (term, occupancy.per_domain(occupancy.counts(term.pods), term.topology)) for term in self.wanted.together
        ]
        self.apart = [
            (term.topology, occupancy.per_domain(occupancy.counts(term.pods), term.topology))
            for term in self.wanted.apart
        ]
        self.unwelcome = [
            (term.topology, occupancy.per_domain(counts, term.topology))
            for term, counts in occupancy.wants_apart().items()
            if term.pods.contains(pod.metadata.namespace, pod.metadata.labels, occupancy.namespaces)
        ]
        self.preferred = [
            (weight, term.topology, occupancy.per_domain(occupancy.counts(term.pods), term.topology))
            for weight, term in self.wanted.preferred_pods
        ]
        self.wishless = self.wanted is placement.NO_AFFINITY and not self.spreads
        self.placed = bool(self.spreads or self.together or self.apart or self.unwelcome)
        group = siblings_of(pod)
        self.siblings: Mapping[str, int] = occupancy.siblings(group) if group is not None else {}
        self.zone_siblings = occupancy.per_domain(self.siblings, ZONE_LABEL) if self.siblings else {}

    # --- unsuitable nodes --------------------------------------------------------------------------

    def refuses(self, room: Room) -> tuple[str, ...]:
        """Why this node is unsuitable; empty if it is suitable.  The first reason counts, as in Kubernetes."""
        if not room.open and (closed := self._closed(room)):
            return closed
        if self.choosy and not self.fits(room):
            return ("node(s) didn't match Pod's node affinity/selector",)
        if self.ports and self._occupied(room.ports):
            return ("node(s) didn't have free ports for the requested pod ports",)
        if short := self._short(room):
            return short
        if self.reach is not None and (reason := self.reach(room.node)):
            return (reason,)
        return self._misplaced(room) if self.placed else ()

    def _closed(self, room: Room) -> tuple[str, ...]:
        node, tolerations = room.node, self.pod.spec.tolerations
        if node.spec.unschedulable and placement.untolerated((_UNSCHEDULABLE,), tolerations):
            return ("node(s) were unschedulable",)
        if node.spec.taints and (taint := placement.untolerated(node.spec.taints, tolerations)) is not None:
            return (f"node(s) had untolerated taint {{{taint.key}: {taint.value}}}",)
        if not node.ready:
            return ("node(s) were not ready",)
        return ()

    def fits(self, room: Room) -> bool:
        """Whether the Pod's node selector and node affinity allow this node."""
        return placement.asked_for(self.pod.spec, self.wanted, room.node)

    def _occupied(self, taken: Mapping[HostPort, int]) -> bool:
        return any(requests.collide(mine, other) for mine in self.ports for other in taken)

    def _short(self, room: Room) -> tuple[str, ...]:
        allocatable, used = room.allocatable, room.used
        missing: tuple[str, ...] = ()
        for name, much in self.needs:
            if used.get(name, 0) + much > allocatable.get(name, 0):
                missing = (*missing, "Too many pods" if name == requests.PODS else f"Insufficient {name}")
        return missing

    def _misplaced(self, room: Room) -> tuple[str, ...]:
        labels = room.node.metadata.labels
        for spread in self.spreads:
            if reason := spread.refuses(labels):
                return (reason,)
        for term, domains in self.together:
            if not domains.get(labels.get(term.topology, ""), 0) and not self._first(term.pods, domains):
                return ("node(s) didn't match pod affinity rules",)
            if term.topology not in labels:
                return ("node(s) didn't match pod affinity rules",)
        for topology, domains in self.apart:
            if domains.get(labels.get(topology, ""), 0):
                return ("node(s) didn't match pod anti-affinity rules",)
        for topology, domains in self.unwelcome:
            if domains.get(labels.get(topology, ""), 0):
                return ("node(s) didn't satisfy existing pods anti-affinity rules",)
        return ()

    def _first(self, pods: PodSet, domains: Mapping[str, int]) -> bool:
        """Whether this is the first of a group of Pods with affinity to each other, which may go anywhere."""
        meta = self.pod.metadata
        return not domains and pods.contains(meta.namespace, meta.labels, self.occupancy.namespaces)

    # --- the best node -----------------------------------------------------------------------------

    def score(self, room: Room) -> Score:
        """The score of a node; the lowest is the best."""
        crowd = (self.zone_siblings.get(room.zone, 0), self.siblings.get(room.name, 0), room.fullness)
        if self.wishless and room.open:
            return (0, 0, *crowd)
        labels = room.node.metadata.labels
        return (-self._preference(room), sum(spread.crowd(labels) for spread in self.spreads), *crowd)

    def _preference(self, room: Room) -> int:
        labels = room.node.metadata.labels
        liked = sum(weight for weight, term in self.wanted.preferred_nodes if term.matches(room.node))
        for weight, topology, domains in self.preferred:
            liked += weight * domains.get(labels.get(topology, ""), 0)
        return liked - _DISLIKE * placement.disliked(room.node.spec.taints, self.pod.spec.tolerations)


class _Spread:
    """One topologySpreadConstraint and the occupancy."""

    def __init__(self, question: Question, constraint: SpreadConstraint) -> None:
        pod, occupancy = question.pod, question.occupancy
        self.topology, self.skew = constraint.topology_key, constraint.max_skew
        self.binding = constraint.when_unsatisfiable == "DoNotSchedule"
        pods = PodSet(
            placement.selector_of(constraint.label_selector), frozenset((pod.metadata.namespace,)), living=True
        )
        eligible = [room for room in occupancy.rooms.values() if _eligible(question, room, constraint)]
        counts = occupancy.counts(pods)
        self.domains: dict[str, int] = {}
        for room in eligible:
            if (value := room.node.metadata.labels.get(self.topology)) is not None:
                self.domains[value] = self.domains.get(value, 0) + counts.get(room.node.name, 0)
        self.least = min(self.domains.values(), default=0)
        if constraint.min_domains is not None and len(self.domains) < constraint.min_domains:
            self.least = 0
        self.itself = int(pods.selector.matches(pod.metadata.labels))

    def refuses(self, labels: Mapping[str, str]) -> str:
        if not self.binding:
            return ""
        value = labels.get(self.topology)
        if value is None:
            return "node(s) didn't match pod topology spread constraints (missing required label)"
        if self.domains.get(value, 0) + self.itself - self.least > self.skew:
            return "node(s) didn't match pod topology spread constraints"
        return ""

    def crowd(self, labels: Mapping[str, str]) -> int:
        return self.domains.get(labels.get(self.topology, ""), 0)


def _eligible(question: Question, room: Room, constraint: SpreadConstraint) -> bool:
    """Whether a node is one of those to spread over."""
    if constraint.node_affinity_policy != "Ignore" and not question.fits(room):
        return False
    honours_taints = constraint.node_taints_policy == "Honor"
    return not (honours_taints and placement.untolerated(room.node.spec.taints, question.pod.spec.tolerations))
