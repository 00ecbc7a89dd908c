"""Keeps the Pods of ReplicaSets and ReplicationControllers as many as they should be.

What to do is :mod:`seamark.controllers.workloads.replicas`; this follows the cluster and carries it out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Generic, TypeVar

from seamark.access.cluster import Cluster
from seamark.access.correlation import Reference
from seamark.access.events import EventRecorder
from seamark.access.informer import Informer, key_of
from seamark.controllers.workloads.owners import Claims, Dependants, Owners, claim, controller_uid
from seamark.controllers.workloads.pods import PodKeeper, pod_from
from seamark.controllers.workloads.replicas import Replicas, ReplicasStatus, count, next_available, plan
from seamark.controllers.workloads.writes import OwnWrites, difference, patch_status
from seamark.errors import ApiError, NotFound
from seamark.kinds.resource import PODS, Resource
from seamark.rules.objects.pod import Pod
from seamark.rules.objects.workloads import owner_reference
from seamark.runtime.loop import Again, Loop

# Counting costs as much as there are Pods: while they change all the time, a thousand are counted twenty times a
# second.
PAUSE_PER_POD = 0.00005

Key = str
R = TypeVar("R", bound=Replicas)


class ReplicasController(Generic[R]):
    """One kind of workload that is a number of like Pods."""

    def __init__(
        self,
        cluster: Cluster,
        replicas: Informer[R],
        pods: Dependants[Pod],
        *,
        name: str,
        resource: Resource,
        recorder: EventRecorder,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.name = name
        self._cluster = cluster
        self._resource = resource
        self._replicas = replicas
        self._pods = pods
        self._now = now
        self._owners = Owners(resource, replicas)
        self._claims: Claims[Pod] = Claims(cluster, resource, PODS)
        self._keeper = PodKeeper(cluster, pods.informer, recorder)
        self._written = OwnWrites(replicas)
        self._siblings = replicas.index("controller", controller_uid)

    def attach(self, loop: Loop) -> None:
        def changed(old: R | None, new: R | None) -> None:
            present = new if new is not None else old
            assert present is not None
            loop.add(key_of(present.metadata.namespace, present.metadata.name))

        def pod_changed(key: Key, old: Pod | None, new: Pod | None) -> None:
            replicas = self._replicas.by_key(key)
            loop.add_batched(key, at_least=replicas.spec.replicas * PAUSE_PER_POD if replicas is not None else 0.0)

        self._replicas.on_change(changed)
        self._pods.follow(self._owners, pod_changed)

    async def synced(self) -> None:
        await self._replicas.synced.wait()
        await self._pods.informer.synced.wait()

    async def reconcile(self, key: Key) -> None:
        replicas = self._replicas.by_key(key)
        if replicas is None:
            self._keeper.forget(key)
            self._written.forget(key)
            return
        if not self._written.seen(key):
            return
        settled = await self._keeper.settled(key)
        owned = self._pods.of(replicas.metadata.uid)
        orphans = self._pods.orphans(replicas.metadata.namespace, replicas.selector)
        claimed = claim(replicas, [p for p in owned if p.active], [p for p in orphans if p.active])
        active = await self._claims.make(replicas, claimed)
        now = self._now()
        failure = await self._adjust(key, replicas, active, now) if settled else None
        terminating = claim(replicas, [p for p in owned if p.terminating and not p.finished], ()).kept
        status = count(replicas, active, terminating=len(terminating), failure=failure, now=now)
        await self._report(key, replicas, status)
        if failure is not None:
            raise failure
        after = next_available(active, replicas.spec.min_ready_seconds, now)
        if after is not None:
            raise Again(after, "a Pod will have been ready for long enough")

    async def _adjust(self, key: Key, replicas: R, active: Sequence[Pod], now: float) -> ApiError | None:
        change = plan(replicas, active, related=self._related(replicas, active), now=now)
        about = Reference.of(self._resource, replicas.metadata)
        if change.create:
            assert replicas.spec.template is not None, "the API server demands one"
            pod = pod_from(replicas.spec.template, owner=owner_reference(self._resource, replicas.metadata))
            return await self._keeper.create(key, about, [pod] * change.create)
        if change.delete:
            return await self._keeper.delete(key, about, change.delete)
        return None

    def _related(self, replicas: R, active: Sequence[Pod]) -> Iterable[Pod]:
        """The Pods of all that have the same owner, such as the ReplicaSets of one Deployment."""
        owner = replicas.metadata.controller
        if owner is None:
            return active
        return (pod for sibling in self._siblings.objects(owner.uid) for pod in self._pods.of(sibling.metadata.uid))

    async def _report(self, key: Key, replicas: R, status: ReplicasStatus) -> None:
        changed = difference(replicas.status, status, always=("replicas",))
        if not changed:
            return
        try:
            version = await patch_status(self._cluster, self._resource, replicas.metadata, status=changed)
        except NotFound:
            return  # deleted meanwhile: nobody will miss it
        self._written.wrote(key, version)
