"""The table of all kinds: one row each, in the order discovery lists them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from seamark.kinds.configmap import CONFIG_MAP
from seamark.kinds.deployment import DEPLOYMENT
from seamark.kinds.kind import Kind
from seamark.kinds.namespace import NAMESPACE
from seamark.kinds.node import NODE
from seamark.kinds.pod import POD

KINDS: tuple[Kind, ...] = (
    CONFIG_MAP,
    NAMESPACE,
    NODE,
    POD,
    DEPLOYMENT,
)


class Kinds:
    """Kinds by where they are in the API; more may be added while the server runs."""

    def __init__(self, kinds: Iterable[Kind] = KINDS) -> None:
        self._by_plural: dict[tuple[str, str, str], Kind] = {}
        self._by_kind: dict[tuple[str, str], Kind] = {}
        self.groups: set[str] = set()  # that have a kind here
        for kind in kinds:
            self.add(kind)

    def add(self, kind: Kind) -> None:
        """Register a kind; one of the same group, version and plural is replaced."""
        resource = kind.resource
        self._by_plural[resource.group, resource.version, resource.plural] = kind
        self._by_kind[resource.api_version, resource.kind] = kind
        self.groups.add(resource.group)

    def by_plural(self, group: str, version: str, plural: str) -> Kind | None:
        return self._by_plural.get((group, version, plural))

    def by_kind(self, api_version: str, kind: str) -> Kind | None:
        return self._by_kind.get((api_version, kind))

    def __iter__(self) -> Iterator[Kind]:
        return iter(list(self._by_plural.values()))

    def __len__(self) -> int:
        return len(self._by_plural)
