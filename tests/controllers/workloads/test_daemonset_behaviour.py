"""DaemonSets at work on a real API server: nodes come and go, updates, Pods that fail."""

import json

from faulty_cluster import FaultyCluster, each_once
from workload_world import world

from seamark import errors
from seamark.kinds.resource import CONTROLLER_REVISIONS, DAEMON_SETS, PODS
from virtual_time import VirtualClock

LABELS = {"app": "agent"}


def template(image="app:1", **more):
    return {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "c", "image": image}], **more}}


def spec(image="app:1", *, wishes=None, **more):
    return {"selector": {"matchLabels": LABELS}, "template": template(image, **(wishes or {})), **more}


async def make_nodes(here, *names, **labels):
    for name in names:
        await here.create("Node", name, {}, labels=labels)
        # New Nodes are tainted until they report to be ready.
        await here.patch_node(name, {"spec": {"taints": None}})


async def settled(here):
    found = await here.get("DaemonSet", "agent")
    status = found.get("status", {})
    counts = {
        status.get(field, 0)
        for field in ("currentNumberScheduled", "updatedNumberScheduled", "numberAvailable", "numberReady")
    }
    seen = status.get("observedGeneration") == found["metadata"]["generation"]
    return seen and counts == {status["desiredNumberScheduled"]}


async def nodes(here):
    return sorted(pod["spec"].get("nodeName", "") for pod in await here.list("Pod"))


async def images(here):
    return {pod["spec"]["containers"][0]["image"] for pod in await here.list("Pod")}


async def test_every_node_gets_one_as_nodes_come_and_go():
    async with world() as here:
        await make_nodes(here, "a", "b")
        await here.create("DaemonSet", "agent", spec())
        await here.until(lambda: nodes(here), ["a", "b"])
        await here.until(lambda: settled(here))
        assert await here.status("DaemonSet", "agent") == {
            "currentNumberScheduled": 2,
            "numberMisscheduled": 0,
            "desiredNumberScheduled": 2,
            "numberReady": 2,
            "observedGeneration": 1,
            "updatedNumberScheduled": 2,
            "numberAvailable": 2,
        }
        (revision,) = await here.list("ControllerRevision")
        unique = revision["metadata"]["labels"]["controller-revision-hash"]
        assert revision["metadata"]["name"] == f"agent-{unique}"
        kept = (await here.get("DaemonSet", "agent"))["spec"]["template"]
        patch = {"spec": {"template": {"$patch": "replace", **kept}}}
        assert json.dumps(revision["data"]) == json.dumps(patch, sort_keys=True), "compared byte by byte by clients"
        for pod in await here.list("Pod"):
            assert pod["metadata"]["labels"] == {
                **LABELS,
                "controller-revision-hash": unique,
                "pod-template-generation": "1",
            }
        await make_nodes(here, "c")
        await here.until(lambda: nodes(here), ["a", "b", "c"])
        taint = {"key": "out", "value": "x", "effect": "NoExecute"}
        await here.patch_node("a", {"spec": {"taints": [taint]}})
        await here.until(lambda: nodes(here), ["b", "c"])
        await here.patch_node("a", {"spec": {"taints": [{**taint, "effect": "NoSchedule"}]}})
        await here.quiet()
        assert await nodes(here) == ["b", "c"]
        await here.patch_node("a", {"spec": {"taints": None}})
        await here.until(lambda: nodes(here), ["a", "b", "c"])


async def test_only_nodes_it_wants():
    async with world() as here:
        await make_nodes(here, "a", disk="ssd")
        await make_nodes(here, "b", disk="hdd")
        await here.create("DaemonSet", "agent", spec(wishes={"nodeSelector": {"disk": "ssd"}}))
        await here.until(lambda: nodes(here), ["a"])
        await here.patch_node("b", {"metadata": {"labels": {"disk": "ssd"}}})
        await here.until(lambda: nodes(here), ["a", "b"])
        await here.patch_node("a", {"metadata": {"labels": {"disk": "tape"}}})
        await here.until(lambda: nodes(here), ["b"])


async def test_an_update_and_the_way_back():
    async with world() as here:
        await make_nodes(here, "a", "b", "c")
        await here.create("DaemonSet", "agent", spec(revisionHistoryLimit=1))
        await here.until(lambda: number_of_pods(here), 3)
        await here.until(lambda: settled(here))
        (first,) = await here.names("ControllerRevision")
        await here.patch("DaemonSet", "agent", {"spec": {"template": template("app:2")}})
        await here.until(lambda: settled(here))
        assert await images(here) == {"app:2"}
        data = (await here.get("ControllerRevision", first))["data"]
        await here.patch("DaemonSet", "agent", data, type="strategic")
        await here.until(lambda: settled(here))
        assert await images(here) == {"app:1"}
        assert {r["metadata"]["name"]: r["revision"] for r in await here.list("ControllerRevision")}[first] == 3
        for number in (3, 4):
            await here.patch("DaemonSet", "agent", {"spec": {"template": template(f"app:{number}")}})
            await here.until(lambda: settled(here))
        await here.until(lambda: number_of_revisions(here), 2)


async def number_of_pods(here):
    return len(await here.names("Pod"))


async def number_of_revisions(here):
    return len(await here.names("ControllerRevision"))


async def test_surging_no_node_is_ever_without():
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    async with world() as here:
        await make_nodes(here, "a", "b")
        await here.create("DaemonSet", "agent", spec(updateStrategy=rolling))
        await here.until(lambda: number_of_pods(here), 2)
        await here.until(lambda: settled(here))
        await here.patch("DaemonSet", "agent", {"spec": {"template": template("app:2")}})
        await here.until(lambda: settled(here))
        await here.until(lambda: nodes(here), ["a", "b"])
        assert await images(here) == {"app:2"}


async def test_on_delete_leaves_the_when_to_others():
    async with world() as here:
        await make_nodes(here, "a", "b")
        await here.create("DaemonSet", "agent", spec(updateStrategy={"type": "OnDelete"}))
        await here.until(lambda: number_of_pods(here), 2)
        await here.until(lambda: settled(here))
        await here.patch("DaemonSet", "agent", {"spec": {"template": template("app:2")}})
        await here.quiet()
        assert await images(here) == {"app:1"}
        await here.delete("Pod", (await here.names("Pod"))[0])
        await here.until(lambda: images(here), {"app:1", "app:2"})


async def test_a_pod_that_fails_is_replaced_each_time_a_little_later():
    clock = VirtualClock()
    async with world(clock=clock) as here:
        await make_nodes(here, "a")
        await here.create("DaemonSet", "agent", spec())
        for attempt, pause in enumerate((0, 1, 2), start=1):
            await here.until(lambda: running(here))
            (name,) = await here.names("Pod")
            await here.patch("Pod", name, {"status": {"phase": "Failed"}}, subresource="status")
            await here.quiet()
            if pause:
                assert await here.names("Pod") == [name]
                await clock.advance(pause + 0.1)
            await here.until(lambda made=attempt + 1: made_so_far(here, made))
        told = await here.until(lambda: here.told("FailedDaemonPod"))
        assert told[0].startswith("Found failed daemon pod default/agent-")
        assert told[0].endswith(" on node a, will try to kill it")


async def running(here):
    return [pod for pod in await here.list("Pod") if pod["status"].get("phase") == "Running"]


async def made_so_far(here, number):
    return len(here.made) == number


async def test_faults_are_got_over_and_nothing_is_made_twice():
    coming = [
        ("create", CONTROLLER_REVISIONS, ("after", errors.ServiceUnavailable("connection reset"))),
        ("create", PODS, ("after", errors.ServiceUnavailable("connection reset"))),
        ("create", PODS, errors.InternalError("no")),
        ("patch", DAEMON_SETS, errors.Conflict("modified")),
        ("patch", DAEMON_SETS, ("after", errors.ServiceUnavailable("connection reset"))),
        ("delete", PODS, ("after", errors.ServiceUnavailable("connection reset"))),
    ]

    async with world(through=lambda cluster: FaultyCluster(cluster, each_once(coming))) as here:
        await make_nodes(here, "a", "b", "c")
        await here.create("DaemonSet", "agent", spec())
        await here.until(lambda: number_of_pods(here), 3)
        await here.until(lambda: settled(here))
        await here.patch("DaemonSet", "agent", {"spec": {"template": template("app:2")}})
        await here.until(lambda: settled(here))
        assert not coming
        assert len(here.made) == 6


async def test_at_rest_nothing_is_written():
    async with world() as here:
        await make_nodes(here, "a", "b")
        await here.create("DaemonSet", "agent", spec())
        await here.until(lambda: number_of_pods(here), 2)
        await here.until(lambda: settled(here))
        before = await here.quiet()
        here.controllers.nudge("daemonset-controller", "default/agent")
        assert await here.quiet() == before
