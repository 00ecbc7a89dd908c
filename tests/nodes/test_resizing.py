"""Which containers are restarted when their resources are changed."""

import pytest

from seamark.nodes import resizing
from seamark.rules.objects.pod import ResizePolicy, Resources

SMALL = Resources({"cpu": "1", "memory": "1Gi"}, {"memory": "1Gi"})


@pytest.mark.parametrize(
    ("asked", "restarted"),
    [
        (SMALL, False),
        (Resources({"cpu": "2", "memory": "1Gi"}, {"memory": "1Gi"}), False),
        (Resources({"cpu": "1", "memory": "2Gi"}, {"memory": "1Gi"}), True),
        (Resources({"cpu": "1", "memory": "1Gi"}, {"memory": "2Gi"}), True),
        (Resources({"cpu": "1", "memory": "1Gi"}), True),
    ],
)
def test_restarts(asked, restarted):
    policies = [ResizePolicy("cpu", "NotRequired"), ResizePolicy("memory", "RestartContainer")]
    assert resizing.restarts(policies, SMALL, asked) is restarted
    assert not resizing.restarts((), SMALL, asked)
