"""A change that a handler could not take in is made up for: the scheduler, the kubelets and the nodes come right."""

import pytest
from node_world import shown

from failing_handlers import fail_once, failures
from seamark.kinds.resource import NODES, PODS
from seamark.nodes.scheduling.occupancy import occupant


def used(world):
    """How much of each node the scheduler takes for used, and by how many Pods."""
    occupancy = world.simulation.scheduler.occupancy
    here = {occupant.key: occupant.node for occupant in occupancy.occupants()}
    return {name: room.used for name, room in occupancy.rooms.items()}, here


async def really_used(world):
    """The same, by a scheduler that begins with what is there now."""
    await world.start(count=2, pods=8)
    return used(world)


@pytest.mark.parametrize(
    ("method", "change"),
    [
        ("put", lambda world: world.make("foreign", nodeName="node-1")),
        ("remove", lambda world: world.remove("a", grace_seconds=0)),
        ("put_node", lambda world: world.cluster.patch(NODES, "node-2", {"metadata": {"labels": {"disk": "fast"}}})),
    ],
)
async def test_the_occupancy_comes_right(world, method, change):
    await world.start(count=2, pods=8)
    for name in "abc":
        await world.make(name)
    fail_once(world.simulation.scheduler.occupancy, method)
    await change(world)
    await world.pass_(1)
    assert failures(world.metrics) == {"scheduler": 1}
    assert used(world) == await really_used(world)


async def test_a_pod_that_waited_for_a_space_gets_it_although_its_end_was_not_taken_in(world):
    await world.start(count=1, pods=2)
    for name in "abc":
        await world.make(name)
    [waiting] = [pod["metadata"]["name"] for pod in await world.all(PODS) if not pod["spec"].get("nodeName")]
    fail_once(world.simulation.scheduler.occupancy, "remove")
    await world.remove(next(name for name in "abc" if name != waiting), grace_seconds=0)
    await world.pass_(1)
    assert (await world.pod(waiting))["spec"]["nodeName"] == "node-1"
    assert failures(world.metrics) == {"scheduler": 1}


async def test_what_is_decided_but_not_yet_shown_keeps_its_place(world):
    await world.start(count=1, pods=2)
    scheduler = world.simulation.scheduler
    await world.make("a")
    await world.make("b", settled=False, schedulingGates=[{"name": "wait"}])
    await world.settle()
    pod = world.simulation.pods.get("b", "default")
    scheduler.occupancy.put(occupant(pod, "node-1"))
    scheduler.reset()
    assert [each.key for each in scheduler.occupancy.occupants()] == ["default/b"]


async def test_addresses_stay_with_their_pods_and_those_of_lost_pods_become_free(world):
    await world.start(count=1)
    for name in "abc":
        await world.make(name)
    (kubelets,) = world.simulation.kubelets
    addresses = {name: (await world.pod(name))["status"]["podIP"] for name in "abc"}
    fail_once(kubelets, "_let_go")
    gone = world.simulation.pods.get("a", "default").metadata.uid
    await world.remove("a", grace_seconds=0)
    member = world.simulation.roster.get("node-1")
    await world.pass_(1)
    assert failures(world.metrics) == {"kubelet": 1}
    assert member.addresses.of(gone) is None
    await world.make("d")
    assert shown(await world.pod("d")) == "Running True"
    new = {name: (await world.pod(name))["status"]["podIP"] for name in "bcd"}
    assert (new["b"], new["c"]) == (addresses["b"], addresses["c"])
    assert len(set(new.values())) == 3


async def test_a_dead_node_does_not_come_to_life_by_a_rebuild(world):
    await world.start(count=2)
    await world.cluster.patch(NODES, "node-1", {"metadata": {"annotations": {"seamark.dev/stopped": "true"}}})
    await world.make("pod")
    await world.settle()
    fail_once(world.simulation.roster, "put")
    await world.cluster.patch(NODES, "node-2", {"metadata": {"labels": {"disk": "fast"}}})
    await world.pass_(20)
    assert failures(world.metrics) == {"simulated nodes": 1}
    ready = {
        node["metadata"]["name"]: {c["type"]: c["status"] for c in node["status"]["conditions"]}["Ready"]
        for node in await world.all(NODES)
    }
    assert ready == {"node-1": "Unknown", "node-2": "True"}
    assert len(await world.all(PODS)) == 1
