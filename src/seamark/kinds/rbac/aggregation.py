"""The rules of an aggregated ClusterRole: those of all ClusterRoles that its selectors choose, each once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from seamark.errors import Object
from seamark.kinds.values.label_selector import readable


class Labelled(Protocol):
    """A ClusterRole as far as aggregation looks at it."""

    @property
    def name(self) -> str: ...

    @property
    def labels(self) -> Mapping[str, str]: ...

    @property
    def rules(self) -> Iterable[Object]: ...


def gathered(name: str, selectors: Iterable[Object], roles: Iterable[Labelled]) -> list[Object]:
    """The rules for the role of this name: selector by selector, role by role in the order of their names."""
    by_name = sorted(roles, key=lambda role: role.name)
    rules: list[Object] = []
    for selector in selectors:
        chosen = readable(selector)
        for role in by_name:
            if chosen is not None and role.name != name and chosen.matches(role.labels):
                rules += [rule for rule in role.rules if rule not in rules]
    return rules
