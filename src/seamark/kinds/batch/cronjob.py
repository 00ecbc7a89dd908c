"""CronJob: Jobs that are made at certain times."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo
from typing import Any

from seamark.errors import Object
from seamark.kinds.batch import schedule
from seamark.kinds.batch.job import job_warnings, name_warnings
from seamark.kinds.batch.job_spec import spec_mistakes
from seamark.kinds.counted import same_generation
from seamark.kinds.kind import Column
from seamark.kinds.resource import CRON_JOBS
from seamark.kinds.subresource import status_of
from seamark.kinds.values.fields import Errors, invalid, not_supported, required
from seamark.kinds.values.label_selector import printed
from seamark.kinds.values.times import age
from seamark.kinds.workloads import workload
from seamark.remembering import remembered

LONGEST_NAME = 52  # the name of a Job is that of its CronJob and eleven characters more
_POLICIES = ("Allow", "Forbid", "Replace")
_NO_ZONE = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
_TWO_ZONES = "cannot use both timeZone field and TZ or CRON_TZ in schedule"


class CronJobKind(workload.Workload):
    resource = CRON_JOBS
    singular = "cronjob"
    shape_name = "io.k8s.api.batch.v1.CronJob"
    short_names = ("cj",)
    subresources = (status_of("CronJob"),)
    columns = (
        Column("Name", format="name"),
        Column("Schedule"),
        Column("Timezone"),
        Column("Suspend", "boolean"),
        Column("Active", "integer"),
        Column("Last Schedule"),
        Column("Age"),
        *workload.CONTAINER_COLUMNS,
        workload.SELECTOR_COLUMN,
    )

    def default(self, obj: Object) -> None:
        spec = obj["spec"]
        spec["concurrencyPolicy"] = spec.get("concurrencyPolicy") or "Allow"
        spec.setdefault("suspend", False)
        spec.setdefault("successfulJobsHistoryLimit", 3)
        spec.setdefault("failedJobsHistoryLimit", 1)
        workload.default_template(spec["jobTemplate"].setdefault("spec", {}))

    def validate(self, obj: Object) -> Errors:
        name = obj["metadata"].get("name", "")
        long = len(name) > LONGEST_NAME
        sentence = f"must be no more than {LONGEST_NAME} characters"
        errors = _spec_mistakes(obj["spec"], None)
        return errors + ([invalid("metadata.name", name, sentence)] if long else [])

    def validate_update(self, obj: Object, old: Object) -> Errors:
        return _spec_mistakes(obj["spec"], old["spec"])

    def warnings(self, obj: Object, old: Object | None) -> list[str]:
        meta, spec = obj["metadata"], obj["spec"]
        if same_generation(obj, old):
            return []
        sentences = name_warnings(meta) if old is None else []
        if "TZ" in spec["schedule"]:
            sentences.append(
                "CRON_TZ or TZ used in spec.schedule is not officially supported, see "
                "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/"
                "#unsupported-timezone-specification for more details"
            )
        return sentences + job_warnings(spec["jobTemplate"]["spec"], "spec.jobTemplate.spec")

    def row(self, obj: Object, now: float) -> Sequence[Any]:
        meta, spec, status = obj["metadata"], obj["spec"], obj["status"]
        job, last = spec["jobTemplate"]["spec"], status.get("lastScheduleTime")
        return [
            meta.get("name", ""),
            spec.get("schedule", ""),
            spec.get("timeZone") or "<none>",
            str(spec.get("suspend", "<unset>")),
            len(status.get("active") or ()),
            age(now, last) if last else "<none>",
            age(now, meta.get("creationTimestamp")),
            *workload.container_cells(job["template"]),
            workload.selector_cell(job["selector"]) if job.get("selector") is not None else "<none>",
        ]


def _spec_mistakes(spec: Object, old: Object | None) -> Errors:
    errors = _schedule_mistakes(spec, old)
    if (seconds := spec.get("startingDeadlineSeconds")) is not None:
        errors += workload.not_negative(seconds, "spec.startingDeadlineSeconds")
    if old is None or spec.get("timeZone") != old.get("timeZone"):
        errors += _zone_mistakes(spec.get("timeZone"))
    if spec["concurrencyPolicy"] not in _POLICIES:
        errors.append(not_supported("spec.concurrencyPolicy", spec["concurrencyPolicy"], _POLICIES))
    errors += _template_mistakes(spec["jobTemplate"]["spec"], "spec.jobTemplate.spec")
    for field in ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        if spec.get(field) is not None:
            errors += workload.not_negative(spec[field], f"spec.{field}")
    return errors


def _schedule_mistakes(spec: Object, old: Object | None) -> Errors:
    text, path = spec["schedule"], "spec.schedule"
    if not text:
        return [required(path)]
    errors: Errors = []
    try:
        schedule.parse(without_zone(text)[1])
    except schedule.ScheduleError as error:
        errors.append(invalid(path, text, str(error)))
    if "TZ" in text:
        kept = old is not None and "TZ" in old["schedule"]
        if not kept:
            errors.append(invalid(path, text, _NO_ZONE))
        elif spec.get("timeZone") is not None:
            errors.append(invalid(path, text, _TWO_ZONES))
    return errors


def without_zone(text: str) -> tuple[str, str]:
    """The zone of an old expression such as ``TZ=UTC 0 0 * * *``, "" if it has none, and the expression itself."""
    if not text.startswith(("TZ=", "CRON_TZ=")):
        return "", text
    zone, _, rest = text.partition(" ")
    return zone.partition("=")[2], rest.strip()


def _zone_mistakes(zone: str | None) -> Errors:
    path = "spec.timeZone"
    if zone is None:
        return []
    if not zone:
        return [invalid(path, zone, "timeZone must be nil or non-empty string")]
    if zone.lower() == "local":
        sentence = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        return [invalid(path, zone, sentence)]
    return [] if time_zone(zone) is not None else [invalid(path, zone, f"unknown time zone {zone}")]


@remembered(256)
def time_zone(name: str) -> tzinfo | None:
    """The time zone of this name; None if there is none."""
    from zoneinfo import ZoneInfo  # here, since few clusters have CronJobs

    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # unknown; not a name; a directory
        return None


def _template_mistakes(spec: Object, path: str) -> Errors:
    errors = spec_mistakes(spec, path)
    if spec.get("selector") is not None:
        errors.append(invalid(f"{path}.selector", printed(spec["selector"]), "`selector` will be auto-generated"))
    if spec.get("manualSelector"):
        errors.append(not_supported(f"{path}.manualSelector", True, ("nil", "false")))
    return errors


CRON_JOB = CronJobKind()
