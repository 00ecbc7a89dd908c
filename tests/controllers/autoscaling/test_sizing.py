"""How many replicas a measurement asks for: tables of cases, and what holds for any."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark.controllers.autoscaling.sizing import Goal, Reading, SizingError, Tolerance, size, sort
from seamark.kinds.values import times
from seamark.rules.objects.conditions import Condition
from seamark.rules.objects.metadata import Metadata
from seamark.rules.objects.pod import Container, Pod, PodSpec, PodStatus, Resources

NOW = 1_800_000_000.0
OLD = times.text(NOW - 3600)


def pod(name, *, phase="Running", ready="True", started=OLD, since=OLD, request="1", gone=None):
    container = Container(name="c", resources=Resources(requests={"cpu": request} if request else {}))
    conditions = (Condition("Ready", ready, since),) if ready else ()
    return Pod(
        Metadata(name=name, deletion_timestamp=gone),
        PodSpec(containers=(container,)),
        PodStatus(phase=phase, conditions=conditions, start_time=started),
    )


def asked(used, goal, *, pods=None, current=None, resource="cpu", tolerance=Tolerance()):  # noqa: B008
    """``used`` are thousandths by Pod, None for a Pod that is not measured."""
    found = pods or [pod(f"p{i}") for i in range(len(used))]
    readings = {f"p{i}": Reading(each, NOW, 30.0) for i, each in enumerate(used) if each is not None}
    return size(current or len(found), found, readings, goal, resource=resource, now=NOW, tolerance=tolerance)


@pytest.mark.parametrize(
    ("used", "goal", "replicas"),
    [
        ([300, 500, 700], Goal(percent=30), 5),  # 50 % of the requests
        ([300, 500, 700], Goal(percent=50), 3),
        ([300, 500, 700], Goal(percent=46), 3),  # within the tolerance
        ([100, 100, 100], Goal(percent=50), 1),
        ([300, 500, 700], Goal(average=250), 6),
        ([1000, 3000], Goal(average=2100), 2),
        ([0, 0, 0], Goal(percent=50), 0),
        ([100, None, 100], Goal(percent=50), 3),  # the missing Pod counts as if it used its request: no change
        ([1000, 1000, None], Goal(percent=50), 4),  # … and as nothing when growing
        ([550, None], Goal(percent=50), 2),
    ],
)
def test_use_against_the_goal(used, goal, replicas):
    assert asked(used, goal).replicas == replicas


def test_what_was_measured_is_told():
    found = asked([300, 500, 700], Goal(percent=30))
    assert (found.average, found.percent) == (500, 50)
    assert asked([300, 500, 700], Goal(average=250)).percent is None


def test_tolerance_can_be_chosen_for_each_direction():
    exact = Tolerance(down=Fraction(0), up=Fraction(0))
    assert asked([500] * 10, Goal(percent=49), tolerance=exact).replicas == 11
    assert asked([500] * 10, Goal(percent=49)).replicas == 10
    assert asked([500] * 10, Goal(percent=30), tolerance=Tolerance(up=Fraction(1))).replicas == 10


def test_pods_that_start_or_leave_dampen_growth():
    pods = [
        pod("p0"),
        pod("p1"),
        pod("p2", phase="Pending", ready=None),
        pod("p3", gone=OLD),
        pod("p4", phase="Failed"),
    ]
    assert asked([1000, 1000, 1000, 1000, 1000], Goal(percent=50), pods=pods, current=3).replicas == 4
    assert asked([100, 100, 100, 100, 100], Goal(percent=50), pods=pods, current=3).replicas == 1


@pytest.mark.parametrize(
    ("given_pod", "starting"),
    [
        (pod("p"), False),
        (pod("p", ready=None), True),
        (pod("p", started=None), True),
        (pod("p", started=times.text(NOW - 60), since=times.text(NOW - 50)), False),
        (pod("p", started=times.text(NOW - 60), since=times.text(NOW - 10)), True),  # measured before it was ready
        (pod("p", started=times.text(NOW - 60), ready="False"), True),
        (pod("p", ready="False", since=OLD), True),  # has never been ready
        (pod("p", ready="False", since=times.text(NOW - 60)), False),
    ],
)
def test_cpu_of_a_starting_pod_is_doubted(given_pod, starting):
    readings = {"p": Reading(1, NOW, 30.0)}
    assert bool(sort([given_pod], readings, "cpu", NOW).starting) is starting
    assert not sort([given_pod], readings, "memory", NOW).starting


@pytest.mark.parametrize(
    ("pods", "used", "sentence"),
    [
        ([pod("p0", request="")], [100], "missing request for cpu in container c of Pod p0"),
        ([pod("p0", phase="Pending")], [100], "did not receive metrics for targeted pods (pods might be unready)"),
        ([pod("p0")], [], "did not receive metrics for targeted pods (pods might be unready)"),
        ([pod("other")], [100], "no metrics returned matched known pods"),
    ],
)
def test_what_cannot_be_calculated_is_said(pods, used, sentence):
    with pytest.raises(SizingError) as refused:
        asked(used, Goal(percent=50), pods=pods)
    assert str(refused.value) == sentence


def test_no_pods_is_an_error():
    with pytest.raises(SizingError, match="no pods returned by selector"):
        size(1, [], {}, Goal(percent=1), resource="cpu", now=NOW, tolerance=Tolerance())


@given(
    used=st.lists(st.none() | st.integers(0, 5000), min_size=1, max_size=8).filter(
        lambda us: any(u is not None for u in us)
    ),
    percent=st.integers(1, 300),
)
def test_the_number_moves_towards_the_goal(used, percent):
    measured = [u for u in used if u is not None]
    replicas = asked(used, Goal(percent=percent)).replicas
    share = sum(measured) * 100 // (1000 * len(measured))
    if share > percent:
        assert replicas >= len(used)
    elif share < percent:
        assert replicas <= len(used)
    else:
        assert replicas == len(used)
