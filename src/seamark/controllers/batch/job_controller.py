"""The Job controller: creates and deletes the Pods of Jobs, counts those that have ended, and ends the Jobs.

:mod:`seamark.controllers.batch.job_plan` decides what to do and :mod:`seamark.controllers.batch.books` what to count;
this module follows the cluster and does it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from msgspec.structs import replace

from seamark.access.cluster import Receipt
from seamark.access.correlation import Reference
from seamark.access.informer import Informer
from seamark.controllers.batch import books
from seamark.controllers.batch.job import TRACKING, Job, JobStatus
from seamark.controllers.batch.job_plan import Plan, plan
from seamark.controllers.batch.job_pods import job_pod
from seamark.controllers.batch.tally import Backoff, Tally, tally
from seamark.controllers.batch.tracked_pods import NAME, free
from seamark.controllers.workloads.owners import Claims, Dependants, claim
from seamark.controllers.workloads.pods import PodKeeper
from seamark.controllers.workloads.replicas import pause
from seamark.controllers.workloads.workload import WorkloadController, Workplace, difference
from seamark.errors import ApiError, Conflict, NotFound
from seamark.kinds.resource import JOBS, PODS
from seamark.kinds.values import times
from seamark.rules.objects.pod import Pod
from seamark.runtime.controller import Again
from seamark.runtime.queue import Key


class JobController(WorkloadController[Job]):
    """The controller of Jobs, and of how long they stay after their end."""

    def __init__(self, jobs: Informer[Job], pods: Dependants[Pod], place: Workplace) -> None:
        super().__init__(NAME, JOBS, jobs, place)
        self._expiring = place.cluster_for("ttl-after-finished-controller")
        self._pods = pods
        self._claims: Claims[Pod] = Claims(self._cluster, JOBS, PODS, finalizer=TRACKING)
        self._keeper = PodKeeper(self._cluster, pods.informer, self._recorder)
        self._backoffs: dict[Key, Backoff] = {}
        self._freed: dict[Key, set[str]] = {}  # uids of Pods that the informer still shows with their finalizer
        pods.follow(self.owners, self._pod_changed)

    def _pod_changed(self, key: Key, old: Pod | None, new: Pod | None) -> None:
        job = self._workloads.by_key(key)
        at_least = pause(job.spec.parallelism, job.status.active) if job is not None else 0.0
        self.queue.add_batched(key, at_least=at_least)

    async def reconcile(self, key: Key) -> None:
        job = self._workloads.by_key(key)
        if job is None or not job.ours or job.ended is not None:
            self._forget(key)
            if job is not None and job.ours:
                await self._expire(job)
            return
        if not self._written.caught_up(key) or not await self._keeper.settled(key):
            return  # the informers will show it
        found = tally(job, await self._owned(key, job), freed=self._freed.get(key, ()))
        now = self._clock.time()
        known = self._backoffs.get(key, Backoff())
        planned = plan(job, found, backoff=known.after(found.new_succeeded, found.new_failed), now=now)
        failure = await self._carry_out(key, job, found, planned)
        try:
            booked = await self._count(key, job, found, planned, adjusted=failure is None, now=now)
        except NotFound:
            return  # deleted meanwhile
        if booked:
            won, lost = (
                [pod for pod in ended if pod.metadata.uid in booked]
                for ended in (found.new_succeeded, found.new_failed)
            )
            self._backoffs[key] = known.after(won, lost)
        if failure is not None:
            raise failure
        if planned.wait is not None:
            raise Again(max(0.0, planned.wait))

    def _forget(self, key: Key) -> None:
        self._keeper.forget(key)
        self._written.forget(key)
        self._backoffs.pop(key, None)
        self._freed.pop(key, None)

    async def _owned(self, key: Key, job: Job) -> list[Pod]:
        orphans = self._pods.orphans(job.metadata.namespace, job.selector)
        pods = await self._claims.make(job, claim(job, self._pods.of(job.metadata.uid), orphans))
        if key in self._freed:
            self._freed[key] &= {pod.metadata.uid for pod in pods if TRACKING in pod.metadata.finalizers}
        return pods

    # --- the Pods ----------------------------------------------------------------------------------

    async def _carry_out(self, key: Key, job: Job, found: Tally, planned: Plan) -> ApiError | None:
        about = Reference.of(JOBS, job.metadata)
        if planned.drop:
            await self._free(key, planned.drop)  # first, so that they do not count as failed
        if planned.drop or planned.stop:
            return await self._keeper.delete(key, about, planned.drop or planned.stop)
        if planned.create:
            pods = [job_pod(job, index, found.held) for index in planned.create]
            return await self._keeper.create(key, about, pods)
        return None

    async def _free(self, key: Key, pods: Sequence[Pod]) -> set[str]:
        """Remove the finalizers of these Pods; returns the uids of those that have none any more."""
        freed = await free(self._cluster, [pod for pod in pods if TRACKING in pod.metadata.finalizers])
        self._freed.setdefault(key, set()).update(freed)
        return freed

    # --- the status --------------------------------------------------------------------------------

    async def _count(
        self, key: Key, job: Job, found: Tally, planned: Plan, *, adjusted: bool, now: float
    ) -> Collection[str]:
        """Write the status; returns the uids of the Pods that it counts or names now.

        ``adjusted`` says that the Pods are as planned.
        """
        status = _status(job, found, planned, adjusted=adjusted, now=now)
        # While Pods are active that could not be stopped yet, the Job goes on; the next look comes to the same end.
        finish = planned.finish if adjusted and len(planned.stop) == len(found.active) else None
        if planned.finish is None and job.metadata.deletion_timestamp is None:
            before, status = status, books.suspended(status, job.spec.suspend, now)
            if status is not before:
                word = "Suspended" if job.spec.suspend else "Resumed"
                self._tell(job, "Normal", word, f"Job {word.lower()}")
        book = books.book(job, found, status, finish)
        tracked = {pod.metadata.uid for pod in found.tracked}
        if book.free:
            # The names of the Pods have to be stored before they may go.
            job = await self._save(key, job, book.status)
            freed = await self._free(key, book.free)
            tracked -= freed
        status = books.counted(book.status, tracked)
        if finish is not None and not book.full:
            status = books.ended(status, finish, now)
        saved = await self._save(key, job, status)
        if saved.ended is not None:
            self._announce(saved)
        booked = {pod.metadata.uid for pod in book.free}
        if tracked & booked:
            raise Again(1.0, "finalizers could not be removed")
        return booked

    async def _save(self, key: Key, job: Job, status: JobStatus) -> Job:
        """The Job with this status, which is written if it differs from the present one."""
        patch: dict[str, Any] = difference(job.status, status)
        if not patch:
            return job
        if (names := patch.get("uncountedTerminatedPods")) is not None:
            # A merge patch removes only what it names.
            patch["uncountedTerminatedPods"] = {"succeeded": None, "failed": None, **names}
        meta = job.metadata
        written = await self._cluster.patch(
            JOBS,
            meta.name,
            {"metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version}, "status": patch},
            namespace=meta.namespace,
            subresource="status",
            as_=Receipt,
        )
        self._written.wrote(key, written.version)
        return replace(job, metadata=replace(meta, resource_version=written.version), status=status)

    def _announce(self, job: Job) -> None:
        end, wanted = job.ended, job.spec.completions
        assert end is not None, "called at the end"
        if end.type == "Failed":
            self._tell(job, "Warning", end.reason, end.message)
            return
        if wanted is not None and job.status.succeeded > wanted:
            message = "Too many succeeded pods running after completion count reached"
            self._tell(job, "Warning", "TooManySucceededPods", message)
        self._tell(job, "Normal", "Completed", "Job completed")

    def _tell(self, job: Job, type: Any, reason: str, message: str) -> None:
        self._recorder.record(Reference.of(JOBS, job.metadata), type, reason=reason, message=message)

    # --- afterwards --------------------------------------------------------------------------------

    async def _expire(self, job: Job) -> None:
        """Delete a Job that ended so long ago as it says."""
        meta, end, seconds = job.metadata, job.ended, job.spec.ttl_seconds_after_finished
        if end is None or seconds is None or meta.deletion_timestamp is not None or not end.last_transition_time:
            return
        left = times.parse(end.last_transition_time) + seconds - self._clock.time()
        if left > 0:
            raise Again(left, "it may stay for so long")
        try:
            # This version only: another one may say something else about how long it stays.
            await self._expiring.delete(
                JOBS,
                meta.name,
                namespace=meta.namespace,
                uid=meta.uid,
                version=meta.resource_version,
                propagation="Foreground",
            )
        except (NotFound, Conflict):
            return


def _status(job: Job, found: Tally, planned: Plan, *, adjusted: bool, now: float) -> JobStatus:
    """The counters, with what was just done to the Pods, and the time of the start."""
    gone = len(planned.stop) + len(planned.drop) if adjusted else 0
    active = len(found.active) - gone + (len(planned.create) if adjusted else 0)
    started = job.status.start_time
    return replace(
        job.status,
        active=active,
        ready=min(found.ready, active),
        terminating=found.terminating + gone,
        start_time=started if started is not None or job.spec.suspend else times.text(now),
    )
