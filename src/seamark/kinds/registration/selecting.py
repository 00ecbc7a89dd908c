"""Which requests the rules and selectors of a webhook or an admission policy select; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from seamark.errors import Object
from seamark.kinds.admission import Operation, Request
from seamark.kinds.resource import (
    MUTATING_POLICIES,
    MUTATING_POLICY_BINDINGS,
    MUTATING_WEBHOOKS,
    NAMESPACES,
    VALIDATING_POLICIES,
    VALIDATING_POLICY_BINDINGS,
    VALIDATING_WEBHOOKS,
    Resource,
)
from seamark.kinds.values.selectors import LabelSelector

# No webhook and no policy is asked about these: one that refuses everything could never be removed.
EXEMPT = frozenset(
    {
        MUTATING_WEBHOOKS,
        VALIDATING_WEBHOOKS,
        MUTATING_POLICIES,
        MUTATING_POLICY_BINDINGS,
        VALIDATING_POLICIES,
        VALIDATING_POLICY_BINDINGS,
    }
)


def matched(
    rules: Sequence[Object], operation: Operation, resource: Resource, part: str, equivalents: Iterable[Resource] = ()
) -> Resource | None:
    """The resource by which one of the rules matches: the one asked for, else one of its ``equivalents``.

    Equivalents are the other groups and versions in which the same objects are served.
    """
    if any(rule_matches(rule, operation, resource, part) for rule in rules):
        return resource
    others = [other for other in equivalents if other != resource]
    return next((other for rule in rules for other in others if rule_matches(rule, operation, other, part)), None)


def rule_matches(rule: Object, operation: Operation, resource: Resource, part: str) -> bool:
    return (
        _among(operation, rule.get("operations"))
        and _among(resource.group, rule.get("apiGroups"))
        and _among(resource.version, rule.get("apiVersions"))
        and rule.get("scope", "*") in ("*", "Namespaced" if resource.namespaced else "Cluster")
        and any(_names(word, resource.plural, part) for word in rule.get("resources") or ())
    )


def _among(word: str, words: Sequence[str] | None) -> bool:
    return words is not None and ("*" in words or word in words)


def _names(word: str, plural: str, part: str) -> bool:
    """Whether ``pods``, ``pods/status``, ``pods/*``, ``*``, ``*/scale`` or ``*/*`` names this; only a star after the
    slash names the object and its subresources."""
    named, _, sub = word.partition("/")
    return named in ("*", plural) and sub in ("*", part)


def namespace_selected(request: Request, selector: LabelSelector) -> bool:
    """Whether the namespace of a request is selected; what is in no namespace always is."""
    if selector.empty:
        return True
    resource = request.kind.resource
    if resource == NAMESPACES:
        labels = _labels(request.obj) if not request.part else request.others.labels_of(NAMESPACES, request.name)
    elif request.namespace:
        labels = request.others.labels_of(NAMESPACES, request.namespace)
    else:
        return True
    return selector.matches(labels or {})


def object_selected(request: Request, selector: LabelSelector) -> bool:
    """Whether the object is selected, as it was or as it will be."""
    if selector.empty:
        return True
    return any(
        selector.matches(_labels(obj)) for obj in (request.obj, request.old) if obj is not None and "metadata" in obj
    )


def _labels(obj: Object) -> Mapping[str, str]:
    return obj["metadata"].get("labels") or {}
