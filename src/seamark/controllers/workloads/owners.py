"""Ownership: Pods of ReplicaSets, ReplicaSets of Deployments, revisions of StatefulSets and DaemonSets.

A workload owns the objects that name it as their controller and match its selector.  It adopts matching objects without
a controller, and releases owned objects that no longer match.  The indexes are updated with each change, at a cost that
does not depend on the number of Pods or workloads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import eq
from typing import Any, Generic, TypeVar

import msgspec

from seamark.access.cluster import Cluster
from seamark.access.informer import Informer, key_of, split_key
from seamark.access.labels import ObjectsByLabels, SelectorsByLabels
from seamark.errors import Invalid, NotFound
from seamark.kinds.resource import Resource
from seamark.kinds.values.selectors import LabelSelector
from seamark.rules.objects.metadata import Metadata, OwnerReference
from seamark.rules.objects.workloads import Dependant, Workload, owner_reference
from seamark.runtime.controller import Expected
from seamark.runtime.following import Derived
from seamark.runtime.queue import Key

D = TypeVar("D", bound=Dependant)
W = TypeVar("W", bound=Workload)


class OwnerGone(Expected):
    """The workload that should adopt an object is being deleted, or has been replaced."""


def _pairs(selector: LabelSelector) -> Mapping[str, str]:
    """The label values that a selector requires to be equal; the indexes use only these."""
    if selector.equalities is not None:
        return selector.equalities
    return {r.key: r.values[0] for r in selector.requirements if r.operator in ("=", "in") and len(r.values) == 1}


class Owners(Derived, Generic[W]):
    """The workloads of one kind: finds the one in an owner reference, and those that would adopt an orphan."""

    def __init__(self, resource: Resource, informer: Informer[W]) -> None:
        super().__init__(f"owners among {resource.qualified}")
        self.resource = resource
        self._informer = self.watch(informer, self._changed)
        self._selectors: SelectorsByLabels[Key] = SelectorsByLabels()

    def reset(self) -> None:
        self._selectors = SelectorsByLabels()

    def referred(self, owner: OwnerReference, namespace: str) -> W | None:
        found = self._informer.get(owner.name, namespace)
        return found if found is not None and found.metadata.uid == owner.uid else None

    def wanting(self, namespace: str, labels: Mapping[str, str]) -> Iterator[Key]:
        for key in self._selectors.matching(namespace, labels):
            found = self._informer.by_key(key)
            if found is not None and found.selector.matches(labels):
                yield key

    def _changed(self, key: Key, old: W | None, new: W | None) -> None:
        namespace, _ = split_key(key)
        if new is None:
            self._selectors.remove(namespace, key)
        elif old is None or old.selector != new.selector:
            self._selectors.put(namespace, key, _pairs(new.selector))


class _Follower(msgspec.Struct, Generic[D]):
    owners: Owners[Any]
    told: Callable[[Key, D | None, D | None], None]


class Dependants(Derived, Generic[D]):
    """The objects of one resource that workloads of several kinds own."""

    def __init__(self, informer: Informer[D], *, same: Callable[[D, D], bool] = eq) -> None:
        """``same`` says whether a change is irrelevant to the owners of the object."""
        super().__init__(f"owned {informer.resource.qualified}")
        self.informer = self.watch(informer, self._changed)
        self._same = same
        self._owned = informer.index("controller", controller_uid)
        self._orphans: ObjectsByLabels[str] = ObjectsByLabels()
        self._followers: dict[tuple[str, str], _Follower[D]] = {}

    def reset(self) -> None:
        self._orphans = ObjectsByLabels()

    def of(self, uid: str) -> Sequence[D]:
        """All objects that name this workload as their controller."""
        return self._owned.objects(uid)

    def orphans(self, namespace: str, selector: LabelSelector) -> list[D]:
        """All objects without a controller that the selector matches."""
        found = []
        for name in self._orphans.select(namespace, _pairs(selector)):
            orphan = self.informer.get(name, namespace)
            if orphan is not None and selector.matches(orphan.metadata.labels):
                found.append(orphan)
        return found

    def follow(self, owners: Owners[Any], told: Callable[[Key, D | None, D | None], None]) -> None:
        """Report the key of a workload of this kind when an object that it owns or might adopt changes."""
        resource = owners.resource
        self._followers[resource.api_version, resource.kind] = _Follower(owners, told)

    def _changed(self, key: Key, old: D | None, new: D | None) -> None:
        if old is not None and new is not None and self._same(old, new):
            return
        before = old.metadata.controller if old is not None else None
        after = new.metadata.controller if new is not None else None
        namespace, name = split_key(key)
        if new is not None and after is None:
            self._orphans.put(namespace, name, new.metadata.labels)
        else:
            self._orphans.remove(namespace, name)
        if before is not None and (after is None or before.uid != after.uid):
            self._tell_owner(before, namespace, old, new)
        if after is not None:
            self._tell_owner(after, namespace, old, new)
        elif new is not None and new.metadata.deletion_timestamp is None:
            self._tell_adopters(old, new)

    def _tell_owner(self, owner: OwnerReference, namespace: str, old: D | None, new: D | None) -> None:
        follower = self._followers.get((owner.api_version, owner.kind))
        if follower is not None and follower.owners.referred(owner, namespace) is not None:
            follower.told(key_of(namespace, owner.name), old, new)

    def _tell_adopters(self, old: D | None, new: D) -> None:
        if old is not None and old.metadata.controller is None and old.metadata.labels == new.metadata.labels:
            return
        for follower in self._followers.values():
            for key in list(follower.owners.wanting(new.metadata.namespace, new.metadata.labels)):
                follower.told(key, old, new)


def controller_uid(dependant: Dependant) -> tuple[str, ...]:
    """The index value of an object: the uid of its controller."""
    owner = dependant.metadata.controller
    return (owner.uid,) if owner is not None else ()


# --- adoption and release --------------------------------------------------------------------------


class Claim(msgspec.Struct, Generic[D], frozen=True):
    """The objects that a workload keeps, should adopt, and should release."""

    kept: tuple[D, ...] = ()
    adopted: tuple[D, ...] = ()
    released: tuple[D, ...] = ()


def claim(
    owner: Workload, owned: Sequence[D], orphans: Sequence[D], *, fits: Callable[[D], bool] = lambda _: True
) -> Claim[D]:
    """Decide what to keep, adopt and release; a workload that is being deleted neither adopts nor releases."""
    selector = owner.selector
    ending = owner.metadata.deletion_timestamp is not None
    kept: list[D] = []
    released: list[D] = []
    for dependant in owned:
        selected = selector.matches(dependant.metadata.labels) and fits(dependant)
        (kept if selected else released).append(dependant)
    adopted = [
        orphan
        for orphan in orphans
        if not ending
        and orphan.metadata.deletion_timestamp is None
        and selector.matches(orphan.metadata.labels)
        and fits(orphan)
    ]
    return Claim(tuple(kept), tuple(adopted), () if ending else tuple(released))


class Claims(Generic[D]):
    """Carries out the claims of workloads of one kind on one resource.

    With ``finalizer``, what is adopted gets it, and what is released loses it.
    """

    def __init__(self, cluster: Cluster, owner: Resource, dependant: Resource, *, finalizer: str = "") -> None:
        self._cluster = cluster
        self._owner = owner
        self._dependant = dependant
        self._given: dict[str, Any] = {"finalizers": [finalizer]} if finalizer else {}
        self._taken: dict[str, Any] = {"$deleteFromPrimitiveList/finalizers": [finalizer]} if finalizer else {}

    async def make(self, owner: Workload, claimed: Claim[D]) -> list[D]:
        """Adopt and release; returns what the workload owns afterwards, including what it adopted."""
        mine = list(claimed.kept)
        if claimed.adopted:
            await self._check(owner)
        mine += [orphan for orphan in claimed.adopted if await self._adopt(owner, orphan.metadata)]
        for dependant in claimed.released:
            await self._release(owner, dependant.metadata)
        return mine

    async def _check(self, owner: Workload) -> None:
        """Ask the server whether the workload still exists: objects that a deleted one adopts would be deleted too."""
        meta = owner.metadata
        found = await self._cluster.get(self._owner, meta.name, namespace=meta.namespace)
        if found["metadata"]["uid"] != meta.uid or found["metadata"].get("deletionTimestamp"):
            raise OwnerGone(f"{self._owner.kind} {meta.namespace}/{meta.name} is being deleted and adopts nothing")

    async def _adopt(self, owner: Workload, orphan: Metadata) -> bool:
        reference = owner_reference(self._owner, owner.metadata)
        patch = {"metadata": {"uid": orphan.uid, "ownerReferences": [reference], **self._given}}
        try:
            await self._cluster.patch(self._dependant, orphan.name, patch, namespace=orphan.namespace, type="strategic")
        except NotFound:
            return False  # deleted meanwhile
        return True

    async def _release(self, owner: Workload, dependant: Metadata) -> None:
        reference = {"$patch": "delete", "uid": owner.metadata.uid}
        patch = {"metadata": {"uid": dependant.uid, "ownerReferences": [reference], **self._taken}}
        try:
            await self._cluster.patch(
                self._dependant, dependant.name, patch, namespace=dependant.namespace, type="strategic"
            )
        except (NotFound, Invalid):
            return  # deleted, replaced or released already: it is no longer ours
