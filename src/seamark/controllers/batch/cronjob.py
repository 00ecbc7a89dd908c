"""CronJobs as data, and when they are due (pure)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, tzinfo
from typing import Any

import msgspec

from seamark.controllers.batch.job import Job
from seamark.errors import Object
from seamark.kinds.batch.cronjob import time_zone, without_zone
from seamark.kinds.batch.schedule import Schedule, parse
from seamark.kinds.resource import CRON_JOBS
from seamark.kinds.values import times
from seamark.rules.objects.metadata import ObjectReference, ObjectView, View
from seamark.rules.objects.workloads import owner_reference

SCHEDULED_ANNOTATION = "batch.kubernetes.io/cronjob-scheduled-timestamp"
MANY = 100  # more missed times than these deserve a warning
LATE = 0.1  # seconds after the scheduled time at which a CronJob is looked at, so that it is certainly due


class CronJobSpec(View, frozen=True):
    schedule: str = ""
    time_zone: str | None = None
    starting_deadline_seconds: int | None = None
    concurrency_policy: str = "Allow"
    suspend: bool = False
    job_template: dict[str, Any] = msgspec.field(default_factory=dict)
    successful_jobs_history_limit: int | None = None
    failed_jobs_history_limit: int | None = None


class CronJobStatus(View, frozen=True):
    active: tuple[ObjectReference, ...] = ()
    last_schedule_time: str | None = None
    last_successful_time: str | None = None


class CronJob(ObjectView, frozen=True):
    spec: CronJobSpec = CronJobSpec()
    status: CronJobStatus = CronJobStatus()


class Timetable(msgspec.Struct, frozen=True):
    """A schedule in its time zone."""

    schedule: Schedule
    zone: tzinfo = UTC

    @classmethod
    def of(cls, spec: CronJobSpec) -> Timetable:
        """Raises ``ScheduleError``, and ``LookupError`` for a time zone that is not known here."""
        named, text = without_zone(spec.schedule)
        named = named or spec.time_zone or "UTC"
        zone = time_zone(named)
        if zone is None:
            raise LookupError(f"unknown time zone {named}")
        return cls(parse(text), zone)

    def after(self, moment: float) -> float | None:
        return self.schedule.after(moment, self.zone)


class Due(msgspec.Struct, frozen=True):
    """The last time at which a Job should have been made and was not, if any; whether many were missed; and in how
    many seconds the next one is (None: never)."""

    at: float | None = None
    many: bool = False
    wait: float | None = None


def due(job: CronJob, timetable: Timetable, now: float) -> Due:
    """What is due now, and when to look again."""
    created = times.parse(job.metadata.creation_timestamp) if job.metadata.creation_timestamp else now
    last = times.parse(job.status.last_schedule_time) if job.status.last_schedule_time else created
    deadline = job.spec.starting_deadline_seconds
    latest, many = _latest(timetable, last, now)
    at = latest
    if deadline is not None and now - deadline > last:
        at, many = _latest(timetable, now - deadline, now)
    following = timetable.after(last if latest is None else latest)
    return Due(at, many, None if following is None else following - now + LATE)


def _latest(timetable: Timetable, start: float, now: float) -> tuple[float | None, bool]:
    """The last time after ``start`` that is not in the future, and whether there are many.

    How many there are is estimated from the distance of the first two: a CronJob may have been away for years.
    """
    first = timetable.after(start)
    if first is None or first > now:
        return None, False
    second = timetable.after(first)
    if second is None or second > now:
        return first, False
    distance = max(1.0, second - first)
    missed = int((now - first) // distance) + 1
    latest, moment = first, timetable.after(max(start, first + (missed - 2) * distance))
    for _ in range(2 * MANY):  # of an irregular schedule there may be more; then go on from there
        if moment is None or moment > now:
            return latest, missed > MANY
        latest, moment = moment, timetable.after(moment)
    return latest, True


def job_name(job: CronJob, at: float) -> str:
    return f"{job.metadata.name}-{int(at) // 60}"


def job_object(job: CronJob, at: float, zone: tzinfo) -> Object:
    """The Job that is made for this time."""
    template = job.spec.job_template
    given = template.get("metadata") or {}
    scheduled = datetime.fromtimestamp(int(at), zone).isoformat().replace("+00:00", "Z")
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": job_name(job, at),
            "labels": dict(given.get("labels") or {}),
            "annotations": {**(given.get("annotations") or {}), SCHEDULED_ANNOTATION: scheduled},
            "ownerReferences": [owner_reference(CRON_JOBS, job.metadata)],
        },
        "spec": template.get("spec") or {},
    }


def too_old(job: CronJob, jobs: Sequence[Job]) -> list[Job]:
    """The ended Jobs beyond those to keep, the oldest first."""
    found: list[Job] = []
    for type, limit in (
        ("Failed", job.spec.failed_jobs_history_limit),
        ("Complete", job.spec.successful_jobs_history_limit),
    ):
        ended = [each for each in jobs if each.ended is not None and each.ended.type == type]
        ended.sort(key=lambda each: (each.status.start_time or "~", each.metadata.name))
        if limit is not None and len(ended) > limit:
            found += ended[: len(ended) - limit]
    return found
