"""A Pod's ``affinity`` in a form that can be asked: which nodes, and beside or apart from which Pods.  Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from seamark.kinds.values.selectors import LabelSelector, Operator, Requirement, from_label_selector
from seamark.rules.objects.node import Node

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_OPERATORS: Mapping[str, Operator] = {
    "In": "in",
    "NotIn": "notin",
    "Exists": "exists",
    "DoesNotExist": "!",
    "Gt": "gt",
    "Lt": "lt",
}


class NodeTerm(msgspec.Struct, frozen=True):
    """All of its requirements must hold; one without any means no node at all."""

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
    """Some Pods: those a selector means in some namespaces.

    ``namespaces`` are meant by name, those ``by_labels`` selects in addition.  With ``living`` Pods that are being
    deleted are not counted any more.
    """

    selector: LabelSelector
    namespaces: frozenset[str]
    by_labels: LabelSelector | None = None
    living: bool = False

    def contains(self, namespace: str, labels: Mapping[str, str], namespaces: Mapping[str, Mapping[str, str]]) -> bool:
        """Whether a Pod with these labels is one of them; ``namespaces`` are the labels of all namespaces."""
        if namespace not in self.namespaces and (
            self.by_labels is None or not self.by_labels.matches(namespaces.get(namespace, {}))
        ):
            return False
        return self.selector.matches(labels)


class PodTerm(msgspec.Struct, frozen=True):
    """Be where those Pods are, or where they are not; ``topology`` is the label that says what a place is."""

    pods: PodSet
    topology: str


class Affinity(msgspec.Struct, frozen=True):
    """``nodes`` None means any; weights of ``near`` are positive, those of what is better avoided negative."""

    nodes: tuple[NodeTerm, ...] | None = None
    preferred_nodes: tuple[tuple[int, NodeTerm], ...] = ()
    together: tuple[PodTerm, ...] = ()
    apart: tuple[PodTerm, ...] = ()
    preferred_pods: tuple[tuple[int, PodTerm], ...] = ()

    def allows(self, node: Node) -> bool:
        return self.nodes is None or any(term.matches(node) for term in self.nodes)


NONE = Affinity()


def of(affinity: Mapping[str, Any] | None, namespace: str) -> Affinity:
    """The affinity of a Pod in this namespace; replicas share one."""
    return _parsed(msgspec.json.encode(affinity), namespace) if affinity else NONE


def selector_of(selector: Mapping[str, Any] | None) -> LabelSelector:
    return _selector(msgspec.json.encode(selector))


@lru_cache(maxsize=1024)
def _selector(encoded: bytes) -> LabelSelector:
    return from_label_selector(msgspec.json.decode(encoded))


@lru_cache(maxsize=1024)
def _parsed(encoded: bytes, namespace: str) -> Affinity:
    affinity = msgspec.json.decode(encoded)
    nodes, together, apart = (affinity.get(k) or {} for k in ("nodeAffinity", "podAffinity", "podAntiAffinity"))
    required = nodes.get(_REQUIRED)
    preferred = [(_weight(t), _pod_term(t.get("podAffinityTerm"), namespace)) for t in together.get(_PREFERRED) or ()]
    preferred += [(-_weight(t), _pod_term(t.get("podAffinityTerm"), namespace)) for t in apart.get(_PREFERRED) or ()]
    return Affinity(
        nodes=None if required is None else tuple(_node_term(t) for t in required.get("nodeSelectorTerms") or ()),
        preferred_nodes=tuple((_weight(t), _node_term(t.get("preference") or {})) for t in nodes.get(_PREFERRED) or ()),
        together=tuple(_pod_term(t, namespace) for t in together.get(_REQUIRED) or ()),
        apart=tuple(_pod_term(t, namespace) for t in apart.get(_REQUIRED) or ()),
        preferred_pods=tuple(preferred),
    )


def _weight(term: Mapping[str, Any]) -> int:
    return int(term.get("weight", 0))


def _node_term(term: Mapping[str, Any]) -> NodeTerm:
    return NodeTerm(_requirements(term.get("matchExpressions") or ()), _requirements(term.get("matchFields") or ()))


def _requirements(expressions: Sequence[Mapping[str, Any]]) -> tuple[Requirement, ...]:
    return tuple(_requirement(e["key"], _OPERATORS[e["operator"]], e.get("values") or ()) for e in expressions)


def _requirement(key: str, operator: Operator, values: Sequence[str]) -> Requirement:
    if operator in ("gt", "lt") and not _INTEGER.fullmatch(values[0]):
        return Requirement(key, "in")  # nothing is more or less than what is no number: no node fits
    return Requirement(key, operator, tuple(sorted(values)))


def _pod_term(term: Mapping[str, Any] | None, namespace: str) -> PodTerm:
    term = term or {}
    named, by_labels = term.get("namespaces") or (), term.get("namespaceSelector")
    # A term that says nothing of namespaces means the Pod's own.
    where = frozenset(named) if named or by_labels is not None else frozenset((namespace,))
    selected = None if by_labels is None else from_label_selector(by_labels)
    pods = PodSet(from_label_selector(term.get("labelSelector")), where, selected)
    return PodTerm(pods, term.get("topologyKey", ""))
