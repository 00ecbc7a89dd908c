"""Pods that fit nowhere wait in groups: one event tries a few of them, and time brings all the others their turn."""

from seamark.kinds.resource import NODES
from seamark.metrics import Registry
from seamark.nodes.scheduling.scheduler import GROUPS_AT_ONCE


def attempts(registry: Registry) -> int:
    line = next(
        each for each in registry.text().splitlines() if each.startswith('workqueue_adds_total{name="scheduler"}')
    )
    return int(line.split()[-1])


async def full_cluster(world, groups):
    """One node with one Pod, which has room for no other, and Pods that differ in their labels."""
    await world.start(count=1, pods=1)
    await world.make("first")
    for number in range(groups):
        await world.make(f"waiting-{number}", labels={"number": str(number)}, settled=False)
    await world.settle()


async def test_an_event_tries_a_limited_number_of_groups(world):
    await full_cluster(world, GROUPS_AT_ONCE + 50)
    before = attempts(world.metrics)
    await world.remove("first", grace_seconds=0)
    assert attempts(world.metrics) - before <= GROUPS_AT_ONCE + 2  # and the Pod that was bound, twice


async def test_every_waiting_pod_has_its_turn(world):
    await full_cluster(world, GROUPS_AT_ONCE + 50)
    # Only the last Pod may run on a node with a taint.
    await world.make("tolerant", tolerations=[{"operator": "Exists"}])
    await world.cluster.patch(NODES, "node-1", {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}})
    await world.remove("first", grace_seconds=0)
    assert "nodeName" not in (await world.pod("tolerant"))["spec"]
    await world.pass_(1.0)
    assert (await world.pod("tolerant"))["spec"]["nodeName"] == "node-1"
