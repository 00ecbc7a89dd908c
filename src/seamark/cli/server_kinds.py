"""Which kinds a server has, and which of them a word on the command line means.  Pure.

Words are kubectl's: plural, singular or kind in any case, short names, all of them with the group behind a dot if there
could be a doubt (``events.events.k8s.io``, ``deployments.v1.apps``), and categories such as ``all``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from seamark.kinds.resource import Resource

Document = Mapping[str, Any]


class ServerKind(msgspec.Struct, frozen=True):
    """A kind as discovery describes it."""

    resource: Resource
    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """``service``, ``deployment.apps``: how a kind stands before the name of one of its objects."""
        group = self.resource.group
        return f"{self.resource.kind.lower()}.{group}" if group else self.resource.kind.lower()

    @property
    def words(self) -> frozenset[str]:
        return frozenset({self.resource.plural, self.singular, self.resource.kind.lower(), *self.short_names})


class ServerKinds:
    """All kinds of a server, in its own order: where two are called the same, the first is meant."""

    def __init__(self, kinds: Iterable[ServerKind]) -> None:
        self.every_version = tuple(kinds)
        preferred: dict[tuple[str, str], ServerKind] = {}
        for kind in self.every_version:
            preferred.setdefault((kind.resource.group, kind.resource.plural), kind)
        self.all = tuple(preferred.values())

    def find(self, word: str) -> tuple[ServerKind, ...]:
        """What a word means: one kind, those of a category, or nothing."""
        word = word.lower()
        category = tuple(kind for kind in self.all if word in kind.categories)
        if category:
            return category
        for kind in self.all:
            if word in kind.words:
                return (kind,)
        name, dot, rest = word.partition(".")
        if not dot:
            return ()
        for kind in self.every_version:
            resource = kind.resource
            if name in kind.words and rest in (f"{resource.version}.{resource.group}", resource.group):
                return (kind,)
        # As kubectl does, the beginning of a group's name is enough: endpointslices.discovery
        for kind in self.all:
            if name in kind.words and kind.resource.group.startswith(rest):
                return (kind,)
        return ()

    def less_meant(self, word: str) -> tuple[ServerKind, ...]:
        """Other kinds with the same short name, which it does not mean."""
        return tuple(kind for kind in self.all if word in kind.short_names)[1:]

    def by_kind(self, api_version: str, kind: str) -> ServerKind | None:
        """The kind an object says it is."""
        for known in self.every_version:
            if known.resource.api_version == api_version and known.resource.kind == kind:
                return known
        return None


# --- reading discovery documents -------------------------------------------------------------------


def aggregated(document: Document) -> list[ServerKind]:
    """The kinds in an ``APIGroupDiscoveryList``."""
    found = []
    for group in document.get("items") or ():
        name = group.get("metadata", {}).get("name", "")
        for version in group.get("versions") or ():
            for entry in version.get("resources") or ():
                if "responseKind" not in entry:
                    continue  # a version that is known but cannot be reached
                resource = Resource(
                    group=name,
                    version=version["version"],
                    plural=entry["resource"],
                    kind=entry["responseKind"]["kind"],
                    namespaced=entry.get("scope") == "Namespaced",
                )
                found.append(_kind(resource, entry, singular=entry.get("singularResource", "")))
    return found


def unaggregated(group_version: str, document: Document) -> list[ServerKind]:
    """The kinds in an ``APIResourceList``, which older servers give for each version."""
    group, _, version = group_version.rpartition("/")
    found = []
    for entry in document.get("resources") or ():
        if "/" in entry["name"]:
            continue
        resource = Resource(group, version, entry["name"], entry["kind"], namespaced=bool(entry.get("namespaced")))
        found.append(_kind(resource, entry, singular=entry.get("singularName", "")))
    return found


def _kind(resource: Resource, entry: Document, *, singular: str) -> ServerKind:
    def several(name: str) -> tuple[str, ...]:
        listed: Sequence[str] = entry.get(name) or ()
        return tuple(listed)

    return ServerKind(
        resource=resource,
        singular=singular or resource.kind.lower(),
        short_names=several("shortNames"),
        categories=several("categories"),
        verbs=several("verbs"),
    )
