"""Creates, updates and deletes the Pods of StatefulSets.

:mod:`seamark.controllers.workloads.statefulset` decides what to do; this module follows the cluster and does it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from seamark.access.cluster import Receipt
from seamark.access.correlation import Reference
from seamark.access.informer import Informer
from seamark.controllers.workloads.history import Collision, History, Revision, restored
from seamark.controllers.workloads.owners import Claims, Dependants, claim
from seamark.controllers.workloads.pods import PodKeeper, Verb
from seamark.controllers.workloads.replicas import BURST, next_available, pause
from seamark.controllers.workloads.statefulset import (
    MemberChanges,
    Revisions,
    StatefulSet,
    claim_names,
    count,
    new_claims,
    new_pod,
    ordinal,
    plan,
    revision_of,
)
from seamark.controllers.workloads.workload import WorkloadController, Workplace
from seamark.errors import AlreadyExists, ApiError, NotFound, Object
from seamark.kinds.resource import PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS
from seamark.kinds.wellknown import POD_NAME_LABEL
from seamark.rules.objects.pod import Pod
from seamark.rules.objects.workloads import owner_reference
from seamark.runtime.controller import Again
from seamark.runtime.queue import Key


class StatefulSetController(WorkloadController[StatefulSet]):
    """Follows StatefulSets and their Pods."""

    def __init__(
        self,
        stateful_sets: Informer[StatefulSet],
        pods: Dependants[Pod],
        revisions: Dependants[Revision],
        place: Workplace,
    ) -> None:
        super().__init__("statefulset-controller", STATEFUL_SETS, stateful_sets, place)
        self._pods = pods
        self._claims: Claims[Pod] = Claims(self._cluster, STATEFUL_SETS, PODS)
        self._keeper = PodKeeper(self._cluster, pods.informer, self._recorder, wording=wording)
        self._history: History[StatefulSet] = History(
            self._cluster, STATEFUL_SETS, revisions, hash_label="controller.kubernetes.io/hash"
        )
        pods.follow(self.owners, self._pod_changed)
        self._history.follow(self.owners, self.queue.add)

    def _pod_changed(self, key: Key, old: Pod | None, new: Pod | None) -> None:
        stateful_set = self._workloads.by_key(key)
        if stateful_set is None or stateful_set.status.replicas < BURST:
            self.queue.add(key)
        else:
            self.queue.add_batched(key, at_least=pause(stateful_set.spec.replicas, stateful_set.status.replicas))

    # --- one StatefulSet ---------------------------------------------------------------------------

    async def reconcile(self, key: Key) -> None:
        stateful_set = self._workloads.by_key(key)
        if stateful_set is None:
            self._written.forget(key)
            self._keeper.forget(key)
            self._history.forget(key)
            return
        if not (self._written.caught_up(key) and self._history.caught_up(key)):
            return
        pods = await self._claimed(stateful_set)
        if stateful_set.metadata.deletion_timestamp is not None:
            # It is being deleted: its history may be gone already, and no Pods have to be created from it.
            before = stateful_set.status
            await self._count(key, stateful_set, pods, Revisions(before.current_revision, before.update_revision))
            return
        history = await self._history.of(stateful_set)
        update = await self._update_revision(key, stateful_set, history)
        if update is None:
            return
        named = stateful_set.status.current_revision
        current = next((r for r in history if r.metadata.name == named and restored(r)), update)
        revisions = Revisions(current.metadata.name, update.metadata.name)
        failure = None
        if await self._keeper.settled(key):
            change = plan(stateful_set, pods, revisions, now=self._clock.time())
            failure = await self._apply(key, stateful_set, change, (current, update))
        await self._count(key, stateful_set, pods, revisions)
        if failure is not None:
            raise failure
        live = {*(revision_of(pod) for pod in pods), revisions.current, revisions.update}
        await self._truncate(stateful_set, history, live=live)
        after = next_available(pods, stateful_set.spec.min_ready_seconds, self._clock.time())
        if after is not None:
            raise Again(after, "a Pod will have been ready for long enough")

    async def _claimed(self, stateful_set: StatefulSet) -> list[Pod]:
        meta = stateful_set.metadata
        claimed = claim(
            stateful_set,
            self._pods.of(meta.uid),
            self._pods.orphans(meta.namespace, stateful_set.selector),
            fits=lambda pod: ordinal(meta.name, pod.metadata.name) is not None,
        )
        return await self._claims.make(stateful_set, claimed)

    async def _update_revision(
        self, key: Key, stateful_set: StatefulSet, history: Sequence[Revision]
    ) -> Revision | None:
        collisions = stateful_set.status.collision_count or 0
        template = stateful_set.spec.template
        try:
            return await self._history.current(key, stateful_set, template, history, collisions=collisions)
        except Collision:
            await self._patch_status(key, stateful_set, {"collisionCount": collisions + 1})
            raise

    # --- writing -----------------------------------------------------------------------------------

    async def _apply(
        self, key: Key, stateful_set: StatefulSet, change: MemberChanges, revisions: Sequence[Revision]
    ) -> ApiError | None:
        about = Reference.of(STATEFUL_SETS, stateful_set.metadata)
        templates = {revision.metadata.name: restored(revision) for revision in revisions}
        for pod in change.relabel:
            await self._relabel(pod)
        if stateful_set.spec.volume_claim_templates:
            await self._keep_claims(about, stateful_set, change)
        made = [new_pod(stateful_set, templates[creation.revision], creation) for creation in change.create]
        failure = await self._keeper.create(key, about, made)
        return failure or await self._keeper.delete(key, about, change.delete)

    async def _keep_claims(self, about: Reference, stateful_set: StatefulSet, change: MemberChanges) -> None:
        """Create the claims of new Pods; those of Pods that go for good may go with them."""
        meta = stateful_set.metadata
        for creation in change.create:
            pod = f"{meta.name}-{creation.ordinal}"
            for wanted in new_claims(stateful_set, creation.ordinal):
                await self._create_claim(about, meta.namespace, pod, wanted)
        if stateful_set.spec.persistent_volume_claim_retention_policy.when_scaled != "Delete":
            return
        for gone in change.delete:
            place = ordinal(meta.name, gone.metadata.name)
            if place is None or place in stateful_set.places:
                continue
            patch = {"metadata": {"ownerReferences": [owner_reference(PODS, gone.metadata)]}}
            for name in claim_names(stateful_set, place).values():
                with suppress(NotFound):
                    await self._cluster.patch(PERSISTENT_VOLUME_CLAIMS, name, patch, namespace=meta.namespace)

    async def _create_claim(self, about: Reference, namespace: str, pod: str, wanted: Object) -> None:
        name = wanted["metadata"]["name"]
        said = f"Claim {name} Pod {pod} in StatefulSet {about.name}"
        try:
            await self._cluster.create(PERSISTENT_VOLUME_CLAIMS, wanted, namespace=namespace, as_=Receipt)
        except AlreadyExists:
            return
        except ApiError as error:
            message = f"create {said} failed error: {error}"
            self._recorder.record(about, "Warning", reason="FailedCreate", message=message)
            raise
        self._recorder.record(about, "Normal", reason="SuccessfulCreate", message=f"create {said} success")

    async def _relabel(self, pod: Pod) -> None:
        """Give an adopted Pod the labels of its identity."""
        meta = pod.metadata
        patch = {"metadata": {"uid": meta.uid, "labels": {POD_NAME_LABEL: meta.name}}}
        with suppress(NotFound):
            await self._cluster.patch(PODS, meta.name, patch, namespace=meta.namespace)

    async def _count(self, key: Key, stateful_set: StatefulSet, pods: Sequence[Pod], revisions: Revisions) -> None:
        before = stateful_set.status
        now = self._clock.time()
        after = count(stateful_set, pods, revisions, collisions=before.collision_count or 0, now=now)
        await self._report(key, stateful_set, before, after, always=("replicas", "availableReplicas"))

    async def _truncate(self, stateful_set: StatefulSet, history: Sequence[Revision], *, live: set[str]) -> None:
        limit = stateful_set.spec.revision_history_limit
        past = [revision for revision in history if revision.metadata.name not in live]
        if limit is not None and len(past) > limit:
            await self._history.delete(past[: len(past) - limit])


def wording(workload: Reference, verb: Verb, pod: str, error: ApiError | None) -> str:
    """The Event message of a StatefulSet for a Pod that was, or could not be, created or deleted."""
    outcome = "successful" if error is None else f"failed error: {error}"
    return f"{verb} Pod {pod} in StatefulSet {workload.name} {outcome}"
