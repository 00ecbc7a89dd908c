"""Nodes that do not exist, as far as Pods can tell: what is created runs and is ready, what is deleted goes.

For tests of whatever waits for Pods.  ``ready`` may say no to a Pod; ``look_again`` makes it be asked anew.  As a
program, with the path of a kubeconfig, it does the same for a server that runs by itself.
"""

import asyncio
import contextlib
import sys
import time

from seamark.access import kubeconfig
from seamark.access.informer import Informer
from seamark.access.remote import RemoteCluster
from seamark.errors import Conflict, NotFound
from seamark.kinds.resource import PODS
from seamark.kinds.values import times


class SimulatedKubelet:
    def __init__(self, cluster, *, ready=lambda pod: True, node="node-a", now=None):
        self.cluster = cluster
        self.ready = ready
        self.node = node
        self._now = now or (lambda: times.text(time.time()))
        self._pods = Informer(cluster, PODS, as_=dict)
        self._news = asyncio.Event()
        self._pods.on_change(lambda key, old, new: self._news.set())

    def look_again(self):
        self._news.set()

    async def run(self):
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._pods.run())
            while True:
                await self._news.wait()
                self._news.clear()
                for pod in self._pods.objects():
                    with contextlib.suppress(NotFound, Conflict):
                        await self._tend(pod)

    async def _tend(self, pod):
        meta, status = pod["metadata"], pod.get("status") or {}
        if meta.get("deletionTimestamp"):
            await self.cluster.delete(PODS, meta["name"], namespace=meta["namespace"], uid=meta["uid"], grace_seconds=0)
            return
        if status.get("phase") in ("Failed", "Succeeded"):
            return
        if not pod["spec"].get("nodeName"):
            binding = {"metadata": {"name": meta["name"]}, "target": {"kind": "Node", "name": target(pod, self.node)}}
            await self.cluster.create(
                PODS, binding, namespace=meta["namespace"], name=meta["name"], subresource="binding"
            )
        wanted = "True" if self.ready(pod) else "False"
        found = next((c["status"] for c in status.get("conditions") or () if c["type"] == "Ready"), None)
        if status.get("phase") == "Running" and found == wanted:
            return
        change = {
            "status": {
                "phase": "Running",
                "podIP": "10.1.0.1",
                "podIPs": [{"ip": "10.1.0.1"}],
                "conditions": [{"type": "Ready", "status": wanted, "lastTransitionTime": self._now()}],
            }
        }
        patch = {"metadata": {"uid": meta["uid"]}, **change}
        await self.cluster.patch(
            PODS, meta["name"], patch, namespace=meta["namespace"], type="strategic", subresource="status"
        )


def target(pod, otherwise):
    """The node a DaemonSet wants its Pod on."""
    affinity = pod["spec"].get("affinity", {}).get("nodeAffinity", {})
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution", {})
    for term in required.get("nodeSelectorTerms", ()):
        for field in term.get("matchFields", ()):
            return field["values"][0]
    return otherwise


@contextlib.asynccontextmanager
async def simulated_kubelet(cluster, **options):
    kubelet = SimulatedKubelet(cluster, **options)
    task = asyncio.create_task(kubelet.run())
    try:
        yield kubelet
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def main(path):
    async with RemoteCluster(kubeconfig.load(path)) as cluster:
        await SimulatedKubelet(cluster).run()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
