"""Empties namespaces that are being deleted, reports what still blocks them, and removes them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from seamark import errors
from seamark.access.cluster import Cluster
from seamark.controllers.housekeeping.everything import AnyObject, Bare, Everything, Foreign
from seamark.errors import Object
from seamark.kinds.resource import NAMESPACES, PODS, Resource
from seamark.kinds.values import times
from seamark.runtime.controller import Again, Controller
from seamark.runtime.manager import Manager
from seamark.runtime.queue import Key

FINALIZER = "kubernetes"
# ``kubectl delete -f`` deletes a Namespace and then, one by one, the objects in it: they should still be there to be
# deleted.  Kubernetes waits 5 seconds.
GRACE_SECONDS = 1.0
# Objects that stay for a while (a Pod's grace period) queue the namespace when they go; this is only a safety net.
LOOK_AGAIN_SECONDS = 5.0


class NamespaceController(Controller):
    """Empties namespaces that are being deleted, and removes them."""

    def __init__(
        self,
        manager: Manager,
        cluster: Cluster,
        everything: Everything,
        *,
        grace: float,
        foreign: Foreign | None,
    ) -> None:
        """``grace`` is for how many seconds the objects in a deleted namespace are left alone."""
        super().__init__("namespace-controller", manager)
        self._grace = grace
        self._begun: set[Key] = set()  # namespaces whose grace is over
        self._cluster = cluster
        self._everything = everything
        self._foreign = foreign
        self._clock = manager.clock
        everything.follow(self._changed)

    def _changed(self, resource: Resource, key: Key, old: AnyObject | None, new: AnyObject | None) -> None:
        if resource == NAMESPACES and new is not None and new.metadata.deletion_timestamp:
            self._queue(key)
        elif resource.namespaced and new is None and old is not None:
            space = self._everything.find(NAMESPACES, old.metadata.namespace)
            if space is not None and space.metadata.deletion_timestamp:
                self._queue(old.metadata.namespace)

    def _queue(self, namespace: Key) -> None:
        if namespace in self._begun:
            self.queue.add(namespace)
        else:
            self.queue.add_after(namespace, self._grace)

    async def reconcile(self, key: Key) -> None:
        try:
            space = await self._cluster.get(NAMESPACES, key)
        except errors.NotFound:
            self._begun.discard(key)
            return
        finalizers = (space.get("spec") or {}).get("finalizers") or []
        if "deletionTimestamp" not in space["metadata"] or FINALIZER not in finalizers:
            return
        self._begun.add(key)
        # Pods go first, and all of them, so that none runs on without what protects it, such as a NetworkPolicy.
        others = [resource for resource in self._everything.resources if resource.namespaced and resource != PODS]
        for resources in ([PODS], others):
            left = await self._emptied(key, resources)
            if left:
                await self._explain(space, conditions(left))
                raise Again(LOOK_AGAIN_SECONDS, f"{sum(map(len, left.values()))} objects are left in {key}")
        if self._foreign is not None:
            await self._empty_elsewhere(space, key, self._foreign)
        space["spec"]["finalizers"] = [f for f in finalizers if f != FINALIZER]
        await self._cluster.update(NAMESPACES, space, subresource="finalize")
        self._begun.discard(key)

    async def _emptied(self, namespace: str, resources: list[Resource]) -> dict[Resource, list[Bare]]:
        """Delete all objects of these kinds; returns those that are still there."""
        found = {}
        for resource in resources:
            with suppress(errors.NotFound):  # the kind is gone
                if not (await self._cluster.list(resource, namespace=namespace, as_=Bare)).items:
                    continue  # as most kinds have none
                await self._cluster.delete_all(
                    resource, namespace=namespace, options={"propagationPolicy": "Background"}
                )
                found[resource] = list((await self._cluster.list(resource, namespace=namespace, as_=Bare)).items)
        return {resource: left for resource, left in found.items() if left}

    async def _empty_elsewhere(self, space: Object, namespace: str, foreign: Foreign) -> None:
        """Delete what aggregated servers have in a namespace; raises while something is left, or may be."""
        left: dict[Resource, list[Bare]] = {}
        failures: list[str] = []
        for resource, verbs in foreign.resources().items():
            if not resource.namespaced or not {"delete", "list"}.issubset(verbs):
                continue
            try:
                if "deletecollection" in verbs:
                    await self._cluster.delete_all(resource, namespace=namespace)
                else:
                    for each in (await self._cluster.list(resource, namespace=namespace, as_=Bare)).items:
                        await self._cluster.delete(resource, each.metadata.name, namespace=namespace)
                if found := (await self._cluster.list(resource, namespace=namespace, as_=Bare)).items:
                    left[resource] = list(found)
            except errors.ApiError as error:
                failures.append(str(error))
        unknown = foreign.unknown()
        if left or failures or unknown:
            await self._explain(space, conditions(left, unknown=unknown, failures=failures))
            raise Again(LOOK_AGAIN_SECONDS, f"other servers may have objects in {namespace}")

    async def _explain(self, space: Object, wanted: list[Object]) -> None:
        """Write conditions that tell users why the namespace still exists."""
        status = space.setdefault("status", {})
        before = {c["type"]: c for c in status.get("conditions") or ()}
        now = times.text(self._clock.time())
        merged = []
        for condition in wanted:
            old = before.get(condition["type"])
            same = old is not None and all(old.get(k) == condition[k] for k in ("status", "reason", "message"))
            merged.append(old if same and old is not None else {**condition, "lastTransitionTime": now})
        if merged != status.get("conditions"):
            status["conditions"] = merged
            await self._cluster.update(NAMESPACES, space, subresource="status")


def conditions(
    left: dict[Resource, list[Bare]], *, unknown: Sequence[str] = (), failures: Sequence[str] = ()
) -> list[Object]:
    """The conditions of a Namespace about what is still in it, in Kubernetes' words.

    ``unknown`` are versions of groups whose kinds cannot be found out, ``failures`` what went wrong with deletions.
    """
    counts = ", ".join(sorted(f"{r.plural}.{r.group} has {len(found)} resource instances" for r, found in left.items()))
    holders: dict[str, int] = {}
    for things in left.values():
        for thing in things:
            for finalizer in thing.metadata.finalizers:
                holders[finalizer] = holders.get(finalizer, 0) + 1
    held = ", ".join(f"{name} in {count} resource instances" for name, count in sorted(holders.items()))
    stale = ", ".join(f"{each}: stale GroupVersion discovery: {each}" for each in sorted(unknown))
    return [
        _condition(
            "NamespaceDeletionDiscoveryFailure",
            "True",
            "DiscoveryFailed",
            f"Discovery failed for some groups, {len(unknown)} failing: unable to retrieve the complete list of server "
            f"APIs: {stale}",
        )
        if unknown
        else _condition(
            "NamespaceDeletionDiscoveryFailure", "False", "ResourcesDiscovered", "All resources successfully discovered"
        ),
        _condition(
            "NamespaceDeletionGroupVersionParsingFailure",
            "False",
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        ),
        _condition(
            "NamespaceDeletionContentFailure",
            "True",
            "ContentDeletionFailed",
            f"Failed to delete all resource types, {len(failures)} remaining: {', '.join(failures)}",
        )
        if failures
        else _condition(
            "NamespaceDeletionContentFailure",
            "False",
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization",
        ),
        _condition(
            "NamespaceContentRemaining", "True", "SomeResourcesRemain", f"Some resources are remaining: {counts}"
        )
        if left
        else _condition("NamespaceContentRemaining", "False", "ContentRemoved", "All content successfully removed"),
        _condition(
            "NamespaceFinalizersRemaining",
            "True",
            "SomeFinalizersRemain",
            f"Some content in the namespace has finalizers remaining: {held}",
        )
        if held
        else _condition(
            "NamespaceFinalizersRemaining",
            "False",
            "ContentHasNoFinalizers",
            "All content-preserving finalizers finished",
        ),
    ]


def _condition(type: str, status: str, reason: str, message: str) -> Object:
    return {"type": type, "status": status, "reason": reason, "message": message}
