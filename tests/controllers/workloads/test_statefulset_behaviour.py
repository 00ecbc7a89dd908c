"""StatefulSets at work on a real API server: places, order, updates, history."""

import asyncio
import contextlib

from faulty_cluster import FaultyCluster, each_once
from workload_world import world

from seamark import errors
from seamark.kinds.resource import CONTROLLER_REVISIONS, PODS, STATEFUL_SETS
from virtual_time import VirtualClock

LABELS = {"app": "db"}


def template(image="app:1"):
    return {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "c", "image": image}]}}


def spec(image="app:1", **more):
    selector = {"matchLabels": LABELS}
    return {"replicas": 3, "serviceName": "db", "selector": selector, "template": template(image), **more}


async def settled(here):
    """Whether all Pods are there, up to date and available."""
    found = await here.get("StatefulSet", "db")
    status = found.get("status", {})
    counts = {status.get(field, 0) for field in ("replicas", "updatedReplicas", "availableReplicas", "currentReplicas")}
    seen = status.get("observedGeneration") == found["metadata"]["generation"]
    return seen and counts == {found["spec"]["replicas"]} and status["currentRevision"] == status["updateRevision"]


async def images(here):
    return {pod["metadata"]["name"]: pod["spec"]["containers"][0]["image"] for pod in await here.list("Pod")}


async def set_image(here, image):
    await here.patch("StatefulSet", "db", {"spec": {"template": template(image)}})


@contextlib.asynccontextmanager
async def started(**more):
    """A StatefulSet whose Pods are ready."""
    async with world(**more) as here:
        await here.create("StatefulSet", "db", spec())
        await here.until(lambda: settled(here))
        yield here


async def test_pods_come_in_order_with_names_that_stay():
    async with started() as here:
        assert here.made == ["db-0", "db-1", "db-2"]
        pod = await here.get("Pod", "db-1")
        assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("db-1", "db")
        status = await here.status("StatefulSet", "db")
        (revision,) = await here.names("ControllerRevision")
        assert status == {
            "observedGeneration": 1,
            "replicas": 3,
            "readyReplicas": 3,
            "availableReplicas": 3,
            "currentReplicas": 3,
            "updatedReplicas": 3,
            "currentRevision": revision,
            "updateRevision": revision,
            "collisionCount": 0,
        }
        assert pod["metadata"]["labels"]["controller-revision-hash"] == revision
        await here.until(
            lambda: here.told("SuccessfulCreate"), [f"create Pod db-{n} in StatefulSet db successful" for n in range(3)]
        )
        # A lost one comes back under its name.
        uid = pod["metadata"]["uid"]
        await here.delete("Pod", "db-1")
        await here.until(lambda: replaced(here, "db-1", uid))
        await here.until(lambda: settled(here))
        assert await here.names("Pod") == ["db-0", "db-1", "db-2"]


async def replaced(here, name, uid):
    return [p for p in await here.list("Pod") if p["metadata"]["name"] == name and p["metadata"]["uid"] != uid]


async def test_nobody_comes_while_one_before_it_is_not_ready():
    async with world(ready=lambda pod: pod["metadata"]["name"] != "db-1") as here:
        await here.create("StatefulSet", "db", spec())
        await here.until(lambda: here.names("Pod"), ["db-0", "db-1"])
        await here.quiet()
        assert await here.names("Pod") == ["db-0", "db-1"]
        here.kubelet.ready = lambda pod: True
        here.kubelet.look_again()
        await here.until(lambda: settled(here))


async def test_in_parallel_nobody_waits():
    async with world(ready=lambda pod: False) as here:
        await here.create("StatefulSet", "db", spec(podManagementPolicy="Parallel", ordinals={"start": 5}))
        await here.until(lambda: here.names("Pod"), ["db-5", "db-6", "db-7"])
        await here.patch("StatefulSet", "db", {"spec": {"replicas": 1}})
        await here.until(lambda: here.names("Pod"), ["db-5"])


async def test_scaling_down_takes_the_last_first():
    gone = []
    async with started() as here:
        since = (await here.cluster.list(PODS)).version

        async def watch():
            nonlocal gone
            async for change in here.cluster.watch(PODS, since=since):
                gone += [change.object["metadata"]["name"]] if change.type == "DELETED" else []

        watching = asyncio.create_task(watch())
        await here.patch("StatefulSet", "db", {"spec": {"replicas": 0}})
        await here.until(lambda: here.names("Pod"), [])
        await here.until(lambda: settled(here))
        watching.cancel()
    assert gone == ["db-2", "db-1", "db-0"]


async def test_an_update_goes_from_the_last_to_the_first_and_back_again():
    async with started() as here:
        (first,) = await here.names("ControllerRevision")
        await set_image(here, "app:2")
        await here.until(lambda: settled(here))
        assert here.made[3:] == ["db-2", "db-1", "db-0"]
        assert set((await images(here)).values()) == {"app:2"}
        revisions = {r["metadata"]["name"]: r["revision"] for r in await here.list("ControllerRevision")}
        assert len(revisions) == 2
        assert revisions[first] == 1
        data = (await here.get("ControllerRevision", first))["data"]
        assert data["spec"]["template"]["$patch"] == "replace"
        # What `kubectl rollout undo` sends.
        await here.patch("StatefulSet", "db", data, type="strategic")
        await here.until(lambda: settled(here))
        assert set((await images(here)).values()) == {"app:1"}
        assert {r["metadata"]["name"]: r["revision"] for r in await here.list("ControllerRevision")}[first] == 3
        assert (await here.status("StatefulSet", "db"))["currentRevision"] == first


async def test_a_partition_holds_an_update_and_lost_pods_come_back_as_they_were():
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
    async with world() as here:
        await here.create("StatefulSet", "db", spec(updateStrategy=rolling))
        await here.until(lambda: settled(here))
        await set_image(here, "app:2")
        wanted = {"db-0": "app:1", "db-1": "app:2", "db-2": "app:2"}
        await here.until(lambda: images(here), wanted)
        await here.until(lambda: ready(here), 3)
        uid = (await here.get("Pod", "db-0"))["metadata"]["uid"]
        await here.delete("Pod", "db-0")
        await here.until(lambda: replaced(here, "db-0", uid))
        assert await images(here) == wanted
        status = await here.status("StatefulSet", "db")
        assert status["currentRevision"] != status["updateRevision"]
        await here.patch("StatefulSet", "db", {"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}})
        await here.until(lambda: settled(here))
        assert set((await images(here)).values()) == {"app:2"}


async def ready(here):
    return (await here.status("StatefulSet", "db")).get("readyReplicas", 0)


async def test_on_delete_leaves_the_when_to_others():
    async with world() as here:
        await here.create("StatefulSet", "db", spec(updateStrategy={"type": "OnDelete"}))
        await here.until(lambda: ready(here), 3)
        await set_image(here, "app:2")
        await here.quiet()
        assert set((await images(here)).values()) == {"app:1"}
        await here.delete("Pod", "db-1")
        await here.until(lambda: images(here), {"db-0": "app:1", "db-1": "app:2", "db-2": "app:1"})


async def test_history_beyond_the_limit_goes():
    async with world() as here:
        await here.create("StatefulSet", "db", spec(revisionHistoryLimit=1, replicas=1))
        for number in (2, 3, 4):
            await here.until(lambda: settled(here))
            await set_image(here, f"app:{number}")
        await here.until(lambda: settled(here))
        await here.until(lambda: numbers(here), [3, 4])


async def numbers(here):
    return sorted(r["revision"] for r in await here.list("ControllerRevision"))


async def test_a_new_stateful_set_adopts_what_the_last_left_behind():
    async with started() as here:
        await here.delete("StatefulSet", "db", propagation="Orphan")
        await here.until(lambda: here.names("StatefulSet"), [])
        await here.create("StatefulSet", "db", spec())
        await here.until(lambda: settled(here))
        assert len(here.made) == 3
        assert await numbers(here) == [1]


async def test_pods_must_have_been_ready_for_a_while_before_the_next_comes():
    clock = VirtualClock()
    async with world(clock=clock) as here:
        await here.create("StatefulSet", "db", spec(minReadySeconds=20, replicas=2))
        await here.until(lambda: ready(here), 1)
        await here.quiet()
        assert await here.names("Pod") == ["db-0"]
        await clock.advance(21)
        await here.until(lambda: here.names("Pod"), ["db-0", "db-1"])


async def test_faults_are_got_over_and_nothing_is_made_twice():
    coming = [
        ("create", CONTROLLER_REVISIONS, ("after", errors.ServiceUnavailable("connection reset"))),
        ("create", PODS, ("after", errors.ServiceUnavailable("connection reset"))),
        ("create", PODS, errors.InternalError("no")),
        ("patch", STATEFUL_SETS, errors.Conflict("modified")),
        ("patch", STATEFUL_SETS, ("after", errors.ServiceUnavailable("connection reset"))),
        ("delete", PODS, ("after", errors.ServiceUnavailable("connection reset"))),
        ("delete", PODS, errors.ServiceUnavailable("no answer")),
    ]

    async with started(through=lambda cluster: FaultyCluster(cluster, each_once(coming))) as here:
        await set_image(here, "app:2")
        await here.until(lambda: settled(here))
        assert not coming
        assert here.made == ["db-0", "db-1", "db-2", "db-2", "db-1", "db-0"]
        assert await numbers(here) == [1, 2]


async def test_at_rest_nothing_is_written():
    async with started() as here:
        before = await here.quiet()
        here.controllers.nudge("statefulset-controller", "default/db")
        assert await here.quiet() == before


# --- claims -----------------------------------------------------------------------------------------

CLAIM = {
    "metadata": {"name": "data", "labels": {"tier": "disk"}, "annotations": {"a": "b"}},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


async def test_every_place_has_its_claims_which_stay_by_default():
    async with world() as here:
        await here.create("StatefulSet", "db", spec(replicas=2, volumeClaimTemplates=[CLAIM]))
        await here.until(lambda: settled(here))
        assert await here.names("PersistentVolumeClaim") == ["data-db-0", "data-db-1"]
        made = await here.get("PersistentVolumeClaim", "data-db-1")
        assert made["metadata"]["labels"] == {"tier": "disk", **LABELS}
        assert made["metadata"]["annotations"] == {"a": "b"}
        assert "ownerReferences" not in made["metadata"]
        await here.patch("StatefulSet", "db", {"spec": {"replicas": 1}})
        await here.until(lambda: settled(here))
        assert await here.names("PersistentVolumeClaim") == ["data-db-0", "data-db-1"]


async def test_claims_may_go_with_their_pods_and_with_the_set():
    async with world() as here:
        policy = {"whenDeleted": "Delete", "whenScaled": "Delete"}
        more = {"volumeClaimTemplates": [CLAIM], "persistentVolumeClaimRetentionPolicy": policy}
        await here.create("StatefulSet", "db", spec(replicas=2, **more))
        await here.until(lambda: settled(here))
        kept = await here.get("PersistentVolumeClaim", "data-db-0")
        assert [owner["kind"] for owner in kept["metadata"]["ownerReferences"]] == ["StatefulSet"]
        await here.patch("StatefulSet", "db", {"spec": {"replicas": 1}})
        await here.until(lambda: settled(here))

        async def left():
            claims = [
                await here.get("PersistentVolumeClaim", name) for name in await here.names("PersistentVolumeClaim")
            ]
            return [c["metadata"]["name"] for c in claims if not c["metadata"].get("deletionTimestamp")] == [
                "data-db-0"
            ]

        await here.until(left)
