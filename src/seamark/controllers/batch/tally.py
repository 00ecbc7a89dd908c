"""What the Pods of a Job come to (pure): who is active, who has ended since the status was written, and by index."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from seamark.clock import doubling
from seamark.controllers.batch.job import TRACKING, Job, end_time, failed
from seamark.controllers.batch.policies import FAIL_INDEX, IGNORE, judge
from seamark.kinds.batch.indexes import Indexes
from seamark.kinds.values.numbers import int64
from seamark.rules.objects.pod import Pod

FAILURES_ANNOTATION = "batch.kubernetes.io/job-index-failure-count"
IGNORED_ANNOTATION = "batch.kubernetes.io/job-index-ignored-failure-count"

FIRST_BACKOFF, LONGEST_BACKOFF = 10.0, 600.0


class Backoff(msgspec.Struct, frozen=True):
    """How many Pods have failed since the last success, and when the last one did."""

    failures: int = 0
    last: float = 0.0

    def after(self, succeeded: Sequence[Pod], failed: Sequence[Pod]) -> Backoff:
        """With the Pods that have ended since."""
        if not succeeded and not failed:
            return self
        ends = [end_time(pod) for pod in failed]
        if succeeded:
            last = max(end_time(pod) for pod in succeeded)
            ends = [end for end in ends if end > last]
            return Backoff(len(ends), max(ends, default=0.0))
        return Backoff(self.failures + len(ends), max(self.last, *ends))

    def remaining(self, now: float) -> float:
        """How many seconds to wait before the next Pod."""
        if not self.failures:
            return 0.0
        return max(0.0, self.last + doubling(FIRST_BACKOFF, LONGEST_BACKOFF, self.failures - 1) - now)


class Tally(msgspec.Struct, frozen=True):
    """``tracked`` are the Pods that the status may not have counted, ``held`` those failed ones by whose annotation the
    attempts of their index are known until another Pod for it exists."""

    pods: tuple[Pod, ...]
    tracked: tuple[Pod, ...]
    active: tuple[Pod, ...]
    ready: int
    terminating: int
    new_succeeded: tuple[Pod, ...]
    new_failed: tuple[Pod, ...]
    succeeded: int
    failed: int
    done: Indexes = Indexes()
    given_up: Indexes = Indexes()
    held: Mapping[int, Pod] = {}


def tally(job: Job, pods: Iterable[Pod], *, freed: Collection[str] = ()) -> Tally:
    """``freed`` are the uids of Pods whose finalizer was removed, although the informer still shows it."""
    every = tuple(pods)
    tracked = tuple(p for p in every if TRACKING in p.metadata.finalizers and p.metadata.uid not in freed)
    active = tuple(pod for pod in every if pod.active)
    uncounted = job.status.uncounted
    known = {*uncounted.succeeded, *uncounted.failed}
    ended = [p for p in tracked if p.metadata.uid not in known and (not job.indexed or job.index_of(p) is not None)]
    won = tuple(pod for pod in ended if pod.status.phase == "Succeeded")
    lost = tuple(pod for pod in ended if failed(job, pod))
    blamed = [pod for pod in lost if judge(job, pod).action != IGNORE]
    done, given_up, held = Indexes(), Indexes(), {}
    succeeded = job.status.succeeded + len(won) + len(uncounted.succeeded)
    if job.indexed:
        done = job.done_indexes | indexes_of(job, (p for p in tracked if p.status.phase == "Succeeded"))
        succeeded = len(done)
        if job.per_index:
            given_up = _given_up(job, lost)
            held = _held(job, tracked, active, done | given_up)
    return Tally(
        pods=every,
        tracked=tracked,
        active=active,
        ready=sum(pod.ready for pod in active),
        terminating=sum(pod.terminating and not pod.finished for pod in every),
        new_succeeded=won,
        new_failed=lost,
        succeeded=succeeded,
        failed=job.status.failed + len(blamed) + len(uncounted.failed),
        done=done,
        given_up=given_up,
        held=held,
    )


def indexes_of(job: Job, pods: Iterable[Pod]) -> Indexes:
    return Indexes.of(index for index in map(job.index_of, pods) if index is not None)


# --- attempts of one index -------------------------------------------------------------------------


def failures(pod: Pod) -> int:
    """How many attempts at its index failed before this Pod."""
    return int64(pod.metadata.annotations.get(FAILURES_ANNOTATION, "")) or 0


def _all_failures(pod: Pod) -> int:
    return failures(pod) + (int64(pod.metadata.annotations.get(IGNORED_ANNOTATION, "")) or 0)


def next_attempt(job: Job, replaced: Pod | None) -> dict[str, str]:
    """The annotations of the Pod that replaces this one."""
    if replaced is None:
        return {FAILURES_ANNOTATION: "0"}
    counted, ignored = failures(replaced), _all_failures(replaced) - failures(replaced)
    if judge(job, replaced).action == IGNORE:
        ignored += 1
    else:
        counted += 1
    return {FAILURES_ANNOTATION: str(counted)} | ({IGNORED_ANNOTATION: str(ignored)} if ignored else {})


def index_wait(replaced: Pod, now: float) -> float:
    """How many seconds to wait before this Pod is replaced."""
    return Backoff(_all_failures(replaced) + 1, end_time(replaced)).remaining(now)


def _given_up(job: Job, lost: Iterable[Pod]) -> Indexes:
    """The indexes that may not be tried again."""
    limit = job.spec.backoff_limit_per_index or 0
    hopeless = []
    for pod in lost:
        action = judge(job, pod).action
        if action == FAIL_INDEX or (action != IGNORE and failures(pod) >= limit):
            hopeless.append(pod)
    return Indexes.read(job.status.failed_indexes or "", job.completions) | indexes_of(job, hopeless)


def _held(job: Job, tracked: Iterable[Pod], active: Iterable[Pod], decided: Indexes) -> dict[int, Pod]:
    """By index, the last failed Pod of those that are to be tried again and have no Pod yet."""
    busy = {job.index_of(pod) for pod in active}
    held: dict[int, Pod] = {}
    for pod in tracked:
        index = job.index_of(pod)
        if index is None or index in busy or index in decided or not failed(job, pod):
            continue
        last = held.get(index)
        if last is None or (_all_failures(last), end_time(last)) <= (_all_failures(pod), end_time(pod)):
            held[index] = pod
    return held
