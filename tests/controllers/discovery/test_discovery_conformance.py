"""The running controllers against what the real ones were recorded to do, in virtual time."""

import pytest
from memory_cluster import MemoryCluster
from recordings import check, load, observe, play, steps
from running import settled

from seamark.kinds.resource import NODES


@pytest.mark.parametrize(("nodes", "case"), load("hand") + load("random"))
async def test_a_recorded_scenario(nodes, case):
    cluster = MemoryCluster()
    for node in nodes:
        await cluster.create(NODES, node)
    states = []
    async with settled(cluster) as controllers:
        for step in steps(case):
            if step == "settle" or "settle" in step:
                await controllers.settle()
                states.append(observe(cluster))
            else:
                await play(cluster, step)
    check(case, states)
