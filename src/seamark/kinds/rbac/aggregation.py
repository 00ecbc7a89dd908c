"""The rules of an aggregated ClusterRole: those of all ClusterRoles that its selectors choose, each once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol, TypeVar

from seamark.errors import Object
from seamark.kinds.values.fields import alike
from seamark.kinds.values.label_selector import readable


class Labelled(Protocol):
    """A ClusterRole as far as aggregation looks at it."""

    @property
    def name(self) -> str: ...

    @property
    def labels(self) -> Mapping[str, str]: ...

    @property
    def rules(self) -> Iterable[Object]: ...


RoleT = TypeVar("RoleT", bound=Labelled)


def gathered(name: str, selectors: Iterable[Object], roles: Iterable[Labelled]) -> list[Object]:
    """The rules for the role of this name: selector by selector, role by role in the order of their names."""
    by_name = sorted(roles, key=lambda role: role.name)
    rules: dict[bytes, Object] = {}
    for selector in selectors:
        for role in chosen(name, [selector], by_name):
            for rule in role.rules:
                rules.setdefault(alike(rule), rule)
    return list(rules.values())


def chosen(name: str, selectors: Iterable[Object], roles: Iterable[RoleT]) -> Iterator[RoleT]:
    """The roles that a role of this name chooses; never itself."""
    readable_ones = [read for selector in selectors if (read := readable(selector)) is not None]
    for role in roles:
        if role.name != name and any(read.matches(role.labels) for read in readable_ones):
            yield role


def same_rules(one: Iterable[Object], other: Iterable[Object]) -> bool:
    """Whether both are the same rules, in whichever order."""
    return {alike(rule) for rule in one} == {alike(rule) for rule in other}
