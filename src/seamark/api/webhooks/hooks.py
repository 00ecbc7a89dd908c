"""Webhooks as their configurations describe them, and which of them look at a request.

Configurations are read again when one of them has changed, at the next write: so they take effect as soon as they are
committed.  Which webhooks look at a kind of request is found out once, so a request that none looks at costs a look-up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from seamark.api.outgoing.targets import Client, client_of
from seamark.api.state.cache import Cache
from seamark.api.state.collection import Collection
from seamark.errors import Object
from seamark.kinds.admission import Operation, Request
from seamark.kinds.kind import Kind
from seamark.kinds.registration.selecting import matched, namespace_selected, object_selected
from seamark.kinds.resource import Resource
from seamark.kinds.table import Kinds
from seamark.kinds.values.selectors import LabelSelector, from_label_selector

REVIEW_VERSIONS = ("v1", "v1beta1")
MOST_KNOWN = 4096

HookId = tuple[str, str, int]  # the configuration, the name and the place there
Place = tuple[Kind, Operation, str]


class Hook(msgspec.Struct, frozen=True):
    """One webhook.  ``id`` tells it from all others, also of the same name."""

    id: HookId
    configuration: str
    name: str
    mutating: bool
    rules: Sequence[Object]
    client: Client
    version: str  # of the AdmissionReview it understands
    seconds: int
    ignores_failures: bool
    exact: bool
    reinvoked: bool
    namespaces: LabelSelector
    objects: LabelSelector
    conditions: Sequence[Object]

    def selects(self, request: Request) -> bool:
        return namespace_selected(request, self.namespaces) and object_selected(request, self.objects)


# A webhook, and the kind in which it is shown the object: another version if its rules name only that.
Match = tuple[Hook, Kind]


def hooks_of(configuration: Object, *, mutating: bool) -> list[Hook]:
    """The webhooks of a configuration, which is valid and has its defaults."""
    name = configuration["metadata"]["name"]
    return [
        _hook(webhook, name, place, mutating=mutating)
        for place, webhook in enumerate(configuration.get("webhooks") or ())
    ]


def _hook(webhook: Object, configuration: str, place: int, *, mutating: bool) -> Hook:
    versions: list[Any] = [v for v in webhook.get("admissionReviewVersions") or () if v in REVIEW_VERSIONS]
    return Hook(
        id=(configuration, webhook["name"], place),
        configuration=configuration,
        name=webhook["name"],
        mutating=mutating,
        rules=webhook.get("rules") or (),
        client=client_of(webhook.get("clientConfig") or {}),
        version=versions[0] if versions else REVIEW_VERSIONS[0],
        seconds=webhook.get("timeoutSeconds") or 10,
        ignores_failures=webhook.get("failurePolicy") == "Ignore",
        exact=webhook.get("matchPolicy") == "Exact",
        reinvoked=webhook.get("reinvocationPolicy") == "IfNeeded",
        namespaces=from_label_selector(webhook.get("namespaceSelector") or {}),
        objects=from_label_selector(webhook.get("objectSelector") or {}),
        conditions=webhook.get("matchConditions") or (),
    )


class Configured:
    """The webhooks of all configurations of one kind, in the order in which they are called."""

    def __init__(
        self, cache: Cache, kinds: Kinds, resource: Resource, *, mutating: bool, gone: Callable[[Hook], None]
    ) -> None:
        """``gone`` is called with each webhook that is removed, if there is no other of its name."""
        self._gone = gone
        self._cache = cache
        self._kinds = kinds
        self._mutating = mutating
        self._configurations: Collection = cache.of(resource)
        self._read_at = -1
        self._hooks: list[Hook] = []
        self._known: dict[Place, tuple[Match, ...]] = {}

    @property
    def idle(self) -> bool:
        return not self._configurations.entries

    def of(self, request: Request) -> Sequence[Match]:
        """The webhooks that are to be asked about this request, but for their match conditions."""
        if self._configurations.changed != self._read_at:
            self._read()
        if not self._hooks:
            return ()
        # By the kind itself, not its name: when a definition changes, its kinds are replaced.
        place = (request.kind, request.operation, request.part)
        found = self._known.get(place)
        if found is None:
            found = self._find(*place)
        return [match for match in found if match[0].selects(request)] if found else ()

    def _read(self) -> None:
        self._read_at = self._configurations.changed
        entries, before = self._configurations.entries, self._hooks
        self._hooks = [hook for name in entries for hook in hooks_of(entries[name].decode(), mutating=self._mutating)]
        self._known.clear()
        names = {hook.name for hook in self._hooks}
        for hook in before:
            if hook.name not in names:
                self._gone(hook)

    def _find(self, kind: Kind, operation: Operation, part: str) -> tuple[Match, ...]:
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
        found = tuple(
            (hook, shown) for hook in self._hooks if (shown := self._shown_as(hook, kind, operation, part)) is not None
        )
        self._known[kind, operation, part] = found
        return found

    def _shown_as(self, hook: Hook, kind: Kind, operation: Operation, part: str) -> Kind | None:
        """The kind in which the webhook is shown such objects; None if its rules do not match."""
        resource = kind.resource
        same = () if hook.exact or not kind.stored else sorted(self._cache.of(resource).shown_as, key=str)
        by = matched(hook.rules, operation, resource, part, same)
        if by is None:
            return None
        return kind if by == resource else self._kinds.by_plural(by.group, by.version, by.plural)
