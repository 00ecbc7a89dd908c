"""What a stricter level would say about the Pods that a Namespace has already: they stay, but the user is warned."""

from __future__ import annotations

from collections.abc import Iterable

from seamark.errors import Object
from seamark.kinds.podsecurity.checks import violations
from seamark.kinds.podsecurity.policy import Standard
from seamark.kinds.podsecurity.subject import subject


def warnings_about(namespace: str, standard: Standard, pods: Iterable[Object], total: int) -> list[str]:
    """Warnings about ``pods``, the first of all ``total``: one for each set of reasons, with a Pod it is true of."""
    names: dict[str, list[str]] = {}
    checked = 0
    for pod in pods:
        checked += 1
        if found := violations(standard, subject(pod["metadata"], pod["spec"])):
            names.setdefault(", ".join(each.reason for each in found), []).append(pod["metadata"]["name"])
    warnings = []
    if checked < total:
        seen = f"the first {checked} of {total} existing pods"
        warnings.append(f"new PodSecurity enforce level only checked against {seen}")
    if names:
        level = f'the new PodSecurity enforce level "{standard}"'
        warnings.append(f'existing pods in namespace "{namespace}" violate {level}')
    return [*warnings, *sorted(f"{_some(found)}: {reasons}" for reasons, found in names.items())]


def _some(names: list[str]) -> str:
    """The first of the names, and how many there are beside it."""
    others = len(names) - 1
    if not others:
        return names[0]
    return f"{min(names)} (and {others} other {'pod' if others == 1 else 'pods'})"
