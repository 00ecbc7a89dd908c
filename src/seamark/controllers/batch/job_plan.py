"""What to do next about a Job (pure): finish it, delete Pods, create Pods, or wait."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

import msgspec

from seamark.controllers.batch.job import Job, JobCondition, failed
from seamark.controllers.batch.policies import job_failure, success
from seamark.controllers.batch.tally import Backoff, Tally, index_wait, indexes_of
from seamark.controllers.workloads.replicas import BURST, batch, doomed
from seamark.kinds.values import times
from seamark.rules.objects.pod import Pod


class Plan(msgspec.Struct, frozen=True):
    """``finish`` is how the Job ends.  Pods to ``stop`` count as failed, unlike those to ``drop``.

    ``create`` has the index of each Pod to create, None in a Job without indexes.  ``wait`` is the number of seconds
    after which to look again.
    """

    finish: JobCondition | None = None
    stop: tuple[Pod, ...] = ()
    drop: tuple[Pod, ...] = ()
    create: tuple[int | None, ...] = ()
    wait: float | None = None


def plan(job: Job, found: Tally, *, backoff: Backoff, now: float) -> Plan:
    """The next step of a Job that has not ended; ``backoff`` knows the Pods that have ended by now."""
    finish = _finish(job, found, now)
    if finish is not None:
        return Plan(finish, stop=found.active[:BURST])
    left = _deadline(job, now)
    if job.metadata.deletion_timestamp is not None:
        return Plan(wait=left)
    if job.spec.suspend and found.active:
        return Plan(drop=found.active[:BURST])
    wanted = _wanted(job, found)
    surplus = _surplus(job, found.active, len(found.active) - wanted, now)
    if surplus:
        return Plan(drop=surplus[:BURST], wait=left)
    if _complete(job, found):
        message = "Reached expected number of succeeded pods"
        return Plan(JobCondition.true("SuccessCriteriaMet", "CompletionsReached", message, now))
    if job.spec.suspend:
        return Plan()
    missing = wanted - len(found.active) - (found.terminating if job.replaces_only_failed else 0)
    create, wait = _creations(job, found, min(missing, batch(found.active)), backoff, now)
    return Plan(create=create, wait=min((each for each in (left, wait) if each is not None), default=None))


# --- the end ---------------------------------------------------------------------------------------


def _finish(job: Job, found: Tally, now: float) -> JobCondition | None:
    """How the Job ends for another reason than enough completions; what the status says already stays."""
    decided = job.status.condition("SuccessCriteriaMet") or job.status.condition("FailureTarget")
    if decided is not None:
        return decided
    if message := job_failure(job, (pod for pod in found.pods if failed(job, pod))):
        return _failure("PodFailurePolicy", message, now)
    if found.failed > job.spec.backoff_limit or _restarted_too_often(job, found.active):
        return _failure("BackoffLimitExceeded", "Job has reached the specified backoff limit", now)
    deadline = _deadline(job, now)
    if deadline is not None and deadline <= 0:
        return _failure("DeadlineExceeded", "Job was active longer than specified deadline", now)
    if job.per_index:
        lost, limit = len(found.given_up), job.spec.max_failed_indexes
        if limit is not None and lost > limit:
            message = "Job has exceeded the specified maximal number of failed indexes"
            return _failure("MaxFailedIndexesExceeded", message, now)
        if lost and lost + len(found.done) >= job.completions:
            return _failure("FailedIndexes", "Job has failed indexes", now)
    if job.indexed and (message := success(job, found.done)):
        return JobCondition.true("SuccessCriteriaMet", "SuccessPolicy", message, now)
    return None


def _failure(reason: str, message: str, now: float) -> JobCondition:
    return JobCondition.true("FailureTarget", reason, message, now)


def _restarted_too_often(job: Job, active: Iterable[Pod]) -> bool:
    if not job.restarts_in_place:
        return False
    restarts = sum(
        status.restart_count
        for pod in active
        for status in (*pod.status.init_container_statuses, *pod.status.container_statuses)
    )
    return restarts > 0 and restarts >= job.spec.backoff_limit


def _deadline(job: Job, now: float) -> float | None:
    """How many seconds are left; None if there is no deadline."""
    if job.spec.active_deadline_seconds is None or job.spec.suspend or job.status.start_time is None:
        return None
    return times.parse(job.status.start_time) + job.spec.active_deadline_seconds - now


def _complete(job: Job, found: Tally) -> bool:
    if found.active:
        return False
    return found.succeeded > 0 if job.spec.completions is None else found.succeeded >= job.spec.completions


# --- the Pods --------------------------------------------------------------------------------------


def _wanted(job: Job, found: Tally) -> int:
    """How many Pods should be active."""
    if job.spec.completions is None:
        # One success means that the work is done; the other Pods finish what they are doing.
        return len(found.active) if found.succeeded else job.spec.parallelism
    return max(0, min(job.spec.parallelism, job.spec.completions - found.succeeded))


def _surplus(job: Job, active: Sequence[Pod], too_many: int, now: float) -> tuple[Pod, ...]:
    """The Pods to delete: of an indexed Job first those that work on nothing, or on the same as another."""
    useless: list[Pod] = []
    if job.indexed:
        seen: set[int] = set()
        for pod in sorted(active, key=lambda pod: (pod.metadata.creation_timestamp or "", pod.metadata.name)):
            index = job.index_of(pod)
            if index is None or index in seen:
                useless.append(pod)
            else:
                seen.add(index)
    more = too_many - len(useless)
    if more > 0:
        known = {pod.metadata.uid for pod in useless}
        rest = [pod for pod in active if pod.metadata.uid not in known]
        useless += doomed(rest, more, related=active, now=now)
    return tuple(useless)


def _creations(
    job: Job, found: Tally, room: int, backoff: Backoff, now: float
) -> tuple[tuple[int | None, ...], float | None]:
    """The Pods to create now, and in how many seconds others may be."""
    if room <= 0:
        return (), None
    if not job.per_index and backoff.remaining(now) > 0:
        return (), backoff.remaining(now)
    if not job.indexed:
        return (None,) * room, None
    busy = [pod for pod in found.pods if pod.active or (pod.terminating and job.replaces_only_failed)]
    taken = found.done | found.given_up | indexes_of(job, busy)
    pending = list(islice(taken.missing(job.completions), room))
    waits = {index: index_wait(found.held[index], now) for index in pending if index in found.held}
    wait = min((wait for wait in waits.values() if wait > 0), default=None)
    return tuple(index for index in pending if waits.get(index, 0.0) <= 0), wait
