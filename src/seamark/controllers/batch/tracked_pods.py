"""Frees Pods from the finalizer by which their Job counted them, once that Job is gone or has ended.

While a Job is at work its own controller does this.  A Pod that outlives the Job, because it was orphaned or because
both are deleted together, would otherwise stay for ever.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from seamark.access.cluster import Cluster
from seamark.access.informer import Informer
from seamark.controllers.batch.job import TRACKING, Job
from seamark.controllers.workloads.owners import Dependants, Owners
from seamark.controllers.workloads.pods import AT_ONCE
from seamark.controllers.workloads.workload import Workplace
from seamark.errors import ApiError, Conflict, Invalid, NotFound
from seamark.kinds.resource import JOBS, PODS
from seamark.rules.objects.pod import Pod
from seamark.runtime.controller import Controller
from seamark.runtime.queue import Key

# Of the controller of Jobs, for which this one works too.
NAME = "job-controller"


async def free(cluster: Cluster, pods: Sequence[Pod]) -> set[str]:
    """Remove the finalizers of these Pods; returns the uids of those that have none any more."""
    freed: set[str] = set()
    for first in range(0, len(pods), AT_ONCE):
        some = pods[first : first + AT_ONCE]
        done = await asyncio.gather(*(_freed(cluster, pod) for pod in some))
        freed |= {pod.metadata.uid for pod, gone in zip(some, done, strict=True) if gone}
    return freed


async def _freed(cluster: Cluster, pod: Pod, *, version: str = "") -> bool:
    """``version`` is the only one that may be changed, if given."""
    meta = pod.metadata
    about = {"uid": meta.uid, **({"resourceVersion": version} if version else {})}
    patch = {"metadata": {**about, "$deleteFromPrimitiveList/finalizers": [TRACKING]}}
    try:
        await cluster.patch(PODS, meta.name, patch, namespace=meta.namespace, type="strategic")
    except (NotFound, Conflict, Invalid):
        return True  # it is gone; another one may have its name
    except ApiError:
        return False
    return True


class TrackedPods(Controller):
    """Looks after the Pods of Jobs that no longer look after them; a key is that of a Pod."""

    def __init__(self, jobs: Informer[Job], owners: Owners[Job], pods: Dependants[Pod], place: Workplace) -> None:
        super().__init__("job-tracked-pods", place.manager)
        self._owners = owners
        self._cluster = place.cluster_for(NAME)
        self._owned = pods
        self._pods = self.watch(pods.informer, self._pod_changed)
        self._jobs = self.watch(jobs, self._job_changed)

    def _pod_changed(self, key: Key, old: Pod | None, new: Pod | None) -> None:
        if new is not None and TRACKING in new.metadata.finalizers and self._left(new):
            self.queue.add(key)

    def _job_changed(self, key: Key, old: Job | None, new: Job | None) -> None:
        if old is not None and (new is None or new.ended is not None or new.metadata.uid != old.metadata.uid):
            for pod in self._owned.of(old.metadata.uid):
                self._pod_changed(pod.metadata.key, None, pod)

    def _left(self, pod: Pod) -> bool:
        """Whether no Job counts the Pod."""
        owner = pod.metadata.controller
        if owner is None:
            wanting = map(self._jobs.by_key, self._owners.wanting(pod.metadata.namespace, pod.metadata.labels))
            return not any(job is not None and job.ended is None for job in wanting)
        if (owner.api_version, owner.kind) != (JOBS.api_version, JOBS.kind):
            return False
        job = self._jobs.get(owner.name, pod.metadata.namespace)
        return job is None or job.metadata.uid != owner.uid or (job.ours and job.ended is not None)

    async def reconcile(self, key: Key) -> None:
        pod = self._pods.by_key(key)
        if pod is not None and TRACKING in pod.metadata.finalizers and self._left(pod):
            await _freed(self._cluster, pod, version=pod.metadata.resource_version)
