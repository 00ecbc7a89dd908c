"""Which Pods have to go for a more important one, and how they go."""

import msgspec
import pytest
from pictures import HOST, node, picture, pod

from seamark.kinds.resource import EVENTS, POD_DISRUPTION_BUDGETS, PODS, PRIORITY_CLASSES
from seamark.nodes.scheduling.preemption import preempt
from seamark.rules.objects.budget import Budget


def victims(found):
    return found and (found.node, sorted(each.key.partition("/")[2] for each in found.victims))


def budget(allowed, disrupted=(), **labels):
    return msgspec.convert(
        {
            "metadata": {"name": "b", "namespace": "default"},
            "spec": {"selector": {"matchLabels": labels}},
            "status": {"disruptionsAllowed": allowed, "disruptedPods": dict.fromkeys(disrupted, "")},
        },
        Budget,
    )


def test_as_few_go_as_possible_and_the_least_important():
    small, large = pod("small", cpu="1", priority=1), pod("large", cpu="2", priority=2)
    there = picture((node("n-1", cpu="4"),), n_1=[small, large, pod("equal", cpu="1", priority=5)])
    assert victims(preempt(pod(cpu="1", priority=5), there, ())) == ("n-1", ["small"])
    assert victims(preempt(pod(cpu="2", priority=5), there, ())) == ("n-1", ["large"])
    assert victims(preempt(pod(cpu="3", priority=5), there, ())) == ("n-1", ["large", "small"])
    assert preempt(pod(cpu="4", priority=5), there, ()) is None
    assert preempt(pod(cpu="1", priority=1), there, ()) is None
    assert preempt(pod(cpu="1", priority=5, preemptionPolicy="Never"), there, ()) is None
    # Trying has changed nothing.
    assert there.rooms["n-1"].used["cpu"] == 4000


@pytest.mark.parametrize(
    ("one", "two", "expected"),
    [
        # the least important most important victim
        ([pod("a", cpu="4", priority=3)], [pod("b", cpu="4", priority=2)], "n-2"),
        # then the smallest sum
        (
            [pod("a", cpu="2", priority=2), pod("a2", cpu="2", priority=2)],
            [pod("b", cpu="2", priority=2), pod("b2", cpu="2", priority=1)],
            "n-2",
        ),
        # then the fewest
        ([pod("a", cpu="2", priority=2), pod("a2", cpu="2", priority=2)], [pod("b", cpu="4", priority=2)], "n-2"),
    ],
)
def test_the_best_node(one, two, expected):
    there = picture((node("n-1"), node("n-2")), n_1=one, n_2=two)
    assert preempt(pod(cpu="4", priority=9), there, ()).node == expected


def test_the_pods_that_started_last_go():
    def started(name, when):
        return msgspec.structs.replace(
            made := pod(name, cpu="4"), status=msgspec.structs.replace(made.status, start_time=when)
        )

    there = picture(
        (node("n-1"), node("n-2")),
        n_1=[started("a", "2030-01-01T00:00:00Z")],
        n_2=[started("b", "2030-01-02T00:00:00Z")],
    )
    assert preempt(pod(cpu="4", priority=9), there, ()).node == "n-2"


def test_budgets_are_violated_last():
    guarded, other = pod("guarded", {"a": "b"}, cpu="2"), pod("other", cpu="2", priority=3)
    there = picture((node("n-1"),), n_1=[guarded, other])
    urgent = pod(cpu="2", priority=9)
    assert victims(preempt(urgent, there, ())) == ("n-1", ["guarded"])
    assert victims(preempt(urgent, there, [budget(0, a="b")])) == ("n-1", ["other"])
    assert victims(preempt(urgent, there, [budget(1, a="b")])) == ("n-1", ["guarded"])
    assert victims(preempt(urgent, there, [budget(0, ["guarded"], a="b")])) == ("n-1", ["guarded"])
    assert victims(preempt(pod(cpu="4", priority=9), there, [budget(0, a="b")])) == ("n-1", ["guarded", "other"])


def test_nodes_that_no_departure_makes_suitable_are_left_alone():
    tainted = node("n-1", taints=({"key": "a", "effect": "NoSchedule"},))
    there = picture((tainted, node("n-2", labels={"x": "y"})), n_1=[pod("a", cpu="4")], n_2=[pod("b", cpu="4")])
    urgent = pod(cpu="4", priority=9, nodeSelector={"x": "z"})
    assert preempt(urgent, there, ()) is None
    assert victims(preempt(pod(cpu="4", priority=9), there, ())) == ("n-2", ["b"])


def test_a_pod_that_others_must_stay_away_from():
    apart = {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": "x"}}}
            ]
        }
    }
    there = picture((node("n-1"),), n_1=[pod("x", {"app": "x"}), pod("y")])
    assert victims(preempt(pod(priority=9, affinity=apart), there, ())) == ("n-1", ["x"])


# --- in a cluster ----------------------------------------------------------------------------------------------------


async def classes(world, **values):
    for name, (value, policy) in values.items():
        made = {"metadata": {"name": name}, "value": value, "preemptionPolicy": policy}
        await world.cluster.create(PRIORITY_CLASSES, made)


def asks(cpu):
    return [{"name": "main", "image": "i", "resources": {"requests": {"cpu": cpu}}}]


async def full(world):
    """One node of four CPUs, all taken by two Pods."""
    await world.start(count=1, cpu="4")
    await classes(world, high=(100, "PreemptLowerPriority"), patient=(100, "Never"), middle=(50, "Never"))
    for name in ("a", "b"):
        await world.make(name, labels={"app": name}, containers=asks("2"))


async def test_a_more_important_pod_takes_the_place(world):
    await full(world)
    await world.cluster.create(
        POD_DISRUPTION_BUDGETS,
        {"metadata": {"name": "a"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}}},
        namespace="default",
    )
    await world.make("urgent", containers=asks("2"), priorityClassName="high", settled=False)
    await world.settle()
    urgent, victim = await world.pod("urgent"), await world.pod("b")
    assert urgent["status"]["nominatedNodeName"] == "node-1"
    assert victim["metadata"]["deletionGracePeriodSeconds"] == 30
    condition = next(c for c in victim["status"]["conditions"] if c["type"] == "DisruptionTarget")
    assert (condition["reason"], condition["message"]) == (
        "PreemptionByScheduler",
        "default-scheduler: preempting to accommodate a higher priority pod",
    )
    assert "deletionTimestamp" not in (await world.pod("a"))["metadata"]
    # The space is kept, also from Pods that ask while it becomes free.
    await world.make("late", containers=asks("2"), priorityClassName="middle")
    await world.pass_(5.0)
    urgent = await world.pod("urgent")
    assert urgent["spec"]["nodeName"] == "node-1"
    assert "nominatedNodeName" not in urgent["status"]
    assert "nodeName" not in (await world.pod("late"))["spec"]
    told = [e for e in await world.all(EVENTS) if e["reason"] == "Preempted"]
    assert [e["involvedObject"]["name"] for e in told] == ["b"]
    assert told[0]["message"] == f"Preempted by pod {urgent['metadata']['uid']} on node node-1"


async def test_a_patient_pod_waits_and_comes_first(world):
    await full(world)
    await world.make("later", containers=asks("2"), priorityClassName="middle")
    await world.make("patient", containers=asks("2"), priorityClassName="patient")
    assert len(await world.all(PODS)) == 4
    assert "nominatedNodeName" not in (await world.pod("patient"))["status"]
    await world.remove("a", grace_seconds=0)
    assert (await world.pod("patient"))["spec"]["nodeName"] == "node-1"
    assert "nodeName" not in (await world.pod("later"))["spec"]


async def test_a_nominated_pod_does_not_remove_more_while_it_waits(world):
    await full(world)
    await world.make("urgent", containers=asks("2"), priorityClassName="high", settled=False)
    await world.settle()
    await world.make("elsewhere", containers=asks("2"))  # any event that makes the scheduler look again
    going = [p["metadata"]["name"] for p in await world.all(PODS) if "deletionTimestamp" in p["metadata"]]
    assert len(going) == 1
