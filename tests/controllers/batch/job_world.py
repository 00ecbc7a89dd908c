"""A cluster in virtual time with the controllers of Jobs and CronJobs; the test plays the kubelet."""

import contextlib

from own_cluster import own_cluster

from seamark.access.informers import Informers
from seamark.controllers.housekeeping.standalone import add_cleaning
from seamark.controllers.workloads.controllers import add_workloads
from seamark.errors import NotFound
from seamark.kinds.resource import CRON_JOBS, EVENTS, JOBS, PODS
from seamark.kinds.values import times
from seamark.runtime.manager import Manager

POD = {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}


class JobWorld:
    def __init__(self, own):
        self.own = own
        self.clock = own.clock
        self.cluster = own.cluster

    @contextlib.asynccontextmanager
    async def controlled(self, through=lambda cluster: cluster):
        cluster_for = self.own.api.cluster
        manager = Manager(Informers(cluster_for("informers"), clock=self.clock), clock=self.clock)
        add_workloads(manager, lambda name: through(cluster_for(name)), batch=0.0)
        add_cleaning(manager, cluster_for, self.own.api.kinds, namespace_grace=0.0)
        async with self.own.managed(manager):
            yield manager

    # --- doing -------------------------------------------------------------------------------------

    async def job(self, name="j", *, pod=None, labels=None, **spec):
        template = {"metadata": {"labels": labels or {}}, "spec": {**POD, **(pod or {})}}
        made = {"metadata": {"name": name}, "spec": {"template": template, **spec}}
        await self.cluster.create(JOBS, made, namespace="default")
        await self.settle()

    async def cron_job(self, name="c", schedule="* * * * *", *, job=None, **spec):
        template = {"metadata": {"labels": {"l": "m"}}, "spec": {"template": {"spec": POD}, **(job or {})}}
        made = {"metadata": {"name": name}, "spec": {"schedule": schedule, "jobTemplate": template, **spec}}
        await self.cluster.create(CRON_JOBS, made, namespace="default")
        await self.settle()

    async def patch(self, resource, name, **spec):
        await self.cluster.patch(resource, name, {"spec": spec}, namespace="default")
        await self.settle()

    async def run(self, pod):
        """A kubelet starts the Pod; from now on deleting it takes time."""
        name = pod["metadata"]["name"]
        binding = {"metadata": {"name": name}, "target": {"apiVersion": "v1", "kind": "Node", "name": "node-1"}}
        await self.cluster.create(PODS, binding, namespace="default", name=name, subresource="binding")
        await self.set_status(pod, phase="Running")

    async def end(self, pod, phase="Succeeded", code=None, **status):
        """The containers of a Pod end."""
        code = (0 if phase == "Succeeded" else 1) if code is None else code
        now = times.text(self.clock.time())
        state = {"terminated": {"exitCode": code, "finishedAt": now, "startedAt": now}}
        ended = {"name": "c", "image": "i", "imageID": "", "ready": False, "restartCount": 0, "state": state}
        await self.set_status(pod, phase=phase, containerStatuses=[ended], **status)

    async def set_status(self, pod, **status):
        name = pod["metadata"]["name"]
        await self.cluster.patch(PODS, name, {"status": status}, namespace="default", subresource="status")
        await self.settle()

    async def settle(self):
        """Until all is done that is done at once, or after the short pause between two looks at the same Job."""
        await self.pass_(0.1)

    async def pass_(self, seconds):
        await self.clock.advance(seconds, self.own.quiet)

    async def remove(self, resource, name, **more):
        await self.cluster.delete(resource, name, namespace="default", **more)
        await self.settle()

    # --- looking -----------------------------------------------------------------------------------

    async def pods(self, index=None, *, phase="Pending"):
        """The Pods in this phase that are not being deleted, by index or by name."""
        found = (await self.cluster.list(PODS, namespace="default")).items
        chosen = [
            pod
            for pod in found
            if phase in (None, pod["status"]["phase"])
            and (phase is None or "deletionTimestamp" not in pod["metadata"])
            and index in (None, number(pod))
        ]
        return sorted(chosen, key=lambda pod: (number(pod) or 0, pod["metadata"]["name"]))

    async def indexes(self, **more):
        return [number(pod) for pod in await self.pods(**more)]

    async def status(self, name="j", resource=JOBS):
        return (await self.cluster.get(resource, name, namespace="default"))["status"]

    async def counts(self, name="j"):
        status = await self.status(name)
        assert status["uncountedTerminatedPods"] == {}
        return tuple(status.get(field, 0) for field in ("active", "succeeded", "failed"))

    async def conditions(self, name="j"):
        found = (await self.status(name)).get("conditions", ())
        return [(each["type"], each["reason"]) for each in found if each["status"] == "True"]

    async def exists(self, resource, name):
        try:
            await self.cluster.get(resource, name, namespace="default")
        except NotFound:
            return False
        return True

    async def told(self, name="j"):
        events = (await self.cluster.list(EVENTS, namespace="default")).items
        return [f"{e['reason']}: {e['message']}" for e in events if e["involvedObject"]["name"] == name]

    async def jobs(self):
        found = (await self.cluster.list(JOBS, namespace="default")).items
        return sorted(each["metadata"]["name"] for each in found if "deletionTimestamp" not in each["metadata"])


def number(pod):
    text = (pod["metadata"].get("annotations") or {}).get("batch.kubernetes.io/job-completion-index")
    return None if text is None else int(text)


@contextlib.asynccontextmanager
async def job_world(now=1_800_000_000.0):
    async with own_cluster() as own:
        own.clock.now = now
        world = JobWorld(own)
        async with world.controlled():
            yield world
