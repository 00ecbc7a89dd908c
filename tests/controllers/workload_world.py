"""A real API server in memory with running workload controllers, and optionally simulated kubelets."""

import asyncio
import contextlib

from own_cluster import managed
from own_rights import OwnRights
from simulated_kubelet import simulated_kubelet

from seamark.access.informers import Informers
from seamark.api import bootstrap
from seamark.api.server import ApiServer
from seamark.api.settings import ServiceNetwork
from seamark.clock import SYSTEM_CLOCK
from seamark.controllers.housekeeping.standalone import add_cleaning
from seamark.controllers.workloads.controllers import add_workloads
from seamark.kinds.resource import (
    CONTROLLER_REVISIONS,
    DAEMON_SETS,
    DEPLOYMENTS,
    EVENTS,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    STATEFUL_SETS,
)
from seamark.kinds.table import Kinds
from seamark.kinds.values import times
from seamark.metrics import Registry
from seamark.runtime.manager import Manager
from seamark.store.opening import open_store
from turns import drained

RESOURCES = {
    r.kind: r
    for r in (
        CONTROLLER_REVISIONS,
        DAEMON_SETS,
        DEPLOYMENTS,
        EVENTS,
        NODES,
        PERSISTENT_VOLUME_CLAIMS,
        PODS,
        REPLICA_SETS,
        REPLICATION_CONTROLLERS,
        STATEFUL_SETS,
    )
}


class Controllers:
    """The controllers of one process; those of workloads, and the informers, see the cluster ``through`` something."""

    def __init__(self, through, clock, cluster_for):
        self.manager = Manager(Informers(through(cluster_for("informers"))), clock=clock or SYSTEM_CLOCK)
        add_workloads(self.manager, lambda name: through(cluster_for(name)), batch=0.0)
        add_cleaning(self.manager, cluster_for, Kinds(), namespace_grace=0.0)

    def nudge(self, controller, key):
        """Have a controller look at something, though nothing has changed."""
        [found] = [each for each in self.manager.controllers if each.name == controller]
        found.queue.add(key)

    @contextlib.asynccontextmanager
    async def running(self):
        async with managed(self.manager):
            yield self


class World:
    def __init__(self, api, store, rights):
        self.api = api
        self.rights = rights
        self._store = store
        self.cluster = api.cluster("tester")
        self.made = []  # every Pod that was ever created, by name

    # --- doing -------------------------------------------------------------------------------------

    async def create(self, kind, name, spec, **metadata):
        resource = RESOURCES[kind]
        obj = {"apiVersion": resource.api_version, "kind": kind, "metadata": {"name": name, **metadata}, "spec": spec}
        return await self.cluster.create(resource, obj, namespace="default" if resource.namespaced else "")

    async def patch(self, kind, name, patch, **more):
        return await self.cluster.patch(RESOURCES[kind], name, patch, namespace="default", **more)

    async def patch_node(self, name, patch):
        return await self.cluster.patch(NODES, name, patch)

    async def delete(self, kind, name, **more):
        resource = RESOURCES[kind]
        await self.cluster.delete(resource, name, namespace="default" if resource.namespaced else "", **more)

    # --- looking -----------------------------------------------------------------------------------

    async def get(self, kind, name):
        return await self.cluster.get(RESOURCES[kind], name, namespace="default")

    async def list(self, kind, labels=""):
        resource = RESOURCES[kind]
        listing = await self.cluster.list(resource, namespace="default" if resource.namespaced else "", labels=labels)
        return sorted(listing.items, key=lambda obj: obj["metadata"]["name"])

    async def names(self, kind, labels=""):
        return [obj["metadata"]["name"] for obj in await self.list(kind, labels)]

    async def status(self, kind, name):
        return (await self.get(kind, name)).get("status", {})

    async def told(self, reason):
        """The messages of all events with this reason."""
        return sorted(event["message"] for event in await self.list("Event") if event["reason"] == reason)

    async def until(self, question, *expected):
        """Ask until the answer is as expected, or true if nothing is."""
        while True:
            answer = await question()
            if (answer == expected[0]) if expected else answer:
                return answer
            self.rights.check()
            await asyncio.sleep(0.01)

    async def quiet(self, seconds=0.25):
        """Wait until nothing has been written for this long; returns the store's version then."""
        while True:
            before = self.api.cache.revision
            await asyncio.sleep(seconds)
            await self.drained()
            if before == self.api.cache.revision:
                return before

    async def drained(self):
        """Until the controllers have done all that they do at once."""
        await drained(self._store)

    async def _watch_pods(self):
        listing = await self.cluster.list(PODS)
        async for change in self.cluster.watch(PODS, since=listing.version):
            if change.type == "ADDED":
                self.made.append(change.object["metadata"]["name"])


@contextlib.asynccontextmanager
async def world(*, through=lambda cluster: cluster, clock=None, kubelet=True, controllers=True, **kubelet_options):
    """``through`` wraps the cluster that the controllers use; ``clock`` lets the test control time."""
    store = open_store("memory:")
    await store.open()
    timing = {"clock": clock} if clock else {}
    rights = OwnRights()
    api = ApiServer(store, network=ServiceNetwork(), tokens={}, metrics=Registry(), authorizer=rights, **timing)
    await api.load()
    following = asyncio.create_task(api.follow())
    here = World(api, store, rights)
    try:
        await bootstrap.make_namespaces(here.cluster)
        watching = asyncio.create_task(here._watch_pods())
        async with contextlib.AsyncExitStack() as stack:
            if controllers:
                here.controllers = Controllers(through, clock, api.cluster)
                await stack.enter_async_context(here.controllers.running())
            if kubelet:
                if clock:
                    kubelet_options["now"] = lambda: times.text(clock.time())
                tended = simulated_kubelet(api.cluster("kubelet"), **kubelet_options)
                here.kubelet = await stack.enter_async_context(tended)
            yield here
            rights.check()
        watching.cancel()
    finally:
        following.cancel()
        await store.close()
