"""How many Pods, and which of them go: the decisions of ReplicaSets."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from workload_objects import pod, replica_set

from seamark.controllers.workloads import replicas
from seamark.controllers.workloads.replicas import BURST, ReplicationController, count, doomed, next_available, plan
from seamark.errors import Forbidden

NOW = 1_000_000.0


def pods(number, **what):
    return [pod(f"p{i}", **what) for i in range(number)]


@pytest.mark.parametrize(
    ("wanted", "there", "create", "delete"),
    [(3, 0, 3, 0), (3, 2, 1, 0), (3, 3, 0, 0), (3, 5, 0, 2), (0, 4, 0, 4), (2000, 0, BURST, 0), (0, 600, 0, BURST)],
)
def test_the_number_is_made_up_or_cut_down(wanted, there, create, delete):
    found = pods(there)
    change = plan(replica_set(replicas=wanted), found, related=found, now=NOW)
    assert (change.create, len(change.delete)) == (create, delete)


def test_a_replica_set_that_is_being_deleted_does_nothing():
    ending = replica_set(replicas=3, metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    assert plan(ending, [], related=[], now=NOW) == replicas.ReplicaChanges()


@pytest.mark.parametrize(
    ("goes", "stays"),
    [
        (pod("unassigned", node=""), pod("assigned", phase="Pending")),
        (pod("pending", phase="Pending"), pod("unknown", phase="Unknown")),
        (pod("unknown", phase="Unknown"), pod("running", ready=False)),
        (pod("not-ready", ready=False), pod("ready")),
        (pod("cheap", cost="-5"), pod("dear", cost="10")),
        (pod("without-cost"), pod("dear", cost="1")),
        (pod("cheap", cost="-1"), pod("bad-cost", cost="much")),
        (pod("ready-since-just-now", since=NOW - 1), pod("ready-for-long", since=NOW - 5000)),
        (pod("restarted", restarts=3), pod("steady", restarts=0)),
        (pod("young", created=NOW - 10), pod("old", created=NOW - 90_000)),
        # Times of the same order of magnitude are no reason; the uid is as good as chance.
        (pod("b", uid="1", since=NOW - 5000), pod("a", uid="2", since=NOW - 5100)),
    ],
)
def test_the_least_needed_goes_first(goes, stays):
    for order in ([goes, stays], [stays, goes]):
        assert doomed(order, 1, related=order, now=NOW) == (goes,)


def test_a_crowded_node_loses_first():
    here = [pod("a1", node="a", uid="9"), pod("b1", node="b", uid="1")]
    sibling = pod("a2", node="a")
    assert doomed(here, 1, related=[*here, sibling], now=NOW) == (here[0],)
    # One that is going anyway is no crowd.
    leaving = pod("a3", node="a", terminating=True)
    assert doomed(here, 1, related=[*here, leaving], now=NOW) == (here[1],)


def test_readiness_counts_more_than_crowds():
    crowded = [pod("a1", node="a"), pod("a2", node="a")]
    alone = pod("b1", node="b", ready=False)
    assert doomed([*crowded, alone], 1, related=[*crowded, alone], now=NOW) == (alone,)


def test_status_counts_what_is_there():
    rs = replica_set(replicas=4, minReadySeconds=10, metadata={"generation": 7})
    labelled = {"app": "web", "pod-template-hash": "web-1"}
    found = [
        pod("fresh", labels=labelled, since=NOW - 5),
        pod("settled", labels=labelled, since=NOW - 10),
        pod("down", ready=False),
    ]
    status = count(rs, found, terminating=2, failure=None, now=NOW)
    assert msgspec.to_builtins(status) == {
        "replicas": 3,
        "fullyLabeledReplicas": 2,
        "readyReplicas": 2,
        "availableReplicas": 1,
        "terminatingReplicas": 2,
        "observedGeneration": 7,
    }
    assert next_available(found, 10, NOW) == 5
    assert next_available(found, 0, NOW) is None


def test_a_replication_controller_has_no_count_of_terminating_pods():
    rc = msgspec.convert({"metadata": {"name": "rc"}, "spec": {"selector": {"app": "web"}}}, ReplicationController)
    assert count(rc, [], terminating=2, failure=None, now=NOW).terminating_replicas is None
    assert rc.selector.matches({"app": "web", "more": "x"})
    assert not rc.selector.matches({"app": "db"})


def test_failure_is_told_once_and_taken_back():
    rs = replica_set(replicas=3)
    refused = Forbidden("exceeded quota")
    status = count(rs, [], terminating=0, failure=refused, now=NOW)
    (condition,) = status.conditions
    assert (condition.type, condition.status) == ("ReplicaFailure", "True")
    assert (condition.reason, condition.message) == ("FailedCreate", "exceeded quota")
    failed = msgspec.structs.replace(rs, status=status)
    later = count(failed, [], terminating=0, failure=Forbidden("another"), now=NOW + 60)
    assert later.conditions == status.conditions
    assert count(failed, [], terminating=0, failure=None, now=NOW + 60).conditions == ()
    too_many = count(rs, pods(5), terminating=0, failure=refused, now=NOW)
    assert too_many.conditions[0].reason == "FailedDelete"


some_pod = st.builds(
    pod,
    st.uuids().map(str),
    ready=st.booleans(),
    phase=st.sampled_from(["Pending", "Running", "Unknown"]),
    node=st.sampled_from(["", "a", "b"]),
    since=st.floats(0, 2 * NOW),
    created=st.floats(0, 2 * NOW),
    restarts=st.integers(0, 3),
    cost=st.sampled_from([None, "-1", "5", "x", "-", ""]),
)


@settings(deadline=None)
@given(st.lists(some_pod, max_size=12, unique_by=lambda p: p.metadata.uid), st.integers(0, 15), st.randoms())
def test_any_pods_end_up_as_many_as_wanted_and_none_is_lost_for_a_worse_one(found, wanted, chance):
    rs = replica_set(replicas=wanted)
    change = plan(rs, found, related=found, now=NOW)
    left = [p for p in found if p not in change.delete]
    assert len(left) + change.create == wanted
    assert not (change.create and change.delete)
    if change.delete:
        usable = [p for p in found if p.ready and p.spec.node_name]
        assert all(p in left for p in usable) or not [p for p in left if p not in usable]
    shuffled = list(found)
    chance.shuffle(shuffled)
    again = plan(rs, shuffled, related=shuffled, now=NOW)
    assert {p.metadata.uid for p in again.delete} == {p.metadata.uid for p in change.delete}
