"""The resources of containers that run are changed, as far as their node has room."""

import pytest

from seamark.kinds.resource import PODS


@pytest.fixture(autouse=True, params=["with its scheduler", "with its scheduler elsewhere"])
def schedules(world, request):
    world.schedules = request.param == "with its scheduler"


def container(name="main", *, cpu, memory="64Mi", **others):
    amounts = {"cpu": cpu, "memory": memory}
    return {"name": name, "image": "example/app:1", "resources": {"requests": amounts, "limits": amounts}, **others}


async def resize(world, name, **amounts):
    change = {"spec": {"containers": [{"name": "main", "resources": {"requests": amounts, "limits": amounts}}]}}
    await world.cluster.patch(PODS, name, change, namespace="default", type="strategic", subresource="resize")
    await world.pass_(1)


async def shown(world, name):
    status = (await world.pod(name))["status"]
    [first] = status["containerStatuses"]
    pending = [(c["reason"], c["message"]) for c in status["conditions"] if c["type"] == "PodResizePending"]
    return first["resources"]["requests"]["cpu"], first["restartCount"], pending


async def test_what_a_container_has(world):
    await world.start(count=1)
    await world.make("web", containers=[container(cpu="100m")], nodeName="node-1")
    [status] = (await world.pod("web"))["status"]["containerStatuses"]
    amounts = {"cpu": "100m", "memory": "64Mi"}
    assert status["resources"] == {"requests": amounts, "limits": amounts}
    assert status["allocatedResources"] == amounts
    await world.make("small", containers=[{"name": "main", "image": "example/app:1"}], nodeName="node-1")
    [status] = (await world.pod("small"))["status"]["containerStatuses"]
    assert (status["resources"], status.get("allocatedResources")) == ({}, None)


async def test_a_change_is_carried_out_at_once(world):
    await world.start(count=1)
    await world.make("web", containers=[container(cpu="100m")], nodeName="node-1")
    await resize(world, "web", cpu="200m", memory="32Mi")
    assert await shown(world, "web") == ("200m", 0, [])
    pod = await world.pod("web")
    assert pod["status"]["observedGeneration"] == pod["metadata"]["generation"] == 2
    assert pod["status"]["containerStatuses"][0]["allocatedResources"] == {"cpu": "200m", "memory": "32Mi"}


async def test_a_container_that_is_restarted_for_it(world):
    await world.start(count=1)
    policies = [
        {"resourceName": "cpu", "restartPolicy": "NotRequired"},
        {"resourceName": "memory", "restartPolicy": "RestartContainer"},
    ]
    await world.make("web", containers=[container(cpu="100m", resizePolicy=policies)], nodeName="node-1")
    await resize(world, "web", cpu="200m", memory="64Mi")
    assert await shown(world, "web") == ("200m", 0, [])
    await resize(world, "web", cpu="200m", memory="128Mi")
    assert await shown(world, "web") == ("200m", 1, [])


async def test_more_than_the_node_has(world):
    await world.start(count=1, cpu="4")
    await world.make("web", containers=[container(cpu="100m")], nodeName="node-1")
    await resize(world, "web", cpu="5", memory="64Mi")
    why = "Node didn't have enough capacity: cpu, requested: 5000, capacity: 4000"
    assert await shown(world, "web") == ("100m", 0, [("Infeasible", why)])
    await world.make("other", containers=[container(cpu="3900m")], nodeName="node-1")
    assert (await world.pod("other"))["status"]["phase"] == "Running", "what it does not get leaves room for others"
    await resize(world, "web", cpu="50m", memory="64Mi")
    assert await shown(world, "web") == ("50m", 0, [])


async def test_more_than_is_left(world):
    await world.start(count=1, cpu="4")
    await world.make("web", containers=[container(cpu="100m")], nodeName="node-1")
    await world.make("other", containers=[container(cpu="3900m")], nodeName="node-1")
    await resize(world, "web", cpu="1", memory="64Mi")
    why = "Node didn't have enough resource: cpu, requested: 1000, used: 3900, capacity: 4000"
    assert await shown(world, "web") == ("100m", 0, [("Deferred", why)])
    await world.remove("other")
    await world.pass_(15)
    assert await shown(world, "web") == ("1", 0, [])
