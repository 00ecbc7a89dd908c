"""What the cluster demands of a write beyond the object's own rules: :class:`Admission` asks its plug-ins.

A plug-in (:class:`seamark.kinds.admission.Plugin`) is a rule that depends on other objects.  :data:`PLUGINS` has them
in the order in which Kubernetes asks its own.  The write path (:mod:`seamark.api.write`) asks twice:

    mutate     after defaults, before the kind prepares and validates the object; plug-ins may edit it
    validate   directly before the commit, when the object is complete and valid; plug-ins may only refuse,
               or add objects to the transaction (``Request.also``: a quota takes down what is used)

**To add a step**: write a subclass of ``Plugin`` beside the kind it is about (``kinds/policy``, ``kinds/pod``, …), give
it ``resources`` and ``operations`` (or ``concerns``), and put an instance in its place in :data:`PLUGINS`.  A step that
only some servers have is left out of the ``plugins`` that :class:`~seamark.api.server.ApiServer` is built with.  Which
plug-ins look at a kind is found out once per kind, operation and subresource: all other kinds pay nothing.

A step that has to wait for an answer (a webhook) returns an awaitable; it stands before those that look at the present
state of other objects, such as quotas, so that nothing is awaited between them and the commit.  A write that waits so
delays no other: it gives up its turn with the object and its seat in the fair queue (:func:`~seamark.api.turns.aside`).

``validate`` may be called again for the same object, when another write came between it and the commit.  Both run on
every write, also on those of components in this process; only edits by the server itself (a Pod gets its node) are not
asked about.  That the namespace exists and is not going away is checked here, before all plug-ins.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from seamark import errors
from seamark.api.call import Caller
from seamark.api.state.cache import Cache
from seamark.api.state.collection import Collection
from seamark.api.state.entries import Entry
from seamark.api.turns import Turn, aside
from seamark.errors import Object
from seamark.kinds.admission import Awaited, Operation, Plugin, Request
from seamark.kinds.certificates.admission import Requesters
from seamark.kinds.core.automount import ServiceAccounts
from seamark.kinds.core.runtimeclass import RuntimeClasses
from seamark.kinds.devices.admission import AdminAccess
from seamark.kinds.kind import Kind
from seamark.kinds.networking.ingressclass import DefaultIngressClass
from seamark.kinds.pod.admission import PodTopologyLabels, Tolerations
from seamark.kinds.podsecurity.admission import PodSecurity
from seamark.kinds.policy.charging import ResourceQuotas
from seamark.kinds.policy.limits import LimitRanges
from seamark.kinds.policy.priority import Priorities
from seamark.kinds.resource import NAMESPACES, Resource
from seamark.kinds.storage.admission import ClaimResize, DefaultStorageClass, PhaseTime, StorageProtection
from seamark.kinds.subresource import Subresource
from seamark.kinds.values.refusals import missing, named

PLUGINS: tuple[Plugin, ...] = (
    LimitRanges(),
    ServiceAccounts(),
    PodSecurity(),
    Priorities(),
    Tolerations(),
    DefaultStorageClass(),
    StorageProtection(),
    ClaimResize(),
    RuntimeClasses(),
    Requesters(),
    DefaultIngressClass(),
    PodTopologyLabels(),
    PhaseTime(),
    AdminAccess(),
    ResourceQuotas(),  # last: only what every other step lets pass is charged
)

# Those of a server without ServiceAccount admission.
PLAIN = tuple(plugin for plugin in PLUGINS if not isinstance(plugin, ServiceAccounts))

Plugins = tuple[Plugin, ...]

# The plug-ins that can be left out, by their names in Kubernetes.
_NAMES: dict[str, type[Plugin]] = {
    "CertificateSubjectRestriction": Requesters,
    "DefaultIngressClass": DefaultIngressClass,
    "DefaultStorageClass": DefaultStorageClass,
    "DefaultTolerationSeconds": Tolerations,
    "LimitRanger": LimitRanges,
    "PersistentVolumeClaimResize": ClaimResize,
    "PodSecurity": PodSecurity,
    "PodTopologyLabels": PodTopologyLabels,
    "Priority": Priorities,
    "ResourceQuota": ResourceQuotas,
    "RuntimeClass": RuntimeClasses,
    "ServiceAccount": ServiceAccounts,
    "StorageObjectInUseProtection": StorageProtection,
}


def without(plugins: Plugins, names: Sequence[str]) -> Plugins:
    """The plug-ins but for those with these names in Kubernetes; other names mean nothing here."""
    return tuple(each for each in plugins if not any(type(each) is _NAMES.get(name) for name in names))


def before_quotas(plugins: Sequence[Plugin], *steps: Plugin) -> Plugins:
    """The plug-ins with further steps that ask outsiders: after all others, but before quotas are charged."""
    quotas = tuple(plugin for plugin in plugins if isinstance(plugin, ResourceQuotas))
    return (*(plugin for plugin in plugins if plugin not in quotas), *steps, *quotas)


class Chain(NamedTuple):
    """The plug-ins that look at a kind of write, by what they have to say."""

    awaits: Plugins
    mutate: Plugins
    singles_out: Plugins
    contends: Plugins
    validate: Plugins


class Others:
    """The cluster as plug-ins see it (:class:`seamark.kinds.admission.Others`), read from memory."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache

    def _collection(self, resource: Resource) -> Collection | None:
        try:
            return self._cache.of(resource)
        except errors.NotFound:
            return None

    def get(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        collection = self._collection(resource)
        entry = collection and collection.get(f"{namespace}/{name}" if namespace else name)
        return entry.decode() if entry else None

    def all(self, resource: Resource, namespace: str = "", *, containing: bytes = b"") -> Iterator[Object]:
        collection = self._collection(resource)
        if collection is None or not collection.entries:
            return iter(())
        entries = collection.of_namespace(namespace) if namespace else collection.entries.values()
        return (entry.decode() for entry in entries if containing in entry.tail)

    def count(self, resource: Resource, namespace: str) -> int:
        collection = self._collection(resource)
        return collection.count(namespace) if collection is not None else 0

    def labels_of(self, resource: Resource, name: str) -> Mapping[str, str] | None:
        collection = self._collection(resource)
        entry = collection and collection.get(name)
        return entry.labels if entry else None


class Noticing(Others):
    """The cluster, and which kinds plug-ins looked at, with the revision at which each had last changed."""

    def __init__(self, cache: Cache) -> None:
        super().__init__(cache)
        self.seen: dict[Collection, int] = {}

    def _collection(self, resource: Resource) -> Collection | None:
        collection = super()._collection(resource)
        if collection is not None:
            self.seen.setdefault(collection, collection.changed)
        return collection


class Admission:
    """Asks the plug-ins about every write."""

    def __init__(self, cache: Cache, plugins: Sequence[Plugin]) -> None:
        self._cache = cache
        self._namespaces = cache.of(NAMESPACES)
        self._plugins = plugins
        self._chains: dict[tuple[Resource, Operation, str], Chain] = {}
        self.others = Others(cache)

    def request(
        self,
        kind: Kind,
        part: Subresource,
        obj: Object,
        old: Object | None,
        caller: Caller,
        *,
        operation: Operation | None = None,
        options: Any = None,
        place: tuple[str, str] | None = None,
    ) -> Request:
        return Request(
            kind=kind,
            operation=operation or ("CREATE" if old is None else "UPDATE"),
            obj=obj,
            old=old,
            part=part.name,
            user=caller.user,
            now=caller.now,
            dry_run=caller.dry_run,
            others=self.others,
            sub=part,
            options=options or caller.options,
            notes=caller.notes,
            place=place,
        )

    def awaits(self, request: Request) -> Iterator[Awaited]:
        """The objects that a new one needs and that may still be on their way."""
        for plugin in self._chain(request).awaits:
            if (awaited := plugin.awaits(request)) is not None:
                self.check_namespace(request)  # in one that is going away nothing comes any more
                yield awaited

    async def mutate(self, request: Request, *held: Turn) -> None:
        """Let the plug-ins edit the object; raises if it may not be written.  ``held`` are turns of the write."""
        if request.old is None and request.kind.resource.namespaced and not request.part:
            self.check_namespace(request)
        plugins = self._chain(request).mutate
        for plugin in plugins:
            if (later := plugin.mutate(request)) is not None:
                await aside(request.notes, later, *held)
        if request.changed:
            request.round = 1
            for plugin in plugins:
                if (later := plugin.mutate(request)) is not None:
                    await aside(request.notes, later, *held)

    def noticing(self, request: Request) -> Noticing | None:
        """Have it noticed what plug-ins look at when they edit the object; None if that is not all that counts."""
        if self.singles_out(request):
            return None
        request.others = noticing = Noticing(self._cache)
        return noticing

    def singles_out(self, request: Request) -> bool:
        """Whether plug-ins may edit the object in another way than one that differs only in its name."""
        return any(plugin.singles_out(request) for plugin in self._chain(request).singles_out)

    def idle(self, kind: Kind, operation: Operation, part: str) -> bool:
        """Whether no plug-in has anything to say about such writes now."""
        chain = self._chain_of(kind, operation, part)  # every plug-in edits or judges, so these two are all of them
        return all(plugin.idle for plugin in chain.mutate) and all(plugin.idle for plugin in chain.validate)

    def contends(self, request: Request) -> bool:
        """Whether the write also changes an object that other creations in its namespace change."""
        return any(plugin.contends(request) for plugin in self._chain(request).contends)

    async def validate(self, request: Request, *held: Turn) -> None:
        """Raise if the complete object may not be written; collects what is to be written with it."""
        request.also.clear()
        for plugin in self._chain(request).validate:
            if (later := plugin.validate(request)) is not None:
                await aside(request.notes, later, *held)

    async def admit_deletion(self, kind: Kind, entry: Entry, options: Any, caller: Caller) -> None:
        """Raise if the object may not be deleted."""
        if any(self._chain_of(kind, "DELETE", "")):
            obj = entry.shown(kind)
            await self.admit(self.request(kind, kind.whole, obj, obj, caller, operation="DELETE", options=options))

    async def admit(self, request: Request) -> Object:
        """Ask about what is not written as it is sent: deletions, connections and documents posted to an object.

        Returns the document, which may have been edited.
        """
        await self.mutate(request)
        await self.validate(request)
        return request.obj

    def _chain(self, request: Request) -> Chain:
        return self._chain_of(request.kind, request.operation, request.part)

    def _chain_of(self, kind: Kind, operation: Operation, part: str) -> Chain:
        key = (kind.resource, operation, part)
        chain = self._chains.get(key)
        if chain is None:
            asked = [plugin for plugin in self._plugins if plugin.concerns(kind, operation, part)]
            chain = self._chains[key] = Chain(
                tuple(plugin for plugin in asked if type(plugin).awaits is not Plugin.awaits),
                tuple(plugin for plugin in asked if type(plugin).mutate is not Plugin.mutate),
                tuple(plugin for plugin in asked if type(plugin).singles_out is not Plugin.singles_out),
                tuple(plugin for plugin in asked if type(plugin).contends is not Plugin.contends),
                tuple(plugin for plugin in asked if type(plugin).validate is not Plugin.validate),
            )
        return chain

    def kind_changed(self, old: Kind | None, new: Kind | None) -> None:
        """Forget which plugins are asked about a kind that is gone or replaced."""
        if old is not None:
            self._chains = {key: chain for key, chain in self._chains.items() if key[0] != old.resource}

    def check_namespace(self, request: Request) -> None:
        """Raise unless the namespace of a new object is there and stays."""
        resource, namespace, name = request.kind.resource, request.namespace, request.name
        entry = self._namespaces.get(namespace)
        if entry is None:
            raise missing(NAMESPACES, namespace)
        # Decoding every time would cost more than the rest of this check: look for the word first.
        if b'"deletionTimestamp"' in entry.tail and "deletionTimestamp" in entry.decode()["metadata"]:
            raise errors.Forbidden(
                f'{resource.qualified} "{name}" is forbidden: unable to create new content in namespace '
                f"{namespace} because it is being terminated",
                details=named(resource, name),
                causes=[
                    errors.Cause(
                        reason="NamespaceTerminating",
                        message=f"namespace {namespace} is being terminated",
                        field="metadata.namespace",
                    )
                ],
            )
