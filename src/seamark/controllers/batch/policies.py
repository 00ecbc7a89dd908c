"""What a Job's policies say of a failed Pod, and of the indexes that have succeeded (pure)."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from seamark.controllers.batch.job import ExitCodes, Job
from seamark.kinds.batch.indexes import Indexes
from seamark.rules.objects.pod import ContainerStatus, Pod

COUNT, IGNORE, FAIL_INDEX, FAIL_JOB = "Count", "Ignore", "FailIndex", "FailJob"


class Judgement(msgspec.Struct, frozen=True):
    """What to do about a failed Pod, and the sentence about it if the whole Job fails."""

    action: str = COUNT
    message: str = ""


def judge(job: Job, pod: Pod) -> Judgement:
    """The first rule that fits decides; a Pod that none fits is counted."""
    policy = job.spec.pod_failure_policy
    where = f"{pod.metadata.namespace}/{pod.metadata.name}"
    for place, rule in enumerate((policy.rules if policy is not None else None) or ()):
        if rule.on_exit_codes is not None:
            container = _ended(pod, rule.on_exit_codes)
            if container is not None:
                assert container.state.terminated is not None
                code = container.state.terminated.exit_code
                how = f"Container {container.name} for pod {where} failed with exit code {code}"
                return Judgement(rule.action, f"{how} matching {rule.action} rule at index {place}")
            continue
        for pattern in rule.on_pod_conditions:
            condition = pod.condition(pattern.type)
            if condition is not None and condition.status == pattern.status:
                how = f"Pod {where} has condition {pattern.type}"
                return Judgement(rule.action, f"{how} matching {rule.action} rule at index {place}")
    return Judgement()


def _ended(pod: Pod, codes: ExitCodes) -> ContainerStatus | None:
    """The first container that failed with one of the codes."""
    for status in (*pod.status.container_statuses, *pod.status.init_container_statuses):
        end = status.state.terminated
        if end is None or end.exit_code == 0 or codes.container_name not in (None, status.name):
            continue
        if (end.exit_code in codes.values) == (codes.operator == "In"):
            return status
    return None


def job_failure(job: Job, failed: Iterable[Pod]) -> str:
    """Why one of these Pods fails the whole Job; "" if none does."""
    if job.spec.pod_failure_policy is None:
        return ""
    for pod in failed:
        judgement = judge(job, pod)
        if judgement.action == FAIL_JOB:
            return judgement.message
    return ""


def success(job: Job, succeeded: Indexes) -> str:
    """Which rule of the success policy is met, as a sentence; "" if none is."""
    policy = job.spec.success_policy
    if policy is None or not succeeded.intervals:
        return ""
    for place, rule in enumerate(policy.rules or ()):
        counted, needed = len(succeeded), rule.succeeded_count
        if rule.succeeded_indexes is not None:
            wanted = Indexes.read(rule.succeeded_indexes, job.completions)
            counted, needed = len(succeeded & wanted), len(wanted) if needed is None else needed
        if needed is not None and counted >= needed:
            return f"Matched rules at index {place}"
    return ""
