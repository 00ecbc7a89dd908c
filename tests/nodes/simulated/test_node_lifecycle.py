"""What becomes of nodes that are stopped, fall silent, are tainted or taken away, and of the Pods on them."""

import pytest
from node_world import conditions, ready, shown

from seamark import errors
from seamark.kinds.resource import LEASES, NODES, PODS
from seamark.nodes.simulated import control
from seamark.nodes.simulated.heartbeats import Heartbeats

UNREACHABLE = "node.kubernetes.io/unreachable"


async def node(world, name):
    return await world.cluster.get(NODES, name)


async def taints(world, name):
    found = (await node(world, name))["spec"].get("taints") or []
    return sorted((taint["key"], taint["effect"]) for taint in found)


async def three_pods(world, **settings):
    """One Pod on each of three nodes."""
    await world.start(**settings)
    for n in (1, 2, 3):
        await world.make(f"pod-{n}", nodeName=f"node-{n}")


# --- stopping and starting -----------------------------------------------------------------------------------


async def test_a_stopped_node_is_not_ready_at_once_and_its_pods_with_it(world):
    await three_pods(world)
    await control.stop(world.cluster, "node-2")
    await world.settle()
    stopped = await node(world, "node-2")
    assert ready(stopped) == "Unknown"
    assert {c["reason"] for c in conditions(stopped).values()} == {"NodeStatusUnknown"}
    assert await taints(world, "node-2") == [(UNREACHABLE, "NoExecute"), (UNREACHABLE, "NoSchedule")]
    assert [ready(await world.pod(f"pod-{n}")) for n in (1, 2, 3)] == ["True", "False", "True"]
    assert (await world.pod("pod-2"))["status"]["phase"] == "Running"
    assert [e["involvedObject"]["name"] for e in await world.events("NodeNotReady")] == ["node-2", "pod-2"]


async def test_a_started_node_is_ready_again_and_its_pods_with_it(world):
    await three_pods(world)
    before = await world.pod("pod-2")
    await control.stop(world.cluster, "node-2")
    await world.pass_(120)
    await control.start(world.cluster, "node-2")
    await world.settle()
    assert ready(await node(world, "node-2")) == "True"
    assert await taints(world, "node-2") == []
    after = await world.pod("pod-2")
    assert (ready(after), after["status"]["podIPs"]) == ("True", before["status"]["podIPs"])
    await world.pass_(600)
    assert len(await world.all(PODS)) == 3, "no Pod is driven away by a taint that is gone"


async def test_nothing_happens_on_a_stopped_node(world):
    await three_pods(world)
    await control.stop(world.cluster, "node-2")
    await world.settle()
    renewed = (await world.leases())["node-2"]["spec"]["renewTime"]
    await world.make("late", nodeName="node-2")
    await world.remove("pod-2")
    await world.pass_(60)
    assert (await world.leases())["node-2"]["spec"]["renewTime"] == renewed
    assert shown(await world.pod("late")) == "Pending None"
    assert "deletionTimestamp" in (await world.pod("pod-2"))["metadata"], "no kubelet is there to stop it"
    await world.make("elsewhere")
    assert (await world.pod("elsewhere"))["spec"]["nodeName"] != "node-2"
    await control.start(world.cluster, "node-2")
    await world.pass_(1)
    assert shown(await world.pod("late")) == "Running True"
    with pytest.raises(errors.NotFound):
        await world.pod("pod-2")


async def test_a_stopped_node_stays_stopped_when_the_simulation_is_started_anew(world):
    await three_pods(world)
    await control.stop(world.cluster, "node-2")
    await world.settle()
    before = world.revision
    await world.end()
    await world.start()
    assert world.revision == before
    assert ready(await node(world, "node-2")) == "Unknown"


async def test_pods_without_a_place_go_to_a_node_that_is_started(world):
    await world.start(count=1)
    await control.stop(world.cluster, "node-1")
    await world.settle()
    await world.make("web")
    message = conditions(await world.pod("web"))["PodScheduled"]["message"]
    assert message == f"0/1 nodes are available: 1 node(s) had untolerated taint {{{UNREACHABLE}: }}."
    await control.start(world.cluster, "node-1")
    await world.settle()
    assert shown(await world.pod("web")) == "Running True"


async def test_only_simulated_nodes_can_be_stopped(world):
    await world.start(count=1)
    await world.cluster.create(NODES, {"metadata": {"name": "real"}})
    with pytest.raises(control.NotSimulated, match="node real is not a simulated one"):
        await control.stop(world.cluster, "real")
    with pytest.raises(errors.NotFound, match='nodes "node-9" not found'):
        await control.stop(world.cluster, "node-9")


async def test_waiting_until_a_node_is_as_it_was_wished(world):
    await world.start(count=1)
    await control.stop(world.cluster, "node-1")
    assert not (await control.settled(world.cluster, "node-1")).ready
    assert not (await control.settled(world.cluster, "node-1")).ready
    await control.start(world.cluster, "node-1")
    assert (await control.settled(world.cluster, "node-1")).ready


# --- silence -------------------------------------------------------------------------------------------------


async def test_a_node_whose_lease_is_not_renewed_is_lost_and_found(world):
    await world.start(count=1, heartbeat=100.0, grace=50.0)
    await world.make("web")
    await world.pass_(49)
    assert ready(await node(world, "node-1")) == "True"
    await world.pass_(1)
    assert ready(await node(world, "node-1")) == "Unknown"
    assert await taints(world, "node-1") == [(UNREACHABLE, "NoExecute"), (UNREACHABLE, "NoSchedule")]
    assert ready(await world.pod("web")) == "False"
    await world.pass_(49)
    assert ready(await node(world, "node-1")) == "Unknown"
    await world.pass_(1)
    assert ready(await node(world, "node-1")) == "True"
    assert await taints(world, "node-1") == []


async def test_a_node_whose_heartbeat_waits_for_this_process_is_not_lost(world, monkeypatch):
    waiting = True
    monkeypatch.setattr(Heartbeats, "late", lambda self, name: waiting)
    await world.start(count=1, heartbeat=1000.0, grace=50.0)
    await world.make("web")
    await world.pass_(200)
    assert ready(await node(world, "node-1")) == ready(await world.pod("web")) == "True"
    waiting = False
    await world.pass_(5)
    assert (ready(await node(world, "node-1")), ready(await world.pod("web"))) == ("Unknown", "False")


async def test_after_a_long_pause_everybody_has_time_to_say_that_he_is_there(world):
    await three_pods(world)
    before = await world.all(PODS)
    await world.end()
    world.clock.now += 100_000
    await world.start()
    assert await world.all(PODS) == before
    assert {ready(o) for o in await world.all(NODES)} == {"True"}


async def test_a_deleted_lease_is_made_anew(world):
    await world.start(count=1)
    await world.cluster.delete(LEASES, "node-1", namespace="kube-node-lease")
    await world.pass_(10)
    assert sorted(await world.leases()) == ["node-1"]


async def test_a_node_somebody_meddles_with_is_put_right(world):
    await world.start(count=1)
    bad = [{"type": "Ready", "status": "False", "reason": "Meddled"}, {"type": "example.com/fine", "status": "True"}]
    await world.cluster.patch(NODES, "node-1", {"status": {"conditions": bad}}, subresource="status")
    await world.settle()
    found = conditions(await node(world, "node-1"))
    assert (found["Ready"]["status"], found["Ready"]["reason"]) == ("True", "KubeletReady")
    assert found["example.com/fine"]["status"] == "True"


async def test_a_cordoned_node_takes_nobody_and_keeps_everybody(world):
    await three_pods(world)
    await world.cluster.patch(NODES, "node-1", {"spec": {"unschedulable": True}})
    await world.settle()
    assert await taints(world, "node-1") == [("node.kubernetes.io/unschedulable", "NoSchedule")]
    for n in range(4):
        await world.make(f"new-{n}")
        assert (await world.pod(f"new-{n}"))["spec"]["nodeName"] != "node-1"
    assert shown(await world.pod("pod-1")) == "Running True"
    await world.cluster.patch(NODES, "node-1", {"spec": {"unschedulable": None}})
    await world.settle()
    assert await taints(world, "node-1") == []


# --- eviction ------------------------------------------------------------------------------------------------


async def test_pods_of_a_dead_node_are_driven_away_when_their_patience_ends(world):
    await world.start()
    forever = [{"key": UNREACHABLE, "operator": "Exists", "effect": "NoExecute"}]
    short = [{**forever[0], "tolerationSeconds": 30}]
    await world.make("usual", nodeName="node-2")
    await world.make("patient", nodeName="node-2", tolerations=forever)
    await world.make("hasty", nodeName="node-2", tolerations=short)
    await control.stop(world.cluster, "node-2")
    await world.pass_(29)

    async def going():
        return [p["metadata"]["name"] for p in await world.all(PODS) if "deletionTimestamp" in p["metadata"]]

    assert await going() == []
    await world.pass_(1)
    assert await going() == ["hasty"]
    disrupted = conditions(await world.pod("hasty"))["DisruptionTarget"]
    assert (disrupted["status"], disrupted["reason"]) == ("True", "DeletionByTaintManager")
    await world.pass_(269)
    assert await going() == ["hasty"]
    await world.pass_(1)
    assert await going() == ["hasty", "usual"]
    await world.pass_(10_000)
    assert await going() == ["hasty", "usual"]
    assert len(await world.events("TaintManagerEviction")) == 2


async def test_patience_is_counted_from_the_taint_even_over_a_restart(world):
    await three_pods(world)
    await control.stop(world.cluster, "node-2")
    await world.pass_(200)
    await world.end()
    world.clock.now += 60
    await world.start()
    await world.pass_(39)
    assert "deletionTimestamp" not in (await world.pod("pod-2"))["metadata"]
    await world.pass_(1)
    assert "deletionTimestamp" in (await world.pod("pod-2"))["metadata"]


async def test_a_taint_of_the_users_own_drives_pods_away(world):
    await three_pods(world)
    tolerant = [{"key": "maintenance", "operator": "Exists"}]
    await world.make("tolerant", nodeName="node-1", tolerations=tolerant)
    patch = {"spec": {"taints": [{"key": "maintenance", "effect": "NoExecute"}]}}
    await world.cluster.patch(NODES, "node-1", patch)
    await world.pass_(1)
    assert sorted(p["metadata"]["name"] for p in await world.all(PODS)) == ["pod-2", "pod-3", "tolerant"]
    await world.make("unwelcome", nodeName="node-1")
    await world.pass_(1)
    with pytest.raises(errors.NotFound):
        await world.pod("unwelcome")


async def test_patience_ends_although_the_taint_does_not_say_when_it_was_added(world):
    await world.start()
    patience = [{"key": "maintenance", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 20}]
    await world.make("patient", nodeName="node-1", tolerations=patience)
    tainted = {"spec": {"taints": [{"key": "maintenance", "effect": "NoExecute"}]}}
    await world.cluster.patch(NODES, "node-1", tainted)
    await world.pass_(15)
    await world.cluster.patch(NODES, "node-1", {"spec": {"taints": None}})
    await world.pass_(15)
    await world.cluster.patch(NODES, "node-1", tainted)
    await world.pass_(19)
    assert "deletionTimestamp" not in (await world.pod("patient"))["metadata"]
    await world.pass_(2)
    with pytest.raises(errors.NotFound):
        await world.pod("patient")


async def test_taints_of_foreign_nodes_drive_nobody_away(world):
    await world.start(count=1)
    taint = {"key": "maintenance", "effect": "NoExecute"}
    await world.cluster.create(NODES, {"metadata": {"name": "foreign"}, "spec": {"taints": [taint]}})
    await world.make("theirs", nodeName="foreign")
    await world.pass_(1000)
    assert "deletionTimestamp" not in (await world.pod("theirs"))["metadata"]


# --- orphans -------------------------------------------------------------------------------------------------


async def test_pods_of_a_node_of_ours_that_is_gone_go_at_once(world):
    await three_pods(world)
    seen = []
    world.simulation.pods.on_change(
        lambda key, old, new: seen.append(new) if new and new.metadata.key == "default/pod-2" else None
    )
    await world.cluster.delete(NODES, "node-2")
    await world.settle()
    assert sorted(p["metadata"]["name"] for p in await world.all(PODS)) == ["pod-1", "pod-3"]
    last = seen[-1]
    assert (last.status.phase, last.condition("DisruptionTarget").reason) == ("Failed", "DeletionByPodGC")
    await world.make("late", nodeName="node-2")
    await world.settle()
    with pytest.raises(errors.NotFound):
        await world.pod("late")
    await world.pass_(100)
    assert sorted(o["metadata"]["name"] for o in await world.all(NODES)) == ["node-1", "node-3"]
    await world.start()
    assert sorted(o["metadata"]["name"] for o in await world.all(NODES)) == ["node-1", "node-2", "node-3"]


async def test_pods_of_a_foreign_node_that_is_gone_go_after_a_while(world):
    await world.start(count=1, orphan_after=40.0)
    for name in ("away", "back"):
        await world.cluster.create(NODES, {"metadata": {"name": name}})
        await world.make(f"on-{name}", nodeName=name)
    for name in ("away", "back"):
        await world.cluster.delete(NODES, name)
    await world.pass_(39)
    assert len(await world.all(PODS)) == 2
    await world.cluster.create(NODES, {"metadata": {"name": "back"}})
    await world.pass_(100)
    assert [p["metadata"]["name"] for p in await world.all(PODS)] == ["on-back"]


async def test_pods_of_a_node_of_ours_that_went_unseen_go_too(world):
    await three_pods(world)
    await world.end()
    await world.cluster.delete(NODES, "node-3")
    await world.start(count=2)
    assert sorted(p["metadata"]["name"] for p in await world.all(PODS)) == ["pod-1", "pod-2"]
