"""Whether a DaemonSet's Pod belongs on a node.  Pure: selectors, affinity, taints and tolerations."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from seamark.errors import Object
from seamark.kinds.values.selectors import Operator, Requirement
from seamark.kinds.wellknown import (
    DISK_PRESSURE_TAINT,
    MEMORY_PRESSURE_TAINT,
    NETWORK_UNAVAILABLE_TAINT,
    NOT_READY_TAINT,
    PID_PRESSURE_TAINT,
    UNREACHABLE_TAINT,
    UNSCHEDULABLE_TAINT,
)
from seamark.rules.objects.node import Node, Taint
from seamark.rules.objects.workloads import Template

_OPERATORS: Mapping[str, Operator] = {
    "In": "in",
    "NotIn": "notin",
    "Exists": "exists",
    "DoesNotExist": "!",
    "Gt": "gt",
    "Lt": "lt",
}

_integer = re.compile(r"[+-]?[0-9]+", re.ASCII)

# A DaemonSet's Pods stay on a node in trouble: they may be what is meant to help it.
_ALWAYS = (
    (NOT_READY_TAINT, "NoExecute"),
    (UNREACHABLE_TAINT, "NoExecute"),
    (DISK_PRESSURE_TAINT, "NoSchedule"),
    (MEMORY_PRESSURE_TAINT, "NoSchedule"),
    (PID_PRESSURE_TAINT, "NoSchedule"),
    (UNSCHEDULABLE_TAINT, "NoSchedule"),
)
_ON_HOST_NETWORK = (NETWORK_UNAVAILABLE_TAINT, "NoSchedule")


class Verdict(msgspec.Struct, frozen=True):
    """Whether a Pod should be started on a node, and whether one that is there may stay."""

    run: bool
    stay: bool


_NO = Verdict(False, False)


def same(old: Node, new: Node) -> bool:
    """Whether nothing differs that a verdict depends on.  What a node's conditions mean for Pods is in its taints."""
    return old.metadata.labels == new.metadata.labels and old.spec.taints == new.spec.taints


def judge(spec: Object, node: Node) -> Verdict:
    """What becomes of a Pod with this spec on a node; ``spec`` has the tolerations of DaemonSets already."""
    name = spec.get("nodeName") or node.metadata.name
    if name != node.metadata.name or not _wanted(spec, node):
        return _NO
    tolerations: Sequence[Object] = spec.get("tolerations") or ()
    bothering = {
        taint.effect
        for taint in node.spec.taints
        if taint.effect in ("NoSchedule", "NoExecute") and not any(_tolerates(t, taint) for t in tolerations)
    }
    return Verdict(run=not bothering, stay="NoExecute" not in bothering)


def _wanted(spec: Object, node: Node) -> bool:
    """Whether the Pod may be on the node as far as it has wishes of its own."""
    selector: Mapping[str, str] = spec.get("nodeSelector") or {}
    if not selector.items() <= node.metadata.labels.items():
        return False
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is None:
        return True
    return any(_term_matches(term, node) for term in required.get("nodeSelectorTerms") or ())


def _term_matches(term: Object, node: Node) -> bool:
    labels, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    if not labels and not fields:
        return False
    name = {"metadata.name": node.metadata.name}
    return all(_holds(e, node.metadata.labels) for e in labels) and all(_holds(e, name) for e in fields)


def _holds(expression: Mapping[str, Any], values: Mapping[str, str]) -> bool:
    operator = _OPERATORS.get(expression.get("operator", ""))
    given = tuple(sorted(expression.get("values") or ()))
    if operator is None or (operator in ("gt", "lt") and not (len(given) == 1 and _integer.fullmatch(given[0]))):
        return False  # what makes no sense holds nowhere
    return Requirement(expression.get("key", ""), operator, given).matches(values)


def _tolerates(toleration: Object, taint: Taint) -> bool:
    if (toleration.get("effect") or taint.effect) != taint.effect:
        return False
    exists = toleration.get("operator") == "Exists"
    key = toleration.get("key")
    if (key or taint.key) != taint.key or not (key or exists):
        return False
    return exists or toleration.get("value", "") == taint.value


def with_tolerations(template: Template) -> Template:
    """The template with what every Pod of a DaemonSet tolerates."""
    spec = template.get("spec") or {}
    tolerated = [*_ALWAYS, *([_ON_HOST_NETWORK] if spec.get("hostNetwork") else ())]
    given: list[Object] = list(spec.get("tolerations") or ())
    for key, effect in tolerated:
        wanted = {"key": key, "operator": "Exists", "effect": effect}
        if wanted not in given:
            given.append(wanted)
    return {**template, "spec": {**spec, "tolerations": given}}


def bound_to(spec: Object, node: str) -> Object:
    """The spec for one node: the scheduler gets no choice, whatever affinity there was."""
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}]
    affinity = spec.get("affinity") or {}
    on_nodes = affinity.get("nodeAffinity") or {}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {**spec, "affinity": {**affinity, "nodeAffinity": {**on_nodes, **required}}}
