"""Jobs as data: the fields that their controllers read and write (pure)."""

from __future__ import annotations

from typing import Any

from seamark.kinds.batch.indexes import Indexes
from seamark.kinds.values import times
from seamark.kinds.values.numbers import int64
from seamark.kinds.values.selectors import LabelSelector, from_label_selector
from seamark.kinds.wellknown import JOB_INDEX_LABEL
from seamark.rules.objects.metadata import ObjectView, View
from seamark.rules.objects.pod import Pod
from seamark.rules.objects.workloads import Template

# Pods carry it until the status of their Job counts them, so that none is counted twice or never.
TRACKING = "batch.kubernetes.io/job-tracking"
OWN_MANAGER = "kubernetes.io/job-controller"


class ExitCodes(View, frozen=True):
    container_name: str | None = None
    operator: str = ""
    values: tuple[int, ...] = ()


class PodConditionPattern(View, frozen=True):
    type: str = ""
    status: str = "True"


class FailureRule(View, frozen=True):
    action: str = ""
    on_exit_codes: ExitCodes | None = None
    on_pod_conditions: tuple[PodConditionPattern, ...] = ()


class FailurePolicy(View, frozen=True):
    rules: tuple[FailureRule, ...] | None = None  # null if there are none


class SuccessRule(View, frozen=True):
    succeeded_indexes: str | None = None
    succeeded_count: int | None = None


class SuccessPolicy(View, frozen=True):
    rules: tuple[SuccessRule, ...] | None = None


class JobSpec(View, frozen=True):
    parallelism: int = 1
    completions: int | None = None
    active_deadline_seconds: int | None = None
    backoff_limit: int = 6
    backoff_limit_per_index: int | None = None
    max_failed_indexes: int | None = None
    completion_mode: str = "NonIndexed"
    suspend: bool = False
    ttl_seconds_after_finished: int | None = None
    pod_replacement_policy: str = "TerminatingOrFailed"
    pod_failure_policy: FailurePolicy | None = None
    success_policy: SuccessPolicy | None = None
    managed_by: str | None = None
    selector: dict[str, Any] | None = None
    template: Template | None = None


class JobCondition(View, frozen=True):
    type: str = ""
    status: str = ""
    last_probe_time: str | None = None
    last_transition_time: str | None = None
    reason: str = ""
    message: str = ""

    @classmethod
    def true(cls, type: str, reason: str, message: str, now: float) -> JobCondition:
        return cls(type, "True", times.text(now), times.text(now), reason, message)


class Uncounted(View, frozen=True):
    """The uids of finished Pods that the counters of the status do not have yet."""

    succeeded: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


class JobStatus(View, frozen=True):
    conditions: tuple[JobCondition, ...] = ()
    start_time: str | None = None
    completion_time: str | None = None
    active: int = 0
    succeeded: int = 0
    failed: int = 0
    completed_indexes: str = ""
    failed_indexes: str | None = None
    uncounted_terminated_pods: Uncounted | None = None
    ready: int | None = None
    terminating: int | None = None

    @property
    def uncounted(self) -> Uncounted:
        return self.uncounted_terminated_pods or Uncounted()

    def condition(self, type: str) -> JobCondition | None:
        """The condition of this type, if it is true."""
        return next((each for each in self.conditions if each.type == type and each.status == "True"), None)


class Job(ObjectView, frozen=True):
    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()

    @property
    def selector(self) -> LabelSelector:
        return from_label_selector(self.spec.selector)

    @property
    def ours(self) -> bool:
        """Whether no other controller manages it."""
        return self.spec.managed_by in (None, OWN_MANAGER)

    @property
    def ended(self) -> JobCondition | None:
        """How it ended; None while it has not."""
        return self.status.condition("Complete") or self.status.condition("Failed")

    @property
    def indexed(self) -> bool:
        return self.spec.completion_mode == "Indexed"

    @property
    def per_index(self) -> bool:
        """Whether each index has its own number of attempts."""
        return self.indexed and self.spec.backoff_limit_per_index is not None

    @property
    def restarts_in_place(self) -> bool:
        """Whether its Pods start failed containers again themselves."""
        return bool(self.spec.template) and (self.spec.template or {})["spec"].get("restartPolicy") == "OnFailure"

    @property
    def replaces_only_failed(self) -> bool:
        """Whether a Pod that is being deleted is replaced only once it has ended."""
        return self.spec.pod_replacement_policy == "Failed" or self.spec.pod_failure_policy is not None

    @property
    def completions(self) -> int:
        """The completions of an indexed Job, which has a number of them."""
        return self.spec.completions or 0

    @property
    def done_indexes(self) -> Indexes:
        return Indexes.read(self.status.completed_indexes, self.completions)

    def index_of(self, pod: Pod) -> int | None:
        """The index that a Pod works on; None if it has none that counts."""
        index = int64(pod.metadata.annotations.get(JOB_INDEX_LABEL, ""))
        return index if index is not None and 0 <= index < self.completions else None


def failed(job: Job, pod: Pod) -> bool:
    """Whether a Pod counts as failed; one that is being deleted does, unless only ended ones are to be replaced."""
    if pod.status.phase == "Failed":
        return True
    return not job.replaces_only_failed and pod.terminating and pod.status.phase != "Succeeded"


def end_time(pod: Pod) -> float:
    """When a Pod ended, as well as it can be told."""
    ended = [
        status.state.terminated.finished_at
        for status in pod.status.container_statuses
        if status.state.terminated is not None and status.state.terminated.finished_at
    ]
    if ended and len(ended) == len(pod.status.container_statuses):
        return max(times.parse(each) for each in ended)
    if pod.metadata.deletion_timestamp:
        return times.parse(pod.metadata.deletion_timestamp) - (pod.metadata.deletion_grace_period_seconds or 0)
    ready = pod.condition("Ready")
    if ready is not None and ready.status != "True" and ready.last_transition_time:
        return times.parse(ready.last_transition_time)
    return times.parse(pod.metadata.creation_timestamp) if pod.metadata.creation_timestamp else 0.0
