"""All objects of all kinds, by their metadata alone: what garbage collection and namespace deletion look at.

The kinds are those that the server has now.  One that appears is followed from then on; when one vanishes, handlers are
told that its objects are gone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from seamark.access.informer import Informer
from seamark.access.informers import Informers
from seamark.kinds.kind import Kind
from seamark.kinds.resource import EVENTS, Resource
from seamark.kinds.table import Kinds


class Owner(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """One ownerReference."""

    api_version: str
    kind: str
    name: str
    uid: str
    block_owner_deletion: bool = False


class Meta(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    name: str
    uid: str = ""
    namespace: str = ""
    resource_version: str = ""
    deletion_timestamp: str | None = None
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[Owner, ...] = ()


class Thing(msgspec.Struct, frozen=True, gc=False):
    """Any object."""

    metadata: Meta


# Told which kind of object changed, what it was and what it is; None for what was not there, or is not any more.
Handler = Callable[[Resource, Thing | None, Thing | None], None]

_NEEDED = {"list", "watch", "delete"}


def _followed(kind: Kind | None) -> Resource | None:
    """The resource to follow for a kind; None if its objects cannot be followed, or are followed as another kind.

    Events are many, own nothing and expire by themselves: Kubernetes leaves them out as well.
    """
    if kind is None or kind.stored_as is not None or kind.resource == EVENTS or not _NEEDED.issubset(kind.verbs):
        return None
    return kind.resource


class Everything:
    """One informer per kind that can be listed, watched and deleted.

    Readers that need the same projection of one kind share its informer.
    """

    def __init__(self, informers: Informers, kinds: Kinds) -> None:
        self._shared = informers
        self._kinds = kinds
        self._informers: dict[Resource, Informer[Thing]] = {}
        self._handlers: list[Handler] = []
        for kind in kinds:
            self._kind_changed(None, kind)
        self.stop = kinds.on_change(self._kind_changed)  # call it to follow the kinds no longer

    @property
    def resources(self) -> Sequence[Resource]:
        return list(self._informers)

    def of(self, resource: Resource) -> Informer[Thing]:
        return self._informers[resource]

    def find(self, resource: Resource, key: str) -> Thing | None:
        """An object by its kind and key; None if either is not there, or not any more."""
        informer = self._informers.get(resource)
        return None if informer is None else informer.by_key(key)

    def by_kind(self, api_version: str, kind: str) -> Resource | None:
        """The resource under which objects of this kind are followed."""
        found = self._kinds.by_kind(api_version, kind)
        resource = None if found is None else found.stored_as or found.resource
        return resource if resource in self._informers else None

    def on_change(self, handler: Handler) -> None:
        """Call this for every change of every object from now on, and now for everything already there."""
        self._handlers.append(handler)
        for resource in self.resources:
            self._attach(resource, handler)

    def _attach(self, resource: Resource, handler: Handler) -> None:
        def changed(old: Thing | None, new: Thing | None) -> None:
            handler(resource, old, new)

        self._informers[resource].on_change(changed)

    async def synced(self) -> None:
        """Return once everything has been listed, also the objects of kinds that have just appeared."""
        for informer in list(self._informers.values()):
            if not informer.synced.is_set():
                await informer.synced.wait()

    # --- kinds that come and go --------------------------------------------------------------------

    def _kind_changed(self, old: Kind | None, new: Kind | None) -> None:
        before, after = _followed(old), _followed(new)
        if before == after:
            return
        if before is not None:
            self._forget(before)
        if after is not None:
            self._informers[after] = self._shared.of(after, as_=Thing)
            for handler in self._handlers:
                self._attach(after, handler)

    def _forget(self, resource: Resource) -> None:
        informer = self._informers.pop(resource)
        self._shared.forget(resource)
        for thing in informer.objects():
            for handler in self._handlers:
                handler(resource, thing, None)
