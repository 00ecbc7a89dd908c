"""Counting finished Pods (pure): so many at once, and none twice."""

import msgspec

from seamark.controllers.batch import books
from seamark.controllers.batch.job import TRACKING, Job, JobStatus, Uncounted
from seamark.controllers.batch.tally import tally
from seamark.rules.objects.pod import Pod


def finished(number, phase="Succeeded"):
    meta = {"name": f"p-{number}", "namespace": "default", "uid": f"u-{number}", "finalizers": [TRACKING]}
    return msgspec.convert({"metadata": meta, "status": {"phase": phase}}, Pod)


def job(**spec):
    return msgspec.convert({"metadata": {"name": "j", "namespace": "default"}, "spec": spec}, Job)


def test_many_pods_are_counted_in_steps():
    pods, status, rounds = [finished(n, "Failed" if n % 10 == 0 else "Succeeded") for n in range(1200)], JobStatus(), 0
    while pods:
        now = msgspec.structs.replace(job(completions=2000, backoffLimit=2000), status=status)
        book = books.book(now, tally(now, pods), status, None)
        assert len(book.free) <= books.MOST_UNCOUNTED
        assert book.full == (len(pods) >= books.MOST_UNCOUNTED)
        gone = {pod.metadata.uid for pod in book.free}
        pods = [pod for pod in pods if pod.metadata.uid not in gone]
        status = books.counted(book.status, {pod.metadata.uid for pod in pods})
        rounds += 1
    assert (status.succeeded, status.failed, rounds) == (1080, 120, 3)
    assert status.uncounted == Uncounted()


def test_a_pod_that_is_named_already_is_not_named_again():
    named = JobStatus(uncounted_terminated_pods=Uncounted(("u-1",), ("u-2",)))
    now = msgspec.structs.replace(job(completions=5), status=named)
    found = tally(now, [finished(1), finished(2, "Failed"), finished(3)])
    assert (found.succeeded, found.failed, len(found.new_succeeded)) == (2, 1, 1)
    book = books.book(now, found, named, None)
    assert book.status.uncounted == Uncounted(("u-1", "u-3"), ("u-2",))
    assert books.counted(book.status, {"u-3"}) == msgspec.structs.replace(
        named, succeeded=1, failed=1, uncounted_terminated_pods=Uncounted(("u-3",))
    )
