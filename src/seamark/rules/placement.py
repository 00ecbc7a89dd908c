"""On which nodes a Pod may run: node selectors, affinity, taints and tolerations (pure).

The scheduler, the DaemonSet controller and the eviction of Pods decide by it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import product
from typing import Any

import msgspec

from seamark.kinds.values import times
from seamark.kinds.values.selectors import LabelSelector, Operator, Requirement, from_label_selector
from seamark.remembering import remembered
from seamark.rules.objects.node import Node, Taint
from seamark.rules.objects.pod import PodSpec, Toleration

LONGEST = 16 * 1024  # bytes of an affinity or selector that is remembered

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_OPERATORS: Mapping[str, Operator] = {
    "In": "in",
    "NotIn": "notin",
    "Exists": "exists",
    "DoesNotExist": "!",
    "Gt": "gt",
    "Lt": "lt",
}


# --- affinity --------------------------------------------------------------------------------------


class NodeTerm(msgspec.Struct, frozen=True):
    """A node matches if it meets all requirements; a term without any matches no node."""

    labels: tuple[Requirement, ...]
    names: tuple[Requirement, ...]

    def matches(self, node: Node) -> bool:
        if not self.labels and not self.names:
            return False
        labels = node.metadata.labels
        return all(requirement.matches(labels) for requirement in self.labels) and all(
            requirement.matches({"metadata.name": node.name}) for requirement in self.names
        )


class PodSet(msgspec.Struct, frozen=True):
    """The Pods that a selector matches in some namespaces.

    The namespaces are those named in ``namespaces``, and those whose labels ``by_labels`` matches.  With ``living``,
    Pods that are being deleted do not count.
    """

    selector: LabelSelector
    namespaces: frozenset[str]
    by_labels: LabelSelector | None = None
    living: bool = False

    def contains(self, namespace: str, labels: Mapping[str, str], namespaces: Mapping[str, Mapping[str, str]]) -> bool:
        """Whether a Pod with these labels is one of them; ``namespaces`` holds the labels of all namespaces."""
        if namespace not in self.namespaces and (
            self.by_labels is None or not self.by_labels.matches(namespaces.get(namespace, {}))
        ):
            return False
        return self.selector.matches(labels)


class PodTerm(msgspec.Struct, frozen=True):
    """Some Pods to be near or away from.  Nodes with the same value of the label ``topology`` are near each other."""

    pods: PodSet
    topology: str


class Affinity(msgspec.Struct, frozen=True):
    """A Pod's affinity.  ``nodes`` is None if any node will do; weights are negative for Pods to keep away from."""

    nodes: tuple[NodeTerm, ...] | None = None
    preferred_nodes: tuple[tuple[int, NodeTerm], ...] = ()
    together: tuple[PodTerm, ...] = ()
    apart: tuple[PodTerm, ...] = ()
    preferred_pods: tuple[tuple[int, PodTerm], ...] = ()

    def allows(self, node: Node) -> bool:
        return self.nodes is None or any(term.matches(node) for term in self.nodes)


NO_AFFINITY = Affinity()


def affinity_of(affinity: Mapping[str, Any] | None, namespace: str) -> Affinity:
    """The affinity of a Pod in this namespace.  It is parsed once for all replicas."""
    if not affinity:
        return NO_AFFINITY
    encoded = msgspec.json.encode(affinity)
    return (_parsed if len(encoded) <= LONGEST else _parsed.__wrapped__)(encoded, namespace)


def selector_of(selector: Mapping[str, Any] | None) -> LabelSelector:
    return _selector(msgspec.json.encode(selector))


@remembered(1024, longest=LONGEST)
def _selector(encoded: bytes) -> LabelSelector:
    return from_label_selector(msgspec.json.decode(encoded))


@lru_cache(maxsize=1024)
def _parsed(encoded: bytes, namespace: str) -> Affinity:
    affinity = msgspec.json.decode(encoded)
    nodes, together, apart = (affinity.get(k) or {} for k in ("nodeAffinity", "podAffinity", "podAntiAffinity"))
    required = nodes.get(REQUIRED)
    preferred = [(_weight(t), _pod_term(t.get("podAffinityTerm"), namespace)) for t in together.get(PREFERRED) or ()]
    preferred += [(-_weight(t), _pod_term(t.get("podAffinityTerm"), namespace)) for t in apart.get(PREFERRED) or ()]
    return Affinity(
        nodes=None if required is None else node_terms(required),
        preferred_nodes=tuple((_weight(t), _node_term(t.get("preference") or {})) for t in nodes.get(PREFERRED) or ()),
        together=tuple(_pod_term(t, namespace) for t in together.get(REQUIRED) or ()),
        apart=tuple(_pod_term(t, namespace) for t in apart.get(REQUIRED) or ()),
        preferred_pods=tuple(preferred),
    )


def node_terms(selector: Mapping[str, Any]) -> tuple[NodeTerm, ...]:
    """The terms of a node selector; a node has to match one of them."""
    return tuple(_node_term(term) for term in selector.get("nodeSelectorTerms") or ())


def _weight(term: Mapping[str, Any]) -> int:
    return int(term.get("weight", 0))


def _node_term(term: Mapping[str, Any]) -> NodeTerm:
    return NodeTerm(_requirements(term.get("matchExpressions") or ()), _requirements(term.get("matchFields") or ()))


def _requirements(expressions: Sequence[Mapping[str, Any]]) -> tuple[Requirement, ...]:
    return tuple(_requirement(e) for e in expressions)


def _requirement(expression: Mapping[str, Any]) -> Requirement:
    key, operator = expression.get("key", ""), _OPERATORS.get(expression.get("operator", ""))
    values = tuple(sorted(expression.get("values") or ()))
    numeric = len(values) == 1 and _INTEGER.fullmatch(values[0]) is not None
    if operator is None or (operator in ("gt", "lt") and not numeric):
        return Requirement(key, "in")  # makes no sense, so no node meets it
    return Requirement(key, operator, values)


def _pod_term(term: Mapping[str, Any] | None, namespace: str) -> PodTerm:
    term = term or {}
    named, by_labels = term.get("namespaces") or (), term.get("namespaceSelector")
    # A term that names no namespaces means the Pod's own.
    where = frozenset(named) if named or by_labels is not None else frozenset((namespace,))
    selected = None if by_labels is None else from_label_selector(by_labels)
    pods = PodSet(from_label_selector(term.get("labelSelector")), where, selected)
    return PodTerm(pods, term.get("topologyKey", ""))


def asked_for(spec: PodSpec, affinity: Affinity, node: Node) -> bool:
    """Whether the node is one that the Pod asks for; ``affinity`` is that of ``spec``, parsed."""
    labels = node.metadata.labels
    for key, value in spec.node_selector.items():
        if labels.get(key) != value:
            return False
    return affinity.allows(node)


class Eligibility(msgspec.Struct, frozen=True):
    """Whether a Pod should be started on a node, and whether one that is there may stay."""

    run: bool
    stay: bool


def eligibility(spec: PodSpec, node: Node) -> Eligibility:
    """What a node is to a Pod that runs on every node it may run on, as those of a DaemonSet do."""
    elsewhere = spec.node_name not in ("", node.name)
    if elsewhere or not asked_for(spec, affinity_of(spec.affinity, ""), node):
        return Eligibility(run=False, stay=False)
    refusing = (taint for taint in node.spec.taints if taint.effect in REFUSING)
    effects = {taint.effect for taint, used in _used(refusing, spec.tolerations) if not used}
    return Eligibility(run=not effects, stay="NoExecute" not in effects)


def same_for_pods(old: Node, new: Node) -> bool:
    """Whether no :func:`eligibility` can differ.  What the conditions of a node mean for Pods is in its taints."""
    return old.metadata.labels == new.metadata.labels and old.spec.taints == new.spec.taints


# --- taints ----------------------------------------------------------------------------------------

REFUSING = ("NoSchedule", "NoExecute")
_FEW_TOLERATIONS = 8  # that are compared one by one, which is faster then


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    # Without a key, "Exists" tolerates every taint; the API server refuses any other operator without a key.
    return toleration.operator == "Exists" or toleration.value == taint.value


def _used(taints: Iterable[Taint], tolerations: Sequence[Toleration]) -> Iterator[tuple[Taint, list[Toleration]]]:
    """Each taint with the tolerations that tolerate it; of those that differ in their seconds only, with the fewest.

    There may be thousands of both, so they are not compared with each other.
    """
    if len(tolerations) <= _FEW_TOLERATIONS:
        for taint in taints:
            yield taint, [toleration for toleration in tolerations if tolerates(toleration, taint)]
        return
    index: dict[tuple[str, str, str | None], Toleration] = {}
    for toleration in tolerations:
        key = (toleration.key, toleration.effect, None if toleration.operator == "Exists" else toleration.value)
        before = index.setdefault(key, toleration)
        if _seconds(toleration) < _seconds(before):
            index[key] = toleration
    for taint in taints:
        wanted = product(("", taint.key), ("", taint.effect), (None, taint.value))
        yield taint, [index[key] for key in dict.fromkeys(wanted) if key in index]


def _seconds(toleration: Toleration) -> float:
    return math.inf if toleration.toleration_seconds is None else toleration.toleration_seconds


def untolerated(taints: Iterable[Taint], tolerations: Sequence[Toleration]) -> Taint | None:
    """The first taint that keeps a Pod with these tolerations off the node; None if none does."""
    refusing = (taint for taint in taints if taint.effect in REFUSING)
    return next((taint for taint, used in _used(refusing, tolerations) if not used), None)


def disliked(taints: Iterable[Taint], tolerations: Sequence[Toleration]) -> int:
    """How many taints ask a Pod with these tolerations to prefer another node."""
    asking = [taint for taint in taints if taint.effect == "PreferNoSchedule"]
    return sum(not used for _, used in _used(asking, tolerations)) if asking else 0


def eviction_time(taints: Iterable[Taint], tolerations: Sequence[Toleration], *, now: float) -> float | None:
    """When a Pod has to leave a node with these taints; None if it may stay.

    The shortest ``tolerationSeconds`` counts, from the time at which the taint was added.
    """
    evicting = [taint for taint in taints if taint.effect == "NoExecute"]
    if not evicting:
        return None
    due: float | None = None
    for taint, used in _used(evicting, tolerations):
        if not used:
            return now
        bounded = [t.toleration_seconds for t in used if t.toleration_seconds is not None]
        if bounded:
            added = times.parse(taint.time_added) if taint.time_added else now
            leaves = added + max(0, min(bounded))
            due = leaves if due is None else min(due, leaves)
    return due
