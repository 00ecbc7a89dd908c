"""The simulation over a real API server: nodes register, Pods run, and a new simulation goes on where one ended."""

import asyncio
from ipaddress import ip_address, ip_network

import pytest
from node_world import conditions, ready, shown

from seamark import errors
from seamark.kinds.resource import NODES, PODS
from seamark.nodes.simulated.heartbeats import TICK, next_beat


async def nodes(world):
    return {o["metadata"]["name"]: o for o in await world.all(NODES)}


# --- Nodes -----------------------------------------------------------------------------------------------


async def test_nodes_register_and_are_ready(world):
    await world.start(count=4, version="v1.38.2")
    found = await nodes(world)
    assert sorted(found) == ["node-1", "node-2", "node-3", "node-4"]
    node = found["node-4"]
    labels = node["metadata"]["labels"]
    assert labels["kubernetes.io/hostname"] == "node-4"
    assert labels["topology.kubernetes.io/zone"] == "zone-a"
    assert labels["topology.kubernetes.io/region"] == "region-1"
    assert (labels["kubernetes.io/os"], labels["kubernetes.io/arch"]) == ("linux", "amd64")
    assert {c["type"]: c["status"] for c in node["status"]["conditions"]} == {
        "MemoryPressure": "False",
        "DiskPressure": "False",
        "PIDPressure": "False",
        "Ready": "True",
    }
    assert "taints" not in node["spec"]
    assert node["spec"]["podCIDR"] == node["spec"]["podCIDRs"][0]
    assert node["status"]["nodeInfo"]["kubeletVersion"] == "v1.38.2"
    assert node["status"]["allocatable"]["pods"] == "1k"
    addresses = [(a["type"], a["address"]) for a in node["status"]["addresses"]]
    assert addresses == [("InternalIP", "172.18.0.5"), ("InternalIP", "fd00:172:18::5"), ("Hostname", "node-4")]


async def test_heartbeats_are_one_small_write_each(world):
    await world.start(count=2)
    leases = await world.leases()
    assert sorted(leases) == ["node-1", "node-2"]
    lease = leases["node-1"]
    assert lease["spec"]["holderIdentity"] == "node-1"
    assert lease["spec"]["leaseDurationSeconds"] == 40
    assert lease["metadata"]["ownerReferences"][0]["uid"] == (await nodes(world))["node-1"]["metadata"]["uid"]
    before = world.revision
    await world.pass_(9.9)
    assert world.revision == before
    await world.pass_(60)
    assert world.revision == before + 2 * 6
    assert (await world.leases())["node-1"]["spec"]["renewTime"] > lease["spec"]["renewTime"]


@pytest.mark.parametrize("heartbeat", [10.0, 40.0, 0.05])
def test_heartbeats_that_are_due_at_about_the_same_time_become_one_write(heartbeat):
    times = [1000.0 + number / 1000 for number in range(1000)]
    beats = [next_beat(now, heartbeat) for now in times]
    assert len(set(beats)) == round(1 / min(TICK, heartbeat / 10)) + 1
    assert all(abs(beat - now - heartbeat) <= 0.05001 * heartbeat for now, beat in zip(times, beats, strict=True))
    assert next_beat(beats[0], heartbeat) == pytest.approx(beats[0] + heartbeat), "none comes ever earlier"


async def test_a_second_simulation_over_the_same_cluster_writes_nothing_but_heartbeats(world):
    await world.start()
    for n in range(5):
        await world.make(f"pod-{n}")
    await world.make("waiting", nodeSelector={"no": "such"})
    before, objects = world.revision, [await world.all(PODS), await world.all(NODES)]
    await world.end()
    world.clock.now += 1
    await world.start()
    assert world.revision == before + 3
    assert [await world.all(PODS), await world.all(NODES)] == objects


async def test_fewer_nodes_take_their_pods_with_them(world):
    await world.start(count=3)
    for n in range(6):
        await world.make(f"pod-{n}", labels={"app": "web"})
    await world.start(count=1)
    assert sorted(await nodes(world)) == ["node-1"]
    assert sorted(await world.leases()) == ["node-1"]
    assert {pod["spec"]["nodeName"] for pod in await world.all(PODS)} == {"node-1"}
    assert len(await world.all(PODS)) == 2


async def test_no_nodes_means_nothing_at_all(world):
    await world.start(count=2)
    await world.make("was-here")
    await world.start(count=0)
    assert await nodes(world) == {}
    assert await world.all(PODS) == []
    before = world.revision
    await world.make("alone")
    await world.pass_(100)
    assert world.revision == before + 1
    assert (await world.pod("alone"))["status"] == {"phase": "Pending", "qosClass": "BestEffort"}


async def test_idle_nodes_hold_no_tasks_but_informers(world):
    before = asyncio.all_tasks()
    await world.start(count=2)
    await world.pass_(60)
    names = {task.get_name() for task in asyncio.all_tasks() - before if not task.get_name().startswith("Task-")}
    assert all(name.startswith("informer") for name in names)


async def test_a_foreign_node_of_our_name_is_left_alone(world, caplog):
    made = await world.cluster.create(NODES, {"metadata": {"name": "node-2"}})
    await world.start(count=2)
    assert (await nodes(world))["node-2"] == made
    assert "there is a node node-2 already that is not simulated" in caplog.text
    await world.make("pod")
    assert (await world.pod("pod"))["spec"]["nodeName"] == "node-1"
    assert sorted(await world.leases()) == ["node-1"]


async def test_a_node_anybody_makes_is_simulated_if_it_says_so(world):
    await world.start(count=1)
    wish = {"name": "extra", "annotations": {"seamark.dev/simulated": "true"}, "labels": {"disk": "ssd"}}
    await world.cluster.create(NODES, {"metadata": wish})
    await world.settle()
    node = (await nodes(world))["extra"]
    assert ready(node) == "True"
    assert "taints" not in node["spec"]
    assert node["spec"]["podCIDRs"] != (await nodes(world))["node-1"]["spec"]["podCIDRs"]
    await world.make("fast", nodeSelector={"disk": "ssd"})
    assert shown(await world.pod("fast")) == "Running True"
    await world.start(count=1)
    assert sorted(await nodes(world)) == ["extra", "node-1"]


async def test_settings_of_a_new_start_reach_nodes_that_are_there(world):
    await world.start(count=1)
    await world.cluster.patch(NODES, "node-1", {"metadata": {"labels": {"mine": "yes", "kubernetes.io/arch": None}}})
    before = (await nodes(world))["node-1"]
    await world.start(count=1, cpu="128", version="v1.39.0", pods=5)
    after = (await nodes(world))["node-1"]
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["spec"]["podCIDRs"] == before["spec"]["podCIDRs"]
    assert (after["status"]["allocatable"]["cpu"], after["status"]["capacity"]["pods"]) == ("128", "5")
    assert after["status"]["nodeInfo"]["kubeletVersion"] == "v1.39.0"
    assert after["metadata"]["labels"]["mine"] == "yes"
    assert after["metadata"]["labels"]["kubernetes.io/arch"] == "amd64"


# --- Pods ------------------------------------------------------------------------------------------------


async def test_a_pod_is_scheduled_and_ready_by_two_writes(world):
    await world.start()
    before = world.revision
    await world.make("web", labels={"app": "web"})
    assert world.revision == before + 3, "created, bound, ready"
    pod = await world.pod("web")
    node = (await nodes(world))[pod["spec"]["nodeName"]]
    status = pod["status"]
    assert shown(pod) == "Running True"
    assert status["hostIPs"] == [{"ip": a["address"]} for a in node["status"]["addresses"] if a["type"] == "InternalIP"]
    for address, cidr in zip(status["podIPs"], node["spec"]["podCIDRs"], strict=True):
        assert ip_address(address["ip"]) in ip_network(cidr)
    assert (status["podIP"], status["qosClass"]) == (status["podIPs"][0]["ip"], "BestEffort")
    assert [c["type"] for c in status["conditions"]] == [
        "PodReadyToStartContainers",
        "Initialized",
        "Ready",
        "ContainersReady",
        "PodScheduled",
    ]
    managers = {entry["manager"]: entry.get("subresource") for entry in pod["metadata"]["managedFields"]}
    assert managers["kubelet"] == "status"


async def test_pods_bound_to_foreign_nodes_are_left_alone(world):
    await world.cluster.create(NODES, {"metadata": {"name": "foreign"}})
    await world.start()
    for where in ("foreign", "nowhere"):
        await world.make(where, nodeName=where)
        made = await world.pod(where)
        assert made["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
        await world.pass_(1000)
        assert await world.pod(where) == made
        await world.cluster.delete(PODS, where, namespace="default")
        await world.pass_(1000)
        assert (await world.pod(where))["metadata"]["deletionGracePeriodSeconds"] == 30


async def test_a_pod_put_on_a_node_of_ours_by_hand_runs_even_if_the_scheduler_would_not(world):
    await world.start(count=1)
    await world.cluster.patch(NODES, "node-1", {"spec": {"unschedulable": True}})
    await world.make("web", nodeName="node-1")
    assert shown(await world.pod("web")) == "Running True"
    assert conditions(await world.pod("web"))["PodScheduled"]["status"] == "True"


async def test_host_network_means_the_nodes_own_addresses(world):
    await world.start(count=1)
    await world.make("web", hostNetwork=True)
    status = (await world.pod("web"))["status"]
    assert status["podIPs"] == status["hostIPs"] == [{"ip": "172.18.0.2"}, {"ip": "fd00:172:18::2"}]


async def test_the_scheduler_minds_its_own_pods_only(world):
    await world.start()
    await world.make("theirs", schedulerName="another")
    await world.make("gated", schedulingGates=[{"name": "example.com/wait"}])
    assert "nodeName" not in (await world.pod("theirs"))["spec"]
    gated = await world.pod("gated")
    assert conditions(gated)["PodScheduled"]["reason"] == "SchedulingGated"
    await world.cluster.update(PODS, {**gated, "spec": {**gated["spec"], "schedulingGates": []}}, namespace="default")
    await world.settle()
    assert shown(await world.pod("gated")) == "Running True"


async def test_without_a_node_it_says_why_once_and_is_tried_when_something_changes(world):
    await world.start(count=2)
    await world.make("picky", nodeSelector={"disk": "ssd"})
    message = "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector."
    condition = conditions(await world.pod("picky"))["PodScheduled"]
    assert (condition["status"], condition["reason"], condition["message"]) == ("False", "Unschedulable", message)
    (event,) = await world.events("FailedScheduling")
    assert (event["message"], event["type"], event["source"]["component"]) == (message, "Warning", "default-scheduler")
    version = (await world.pod("picky"))["metadata"]["resourceVersion"]
    await world.pass_(3600)
    assert (await world.pod("picky"))["metadata"]["resourceVersion"] == version
    assert len(await world.events("FailedScheduling")) == 1
    await world.cluster.patch(NODES, "node-2", {"metadata": {"labels": {"disk": "ssd"}}})
    await world.settle()
    assert (await world.pod("picky"))["spec"]["nodeName"] == "node-2"
    assert shown(await world.pod("picky")) == "Running True"


async def test_pods_wait_for_room_and_get_it(world):
    await world.start(count=1, cpu="1")
    asked = [{"name": "a", "image": "i", "resources": {"requests": {"cpu": "400m"}}}]
    for n in range(6):
        await world.make(f"pod-{n}", {"stop-after": "0s"}, containers=asked)
    assert [shown(pod) for pod in await world.all(PODS)].count("Running True") == 2
    for n in range(6):
        assert conditions(await world.pod(f"pod-{n}"))["PodScheduled"]["status"] == ("True" if n < 2 else "False")
    await world.remove("pod-0")
    await world.settle()
    assert shown(await world.pod("pod-2")) == "Running True"
    await world.annotate("pod-1", complete_after="0s")
    assert shown(await world.pod("pod-1")) == "Running False"
    assert "nodeName" not in (await world.pod("pod-3"))["spec"], "one that waits to be started again keeps its room"
    (message,) = {
        c["message"] for pod in await world.all(PODS) if (c := conditions(pod)["PodScheduled"])["status"] == "False"
    }
    assert message == "0/1 nodes are available: 1 Insufficient cpu."


async def test_a_finished_pod_gives_back_its_room_and_its_address(world):
    await world.start(count=1, pods=1)
    await world.make("job", {"complete-after": "5s"}, restartPolicy="Never")
    await world.make("next")
    assert shown(await world.pod("next")) == "Pending None"
    await world.pass_(5)
    assert shown(await world.pod("job")) == "Succeeded False"
    assert shown(await world.pod("next")) == "Running True"


async def test_anti_affinity_waits_for_the_other_to_go(world):
    await world.start(count=1)
    terms = [{"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}]
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    await world.make("a", labels={"app": "web"}, affinity=apart)
    await world.make("b", labels={"app": "web"}, affinity=apart)
    assert shown(await world.pod("b")) == "Pending None"
    await world.remove("a")
    await world.pass_(1)
    assert shown(await world.pod("b")) == "Running True"


async def test_more_pods_than_addresses(world):
    await world.start(count=1, pods=5)
    more = {"status": {"allocatable": {"pods": "10"}}}
    await world.cluster.patch(NODES, "node-1", more, subresource="status")
    for n in range(7):
        await world.make(f"pod-{n}", nodeName="node-1")
    found = [await world.pod(f"pod-{n}") for n in range(7)]
    # Five Pods need eight addresses: of the network, the node, broadcast and theirs.
    assert [shown(pod) for pod in found] == ["Running True"] * 5 + ["Pending False"] * 2
    assert {e["involvedObject"]["name"] for e in await world.events("FailedCreatePodSandBox")} == {"pod-5", "pod-6"}
    freed = found[3]["status"]["podIP"]
    await world.remove("pod-3")
    await world.pass_(1)
    assert (await world.pod("pod-5"))["status"]["podIP"] == freed


async def test_readiness_gates(world):
    await world.start()
    await world.make("gated", readinessGates=[{"conditionType": "example.com/lb"}])
    pod = await world.pod("gated")
    assert (conditions(pod)["ContainersReady"]["status"], ready(pod)) == ("True", "False")
    patch = {"status": {"conditions": [{"type": "example.com/lb", "status": "True"}]}}
    await world.cluster.patch(PODS, "gated", patch, namespace="default", type="strategic", subresource="status")
    await world.settle()
    pod = await world.pod("gated")
    assert ready(pod) == "True"
    assert conditions(pod)["example.com/lb"]["status"] == "True"


# --- orders ----------------------------------------------------------------------------------------------


async def test_slow_failing_flapping_pods(world):
    await world.start()
    await world.make("slow", {"start-after": "3s", "ready-after": "5s"})
    await world.make("crash", {"fail-after": "10s", "exit-code": "3"})
    await world.make("job", {"fail-after": "4s"}, restartPolicy="Never")
    await world.make("flap", {"flap": "5s"})
    await world.make("shy", {"ready": "never"})

    async def sight():
        return [shown(await world.pod(name)) for name in ("slow", "crash", "job", "flap", "shy")]

    assert await sight() == ["Pending False", "Running True", "Running True", "Running True", "Running False"]
    await world.pass_(3)
    assert await sight() == ["Running False", "Running True", "Running True", "Running True", "Running False"]
    await world.pass_(2)
    assert await sight() == ["Running False", "Running True", "Failed False", "Running False", "Running False"]
    await world.pass_(5)
    assert await sight() == ["Running True", "Running True", "Failed False", "Running True", "Running False"]
    (container,) = (await world.pod("crash"))["status"]["containerStatuses"]
    assert (container["restartCount"], container["lastState"]["terminated"]["exitCode"]) == (1, 3)
    await world.pass_(10)
    (container,) = (await world.pod("crash"))["status"]["containerStatuses"]
    assert container["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    assert [e["involvedObject"]["name"] for e in await world.events("BackOff")] == ["crash"]
    await world.annotate("shy", ready=None)
    assert shown(await world.pod("shy")) == "Running True"
    await world.annotate("shy", ready="never")
    assert shown(await world.pod("shy")) == "Running False"


async def test_bad_orders_are_complained_about_and_otherwise_as_if_they_were_not_there(world):
    await world.start()
    await world.make("web", {"start-after": "soon", "redy": "never"})
    assert shown(await world.pod("web")) == "Running True"
    events = await world.events("BadAnnotation")
    assert {e["type"] for e in events} == {"Warning"}
    assert sorted(e["message"].split(":")[0] for e in events) == [
        "annotation seamark.dev/start-after",
        "unknown annotation seamark.dev/redy",
    ]


# --- the end ---------------------------------------------------------------------------------------------


async def test_a_deleted_pod_serves_stops_and_is_gone(world):
    await world.start(stop_after=0.5)
    await world.make("web")
    seen = []
    world.simulation.pods.on_change(lambda key, old, new: seen.append(new))
    await world.remove("web")
    pod = await world.pod("web")
    assert (shown(pod), "deletionTimestamp" in pod["metadata"]) == ("Running True", True)
    await world.pass_(0.4)
    assert shown(await world.pod("web")) == "Running True"
    await world.pass_(0.1)
    with pytest.raises(errors.NotFound):
        await world.pod("web")
    last = seen[-2]
    assert (last.status.phase, last.ready) == ("Succeeded", False)
    assert last.status.container_statuses[0].state.terminated.exit_code == 0


async def test_the_grace_period_ends_the_slow(world):
    await world.start()
    await world.make("slow", {"stop-after": "20s"}, terminationGracePeriodSeconds=5)
    await world.make("patient", {"stop-after": "20s"})
    await world.remove("slow")
    await world.remove("patient")
    await world.pass_(5)
    assert [pod["metadata"]["name"] for pod in await world.all(PODS)] == ["patient"]
    await world.pass_(15)
    assert await world.all(PODS) == []


async def test_finalizers_are_others_business(world):
    await world.start()
    await world.cluster.create(
        PODS,
        {
            "metadata": {"name": "held", "finalizers": ["example.com/hold"]},
            "spec": {"containers": [{"name": "a", "image": "i"}]},
        },
        namespace="default",
    )
    await world.settle()
    await world.remove("held")
    await world.pass_(1)
    pod = await world.pod("held")
    assert (shown(pod), pod["metadata"]["deletionGracePeriodSeconds"]) == ("Succeeded False", 0)
    before = world.revision
    await world.pass_(5)
    assert world.revision == before
    await world.cluster.patch(PODS, "held", {"metadata": {"finalizers": None}}, namespace="default")
    assert await world.all(PODS) == []


async def test_a_pod_of_the_same_name_is_another_pod(world):
    await world.start(count=1)
    await world.make("web")
    first = await world.pod("web")
    await world.remove("web", grace_seconds=0)
    await world.make("web")
    second = await world.pod("web")
    assert shown(second) == "Running True"
    assert second["status"]["podIP"] != first["status"]["podIP"]


# --- ending and beginning again --------------------------------------------------------------------------


async def test_addresses_survive_a_restart(world):
    await world.start(count=2)
    for n in range(15):
        await world.make(f"pod-{n}")
    for n in range(5):
        await world.remove(f"pod-{n * 2}", grace_seconds=0)
    before = {pod["metadata"]["name"]: pod["status"]["podIPs"] for pod in await world.all(PODS)}
    await world.end()
    for n in range(15, 25):
        await world.make(f"pod-{n}", settled=False)
    await world.start(count=2)
    after = {pod["metadata"]["name"]: pod["status"]["podIPs"] for pod in await world.all(PODS)}
    assert {name: after[name] for name in before} == before
    everything = [address["ip"] for addresses in after.values() for address in addresses]
    assert len(set(everything)) == len(everything) == 40


async def test_what_was_under_way_goes_on(world):
    await world.start(stop_after=5.0)
    await world.make("slow", {"start-after": "10s"})
    await world.make("going", {"stop-after": "8s"})
    await world.make("crash", {"fail-after": "2s"})
    await world.pass_(4)
    await world.remove("going")
    await world.end()
    world.clock.now += 7
    await world.start(stop_after=5.0)
    assert shown(await world.pod("slow")) == "Running True"
    assert (await world.pod("crash"))["status"]["containerStatuses"][0]["state"]["waiting"]
    assert shown(await world.pod("going")) == "Running True"
    await world.pass_(1)
    assert sorted(pod["metadata"]["name"] for pod in await world.all(PODS)) == ["crash", "slow"]
    await world.pass_(2)
    assert (await world.pod("crash"))["status"]["containerStatuses"][0]["restartCount"] == 2


@pytest.mark.parametrize("seed", range(3))
async def test_a_server_that_fails_half_of_the_time_only_takes_longer(world, seed):
    await world.start(count=2, faults=0.5, seed=seed)
    for n in range(12):
        await world.make(f"pod-{n}", {"stop-after": "1s"} if n % 2 else None)
    await world.pass_(60)
    assert [shown(pod) for pod in await world.all(PODS)] == ["Running True"] * 12
    addresses = [address["ip"] for pod in await world.all(PODS) for address in pod["status"]["podIPs"]]
    assert len(set(addresses)) == 24
    for n in range(12):
        await world.remove(f"pod-{n}")
    await world.pass_(60)
    assert await world.all(PODS) == []
    assert {ready(o) for o in await world.all(NODES)} == {"True"}


async def test_extended_resources_that_a_node_is_given_can_be_asked_for(world):
    await world.start(count=1)
    await world.cluster.patch(NODES, "node-1", {"status": {"capacity": {"a.b/foo": "5"}}}, subresource="status")
    await world.settle()
    node = await world.cluster.get(NODES, "node-1")
    assert node["status"]["allocatable"]["a.b/foo"] == "5"
    asked = {"requests": {"a.b/foo": "3"}, "limits": {"a.b/foo": "3"}}
    for name in ("one", "two"):
        await world.make(name, containers=[{"name": "c", "image": "i", "resources": asked}])
    assert (await world.pod("one"))["spec"]["nodeName"] == "node-1"
    condition = (await world.pod("two"))["status"]["conditions"][0]
    assert condition["message"] == "0/1 nodes are available: 1 Insufficient a.b/foo."


def waits(pod, field="containerStatuses"):
    return [status["state"].get("waiting", {}).get("reason") for status in pod["status"][field]]


async def test_an_image_that_cannot_be_pulled(world):
    await world.start(count=1)
    await world.make("p", containers=[{"name": "a", "image": "webserver:404"}, {"name": "b", "image": "web:1"}])
    pod = await world.pod("p")
    assert (pod["status"]["phase"], waits(pod)) == ("Pending", ["ErrImagePull", "ContainerCreating"])
    assert pod["status"]["podIP"]
    assert conditions(pod)["Initialized"]["status"] == "True"
    await world.pass_(2)
    pod = await world.pod("p")
    assert (pod["status"]["phase"], waits(pod)) == ("Pending", ["ImagePullBackOff", "ContainerCreating"])
    assert [e["message"] for e in await world.events("BackOff")] == ['Back-off pulling image "webserver:404"']
    version = pod["metadata"]["resourceVersion"]
    await world.pass_(600)
    assert (await world.pod("p"))["metadata"]["resourceVersion"] == version
    fixed = {"spec": {"containers": [{"name": "a", "image": "webserver:1"}]}}
    await world.cluster.patch(PODS, "p", fixed, namespace="default", type="strategic")
    await world.settle()
    assert shown(await world.pod("p")) == "Running True"
    await world.make("q", containers=[{"name": "a", "image": "webserver:404"}])
    await world.remove("q")
    await world.pass_(1)
    assert "q" not in [each["metadata"]["name"] for each in await world.all(PODS)]


async def test_an_init_container_whose_image_cannot_be_pulled(world):
    await world.start(count=1, missing_images=("gone*",))
    await world.make("p", initContainers=[{"name": "i", "image": "gone"}, {"name": "j", "image": "there"}])
    pod = await world.pod("p")
    assert pod["status"]["phase"] == "Pending"
    assert waits(pod, "initContainerStatuses") == ["ErrImagePull", "PodInitializing"]
    assert waits(pod) == ["PodInitializing"]
    assert conditions(pod)["Initialized"]["status"] == "False"


async def test_good_news_about_pods(world):
    await world.start(count=1, events=50.0)
    await world.make(
        "web", containers=[{"name": "main", "image": "app:1"}], initContainers=[{"name": "first", "image": "i"}]
    )
    told = {(each["reason"], each["involvedObject"].get("fieldPath", "")) for each in await world.events()}
    containers = ("spec.initContainers{first}", "spec.containers{main}")
    expected = {(reason, path) for reason in ("Pulled", "Created", "Started") for path in containers}
    assert told >= {("Scheduled", ""), *expected}
    (scheduled,) = await world.events("Scheduled")
    assert scheduled["message"] == "Successfully assigned default/web to node-1"


async def test_good_news_has_a_rate(world):
    """Of a Pod all is told or nothing; problems are always told."""
    await world.start(count=1)
    await world.make("web")
    await world.make("bad", {"ready-after": "x"})
    assert {each["reason"] for each in await world.events() if each["involvedObject"]["kind"] == "Pod"} == {
        "BadAnnotation"
    }


async def test_pods_are_ready_when_their_probes_may_have_passed(world):
    await world.start(count=1)
    probe = {"tcpSocket": {"port": 1}, "initialDelaySeconds": 5, "periodSeconds": 2, "successThreshold": 3}
    await world.make("web", containers=[{"name": "main", "image": "app:1", "readinessProbe": probe}])
    for seconds, expected in ((0, "Running False"), (8, "Running False"), (1, "Running True")):
        await world.pass_(seconds)
        assert shown(await world.pod("web")) == expected
