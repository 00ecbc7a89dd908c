"""What is wrong with the status of a Job.  A rule is applied only when something that it is about has changed."""

from __future__ import annotations

from typing import Any

from seamark.errors import Object
from seamark.kinds.batch import indexes
from seamark.kinds.batch.indexes import Indexes
from seamark.kinds.language import go_names
from seamark.kinds.values import times
from seamark.kinds.values.conditions import condition_true
from seamark.kinds.values.fields import Errors, FieldError, duplicate, immutable, invalid, omitted, required
from seamark.kinds.workloads.workload import not_negative

_TERMINAL = ("Failed", "Complete", "FailureTarget")


def finished(status: Object) -> bool:
    return condition_true(status, "Complete") or condition_true(status, "Failed")


def status_mistakes(job: Object, old: Object) -> Errors:
    change = _Change(job, old)
    return [*change.counters(), *change.conditions(), *change.ending(), *change.indexes(), *change.against_before()]


class _Change:
    """A status and the one before it."""

    def __init__(self, job: Object, old: Object) -> None:
        self.spec, self.status, self.before = job["spec"], job["status"], old["status"]

    def is_true(self, type: str) -> bool:
        return condition_true(self.status, type)

    def changed(self, *names: str) -> bool:
        """Whether a field, or whether a condition is true, differs from before."""
        return any(
            self.is_true(name) != condition_true(self.before, name)
            if name[0].isupper()
            else self.status.get(name) != self.before.get(name)
            for name in names
        )

    @property
    def finished_changed(self) -> bool:
        return finished(self.status) != finished(self.before)

    def counters(self) -> Errors:
        errors: Errors = []
        for field in ("active", "succeeded", "failed", "ready", "terminating"):
            if self.status.get(field) is not None:
                errors += not_negative(self.status[field], f"status.{field}")
        seen: set[str] = set()
        uncounted = self.status.get("uncountedTerminatedPods") or {}
        for group in ("succeeded", "failed"):
            for place, uid in enumerate(uncounted.get(group) or ()):
                path = f"status.uncountedTerminatedPods.{group}[{place}]"
                if not uid:
                    errors.append(invalid(path, uid, "must not be empty"))
                elif uid in seen:
                    errors.append(duplicate(path, uid))
                seen.add(uid)
        return errors

    def conditions(self) -> Errors:
        complete, end, start = self.is_true("Complete"), self.status.get("completionTime"), self.status.get("startTime")
        errors: Errors = []
        if self.changed("Complete", "Failed") and complete and self.is_true("Failed"):
            errors.append(_conditions("cannot set Complete=True and Failed=true conditions"))
        if self.changed("Complete", "FailureTarget") and complete and self.is_true("FailureTarget"):
            errors.append(_conditions("cannot set Complete=True and FailureTarget=true conditions"))
        if self.changed("Complete", "completionTime"):
            if end is not None and not complete:
                sentence = "cannot set completionTime when there is no Complete=True condition"
                errors.append(invalid("status.completionTime", end, sentence))
            if end is None and complete:
                errors.append(required("status.completionTime", "completionTime is required for Complete jobs"))
        if self.changed("startTime", "completionTime") and start and end and times.parse(end) < times.parse(start):
            errors.append(invalid("status.completionTime", end, "completionTime cannot be set before startTime"))
        for type, before in (("Failed", "FailureTarget"), ("Complete", "SuccessCriteriaMet")):
            if self.changed(type, before) and self.is_true(type) and not self.is_true(before):
                errors.append(_conditions(f"cannot set {type}=True condition without the {before}=true condition"))
        return errors

    def ending(self) -> Errors:
        """A finished Job has no Pods that do anything, and was started."""
        done, errors = finished(self.status), []
        for field in ("active", "terminating"):
            count = self.status.get(field) or 0
            if done and count > 0 and (self.finished_changed or self.changed(field)):
                errors.append(invalid(f"status.{field}", count, f"{field}>0 is invalid for finished job"))
        if done and (self.finished_changed or self.changed("startTime")) and self.status.get("startTime") is None:
            errors.append(required("status.startTime", "startTime is required for finished job"))
        uncounted = self.status.get("uncountedTerminatedPods")
        if done and uncounted and (self.finished_changed or self.changed("uncountedTerminatedPods")):
            sentence = "uncountedTerminatedPods needs to be empty for finished job"
            errors.append(invalid("status.uncountedTerminatedPods", go_names.UNCOUNTED_PODS(uncounted), sentence))
        return errors

    def indexes(self) -> Errors:
        completions, done, failed = self._indexed
        errors: Errors = []
        if self.changed("completedIndexes"):
            errors += _format_mistakes("completedIndexes", done, completions)
        if self.changed("failedIndexes") and self.spec.get("backoffLimitPerIndex") is not None:
            errors += _format_mistakes("failedIndexes", failed or "", completions)
        if self.changed("completedIndexes") and done and self.spec.get("completionMode") != "Indexed":
            sentence = "cannot set non-empty completedIndexes when non-indexed completion mode"
            errors.append(invalid("status.completedIndexes", done, sentence))
        if self.changed("failedIndexes") and failed is not None and self.spec.get("backoffLimitPerIndex") is None:
            sentence = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
            errors.append(invalid("status.failedIndexes", failed, sentence))
        if self.changed("completedIndexes", "failedIndexes") and failed and done and completions is not None:
            both = Indexes.read(failed, completions) & Indexes.read(done, completions)
            if both.intervals:
                sentence = f"failedIndexes and completedIndexes overlap at index {both.intervals[0][0]}"
                errors.append(invalid("status.failedIndexes", failed, sentence))
        if self.is_true("SuccessCriteriaMet"):
            errors += [
                _conditions(f"cannot set {type}=True and SuccessCriteriaMet=true conditions")
                for type in ("Failed", "FailureTarget")
                if self.is_true(type)
            ]
        ready, active = self.status.get("ready"), self.status.get("active") or 0
        if self.changed("ready", "active") and ready is not None and ready > active:
            errors.append(invalid("status.ready", ready, "cannot set more ready pods than active"))
        return errors

    @property
    def _indexed(self) -> tuple[int | None, str, str | None]:
        return self.spec.get("completions"), self.status.get("completedIndexes") or "", self.status.get("failedIndexes")

    def against_before(self) -> Errors:
        """What may not go back."""
        errors = [
            _conditions(f"cannot disable the terminal {type}=True condition")
            for type in _TERMINAL
            if condition_true(self.before, type) and not self.is_true(type)
        ]
        fixed = ["failed"]
        spec = self.spec
        if spec.get("completionMode") != "Indexed" or spec.get("completions") != spec.get("parallelism"):
            fixed.append("succeeded")  # others may be scaled down, with what has succeeded
        errors += [
            invalid(f"status.{field}", self.status.get(field, 0), f"cannot decrease the {field} counter")
            for field in fixed
            if self.status.get(field, 0) < self.before.get(field, 0)
        ]
        end, ended = self.status.get("completionTime"), self.before.get("completionTime")
        if end is not None and ended is not None and end != ended:
            errors.append(immutable("status.completionTime", end))
        if self.changed("startTime") and self.before.get("startTime") is not None and not spec.get("suspend"):
            verb = "removed" if self.status.get("startTime") is None else "modified"
            errors.append(required("status.startTime", f"startTime cannot be {verb} for unsuspended job"))
        if condition_true(self.before, "SuccessCriteriaMet") and not self.is_true("SuccessCriteriaMet"):
            errors.append(_conditions("cannot disable the SuccessCriteriaMet=True condition"))
        return errors


def _conditions(sentence: str) -> FieldError:
    return omitted("status.conditions", sentence)


def _format_mistakes(field: str, text: str, completions: Any) -> Errors:
    if completions is None:
        return []
    try:
        indexes.count(text, completions)
    except ValueError as error:
        return [invalid(f"status.{field}", text, f"error parsing {field}: {error}")]
    return []
