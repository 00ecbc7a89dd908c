"""Deployments at work on a real API server: rollouts, going back, scaling, pausing, and what goes wrong."""

import asyncio
import contextlib

from faulty_cluster import FaultyCluster, each_once
from workload_world import world

from seamark import errors
from seamark.kinds.resource import DEPLOYMENTS, NAMESPACES, PODS, REPLICA_SETS
from virtual_time import VirtualClock

LABELS = {"app": "web"}
REVISION = "deployment.kubernetes.io/revision"


def template(image="app:1"):
    return {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "c", "image": image}]}}


def spec(image="app:1", **more):
    return {"replicas": 3, "selector": {"matchLabels": LABELS}, "template": template(image), **more}


async def complete(here, name="web"):
    """Whether ``kubectl rollout status`` would be content."""
    found = await here.get("Deployment", name)
    status, wanted = found.get("status", {}), found["spec"]["replicas"]
    counts = {status.get(field, 0) for field in ("replicas", "updatedReplicas", "availableReplicas")}
    return status.get("observedGeneration") == found["metadata"]["generation"] and counts == {wanted}


async def condition(here, type):
    conditions = (await here.status("Deployment", "web")).get("conditions", ())
    return next(((c["status"], c["reason"], c["message"]) for c in conditions if c["type"] == type), None)


async def reason(here):
    found = await condition(here, "Progressing")
    return found and found[1]


async def images(here):
    return {pod["spec"]["containers"][0]["image"] for pod in await here.list("Pod")}


async def sizes(here):
    """How many Pods each image should have."""
    found = {}
    for rs in await here.list("ReplicaSet"):
        found[rs["spec"]["template"]["spec"]["containers"][0]["image"]] = rs["spec"]["replicas"]
    return found


async def set_image(here, image):
    await here.patch("Deployment", "web", {"spec": {"template": template(image)}})


@contextlib.asynccontextmanager
async def rolled_out(**more):
    """A Deployment whose Pods are ready."""
    async with world(**more) as here:
        await here.create("Deployment", "web", spec())
        await here.until(lambda: complete(here))
        yield here


async def test_from_creation_to_an_update_and_back():
    async with rolled_out() as here:
        (first,) = await here.names("ReplicaSet")
        assert await condition(here, "Available") == (
            "True",
            "MinimumReplicasAvailable",
            "Deployment has minimum availability.",
        )
        await here.until(
            lambda: condition(here, "Progressing"),
            ("True", "NewReplicaSetAvailable", f'ReplicaSet "{first}" has successfully progressed.'),
        )
        assert await here.until(lambda: here.told("ScalingReplicaSet")) == [
            f"Scaled up replica set {first} from 0 to 3"
        ]
        await set_image(here, "app:2")
        await here.until(lambda: complete(here))
        assert await images(here) == {"app:2"}
        assert await sizes(here) == {"app:1": 0, "app:2": 3}
        second = next(name for name in await here.names("ReplicaSet") if name != first)
        told = await here.until(lambda: all_told(here, 7))
        assert f"Scaled up replica set {second} from 0 to 1" in told
        assert f"Scaled down replica set {first} from 1 to 0" in told
        # Going back takes the old ReplicaSet up again, under a new number.
        await set_image(here, "app:1")
        await here.until(lambda: complete(here))
        assert sorted(await here.names("ReplicaSet")) == sorted([first, second])
        again = (await here.get("ReplicaSet", first))["metadata"]["annotations"]
        assert again[REVISION] == "3"
        assert again["deployment.kubernetes.io/revision-history"] == "1"
        assert (await here.get("Deployment", "web"))["metadata"]["annotations"][REVISION] == "3"


async def all_told(here, number):
    told = await here.told("ScalingReplicaSet")
    return told if len(told) >= number else None


async def test_a_bad_image_stops_the_rollout_and_keeps_the_rest_running():
    async with world(ready=lambda pod: pod["spec"]["containers"][0]["image"] != "bad") as here:
        await here.create("Deployment", "web", spec(replicas=4))
        await here.until(lambda: complete(here))
        await set_image(here, "bad")
        # One may be missing and one may be too many, of four with 25 % each.
        await here.until(lambda: sizes(here), {"app:1": 3, "bad": 2})
        await here.quiet()
        assert (await here.status("Deployment", "web"))["availableReplicas"] == 3
        assert (await condition(here, "Available"))[0] == "True"
        await set_image(here, "app:1")
        await here.until(lambda: complete(here))
        await here.until(lambda: images(here), {"app:1"})


async def test_scaling_up_and_down_and_to_nothing():
    async with world() as here:
        await here.create("Deployment", "web", spec())
        for replicas in (5, 1, 0, 2):
            await here.patch("Deployment", "web", {"spec": {"replicas": replicas}}, subresource="scale")
            await here.until(lambda: complete(here))
            await here.until(lambda: number_of_pods(here), replicas)
        assert len(await here.names("ReplicaSet")) == 1


async def number_of_pods(here):
    return len(await here.names("Pod"))


async def test_a_rollout_that_is_stuck_is_scaled_in_proportion():
    strategy = {"rollingUpdate": {"maxSurge": 3, "maxUnavailable": 2}}
    async with world(ready=lambda pod: pod["spec"]["containers"][0]["image"] != "bad") as here:
        await here.create("Deployment", "web", spec(replicas=10, strategy=strategy))
        await here.until(lambda: complete(here))
        await set_image(here, "bad")
        await here.until(lambda: sizes(here), {"app:1": 8, "bad": 5})
        await here.patch("Deployment", "web", {"spec": {"replicas": 30}})
        await here.until(lambda: sizes(here), {"app:1": 20, "bad": 13})
        since = (await here.cluster.list(REPLICA_SETS)).version
        await here.patch("Deployment", "web", {"spec": {"replicas": 5}})
        # Five and three in proportion, which does not last: two of the five that are available may go.
        await here.until(lambda: sizes(here), {"app:1": 3, "bad": 5})
        changes = here.cluster.watch(REPLICA_SETS, since=since)
        assert (await anext(changes)).type == "BOOKMARK"
        steps = {"app:1": [20], "bad": [13]}
        while steps["app:1"][-1] != 3 or steps["bad"][-1] != 5:
            size = (await anext(changes)).object["spec"]
            seen = steps[size["template"]["spec"]["containers"][0]["image"]]
            if seen[-1] != size["replicas"]:
                seen.append(size["replicas"])
        assert steps == {"app:1": [20, 5, 3], "bad": [13, 3, 5]}


async def test_paused_it_collects_changes_and_resumed_it_makes_one_rollout_of_them():
    async with rolled_out() as here:
        await here.patch("Deployment", "web", {"spec": {"paused": True}})
        await here.until(
            lambda: condition(here, "Progressing"), ("Unknown", "DeploymentPaused", "Deployment is paused")
        )
        await set_image(here, "app:2")
        await set_image(here, "app:3")
        await here.patch("Deployment", "web", {"spec": {"replicas": 4}})
        await here.until(lambda: sizes(here), {"app:1": 4})
        await here.patch("Deployment", "web", {"spec": {"paused": False}})
        await here.until(lambda: complete(here))
        assert await sizes(here) == {"app:1": 0, "app:3": 4}


async def test_recreate_has_never_two_versions_at_once():
    async with world(controllers=True) as here:
        seen = []
        await here.create("Deployment", "web", spec(strategy={"type": "Recreate"}))
        await here.until(lambda: complete(here))

        async def watch():
            while True:
                seen.append(await images(here))
                await asyncio.sleep(0.002)

        watching = asyncio.create_task(watch())
        await set_image(here, "app:2")
        await here.until(lambda: complete(here))
        watching.cancel()
        assert {"app:1", "app:2"} not in seen
        assert await images(here) == {"app:2"}


async def test_old_replica_sets_beyond_the_limit_go():
    async with world() as here:
        await here.create("Deployment", "web", spec(revisionHistoryLimit=1))
        for number in (2, 3, 4):
            await here.until(lambda: complete(here))
            await set_image(here, f"app:{number}")
        await here.until(lambda: sizes(here), {"app:3": 0, "app:4": 3})


async def test_a_new_deployment_adopts_what_the_last_left_behind():
    async with rolled_out() as here:
        (replica_set,) = await here.names("ReplicaSet")
        pods = await here.names("Pod")
        await here.delete("Deployment", "web", propagation="Orphan")
        await here.until(lambda: here.names("Deployment"), [])
        await here.create("Deployment", "web", spec())
        await here.until(lambda: complete(here))
        assert await here.names("ReplicaSet") == [replica_set]
        assert await here.names("Pod") == pods
        found = (await here.get("ReplicaSet", replica_set))["metadata"]["ownerReferences"]
        assert [o["uid"] for o in found] == [(await here.get("Deployment", "web"))["metadata"]["uid"]]


async def test_deleting_it_takes_everything_along():
    async with rolled_out() as here:
        await here.delete("Deployment", "web", propagation="Foreground")
        await here.until(lambda: here.names("Deployment"), [])
        assert await here.names("Pod") == await here.names("ReplicaSet") == []


async def test_a_taken_name_leads_to_another():
    async with rolled_out() as here:
        (taken,) = await here.names("ReplicaSet")
        await here.delete("Deployment", "web", propagation="Foreground")
        await here.until(lambda: here.names("Deployment"), [])
        stranger = {"matchLabels": {"app": "stranger"}}
        labels = {"metadata": {"labels": {"app": "stranger"}}}
        await here.create(
            "ReplicaSet", taken, {"replicas": 0, "selector": stranger, "template": {**template(), **labels}}
        )
        await here.create("Deployment", "web", spec())
        await here.until(lambda: complete(here))
        assert (await here.status("Deployment", "web"))["collisionCount"] == 1
        assert len(await here.names("ReplicaSet")) == 2


async def test_no_progress_in_time_is_a_failure_until_something_moves():
    clock = VirtualClock()
    allowed = set()
    async with world(clock=clock, ready=lambda pod: pod["metadata"]["name"] in allowed) as here:
        await here.create("Deployment", "web", spec(progressDeadlineSeconds=60))
        await here.until(lambda: number_of_pods(here), 3)
        await here.until(lambda: reason(here), "ReplicaSetUpdated")
        await here.quiet()
        await clock.advance(62)
        name = (await here.names("ReplicaSet"))[0]
        await here.until(
            lambda: condition(here, "Progressing"),
            ("False", "ProgressDeadlineExceeded", f'ReplicaSet "{name}" has timed out progressing.'),
        )
        allowed.update(await here.names("Pod"))
        here.kubelet.look_again()
        await here.until(lambda: reason(here), "NewReplicaSetAvailable")


async def test_a_replica_set_that_cannot_be_made_is_told_of():
    refused = {"on": True}

    def refuse(verb, resource, name):
        if refused["on"] and (verb, resource) == ("create", REPLICA_SETS):
            return errors.Forbidden("no ReplicaSets today")
        return None

    async with world(through=lambda cluster: FaultyCluster(cluster, refuse)) as here:
        await here.create("Deployment", "web", spec())
        status, why, message = await here.until(lambda: condition(here, "Progressing"))
        assert (status, why) == ("False", "ReplicaSetCreateError")
        assert message.startswith('Failed to create new replica set "web-')
        assert message.endswith(": no ReplicaSets today")
        await here.until(lambda: here.told("ReplicaSetCreateError"), [message])
        refused["on"] = False
        await here.until(lambda: complete(here))
        await here.until(lambda: reason(here), "NewReplicaSetAvailable")


async def test_conflicts_lost_answers_and_late_news_are_got_over():
    coming = [
        ("create", REPLICA_SETS, ("after", errors.ServiceUnavailable("connection reset"))),
        ("patch", DEPLOYMENTS, errors.Conflict("modified")),
        ("patch", REPLICA_SETS, errors.Conflict("modified")),
        ("patch", DEPLOYMENTS, ("after", errors.ServiceUnavailable("connection reset"))),
        ("patch", REPLICA_SETS, ("after", errors.ServiceUnavailable("connection reset"))),
    ]

    faulty = {}

    def through(cluster):
        wrapped = FaultyCluster(cluster, each_once(coming))
        faulty.setdefault("cluster", wrapped)  # the first is that of the informers
        return wrapped

    async with rolled_out(through=through) as here:
        await set_image(here, "app:2")
        faulty["cluster"].lag(REPLICA_SETS)
        await here.drained()
        faulty["cluster"].catch_up()
        await here.until(lambda: complete(here))
        await here.quiet()
        assert not coming
        assert await sizes(here) == {"app:1": 0, "app:2": 3}
        assert len(here.made) == 6


async def test_at_rest_nothing_is_written():
    async with rolled_out() as here:
        before = await here.quiet()
        here.controllers.nudge("deployment-controller", "default/web")
        assert await here.quiet() == before


async def test_the_end_of_a_namespace_is_not_held_up():
    async with world() as here:
        await here.cluster.create(NAMESPACES, {"metadata": {"name": "short"}})
        made = {"metadata": {"name": "web"}, "spec": spec()}
        await here.cluster.create(DEPLOYMENTS, made, namespace="short")

        async def pods():
            return len((await here.cluster.list(PODS, namespace="short")).items)

        await here.until(pods, 3)
        await here.cluster.delete(NAMESPACES, "short")

        async def namespaces():
            return "short" in [n["metadata"]["name"] for n in (await here.cluster.list(NAMESPACES)).items]

        await here.until(namespaces, False)
