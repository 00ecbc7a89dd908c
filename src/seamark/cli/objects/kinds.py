"""The kinds of a server, and what the words ``KIND[,KIND] [NAME …]`` and ``KIND/NAME …`` mean.  Pure.

A kind is named as for kubectl: by plural, singular, kind in any case or short name, each also with the API group behind
a dot (``events.events.k8s.io``, ``deployments.v1.apps``), or by a category such as ``all``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from seamark.cli.failure import Failure
from seamark.kinds.resource import Resource


class ServerKind(msgspec.Struct, frozen=True):
    """A kind as the discovery documents describe it."""

    resource: Resource
    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """``service``, ``deployment.apps``: the prefix of an object's name in ``KIND/NAME``."""
        group = self.resource.group
        return f"{self.resource.kind.lower()}.{group}" if group else self.resource.kind.lower()

    @property
    def words(self) -> frozenset[str]:
        return frozenset({self.resource.plural, self.singular, self.resource.kind.lower(), *self.short_names})


class Target(msgspec.Struct, frozen=True):
    """One object, or all objects of a kind if there is no name."""

    kind: ServerKind
    name: str = ""


class ServerKinds:
    """All kinds of a server, in its order of preference: if two share a word, the first is meant."""

    def __init__(self, kinds: Iterable[ServerKind]) -> None:
        self.every_version = tuple(kinds)
        preferred: dict[tuple[str, str], ServerKind] = {}
        for kind in self.every_version:
            preferred.setdefault((kind.resource.group, kind.resource.plural), kind)
        self.all = tuple(preferred.values())

    def find(self, word: str) -> tuple[ServerKind, ...]:
        """The kind that a word means, or the kinds of a category; empty if there is none."""
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
        # Like kubectl, accept the beginning of a group: endpointslices.discovery
        return tuple(kind for kind in self.all if name in kind.words and kind.resource.group.startswith(rest))[:1]

    def by_kind(self, api_version: str, kind: str) -> ServerKind | None:
        """The kind with the ``apiVersion`` and ``kind`` of an object."""
        for known in self.every_version:
            if known.resource.api_version == api_version and known.resource.kind == kind:
                return known
        return None

    def instead_of(self, api_version: str, kind: str) -> str:
        """What the server has instead of a kind that it lacks, for messages."""
        served = [known.resource for known in self.every_version]
        versions = dict.fromkeys(resource.api_version for resource in served if resource.kind == kind)
        if versions:
            return f"the server has {kind} in {', '.join(versions)}"
        group = api_version.rpartition("/")[0]
        if any(resource.group == group for resource in served):
            return f"the server has no {kind} (`kubectl api-resources` lists its kinds)"
        return (
            f"the server does not have the API group {group}; is a CustomResourceDefinition or an API server missing?"
        )

    def targets(self, words: Sequence[str]) -> list[Target]:
        """What the words of a command line mean, in their order; ``Failure`` if they mean nothing."""
        if any("/" in word for word in words):
            return [self._pair(word) for word in words]
        first, *names = words
        unique = dict.fromkeys(kind for word in first.split(",") for kind in self._known(word))
        return [Target(kind, name) for kind in unique for name in names or [""]]

    def _pair(self, word: str) -> Target:
        kind, _, name = word.partition("/")
        if not kind or not name or "/" in name:
            raise Failure(f"{word!r} is not of the form KIND/NAME, which cannot be mixed with other forms", 2)
        known = self._known(kind)
        if len(known) != 1:
            raise Failure(f"{word}: {kind} stands for several kinds, not for one", 2)
        return Target(known[0], name)

    def _known(self, word: str) -> tuple[ServerKind, ...]:
        known = self.find(word)
        if not known:
            raise Failure(f'the server doesn\'t have a resource type "{word}"{self._alike(word)}')
        return known

    def _alike(self, word: str) -> str:
        """The end of a sentence about a word that means nothing: a plural that is nearly it, if there is one."""
        import difflib

        plurals = {each: kind.resource.plural for kind in self.all for each in (kind.resource.plural, kind.singular)}
        near = difflib.get_close_matches(word.lower(), plurals, n=1, cutoff=0.75)
        return f", but {plurals[near[0]]}" if near else ""


def discovered(document: Mapping[str, Any]) -> list[ServerKind]:
    """The kinds in an ``APIGroupDiscoveryList``, the discovery document of Kubernetes 1.27 and newer."""
    found = []
    for group in document.get("items") or ():
        for version in group.get("versions") or ():
            for entry in version.get("resources") or ():
                if "responseKind" not in entry:
                    continue  # the server of this API group does not answer, so its kinds are not known
                resource = Resource(
                    group=group.get("metadata", {}).get("name", ""),
                    version=version["version"],
                    plural=entry["resource"],
                    kind=entry["responseKind"]["kind"],
                    namespaced=entry.get("scope") == "Namespaced",
                )
                kind = ServerKind(
                    resource,
                    singular=entry.get("singularResource") or resource.kind.lower(),
                    short_names=tuple(entry.get("shortNames") or ()),
                    categories=tuple(entry.get("categories") or ()),
                    verbs=tuple(entry.get("verbs") or ()),
                )
                found.append(kind)
    return found
