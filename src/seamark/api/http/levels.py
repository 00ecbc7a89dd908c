"""Which priority level a request belongs to: that of the first FlowSchema that matches, by precedence.

Schemas are consulted only when a request would have to wait, or when a user has made a FlowSchema; then answers
name theirs in two headers, as those of Kubernetes always do.  What is followed of a level:

- requests of an ``Exempt`` level never wait for a seat, and are never told to try again
- requests of a level whose ``limitResponse`` is ``Reject`` do not wait: they are told to try again

Shares of seats, lending and queues of a level are not followed: :mod:`~seamark.api.http.fairness` divides the turns of
all levels evenly between flows, which are a user's requests for a kind.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from seamark.api.authorization import Attributes, User
from seamark.api.state.cache import Cache
from seamark.api.state.collection import Collection
from seamark.api.state.entries import Event
from seamark.kinds.flowcontrol.defaults import AUTOUPDATE
from seamark.kinds.resource import FLOW_SCHEMAS, PRIORITY_LEVELS

# Decisions that are kept for the next request of the same user.
KEPT = 4096


class _Metadata(msgspec.Struct, frozen=True):
    name: str
    uid: str = ""
    annotations: dict[str, str] = {}


class _Named(msgspec.Struct, frozen=True):
    name: str = ""
    namespace: str = ""


class _Response(msgspec.Struct, frozen=True):
    type: str = ""


class _Limited(msgspec.Struct, rename="camel", frozen=True):
    limit_response: _Response = _Response()


class _LevelSpec(msgspec.Struct, frozen=True):
    type: str = ""
    limited: _Limited = _Limited()


class _Level(msgspec.Struct, frozen=True):
    metadata: _Metadata
    spec: _LevelSpec = _LevelSpec()


class _Subject(msgspec.Struct, rename="camel", frozen=True):
    kind: str
    user: _Named = _Named()
    group: _Named = _Named()
    service_account: _Named = _Named()

    def matches(self, user: User) -> bool:
        if self.kind == "Group":
            return self.group.name == "*" or self.group.name in user.groups
        if self.kind == "User":
            return self.user.name in ("*", user.name)
        account, place = self.service_account, user.name.removeprefix("system:serviceaccount:").partition(":")
        return user.name.startswith("system:serviceaccount:") and (
            account.namespace == place[0] and account.name in ("*", place[2])
        )


class _Resources(msgspec.Struct, rename="camel", frozen=True):
    verbs: tuple[str, ...] = ()
    api_groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    cluster_scope: bool = False

    def match(self, asked: Attributes) -> bool:
        resource = f"{asked.resource}/{asked.subresource}" if asked.subresource else asked.resource
        return (
            _has(self.verbs, asked.verb)
            and _has(self.api_groups, asked.group)
            and _has(self.resources, resource)
            and (_has(self.namespaces, asked.namespace) if asked.namespace else self.cluster_scope)
        )


class _Paths(msgspec.Struct, rename={"urls": "nonResourceURLs"}, frozen=True):
    verbs: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()

    def match(self, asked: Attributes) -> bool:
        if not _has(self.verbs, asked.verb):
            return False
        return any(u == asked.path or (u.endswith("*") and asked.path.startswith(u[:-1])) for u in self.urls)


class _Rule(msgspec.Struct, rename="camel", frozen=True):
    subjects: tuple[_Subject, ...] = ()
    resource_rules: tuple[_Resources, ...] = ()
    non_resource_rules: tuple[_Paths, ...] = ()

    def matches(self, user: User, asked: Attributes) -> bool:
        rules = self.non_resource_rules if asked.path else self.resource_rules
        return any(s.matches(user) for s in self.subjects) and any(r.match(asked) for r in rules)


class _SchemaSpec(msgspec.Struct, rename="camel", frozen=True):
    priority_level_configuration: _Named = _Named()
    matching_precedence: int = 1000
    rules: tuple[_Rule, ...] = ()


class _Schema(msgspec.Struct, frozen=True):
    metadata: _Metadata
    spec: _SchemaSpec = _SchemaSpec()

    @property
    def rank(self) -> tuple[int, str]:
        return (self.spec.matching_precedence, self.metadata.name)


class Level(msgspec.Struct, frozen=True):
    """What follows from a request's FlowSchema; ``headers`` name it and its priority level."""

    exempt: bool = False
    rejects: bool = False
    headers: tuple[tuple[str, str], ...] = ()


class Levels:
    """Follows the FlowSchemas and PriorityLevelConfigurations in the server's cache (it is a ``Watcher`` of it)."""

    def __init__(self, cache: Cache) -> None:
        self.told = False  # whether answers name their schema
        self._cache = cache
        self._schemas: list[_Schema] = []
        self._levels: dict[str, _Level] = {}
        self._known: dict[tuple[User, Attributes], Level] = {}

    def load(self) -> None:
        """Follow the cache from now on."""
        for resource in (FLOW_SCHEMAS, PRIORITY_LEVELS):
            self._cache.of(resource).subscribe(self, "", "")
        self._read()

    def of(self, user: User, asked: Attributes) -> Level:
        """The level of a request; where no FlowSchema matches, requests wait in the usual way."""
        # The name of an object does not matter: without it more requests are alike.
        key = (user, msgspec.structs.replace(asked, name="", version=""))
        if (level := self._known.get(key)) is None:
            if len(self._known) >= KEPT:
                self._known.clear()
            level = self._known[key] = self._decide(user, asked)
        return level

    def _decide(self, user: User, asked: Attributes) -> Level:
        for schema in self._schemas:
            level = self._levels.get(schema.spec.priority_level_configuration.name)
            if level is not None and any(rule.matches(user, asked) for rule in schema.spec.rules):
                spec = level.spec
                return Level(
                    exempt=spec.type == "Exempt",
                    rejects=spec.type == "Limited" and spec.limited.limit_response.type == "Reject",
                    headers=(
                        ("X-Kubernetes-PF-FlowSchema-UID", schema.metadata.uid),
                        ("X-Kubernetes-PF-PriorityLevel-UID", level.metadata.uid),
                    ),
                )
        return Level()

    def _read(self) -> None:
        self._known.clear()
        levels = _decoded(self._cache.of(PRIORITY_LEVELS), _Level)
        self._levels = {level.metadata.name: level for level in levels}
        self._schemas = sorted(_decoded(self._cache.of(FLOW_SCHEMAS), _Schema), key=lambda schema: schema.rank)
        self.told = any(each.metadata.annotations.get(AUTOUPDATE) != "true" for each in self._schemas)

    # --- as a watcher of the cache -----------------------------------------------------------------

    def offer(self, event: Event) -> None:
        pass

    def flush(self, revision: int) -> None:
        self._read()

    def end(self) -> None:
        pass


def _has(listed: tuple[str, ...], value: str) -> bool:
    return "*" in listed or value in listed


T = TypeVar("T")


def _decoded(collection: Collection, type_: type[T]) -> list[T]:
    return [msgspec.json.decode(b"{" + entry.tail, type=type_) for entry in collection.of_namespace("")]
