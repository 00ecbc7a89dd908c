"""All objects of all kinds, by their metadata alone: what garbage collection and namespace deletion look at."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from seamark.access.informer import Informer
from seamark.access.informers import Informers
from seamark.kinds.resource import EVENTS, NEW_EVENTS, Resource


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


class Everything:
    """One informer per kind that can be listed, watched and deleted; shared by all who ask with the same projection."""

    def __init__(self, informers: Informers, resources: Iterable[Resource]) -> None:
        # Events are many, own nothing and expire by themselves: Kubernetes leaves them out as well.
        self.resources: Sequence[Resource] = [r for r in resources if r not in (EVENTS, NEW_EVENTS)]
        self._informers: dict[Resource, Informer[Thing]] = {r: informers.of(r, as_=Thing) for r in self.resources}
        self._by_kind = {(r.api_version, r.kind): r for r in self.resources}

    def of(self, resource: Resource) -> Informer[Thing]:
        return self._informers[resource]

    def by_kind(self, api_version: str, kind: str) -> Resource | None:
        return self._by_kind.get((api_version, kind))

    async def synced(self) -> None:
        for informer in self._informers.values():
            await informer.synced.wait()
