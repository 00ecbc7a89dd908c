"""Which Pods are on which nodes: the scheduler's view of the cluster, updated with each change.

A Pod counts from the moment the scheduler has chosen its node, before that is written.  The Pods of a set (a selector
in some namespaces) are counted by node once and the counts then kept up to date, because replicas ask for the same set.
"""

from __future__ import annotations

import math
from collections import Counter, OrderedDict
from collections.abc import Hashable, Mapping
from typing import TypeVar

import msgspec

from seamark.kinds.values import times
from seamark.kinds.wellknown import REGION_LABEL, ZONE_LABEL
from seamark.nodes.scheduling import requests
from seamark.nodes.scheduling.requests import HostPort
from seamark.rules.objects.node import Node
from seamark.rules.objects.pod import Pod
from seamark.rules.placement import PodSet, PodTerm, affinity_of

K = TypeVar("K", bound=Hashable)

KEPT_COUNTS = 512


class Occupant(msgspec.Struct, frozen=True):
    """A Pod that has a node."""

    key: str
    uid: str
    node: str
    namespace: str
    labels: dict[str, str]
    living: bool
    generation: int
    requests: dict[str, int]
    ports: tuple[HostPort, ...]
    apart: tuple[PodTerm, ...]
    siblings: Hashable
    priority: int = 0
    since: float = 0.0  # when it started


class Room:
    """One Node and its free resources."""

    __slots__ = ("allocatable", "fullness", "name", "node", "open", "ports", "used", "zone")

    def __init__(self, node: Node) -> None:
        self.node = node
        self.name, self.zone = node.name, node.metadata.labels.get(ZONE_LABEL, "")
        self.allocatable = {name: requests.thousandths(q) for name, q in node.status.allocatable.items()}
        self.used: dict[str, int] = {}
        self.ports: Counter[HostPort] = Counter()
        self.fullness = 0.0  # the use of its most used resource, from 0 to 1
        # Most nodes have no taints or other reasons to refuse a Pod.
        self.open = node.ready and not node.spec.unschedulable and not node.spec.taints

    def add(self, occupant: Occupant) -> None:
        used = self.used
        for name, much in occupant.requests.items():
            used[name] = used.get(name, 0) + much
        if occupant.ports:
            self.ports.update(occupant.ports)
        self._measure()

    def remove(self, occupant: Occupant) -> None:
        for name, much in occupant.requests.items():
            self.used[name] -= much
        if occupant.ports:
            self.ports -= Counter(occupant.ports)
        self._measure()

    def exceeded_by(self, occupant: Occupant) -> bool:
        """Whether the Pod asks for more than the whole Node has."""
        return any(much > self.allocatable.get(name, 0) for name, much in occupant.requests.items())

    def _measure(self) -> None:
        most = 0.0
        for name in ("cpu", "memory", requests.PODS):
            there = self.allocatable.get(name)
            if there:
                most = max(most, self.used.get(name, 0) / there)
        self.fullness = most


def siblings_of(pod: Pod) -> Hashable:
    """The group that the scheduler spreads: Pods of one controller, or without one, Pods with the same labels."""
    owner = pod.metadata.controller
    if owner is not None:
        return owner.uid
    # A Pod gets its node's zone as labels once it has a node, so these labels differ between siblings.
    labels = tuple(sorted(pair for pair in pod.metadata.labels.items() if pair[0] not in (ZONE_LABEL, REGION_LABEL)))
    return (pod.metadata.namespace, labels) if labels else None


def occupant(pod: Pod, name: str, node: Node | None = None) -> Occupant:
    """A Pod on the node of that name; ``node`` is the Node itself for a Pod that is not bound yet."""
    meta, labels = pod.metadata, pod.metadata.labels
    if node is not None:
        # The API server copies these from the Node to the Pod when it binds the Pod.
        copied = {key: value for key in (ZONE_LABEL, REGION_LABEL) if (value := node.metadata.labels.get(key))}
        labels = {**copied, **labels}
    return Occupant(
        pod.metadata.key,
        meta.uid,
        name,
        meta.namespace,
        labels,
        not pod.terminating,
        meta.generation,
        requests.requested(pod),
        requests.host_ports(pod),
        affinity_of(pod.spec.affinity, meta.namespace).apart,
        siblings_of(pod),
        pod.spec.priority,
        times.parse(pod.status.start_time) if pod.status.start_time else 0.0,
    )


class Occupancy:
    """All Nodes and all Pods that have one."""

    def __init__(self) -> None:
        self.rooms: dict[str, Room] = {}
        self.namespaces: dict[str, Mapping[str, str]] = {}
        self._occupants: dict[str, Occupant] = {}
        self._on: dict[str, dict[str, Occupant]] = {}
        self._siblings: dict[Hashable, Counter[str]] = {}
        self._counts: OrderedDict[PodSet, Counter[str]] = OrderedDict()
        self._apart: dict[PodTerm, Counter[str]] = {}
        self._priorities: Counter[int] = Counter()

    # --- changes -----------------------------------------------------------------------------------

    def put_node(self, node: Node) -> None:
        room = self.rooms[node.name] = Room(node)
        for occupant in self._on.get(node.name, {}).values():
            room.add(occupant)

    def remove_node(self, name: str) -> None:
        self.rooms.pop(name, None)

    def put_namespace(self, name: str, labels: Mapping[str, str]) -> None:
        self.namespaces[name] = labels
        self._forget_counts_by_labels()

    def remove_namespace(self, name: str) -> None:
        self.namespaces.pop(name, None)
        self._forget_counts_by_labels()

    def _forget_counts_by_labels(self) -> None:
        for pods in [pods for pods in self._counts if pods.by_labels is not None]:
            del self._counts[pods]

    def put(self, new: Occupant) -> None:
        old, room = self._occupants.get(new.key), self.rooms.get(new.node)
        if old == new:
            return
        if old is not None:
            if room is not None and old.uid == new.uid and room.exceeded_by(new):
                # Its kubelet cannot give it that much, so it keeps what it has.
                new = msgspec.structs.replace(new, requests=old.requests)
            self._take(old)
        self._occupants[new.key] = new
        self._on.setdefault(new.node, {})[new.key] = new
        if room is not None:
            room.add(new)
        self._count(new, 1)

    def remove(self, key: str) -> bool:
        """Remove a Pod that is gone or finished; returns whether it was there."""
        old = self._occupants.get(key)
        if old is not None:
            self._take(old)
        return old is not None

    def knows(self, pod: Pod) -> bool:
        """Whether the Pod is here already, unchanged in what matters here."""
        known, meta = self._occupants.get(pod.metadata.key), pod.metadata
        return (
            known is not None
            and known.uid == meta.uid
            and known.node == pod.spec.node_name
            and known.generation == meta.generation
            and known.living != pod.terminating
            and known.labels == meta.labels
        )

    def get(self, key: str) -> Occupant | None:
        return self._occupants.get(key)

    def occupants(self) -> list[Occupant]:
        return list(self._occupants.values())

    def on(self, node: str) -> list[Occupant]:
        """The Pods of a node."""
        return list(self._on.get(node, {}).values())

    @property
    def lowest_priority(self) -> float:
        """The priority of the least important Pod; infinite if there is none."""
        return min(self._priorities, default=math.inf)

    def _take(self, old: Occupant) -> None:
        del self._occupants[old.key]
        here = self._on[old.node]
        del here[old.key]
        if not here:
            del self._on[old.node]
        if (room := self.rooms.get(old.node)) is not None:
            room.remove(old)
        self._count(old, -1)

    def _count(self, occupant: Occupant, by: int) -> None:
        self._priorities[occupant.priority] += by
        if not self._priorities[occupant.priority]:
            del self._priorities[occupant.priority]
        if occupant.siblings is not None:
            _change(self._siblings, occupant.siblings, occupant.node, by)
        for term in occupant.apart:
            _change(self._apart, term, occupant.node, by)
        for pods, counts in self._counts.items():
            if self._in(pods, occupant):
                counts[occupant.node] += by

    def _in(self, pods: PodSet, occupant: Occupant) -> bool:
        if pods.living and not occupant.living:
            return False
        return pods.contains(occupant.namespace, occupant.labels, self.namespaces)

    # --- questions ---------------------------------------------------------------------------------

    def siblings(self, group: Hashable) -> Mapping[str, int]:
        """How many Pods of the group each node has."""
        return self._siblings.get(group) or {}

    def counts(self, pods: PodSet) -> Mapping[str, int]:
        """How many of these Pods each node has."""
        found = self._counts.get(pods)
        if found is None:
            found = Counter(o.node for o in self._occupants.values() if self._in(pods, o))
            self._counts[pods] = found
            if len(self._counts) > KEPT_COUNTS:
                self._counts.popitem(last=False)
        else:
            self._counts.move_to_end(pods)
        return found

    def wants_apart(self) -> Mapping[PodTerm, Mapping[str, int]]:
        """The anti-affinity terms of Pods that have a node, and the nodes of these Pods."""
        return self._apart

    def per_domain(self, counts: Mapping[str, int], topology: str) -> dict[str, int]:
        """Counts by node, added up by the value of a label of the nodes."""
        domains: dict[str, int] = {}
        for name, count in counts.items():
            room = self.rooms.get(name)
            if room is not None and count and (value := room.node.metadata.labels.get(topology)) is not None:
                domains[value] = domains.get(value, 0) + count
        return domains


def _change(table: dict[K, Counter[str]], key: K, node: str, by: int) -> None:
    counts = table.setdefault(key, Counter())
    counts[node] += by
    if not counts[node]:
        del counts[node]
        if not counts:
            del table[key]
