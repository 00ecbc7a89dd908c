"""The CronJob controller: makes Jobs when their time comes, keeps track of those at work, and removes old ones.

:mod:`seamark.controllers.batch.cronjob` says what is due; this module follows the cluster and does it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec.structs import replace

from seamark.access.correlation import Reference
from seamark.access.informer import Informer, key_of
from seamark.controllers.batch.cronjob import CronJob, CronJobStatus, Timetable, due, job_name, job_object, too_old
from seamark.controllers.batch.job import Job
from seamark.controllers.workloads.owners import controller_uid
from seamark.controllers.workloads.workload import Workplace, difference
from seamark.errors import AlreadyExists, ApiError, NotFound
from seamark.kinds.batch.schedule import ScheduleError
from seamark.kinds.resource import CRON_JOBS, JOBS
from seamark.kinds.values import times
from seamark.rules.objects.metadata import ObjectReference, Written
from seamark.runtime.controller import Again, Controller
from seamark.runtime.ledger import Ledger
from seamark.runtime.queue import Key


class CronJobController(Controller):
    """The controller of CronJobs."""

    def __init__(self, cron_jobs: Informer[CronJob], jobs: Informer[Job], place: Workplace) -> None:
        super().__init__("cronjob-controller", place.manager)
        self._cluster = place.cluster_for(self.name)
        self._clock = place.manager.clock
        self._recorder = place.manager.recorder(self._cluster, self.name)
        self._cron_jobs = self.watch(cron_jobs, self._changed)
        self._jobs = self.watch(jobs, self._job_changed)
        self._owned = jobs.index("controller", controller_uid)
        self._written = Ledger(cron_jobs)
        self._made = Ledger(jobs)
        self._said: dict[Key, str] = {}  # the last Event about something that stays as it is

    def _changed(self, key: Key, old: CronJob | None, new: CronJob | None) -> None:
        self.queue.add(key)

    def _job_changed(self, key: Key, old: Job | None, new: Job | None) -> None:
        for each in (old, new):
            owner = each.metadata.controller if each is not None else None
            if each is not None and owner is not None and owner.kind == CRON_JOBS.kind:
                self.queue.add(key_of(each.metadata.namespace, owner.name))

    async def reconcile(self, key: Key) -> None:
        cron_job = self._cron_jobs.by_key(key)
        if cron_job is None:
            self._written.forget(key)
            self._made.forget(key)
            self._said.pop(key, None)
            return
        if not self._written.caught_up(key) or not self._made.caught_up(key):
            return  # the informers will show it
        jobs = self._owned.objects(cron_job.metadata.uid)
        await self._remove_old(cron_job, jobs)
        status = await self._seen(cron_job, jobs)
        wait: float | None = None
        if cron_job.metadata.deletion_timestamp is None and not cron_job.spec.suspend:
            status, wait = await self._start(key, cron_job, status)
        await self._save(key, cron_job, status)
        if wait is not None:
            raise Again(max(0.0, wait))

    # --- the Jobs there are ------------------------------------------------------------------------

    async def _remove_old(self, cron_job: CronJob, jobs: Sequence[Job]) -> None:
        for job in too_old(cron_job, jobs):
            if job.metadata.deletion_timestamp is None:
                await self._delete(cron_job, job.metadata.name, job.metadata.uid)

    async def _delete(self, cron_job: CronJob, name: str, uid: str) -> None:
        namespace = cron_job.metadata.namespace
        try:
            await self._cluster.delete(JOBS, name, namespace=namespace, uid=uid, propagation="Background")
        except NotFound:
            return
        except ApiError as error:
            self._tell(cron_job, "Warning", "FailedDelete", f"Deleted job: {error}")
            raise
        self._tell(cron_job, "Normal", "SuccessfulDelete", f"Deleted job {name}")

    async def _seen(self, cron_job: CronJob, jobs: Sequence[Job]) -> CronJobStatus:
        """The status after a look at the Jobs: which are at work, and when the last one succeeded."""
        status = cron_job.status
        listed = {each.uid for each in status.active}
        found = {job.metadata.uid: job for job in jobs}
        for job in jobs:
            name = job.metadata.name
            if job.ended is None and job.metadata.uid not in listed:
                message = f"Saw a job that the controller did not create or forgot: {name}"
                self._tell_once(cron_job, "Warning", "UnexpectedJob", message)
            elif job.ended is not None and job.metadata.uid in listed:
                message = f"Saw completed job: {name}, condition: {job.ended.type}"
                self._tell(cron_job, "Normal", "SawCompletedJob", message)
            end = job.status.completion_time
            if job.status.condition("Complete") and end and end > (status.last_successful_time or ""):
                status = replace(status, last_successful_time=end)
        active = []
        for each in status.active:
            if each.uid in found:
                there = found[each.uid].ended is None
            else:
                there = await self._exists(cron_job, each)
                if not there:
                    self._tell(cron_job, "Normal", "MissingJob", f"Active job went missing: {each.name}")
            if there:
                active.append(each)
        return replace(status, active=tuple(active))

    async def _exists(self, cron_job: CronJob, job: ObjectReference) -> bool:
        """Ask the server: the informer of Jobs may be behind that of CronJobs."""
        try:
            found = await self._cluster.get(JOBS, job.name, namespace=cron_job.metadata.namespace, as_=Written)
        except NotFound:
            return False
        return found.metadata.uid == job.uid

    # --- the next one ------------------------------------------------------------------------------

    async def _start(self, key: Key, cron_job: CronJob, status: CronJobStatus) -> tuple[CronJobStatus, float | None]:
        """Make the Job that is due, if one is; returns the new status and when to look again."""
        spec, now = cron_job.spec, self._clock.time()
        try:
            timetable = Timetable.of(spec)
        except LookupError as error:
            self._tell_once(cron_job, "Warning", "UnknownTimeZone", f'invalid timeZone: "{spec.time_zone}": {error}')
            return status, None
        except ScheduleError as error:
            message = f'unparseable schedule: "{spec.schedule}" : {error}'
            self._tell_once(cron_job, "Warning", "UnparseableSchedule", message)
            return status, None
        now_due = due(cron_job, timetable, now)
        if now_due.many:
            message = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
            self._tell(cron_job, "Warning", "TooManyMissedTimes", message)
        at = now_due.at
        if at is None and now_due.wait is None:
            # Kubernetes' words for a day that no month has.
            message = f"invalid schedule: {spec.schedule} : time difference between two schedules is less than 1 second"
            self._tell_once(cron_job, "Warning", "InvalidSchedule", message)
        if at is None:
            return status, now_due.wait
        if status.active and spec.concurrency_policy == "Forbid":
            message = "Not starting job because prior execution is running and concurrency policy is Forbid"
            self._tell_once(cron_job, "Normal", "JobAlreadyActive", message, about=str(at))
            return status, now_due.wait
        if status.active and spec.concurrency_policy == "Replace":
            for each in status.active:
                await self._delete(cron_job, each.name, each.uid)
            status = replace(status, active=())
        return await self._make(key, cron_job, status, at, timetable), now_due.wait

    async def _make(
        self, key: Key, cron_job: CronJob, status: CronJobStatus, at: float, timetable: Timetable
    ) -> CronJobStatus:
        namespace, name = cron_job.metadata.namespace, job_name(cron_job, at)
        try:
            wanted = job_object(cron_job, at, timetable.zone)
            made = await self._cluster.create(JOBS, wanted, namespace=namespace, as_=Written)
            self._made.wrote(key, made.metadata.resource_version)
            self._tell(cron_job, "Normal", "SuccessfulCreate", f"Created job {name}")
        except AlreadyExists:
            # An earlier attempt made it, and its answer or the status was lost; a strange one is not ours.
            made = await self._cluster.get(JOBS, name, namespace=namespace, as_=Written)
            owner = made.metadata.controller
            if owner is None or owner.uid != cron_job.metadata.uid:
                raise
        except ApiError as error:
            if not error.namespace_terminating:
                self._tell(cron_job, "Warning", "FailedCreate", f"Error creating job: {error}")
            raise
        meta = made.metadata
        reference = ObjectReference(JOBS.kind, namespace, name, meta.uid, JOBS.api_version, meta.resource_version)
        listed = any(each.uid == meta.uid for each in status.active)
        return replace(
            status,
            active=status.active if listed else (*status.active, reference),
            last_schedule_time=times.text(at),
        )

    # --- writing -----------------------------------------------------------------------------------

    async def _save(self, key: Key, cron_job: CronJob, status: CronJobStatus) -> None:
        patch = difference(cron_job.status, status)
        if not patch:
            return
        meta = cron_job.metadata
        about = {"uid": meta.uid, "resourceVersion": meta.resource_version}
        try:
            written = await self._cluster.patch(
                CRON_JOBS,
                meta.name,
                {"metadata": about, "status": patch},
                namespace=meta.namespace,
                subresource="status",
                as_=Written,
            )
        except NotFound:
            return  # deleted meanwhile
        self._written.wrote(key, written.metadata.resource_version)

    def _tell(self, cron_job: CronJob, type: Literal["Normal", "Warning"], reason: str, message: str) -> None:
        self._said.pop(cron_job.metadata.key, None)
        self._recorder.record(Reference.of(CRON_JOBS, cron_job.metadata), type, reason=reason, message=message)

    def _tell_once(
        self, cron_job: CronJob, type: Literal["Normal", "Warning"], reason: str, message: str, about: str = ""
    ) -> None:
        """Record an Event, unless the last one was the same: a CronJob is looked at often, mostly without a change."""
        key, said = cron_job.metadata.key, f"{reason} {message} {about}"
        if self._said.get(key) != said:
            self._tell(cron_job, type, reason, message)
            self._said[key] = said
