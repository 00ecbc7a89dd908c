"""Keeps the number of Pods of ReplicaSets and ReplicationControllers.

:mod:`seamark.controllers.workloads.replicas` decides what to do; this module follows the cluster and does it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from seamark.access.correlation import Reference
from seamark.access.informer import Informer
from seamark.controllers.workloads.owners import Claims, Dependants, claim, controller_uid
from seamark.controllers.workloads.pods import PodKeeper
from seamark.controllers.workloads.replicas import Replicas, count, next_available, pause, plan
from seamark.controllers.workloads.templates import pod_from
from seamark.controllers.workloads.workload import WorkloadController, Workplace
from seamark.errors import ApiError
from seamark.kinds.resource import PODS, Resource
from seamark.rules.objects.pod import Pod
from seamark.rules.objects.workloads import owner_reference
from seamark.runtime.controller import Again
from seamark.runtime.queue import Key

R = TypeVar("R", bound=Replicas)


class ReplicasController(WorkloadController[R]):
    """The controller of one kind of workload with a number of equal Pods."""

    def __init__(
        self,
        name: str,
        resource: Resource,
        replicas: Informer[R],
        pods: Dependants[Pod],
        place: Workplace,
    ) -> None:
        super().__init__(name, resource, replicas, place)
        self._pods = pods
        self._claims: Claims[Pod] = Claims(self._cluster, resource, PODS)
        self._keeper = PodKeeper(self._cluster, pods.informer, self._recorder)
        self._siblings = replicas.index("controller", controller_uid)
        pods.follow(self.owners, self._pod_changed)

    def _pod_changed(self, key: Key, old: Pod | None, new: Pod | None) -> None:
        replicas = self._workloads.by_key(key)
        at_least = pause(replicas.spec.replicas, replicas.status.replicas) if replicas is not None else 0.0
        self.queue.add_batched(key, at_least=at_least)

    async def reconcile(self, key: Key) -> None:
        replicas = self._workloads.by_key(key)
        if replicas is None:
            self._keeper.forget(key)
            self._written.forget(key)
            return
        if not self._written.caught_up(key):
            return
        settled = await self._keeper.settled(key)
        owned = self._pods.of(replicas.metadata.uid)
        orphans = self._pods.orphans(replicas.metadata.namespace, replicas.selector)
        claimed = claim(replicas, [p for p in owned if p.active], [p for p in orphans if p.active])
        active = await self._claims.make(replicas, claimed)
        now = self._clock.time()
        failure = await self._adjust(key, replicas, active, now) if settled else None
        terminating = claim(replicas, [p for p in owned if p.terminating and not p.finished], ()).kept
        status = count(replicas, active, terminating=len(terminating), failure=failure, now=now)
        await self._report(key, replicas, replicas.status, status, always=("replicas",))
        if failure is not None:
            raise failure
        after = next_available(active, replicas.spec.min_ready_seconds, now)
        if after is not None:
            raise Again(after, "a Pod will have been ready for long enough")

    async def _adjust(self, key: Key, replicas: R, active: Sequence[Pod], now: float) -> ApiError | None:
        change = plan(replicas, active, related=self._related(replicas, active), now=now)
        about = Reference.of(self.resource, replicas.metadata)
        if change.create:
            assert replicas.spec.template is not None, "the API server demands one"
            pod = pod_from(replicas.spec.template, owner=owner_reference(self.resource, replicas.metadata))
            return await self._keeper.create(key, about, [pod] * change.create)
        if change.delete:
            return await self._keeper.delete(key, about, change.delete)
        return None

    def _related(self, replicas: R, active: Sequence[Pod]) -> Iterable[Pod]:
        """The Pods of all workloads with the same owner, such as the ReplicaSets of one Deployment."""
        owner = replicas.metadata.controller
        if owner is None:
            return active
        return (pod for sibling in self._siblings.objects(owner.uid) for pod in self._pods.of(sibling.metadata.uid))
