"""How finished Pods get into the status of a Job exactly once (pure).

    1. the status names the uids of finished Pods that it does not count yet (``uncountedTerminatedPods``)
    2. the finalizers of these Pods are removed
    3. the status counts those whose finalizer is gone, and names them no longer

A controller that stops between two of these steps is continued by the next one: a Pod that is named and has its
finalizer is at step 2, one that is named and has none at step 3.
"""

from __future__ import annotations

from collections.abc import Collection

import msgspec
from msgspec.structs import replace

from seamark.controllers.batch.job import Job, JobCondition, JobStatus, Uncounted, failed
from seamark.controllers.batch.policies import IGNORE, judge
from seamark.controllers.batch.tally import Tally, indexes_of
from seamark.kinds.batch.indexes import Indexes
from seamark.kinds.values import times
from seamark.rules.objects.pod import Pod

# So many Pods are named at once at most: their uids are part of every write of the Job.
MOST_UNCOUNTED = 500

_FINAL = {"FailureTarget": "Failed", "SuccessCriteriaMet": "Complete"}


class Books(msgspec.Struct, frozen=True):
    """The status to write before the finalizers of the Pods to ``free`` are removed; ``full``: there are more."""

    status: JobStatus
    free: tuple[Pod, ...]
    full: bool = False


def book(job: Job, found: Tally, status: JobStatus, finish: JobCondition | None) -> Books:
    """``status`` is what it should be otherwise; ``finish`` is how the Job is about to end."""
    status = counted(status, {pod.metadata.uid for pod in found.tracked})
    succeeded, failures = dict.fromkeys(status.uncounted.succeeded), dict.fromkeys(status.uncounted.failed)
    done = job.done_indexes if job.indexed else Indexes()
    fresh: list[Pod] = []  # Pods whose index is done now
    free: list[Pod] = []
    full = False
    for pod in _in_order(job, found.tracked):
        lost = failed(job, pod)
        if not _may_go(job, found, pod, lost=lost, finish=finish):
            continue
        free.append(pod)
        uid, index = pod.metadata.uid, job.index_of(pod)
        if pod.status.phase == "Succeeded" and uid not in failures:
            if job.indexed:
                if index is not None and index not in done:
                    fresh.append(pod)
            else:
                succeeded[uid] = None
        elif lost or (finish is not None and finish.type == "FailureTarget"):
            # When a Job has failed, so has every Pod that has not ended yet.
            valid = not job.indexed or index is not None
            if uid not in failures and valid and judge(job, pod).action != IGNORE:
                failures[uid] = None
        if len(fresh) + len(succeeded) + len(failures) >= MOST_UNCOUNTED:
            full = True
            break
    status = replace(status, uncounted_terminated_pods=Uncounted(tuple(succeeded), tuple(failures)))
    if job.indexed:
        done |= indexes_of(job, fresh)
        status = replace(status, completed_indexes=str(done), succeeded=len(done))
        if job.per_index:
            status = replace(status, failed_indexes=str(found.given_up))
    if finish is not None and status.condition(finish.type) is None:
        status = replace(status, conditions=(*status.conditions, finish))
    return Books(status, tuple(free), full)


def _in_order(job: Job, pods: Collection[Pod]) -> list[Pod]:
    """By index, so that the text of finished indexes stays short."""
    return sorted(pods, key=lambda pod: job.index_of(pod) or 0) if job.indexed else list(pods)


def _may_go(job: Job, found: Tally, pod: Pod, *, lost: bool, finish: JobCondition | None) -> bool:
    """Whether the Pod need no longer be kept."""
    if job.metadata.deletion_timestamp is not None or finish is not None or pod.status.phase == "Succeeded":
        return True
    index = job.index_of(pod)
    return lost and not (index is not None and found.held.get(index) is pod)


def counted(status: JobStatus, tracked: Collection[str]) -> JobStatus:
    """The status that counts the named Pods which are not tracked any more."""
    before = status.uncounted
    after = Uncounted(
        tuple(uid for uid in before.succeeded if uid in tracked), tuple(uid for uid in before.failed if uid in tracked)
    )
    return replace(
        status,
        succeeded=status.succeeded + len(before.succeeded) - len(after.succeeded),
        failed=status.failed + len(before.failed) - len(after.failed),
        uncounted_terminated_pods=after,
    )


def ended(status: JobStatus, finish: JobCondition, now: float) -> JobStatus:
    """The status of a Job that is over; unchanged while Pods are not counted or not gone yet."""
    if status.uncounted != Uncounted() or status.terminating or status.active:
        return status
    last = JobCondition.true(_FINAL[finish.type], finish.reason, finish.message, now)
    complete = times.text(now) if last.type == "Complete" else None
    return replace(status, conditions=(*status.conditions, last), completion_time=complete)


def suspended(status: JobStatus, suspend: bool, now: float) -> JobStatus:
    """The status with the condition that says whether the Job is suspended; a Job that never was has none."""
    old = next((each for each in status.conditions if each.type == "Suspended"), None)
    value = "True" if suspend else "False"
    if (old is None and not suspend) or (old is not None and old.status == value):
        return status
    text = times.text(now)
    word = "suspended" if suspend else "resumed"
    new = JobCondition("Suspended", value, text, text, f"Job{word.capitalize()}", f"Job {word}")
    others = tuple(new if each is old else each for each in status.conditions)
    return replace(
        status,
        conditions=others if old is not None else (*others, new),
        start_time=None if suspend else text,
    )
