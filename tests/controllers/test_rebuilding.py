"""A handler that raises spoils what its controllers know; they build it again, and everything comes right."""

import pytest
from memory_cluster import MemoryCluster
from own_cluster import own_cluster
from running import settled
from scenery import assert_right, flip, node, pod, put, service
from workload_world import world

from failing_handlers import fail_once, failures, state_of
from seamark.kinds.resource import CONFIGMAPS, ENDPOINT_SLICES, PODS, SERVICES

# --- discovery ---------------------------------------------------------------------------------------


async def another_pod(cluster):
    await put(cluster, pod("p3"))


async def a_pod_goes(cluster):
    await cluster.delete(PODS, "p1", namespace="default", grace_seconds=0)


async def a_pod_is_not_ready(cluster):
    await flip(cluster, "p1", False)


async def another_service(cluster):
    await put(cluster, service("other", selector={"app": "web"}))


async def a_slice_is_edited(cluster):
    [found] = cluster.objects(ENDPOINT_SLICES)
    await cluster.patch(ENDPOINT_SLICES, found["metadata"]["name"], {"endpoints": []}, namespace="default")


@pytest.mark.parametrize(
    ("change", "state", "part", "method"),
    [
        (another_pod, "members", "_by_labels", "put"),
        (another_pod, "endpointslices", "", "pod_changed"),
        (another_pod, "endpoints", "", "pod_changed"),
        (a_pod_goes, "members", "_by_labels", "remove"),
        (a_pod_goes, "members", "", "_selectors_of"),
        (a_pod_is_not_ready, "members", "", "_file"),
        (another_service, "members", "_by_selector", "put"),
        (another_service, "endpointslices", "", "service_changed"),
        (a_slice_is_edited, "endpointslices", "_slices", "see"),
        (a_slice_is_edited, "endpointslices", "_absent", "found"),
    ],
)
async def test_discovery_comes_right(change, state, part, method):
    cluster = MemoryCluster()
    await put(cluster, node(), service(), pod("p1"), pod("p2"))
    async with settled(cluster) as controllers:
        spoiled = state_of(controllers.manager, state)
        fail_once(getattr(spoiled, part) if part else spoiled, method)
        await change(cluster)
        await controllers.settle()
        await assert_right(cluster)
        assert sum(failures(controllers.metrics).values()) == 1


async def test_a_rebuild_writes_nothing_where_nothing_is_wrong():
    cluster = MemoryCluster()
    await put(cluster, node(), service(), pod("p1"), pod("p2"))
    async with settled(cluster) as controllers:
        before = cluster.written()
        fail_once(state_of(controllers.manager, "members"), "_file")
        await cluster.patch(PODS, "p1", {"metadata": {"labels": {"irrelevant": "x"}}}, namespace="default")
        await controllers.settle()
        assert cluster.written() == before
        assert failures(controllers.metrics) == {"members": 1}


# --- workloads ---------------------------------------------------------------------------------------

LABELS = {"app": "web"}
CONTAINERS = {"containers": [{"name": "main", "image": "example/app:1"}]}


def replicas(count):
    template = {"metadata": {"labels": LABELS}, "spec": CONTAINERS}
    return {"replicas": count, "selector": {"matchLabels": LABELS}, "template": template}


@pytest.mark.parametrize(("part", "method"), [("", "_tell_owner"), ("_orphans", "remove")])
async def test_a_replica_set_makes_up_for_a_pod_whose_end_was_not_taken_in(part, method):
    async with world() as here:
        await here.create("ReplicaSet", "web", replicas(2))
        await here.until(lambda: ready(here, "web"), 2)
        await here.quiet()
        spoiled = state_of(here.controllers.manager, "owned pods")
        fail_once(getattr(spoiled, part) if part else spoiled, method)
        [first, _] = await here.names("Pod")
        await here.delete("Pod", first)

        async def replaced():
            names = await here.names("Pod")
            return first not in names and len(names) == await ready(here, "web") == 2

        await here.until(replaced)
        assert failures(here.controllers.manager.metrics) == {"owned pods": 1}


async def test_an_orphan_is_adopted_although_its_coming_was_not_taken_in():
    async with world() as here:
        await here.create("ReplicaSet", "web", replicas(1))
        await here.until(lambda: ready(here, "web"), 1)
        await here.quiet()
        manager = here.controllers.manager
        fail_once(state_of(manager, "owned pods")._orphans, "put")
        await here.create("Pod", "orphan", CONTAINERS, labels=LABELS)
        await here.until(lambda: ready(here, "web"), 1)
        await here.until(lambda: count(here), 1)
        assert failures(manager.metrics) == {"owned pods": 1}


async def test_a_workload_that_was_not_heard_of_adopts_what_it_selects():
    async with world() as here:
        manager = here.controllers.manager
        await here.create("Pod", "orphan", CONTAINERS, labels=LABELS)
        await here.quiet()
        fail_once(state_of(manager, "owners among replicasets.apps")._selectors, "put")
        await here.create("ReplicaSet", "web", replicas(1))
        await here.until(lambda: ready(here, "web"), 1)
        assert await here.names("Pod") == ["orphan"]
        assert failures(manager.metrics) == {"owners among replicasets.apps": 1}


async def ready(here, name):
    return (await here.status("ReplicaSet", name)).get("readyReplicas", 0)


async def count(here):
    return len([pod for pod in await here.list("Pod") if "deletionTimestamp" not in pod["metadata"]])


# --- housekeeping ------------------------------------------------------------------------------------


async def test_garbage_is_collected_although_its_owner_was_not_seen_to_go():
    async with own_cluster() as own, own.controlled(ending=True) as manager:
        made = await own.cluster.create(CONFIGMAPS, {"metadata": {"name": "owner"}}, namespace="default")
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": made["metadata"]["uid"]}
        owned = {"metadata": {"name": "owned", "ownerReferences": [reference]}}
        await own.cluster.create(CONFIGMAPS, owned, namespace="default")
        await own.quiet()
        fail_once(state_of(manager, "garbage-collector"), "_gone")
        await own.cluster.delete(CONFIGMAPS, "owner", namespace="default")
        await own.clock.advance(0, own.quiet)
        await own.until(lambda: own.find(CONFIGMAPS, "owned", "default"), lambda found: found is None)
        assert failures(manager.metrics) == {"everything": 1}


async def test_an_address_that_was_not_seen_to_be_free_is_given_again():
    def balanced(name):
        return {"metadata": {"name": name}, "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]}}

    async def address(name):
        status = (await own.cluster.get(SERVICES, name, namespace="default"))["status"]
        return [ingress["ip"] for ingress in status["loadBalancer"].get("ingress") or ()]

    async with own_cluster() as own, own.controlled(load_balancer_pool=("10.9.0.1-10.9.0.1",)) as manager:
        await own.cluster.create(SERVICES, balanced("first"), namespace="default")
        await own.until(lambda: address("first"))
        await own.cluster.create(SERVICES, balanced("second"), namespace="default")
        await own.quiet()
        fail_once(state_of(manager, "service-lb-controller"), "_hold")
        await own.cluster.delete(SERVICES, "first", namespace="default")
        await own.clock.advance(0, own.quiet)
        assert await own.until(lambda: address("second")) == ["10.9.0.1"]
        assert failures(manager.metrics) == {"service-lb-controller": 1}
