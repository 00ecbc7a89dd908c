"""A workload may ask for more Pods than any cluster has: each step stays small, however large the numbers are."""

import pytest
from workload_objects import deployment, pod, replica_set, stateful_set

from seamark.controllers.workloads import replicas, rollout, rollout_sizes, statefulset
from seamark.controllers.workloads.replicas import BURST, MOST_WAITING, pause
from seamark.controllers.workloads.shares import resolve
from seamark.controllers.workloads.statefulset import Revisions

HUGE = 2**31 - 1
NOW = 1_000_000.0
SAME = Revisions("web-a", "web-a")
UPDATE = Revisions("web-a", "web-b")


def member(place, **what):
    name = f"web-{place}"
    labels = {"app": "web", "statefulset.kubernetes.io/pod-name": name, "controller-revision-hash": "web-a"}
    return pod(name, labels=labels, **what)


def planned(spec, pods, revisions=SAME):
    change = statefulset.plan(stateful_set(**spec), pods, revisions, now=NOW)
    return [each.ordinal for each in change.create], [each.metadata.name for each in change.delete]


@pytest.mark.parametrize("start", [0, HUGE])
def test_a_parallel_stateful_set_creates_a_burst(start):
    spec = {"replicas": HUGE, "podManagementPolicy": "Parallel", "ordinals": {"start": start}}
    assert planned(spec, []) == ([*range(start, start + BURST)], [])


def test_the_next_burst_follows_and_pods_far_away_are_still_looked_after():
    spec = {"replicas": HUGE, "podManagementPolicy": "Parallel"}
    pods = [*(member(place) for place in range(BURST)), member(HUGE - 1, phase="Failed")]
    assert planned(spec, pods) == ([*range(BURST, 2 * BURST)], [f"web-{HUGE - 1}"])


def test_a_huge_ordered_stateful_set_creates_one_pod_after_the_other():
    assert planned({"replicas": HUGE}, [member(0), member(1)]) == ([2], [])
    assert planned({"replicas": HUGE}, [member(0), member(1, ready=False)]) == ([], [])
    assert planned({"replicas": HUGE}, [member(1), member(2)]) == ([0], [])


@pytest.mark.parametrize("partition", [0, HUGE])
def test_an_update_of_a_huge_stateful_set_counts_missing_pods_as_unavailable(partition):
    rolling = {"partition": partition, "maxUnavailable": "100%"}
    spec = {
        "replicas": HUGE,
        "podManagementPolicy": "Parallel",
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling},
    }
    create, delete = planned(spec, [member(0), member(1)], UPDATE)
    assert len(create) == BURST
    assert delete == (["web-1", "web-0"] if not partition else [])


def test_a_stateful_set_that_shrinks_deletes_a_burst():
    spec = {"replicas": 0, "podManagementPolicy": "Parallel"}
    pods = [member(place) for place in range(BURST + 7)]
    assert planned(spec, pods) == ([], [f"web-{place}" for place in range(BURST + 6, 6, -1)])


def test_a_huge_replica_set_creates_a_burst_and_pauses_for_the_pods_it_has():
    huge = replica_set("web", replicas=HUGE, status={"replicas": 0})
    assert replicas.plan(huge, [], related=(), now=NOW).create == BURST
    assert pause(huge.spec.replicas, huge.status.replicas) < 0.1


def test_a_workload_creates_no_more_pods_while_very_many_wait_for_a_node():
    waiting = [member(place, node="", phase="Pending") for place in range(MOST_WAITING - 3)]
    spec = {"replicas": HUGE, "podManagementPolicy": "Parallel"}
    assert len(planned(spec, waiting)[0]) == 3
    huge = replica_set("web", replicas=HUGE)
    assert replicas.plan(huge, waiting, related=(), now=NOW).create == 3
    waiting += [member(place, node="", phase="Pending") for place in range(MOST_WAITING - 3, MOST_WAITING)]
    assert planned(spec, waiting) == ([], [])
    assert replicas.plan(huge, [*waiting, member(HUGE)], related=(), now=NOW).create == 0


@pytest.mark.parametrize("surge", [HUGE, "100%", "9" * 5000 + "%"])
def test_a_huge_deployment_asks_no_replica_set_for_more_than_it_may_have(surge):
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": 0}}
    of = deployment(replicas=HUGE, strategy=strategy)
    assert rollout.plan(of, [], lingering=False, now=NOW).create["spec"]["replicas"] == HUGE
    sets = [replica_set("old", replicas=HUGE // 2), replica_set("new", replicas=3)]
    sizes = rollout_sizes.scaled(of, None, sets)
    assert all(size <= HUGE for size in sizes.values())
    assert sum(sizes.values()) == HUGE


def test_a_percentage_of_thousands_of_digits_is_a_large_number():
    assert resolve("9" * 5000 + "%", 10, rounding="up") > HUGE
    assert resolve("0" * 5000 + "25%", 10, rounding="up") == 3
