"""Follows the metadata of all objects of all kinds, for garbage collection and namespace deletion.

The kinds are those that the server has at the moment.  A new kind is followed from then on; when a kind is removed, its
objects are reported as deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, ClassVar, Protocol

from seamark.access.informer import Informer
from seamark.access.informers import Informers
from seamark.kinds.kind import Kind
from seamark.kinds.resource import EVENTS, Resource
from seamark.kinds.table import Kinds
from seamark.rules.objects.metadata import ObjectView, OwnerReference, View
from seamark.runtime.following import Derived
from seamark.runtime.queue import Key


class AnyMetadata(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def namespace(self) -> str: ...
    @property
    def uid(self) -> str: ...
    @property
    def resource_version(self) -> str: ...
    @property
    def deletion_timestamp(self) -> str | None: ...
    @property
    def finalizers(self) -> tuple[str, ...]: ...
    @property
    def owner_references(self) -> tuple[OwnerReference, ...]: ...


class AnyObject(Protocol):
    """An object of any kind, in any view."""

    @property
    def metadata(self) -> AnyMetadata: ...


class BareMetadata(View, frozen=True):
    """Metadata without labels and annotations, because these may be large."""

    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    deletion_timestamp: str | None = None
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerReference, ...] = ()


class Bare(View, frozen=True):
    """The view of objects that no other controller reads.  No webhook has to convert an object for it."""

    any_version: ClassVar[bool] = True

    metadata: BareMetadata


class Foreign(Protocol):
    """The kinds of aggregated servers."""

    def resources(self) -> Mapping[Resource, Collection[str]]:
        """What they serve, each with its verbs."""
        ...

    def unknown(self) -> Sequence[str]:
        """The versions of groups whose kinds cannot be found out now."""
        ...


# Called with the kind, the key, the old and the new object.
Follower = Callable[[Resource, Key, AnyObject | None, AnyObject | None], None]

_NEEDED = {"list", "watch", "delete"}


def _followed(kind: Kind | None) -> Resource | None:
    """The resource to follow for a kind; None if it cannot be followed, or is followed as another kind.

    Events are left out, as in Kubernetes: they are many, own nothing, and expire.
    """
    if kind is None or kind.stored_as is not None or kind.resource == EVENTS or not _NEEDED.issubset(kind.verbs):
        return None
    return kind.resource


class Everything(Derived):
    """One informer per kind that can be listed, watched and deleted.

    Make it after the other controllers: it shares the informers that they use, and keeps bare metadata of other kinds.
    """

    def __init__(self, informers: Informers, kinds: Kinds) -> None:
        super().__init__("everything")
        self._shared = informers
        self._kinds = kinds
        self._informers: dict[Resource, Informer[Any]] = {}
        self._named: dict[str, Resource] = {}
        self._followers: list[Follower] = []
        self._noticing: list[Callable[[], None]] = []
        for kind in kinds:
            self._kind_changed(None, kind)
        self._stop_following_kinds = kinds.on_change(self._kind_changed)

    def close(self) -> None:
        self._stop_following_kinds()

    @property
    def resources(self) -> Sequence[Resource]:
        return list(self._informers)

    def find(self, resource: Resource, key: Key) -> AnyObject | None:
        """An object by its kind and key; None if either does not exist."""
        informer = self._informers.get(resource)
        return None if informer is None else informer.by_key(key)

    def named(self, qualified: str) -> Resource | None:
        """The resource of this name and group; if it is followed in several versions, any of them."""
        return self._named.get(qualified)

    def by_kind(self, api_version: str, kind: str) -> Resource | None:
        """The resource under which objects of this kind are followed."""
        found = self._kinds.by_kind(api_version, kind)
        resource = None if found is None else found.stored_as or found.resource
        return resource if resource in self._informers else None

    def follow(self, follower: Follower) -> None:
        """Report every change to this controller."""
        self._followers.append(follower)

    def on_new_kind(self, notice: Callable[[], None]) -> None:
        """Call this whenever a further kind is followed."""
        self._noticing.append(notice)

    async def synced(self) -> None:
        """Return once everything has been listed, including objects of new kinds."""
        for informer in list(self._informers.values()):
            if not informer.synced.is_set():
                await informer.synced.wait()

    # --- kinds that come and go --------------------------------------------------------------------

    def _kind_changed(self, old: Kind | None, new: Kind | None) -> None:
        before, after = _followed(old), _followed(new)
        if before == after:
            return
        if before is not None:
            self._shared.forget(before)
            self.unwatch(self._informers.pop(before))
            del self._named[before.qualified]
            self._named |= {each.qualified: each for each in self._informers if each.qualified == before.qualified}
        if after is not None:
            informer = self._shared.in_any_view(after, ObjectView, otherwise=Bare)
            self._informers[after] = self.watch(informer, self._teller(after))
            self._named[after.qualified] = after
            for notice in self._noticing:
                notice()

    def _teller(self, resource: Resource) -> Callable[[Key, AnyObject | None, AnyObject | None], None]:
        def changed(key: Key, old: AnyObject | None, new: AnyObject | None) -> None:
            for follower in self._followers:
                follower(resource, key, old, new)

        return changed
