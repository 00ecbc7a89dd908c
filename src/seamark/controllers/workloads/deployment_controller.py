"""Rolls Deployments out through their ReplicaSets.

:mod:`seamark.controllers.workloads.rollout` decides what to do; this module follows the cluster and does it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from seamark.access.cluster import Receipt
from seamark.access.correlation import Reference
from seamark.access.informer import Informer
from seamark.controllers.workloads import rollout_status
from seamark.controllers.workloads.deployment import REVISION, Deployment, DeploymentStatus, same_template
from seamark.controllers.workloads.owners import Claims, Dependants, claim
from seamark.controllers.workloads.replicas import ReplicaSet
from seamark.controllers.workloads.rollout import Resize, plan, split
from seamark.controllers.workloads.workload import WorkloadController, Workplace, difference
from seamark.errors import AlreadyExists, ApiError, NotFound, Object
from seamark.kinds.resource import DEPLOYMENTS, REPLICA_SETS
from seamark.rules.objects.conditions import with_condition
from seamark.rules.objects.pod import Pod
from seamark.runtime.controller import Again, Expected
from seamark.runtime.ledger import Ledger
from seamark.runtime.queue import Key


class Collision(Expected):
    """The name of the new ReplicaSet is taken by another; the next attempt uses another name."""


class DeploymentController(WorkloadController[Deployment]):
    """Follows Deployments and their ReplicaSets."""

    def __init__(
        self,
        deployments: Informer[Deployment],
        replica_sets: Dependants[ReplicaSet],
        pods: Dependants[Pod],
        place: Workplace,
    ) -> None:
        super().__init__("deployment-controller", DEPLOYMENTS, deployments, place)
        self._sets = replica_sets
        self._pods = pods
        self._claims: Claims[ReplicaSet] = Claims(self._cluster, DEPLOYMENTS, REPLICA_SETS)
        self._written_sets = Ledger(replica_sets.informer)
        self._sets.follow(self.owners, self._set_changed)
        self.watch(pods.informer, self._pod_changed)

    def _set_changed(self, key: Key, old: ReplicaSet | None, new: ReplicaSet | None) -> None:
        self.queue.add_batched(key)

    def _pod_changed(self, key: Key, old: Pod | None, new: Pod | None) -> None:
        # Only Recreate waits for Pods to be gone; all other progress is visible in the ReplicaSets.
        if new is None and old is not None and (deployment := self._recreating(old)) is not None:
            self.queue.add(deployment)

    def _recreating(self, pod: Pod) -> Key | None:
        """The Deployment of a Pod, if its strategy is Recreate and it waits for its Pods to go."""
        owner = pod.metadata.controller
        if owner is None or owner.kind != REPLICA_SETS.kind:
            return None
        replica_set = self._sets.informer.get(owner.name, pod.metadata.namespace)
        above = replica_set.metadata.controller if replica_set is not None else None
        found = self.owners.referred(above, pod.metadata.namespace) if above is not None else None
        return found.metadata.key if found is not None and not found.rolling else None

    # --- one Deployment ----------------------------------------------------------------------------

    async def reconcile(self, key: Key) -> None:
        deployment = self._workloads.by_key(key)
        if deployment is None:
            self._written.forget(key)
            self._written_sets.forget(key)
            return
        if not (self._written.caught_up(key) and self._written_sets.caught_up(key)):
            return
        sets = await self._claimed(deployment)
        planned = plan(deployment, sets, lingering=self._lingering(deployment, sets), now=self._clock.time())
        if planned.create is not None and not await self._create(key, deployment, planned.create):
            return
        for resize in planned.resize:
            await self._resize(key, deployment, resize)
        for gone in planned.delete:
            await self._delete(gone)
        revised = planned.revision and deployment.metadata.annotations.get(REVISION) != planned.revision
        annotations = {REVISION: planned.revision} if revised else None
        await self._report(key, deployment, deployment.status, planned.status, annotations=annotations)
        if planned.again is not None:
            raise Again(planned.again, "the rollout must have moved by then")

    async def _claimed(self, deployment: Deployment) -> Sequence[ReplicaSet]:
        orphans = self._sets.orphans(deployment.metadata.namespace, deployment.selector)
        return await self._claims.make(deployment, claim(deployment, self._sets.of(deployment.metadata.uid), orphans))

    def _lingering(self, deployment: Deployment, sets: Sequence[ReplicaSet]) -> bool:
        if deployment.rolling:
            return False
        _, old = split(deployment, sets)
        return any(not pod.finished for rs in old for pod in self._pods.of(rs.metadata.uid))

    # --- writing -----------------------------------------------------------------------------------

    async def _create(self, key: Key, deployment: Deployment, made: Object) -> bool:
        """Create the new ReplicaSet; False if the namespace is being deleted, so that nothing can be created."""
        meta = deployment.metadata
        name, size = made["metadata"]["name"], made["spec"]["replicas"]
        try:
            created = await self._cluster.create(REPLICA_SETS, made, namespace=meta.namespace, as_=Receipt)
        except AlreadyExists:
            await self._collided(key, deployment, name)
            return True
        except ApiError as error:
            if error.namespace_terminating:
                return False
            await self._complain(key, deployment, f'Failed to create new replica set "{name}": {error}')
            raise
        self._written_sets.wrote(key, created.version)
        if size:
            self._tell(deployment, f"Scaled up replica set {name} from 0 to {size}")
        return True

    async def _collided(self, key: Key, deployment: Deployment, name: str) -> None:
        """The name is taken: by our own ReplicaSet that the informer does not show yet, or by another object."""
        meta = deployment.metadata
        there = await self._cluster.get(REPLICA_SETS, name, namespace=meta.namespace, as_=ReplicaSet)
        owner = there.metadata.controller
        if owner is not None and owner.uid == meta.uid and same_template(deployment, there):
            self._written_sets.wrote(key, there.metadata.resource_version)
            return
        count = (deployment.status.collision_count or 0) + 1
        await self._patch_status(key, deployment, {"collisionCount": count})
        raise Collision(f"the ReplicaSet {meta.namespace}/{name} belongs to another owner")

    async def _resize(self, key: Key, deployment: Deployment, resize: Resize) -> None:
        before, after = resize.before, resize.after
        meta = before.metadata
        old, new = before.spec.replicas, after.spec.replicas
        spec: dict[str, Any] = {}
        if new != old:
            spec["replicas"] = new
        if before.spec.min_ready_seconds != after.spec.min_ready_seconds:
            spec["minReadySeconds"] = after.spec.min_ready_seconds or None
        about: dict[str, Any] = {"uid": meta.uid, "resourceVersion": meta.resource_version}
        if annotations := dict(after.metadata.annotations.items() - meta.annotations.items()):
            about["annotations"] = annotations
        patch = {"metadata": about, "spec": spec} if spec else {"metadata": about}
        resized = await self._cluster.patch(REPLICA_SETS, meta.name, patch, namespace=meta.namespace, as_=Receipt)
        self._written_sets.wrote(key, resized.version)
        if new != old:
            self._tell(
                deployment, f"Scaled {'up' if new > old else 'down'} replica set {meta.name} from {old} to {new}"
            )

    async def _delete(self, gone: ReplicaSet) -> None:
        meta = gone.metadata
        with suppress(NotFound):
            await self._cluster.delete(
                REPLICA_SETS, meta.name, namespace=meta.namespace, uid=meta.uid, propagation="Background"
            )

    async def _complain(self, key: Key, deployment: Deployment, message: str) -> None:
        """Report that no ReplicaSet could be created; with a deadline, in the status too."""
        reason = "ReplicaSetCreateError"
        self._recorder.record(Reference.of(DEPLOYMENTS, deployment.metadata), "Warning", reason=reason, message=message)
        if deployment.deadline is not None:
            failed = rollout_status.progressing("False", reason, message, now=self._clock.time())
            conditions = with_condition(deployment.status.conditions, failed)
            if conditions != deployment.status.conditions:
                status = DeploymentStatus(conditions=conditions)
                changed = {"conditions": difference(DeploymentStatus(), status)["conditions"]}
                await self._patch_status(key, deployment, changed)

    def _tell(self, deployment: Deployment, message: str) -> None:
        self._recorder.record(
            Reference.of(DEPLOYMENTS, deployment.metadata), "Normal", reason="ScalingReplicaSet", message=message
        )
