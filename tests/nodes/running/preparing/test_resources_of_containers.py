"""The limits of a container's control group."""

from __future__ import annotations

import pytest

from seamark.nodes.running.preparing.resources import bound, limits
from seamark.rules.objects.pod import Resources

FREE = {"cpu.max": "max 100000", "cpu.weight": "1", "memory.max": "max", "memory.oom.group": "1", "pids.max": "800"}


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({}, {}),
        ({"limits": {"memory": "128Mi"}}, {"memory.max": "134217728"}),
        ({"limits": {"cpu": "500m"}}, {"cpu.max": "50000 100000", "cpu.weight": "20"}),
        ({"limits": {"cpu": "1m"}}, {"cpu.max": "1000 100000"}),
        ({"requests": {"cpu": "1"}}, {"cpu.weight": "39"}),
        ({"requests": {"cpu": "1000"}}, {"cpu.weight": "10000"}),
        ({"requests": {"cpu": "250m"}, "limits": {"cpu": 2}}, {"cpu.max": "200000 100000", "cpu.weight": "10"}),
        ({"limits": {"memory": "1e2147483647"}}, {"memory.max": str(2**63 - 1)}),
    ],
)
def test_limits(asked, found):
    assert limits(Resources(**asked), processes=400) == FREE | found


def test_the_kernel_allows_more_processes_than_a_container_may_have():
    """So that one that wants more is seen, and is not only refused."""
    assert (bound(400), bound(0)) == (800, 0)


def test_any_number_of_processes():
    assert limits(Resources(), processes=0)["pids.max"] == "max"
