"""Job: Pods that run until enough of them have succeeded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from seamark.errors import Object
from seamark.kinds.batch.job_spec import MANY_COMPLETIONS, MOST_WITH_MANY, change_mistakes, selector_mistakes
from seamark.kinds.batch.job_spec import spec_mistakes as job_spec_mistakes
from seamark.kinds.batch.job_status import status_mistakes
from seamark.kinds.counted import same_generation
from seamark.kinds.kind import Column
from seamark.kinds.pod.warnings import spec_warnings
from seamark.kinds.resource import JOBS
from seamark.kinds.subresource import status_of
from seamark.kinds.values import times
from seamark.kinds.values.conditions import condition_true
from seamark.kinds.values.fields import Errors, invalid, required
from seamark.kinds.values.label_selector import printed, readable
from seamark.kinds.values.metadata import dns_label
from seamark.kinds.values.times import age
from seamark.kinds.wellknown import JOB_NAME_LABEL, JOB_UID_LABEL
from seamark.kinds.workloads import workload

MOST = 2**31 - 1
# The labels of its Pods, each also under the name it had before it got a prefix.
NAME_LABELS = (JOB_NAME_LABEL, "job-name")
UID_LABELS = (JOB_UID_LABEL, "controller-uid")

_STATES = ("Complete", "Failed", "Terminating", "Suspended", "FailureTarget", "SuccessCriteriaMet")


class JobKind(workload.Workload):
    resource = JOBS
    singular = "job"
    shape_name = "io.k8s.api.batch.v1.Job"
    named_inside = True
    subresources = (status_of("Job"),)
    default_propagation = "Orphan"  # as before there was a garbage collector
    deletion_warning = (
        "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or "
        "set propagationPolicy=Orphan to suppress this warning"
    )
    field_names = ("status.successful",)
    columns = (
        Column("Name", format="name"),
        Column("Status"),
        Column("Completions"),
        Column("Duration"),
        Column("Age"),
        *workload.CONTAINER_COLUMNS,
        workload.SELECTOR_COLUMN,
    )

    def default(self, obj: Object) -> None:
        super().default(obj)
        _label(obj)

    def default_spec(self, spec: Object) -> None:
        if spec.get("completions") is None and spec.get("parallelism") is None:
            spec["completions"] = 1
        spec.setdefault("parallelism", 1)
        spec.setdefault("backoffLimit", 6 if spec.get("backoffLimitPerIndex") is None else MOST)
        spec.setdefault("completionMode", "NonIndexed")
        spec.setdefault("suspend", False)
        spec.setdefault("manualSelector", False)
        policy = spec.get("podFailurePolicy")
        spec.setdefault("podReplacementPolicy", "TerminatingOrFailed" if policy is None else "Failed")
        for rule in (policy or {}).get("rules") or ():
            for pattern in rule.get("onPodConditions") or ():
                pattern["status"] = pattern.get("status") or "True"

    def prepare_create(self, obj: Object) -> None:
        super().prepare_create(obj)
        if not obj["spec"].get("manualSelector"):
            _generate_selector(obj)
        _label(obj)
        _part_labels(obj)

    def prepare_update(self, obj: Object, old: Object) -> None:
        super().prepare_update(obj, old)
        _part_labels(obj)

    # --- mistakes ----------------------------------------------------------------------------------

    def validate(self, obj: Object) -> Errors:
        errors = [] if obj["spec"].get("manualSelector") else _generated_mistakes(obj)
        return errors + job_spec_mistakes(obj["spec"], "spec") + selector_mistakes(obj["spec"]) + _name_mistakes(obj)

    def validate_update(self, obj: Object, old: Object) -> Errors:
        spec, status = obj["spec"], old["status"]
        still = status.get("startTime") is None or condition_true(status, "Suspended")
        errors = job_spec_mistakes(spec, "spec") + selector_mistakes(spec)
        return errors + change_mistakes(spec, old["spec"], movable=bool(old["spec"].get("suspend")) and still)

    def validate_status(self, obj: Object, old: Object) -> Errors:
        return status_mistakes(obj, old)

    # --- what people see ---------------------------------------------------------------------------

    def warnings(self, obj: Object, old: Object | None) -> list[str]:
        meta, spec = obj["metadata"], obj["spec"]
        if same_generation(obj, old):
            return []
        return (name_warnings(meta) if old is None else []) + job_warnings(spec, "spec")

    def fields(self, obj: Object) -> Mapping[str, str]:
        return {"status.successful": str(obj["status"].get("succeeded", 0))}

    def row(self, obj: Object, now: float) -> Sequence[Any]:
        meta, spec, status = obj["metadata"], obj["spec"], obj["status"]
        return [
            meta.get("name", ""),
            _state(obj),
            _completions(spec, status),
            _duration(status, now),
            age(now, meta.get("creationTimestamp")),
            *workload.container_cells(spec["template"]),
            workload.selector_cell(spec.get("selector")),
        ]


def _label(obj: Object) -> None:
    """Give a Job without labels those of its Pods; as in Kubernetes it then shares those that are generated later."""
    labels = (obj["spec"]["template"].get("metadata") or {}).get("labels")
    if labels and not obj["metadata"].get("labels"):
        obj["metadata"]["labels"] = labels


def _part_labels(obj: Object) -> None:
    """From now on the labels of the Job and of its Pods are two things."""
    if labels := obj["metadata"].get("labels"):
        obj["metadata"]["labels"] = dict(labels)


def _generate_selector(obj: Object) -> None:
    """Select the Pods by the uid of the Job.  Labels that a user has set otherwise are left, and refused later."""
    meta, spec = obj["metadata"], obj["spec"]
    uid, name = meta.get("uid", ""), meta.get("name", "")
    labels = spec["template"].setdefault("metadata", {}).setdefault("labels", {})
    for key in NAME_LABELS:
        labels.setdefault(key, name)
    for key in UID_LABELS:
        labels.setdefault(key, uid)
    selector = dict(spec.get("selector") or {})
    selector["matchLabels"] = {JOB_UID_LABEL: uid, **(selector.get("matchLabels") or {})}
    spec["selector"] = selector


def _generated_mistakes(obj: Object) -> Errors:
    meta, spec = obj["metadata"], obj["spec"]
    if spec.get("selector") is None:
        return []
    labels = (spec["template"].get("metadata") or {}).get("labels") or {}
    uid, name = meta.get("uid", ""), meta.get("name", "")
    expected = dict.fromkeys(UID_LABELS, uid) | dict.fromkeys(NAME_LABELS, name)
    errors: Errors = []
    for key, value in sorted(expected.items(), key=lambda item: "/" in item[0]):
        path = f"spec.template.metadata.labels[{key}]"
        if key not in labels:
            errors.append(required(path, f"must be '{value}'"))
        elif labels[key] != value:
            errors.append(invalid(path, dict(sorted(labels.items())), f"must be '{value}'"))
    selector = readable(spec["selector"])
    if selector is not None and not selector.matches(expected):
        errors.append(invalid("spec.selector", printed(spec["selector"]), "`selector` not auto-generated"))
    return errors


def _name_mistakes(obj: Object) -> Errors:
    """The hostname of the last Pod of an indexed Job has to be a DNS label."""
    name, spec = obj["metadata"].get("name", ""), obj["spec"]
    if spec.get("completionMode") != "Indexed" or not (spec.get("completions") or 0) > 0:
        return []
    last = f"{name}-{spec['completions'] - 1}"
    if not dns_label(last):
        return []
    return [invalid("metadata.name", name, f"will not able to create pod with invalid DNS label: {last}")]


def name_warnings(meta: Object) -> list[str]:
    wrong = dns_label(meta.get("name", ""))
    if not wrong:
        return []
    return [
        "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label "
        f"is recommended: [{' '.join(wrong)}]"
    ]


def job_warnings(spec: Object, path: str) -> list[str]:
    """Warnings about the spec of a Job, which may be the template of a CronJob."""
    sentences: list[str] = []
    many = (spec.get("completions") or 0) > MANY_COMPLETIONS and (spec.get("parallelism") or 0) > MOST_WITH_MANY
    if spec.get("completionMode") == "Indexed" and many:
        sentences.append(
            "In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, "
            "Kubernetes might not be able to track completedIndexes when a big number of indexes fail"
        )
    template = spec["template"]
    return sentences + spec_warnings(template.get("metadata") or {}, template["spec"], f"{path}.template")


def _state(obj: Object) -> str:
    status = obj["status"]
    for state in _STATES:
        if state == "Terminating":
            if obj["metadata"].get("deletionTimestamp"):
                return state
        elif condition_true(status, state):
            return state
    return "Running"


def _completions(spec: Object, status: Object) -> str:
    done, wanted, parallelism = status.get("succeeded", 0), spec.get("completions"), spec.get("parallelism") or 0
    if wanted is not None:
        return f"{done}/{wanted}"
    return f"{done}/1 of {parallelism}" if parallelism > 1 else f"{done}/1"


def _duration(status: Object, now: float) -> str:
    start, end = status.get("startTime"), status.get("completionTime")
    if start is None:
        return ""
    return times.duration((times.parse(end) if end else now) - times.parse(start))


JOB = JobKind()
