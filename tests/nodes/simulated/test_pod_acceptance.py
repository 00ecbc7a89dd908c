"""A node refuses Pods that name it themselves, but that it has no room for or that do not want it."""

import pytest

from seamark.kinds.resource import NODES


@pytest.fixture(autouse=True, params=["with its scheduler", "with its scheduler in another process"])
def schedules(world, request):
    world.schedules = request.param == "with its scheduler"


def container(port=None, **resources):
    made = {"name": "main", "image": "example/app:1"}
    if port:
        made["ports"] = [{"containerPort": 80, "hostPort": port}]
    return made | ({"resources": {"requests": resources}} if resources else {})


async def status_of(world, name):
    await world.pass_(2)
    status = (await world.pod(name))["status"]
    return status["phase"], status.get("reason"), status.get("message")


async def test_a_taken_port(world):
    await world.start(count=1)
    await world.make("first", containers=[container(port=8080)], nodeName="node-1")
    await world.make("second", containers=[container(port=8080)], nodeName="node-1")
    await world.make("third", containers=[container(port=8081)], nodeName="node-1")
    why = "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"
    assert (await status_of(world, "first"))[0] == "Running"
    assert await status_of(world, "second") == ("Failed", "NodePorts", f"Pod was rejected: {why}")
    assert (await status_of(world, "third"))[0] == "Running"
    assert [e["message"] for e in await world.events("NodePorts")] == [why]
    status = (await world.pod("second"))["status"]
    assert status["startTime"]
    assert "containerStatuses" not in status
    assert "podIP" not in status
    await world.remove("first")
    await world.pass_(1)
    await world.make("fourth", containers=[container(port=8080)], nodeName="node-1")
    assert (await status_of(world, "fourth"))[0] == "Running", "a refused Pod holds no port"


async def test_too_little_room(world):
    await world.start(count=1, cpu="4")
    await world.make("first", containers=[container(cpu="3900m")], nodeName="node-1")
    await world.make("second", containers=[container(cpu="200m")], nodeName="node-1")
    message = "Pod was rejected: Node didn't have enough resource: cpu, requested: 200, used: 3900, capacity: 4000"
    assert await status_of(world, "second") == ("Failed", "OutOfcpu", message)
    await world.make("third", containers=[container(cpu="100m")], nodeName="node-1")
    assert (await status_of(world, "third"))[0] == "Running"


async def test_of_many_at_once_as_many_as_fit_are_taken(world):
    await world.start(count=1, cpu="4")
    for number in range(6):
        made = [container(cpu="1500m")]
        await world.make(f"p{number}", containers=made, nodeName="node-1", settled=False)
    await world.settle()
    phases = [(await status_of(world, f"p{number}"))[0] for number in range(6)]
    assert sorted(phases) == ["Failed"] * 4 + ["Running"] * 2


async def test_too_many_pods(world):
    await world.start(count=1, pods=1)
    await world.make("first", nodeName="node-1")
    await world.make("second", nodeName="node-1")
    message = "Pod was rejected: Node didn't have enough resource: pods, requested: 1, used: 1, capacity: 1"
    assert await status_of(world, "second") == ("Failed", "OutOfpods", message)


@pytest.mark.parametrize("label", ["b", "a"])
async def test_a_node_that_the_pod_does_not_want(world, label):
    await world.start(count=1)
    await world.cluster.patch(NODES, "node-1", {"metadata": {"labels": {"kind": "a"}}})
    await world.make("p", nodeSelector={"kind": label}, nodeName="node-1")
    why = "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"
    refused = ("Failed", "NodeAffinity", f"Pod was rejected: {why}")
    assert await status_of(world, "p") == (refused if label == "b" else ("Running", None, None))


@pytest.mark.parametrize("name", ["windows", "linux"])
async def test_another_operating_system(world, name):
    await world.start(count=1)
    await world.make("p", os={"name": name}, nodeName="node-1")
    why = "Pod was rejected: Failed to admit pod as the OS field doesn't match node OS"
    refused = ("Failed", "PodOSNotSupported", why)
    assert await status_of(world, "p") == (refused if name == "windows" else ("Running", None, None))


async def test_what_runs_already_stays_when_the_simulation_starts_again(world):
    await world.start(count=1, cpu="4")
    await world.make("p", containers=[container(cpu="3")], nodeName="node-1")
    await world.start(count=1, cpu="2")
    assert (await status_of(world, "p"))[0] == "Running"
