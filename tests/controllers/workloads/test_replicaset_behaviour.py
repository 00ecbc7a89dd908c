"""ReplicaSets and ReplicationControllers at work on a real API server, through good and bad connections."""

import contextlib

import pytest
from faulty_cluster import FaultyCluster
from workload_world import Controllers, world

from seamark import errors
from seamark.kinds.resource import PODS, REPLICA_SETS
from virtual_time import VirtualClock

LABELS = {"app": "web"}
TEMPLATE = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "c", "image": "app:1"}]}}
SPEC = {"replicas": 3, "selector": {"matchLabels": LABELS}, "template": TEMPLATE}


def ready(here, name="web"):
    async def ask():
        return (await here.status("ReplicaSet", name)).get("readyReplicas", 0)

    return ask


def count(here, labels="app=web"):
    async def ask():
        return len(await here.names("Pod", labels))

    return ask


@contextlib.asynccontextmanager
async def three_pods(**more):
    """A ReplicaSet whose three Pods are ready."""
    async with world(**more) as here:
        await here.create("ReplicaSet", "web", SPEC)
        await here.until(ready(here), 3)
        yield here


async def test_pods_are_made_counted_and_told_of():
    async with three_pods() as here:
        pods = await here.list("Pod")
        for pod in pods:
            meta = pod["metadata"]
            assert meta["generateName"] == "web-"
            assert meta["labels"] == LABELS
            (owner,) = meta["ownerReferences"]
            assert (owner["kind"], owner["name"], owner["controller"], owner["blockOwnerDeletion"]) == (
                "ReplicaSet",
                "web",
                True,
                True,
            )
        assert await here.status("ReplicaSet", "web") == {
            "replicas": 3,
            "fullyLabeledReplicas": 3,
            "readyReplicas": 3,
            "availableReplicas": 3,
            "terminatingReplicas": 0,
            "observedGeneration": 1,
        }
        names = [pod["metadata"]["name"] for pod in pods]
        await here.until(lambda: here.told("SuccessfulCreate"), sorted(f"Created pod: {name}" for name in names))
        await here.patch("ReplicaSet", "web", {"spec": {"replicas": 1}})
        await here.until(count(here), 1)
        left = await here.names("Pod")
        gone = [f"Deleted pod: {name}" for name in names if name not in left]
        await here.until(lambda: here.told("SuccessfulDelete"), gone)


async def test_a_replication_controller_does_the_same():
    async with world() as here:
        await here.create("ReplicationController", "old", {"replicas": 2, "template": TEMPLATE})
        await here.until(lambda: here.status("ReplicationController", "old"), {
            "replicas": 2,
            "fullyLabeledReplicas": 2,
            "readyReplicas": 2,
            "availableReplicas": 2,
            "observedGeneration": 1,
        })  # fmt: skip
        await here.delete("ReplicationController", "old", propagation="Background")
        await here.until(count(here), 0)


async def test_what_is_lost_is_replaced_and_what_has_ended_too():
    async with three_pods() as here:
        first, second, _ = await here.names("Pod")
        await here.delete("Pod", first)
        await here.patch("Pod", second, {"status": {"phase": "Failed"}}, subresource="status")
        await here.until(lambda: made(here), 5)
        await here.until(ready(here), 3)
        assert second in await here.names("Pod"), "what has ended is kept to be looked at"


async def made(here):
    return len(here.made)


async def test_orphans_are_adopted_and_strays_released():
    async with world() as here:
        pod = {"containers": TEMPLATE["spec"]["containers"]}
        await here.create("Pod", "orphan", pod, labels=LABELS)
        await here.create("Pod", "other", pod, labels={"app": "db"})
        await here.create("ReplicaSet", "web", SPEC)
        await here.until(ready(here), 3)
        assert await made(here) == 4, "two were made, two were there"
        assert owner(await here.get("Pod", "orphan")) == "web"
        assert owner(await here.get("Pod", "other")) is None
        # Somebody takes a Pod aside to look at it.
        await here.patch("Pod", "orphan", {"metadata": {"labels": {"app": "aside"}}})
        await here.until(lambda: made(here), 5)
        await here.until(lambda: owner_of(here, "orphan"), None)
        # And gives it back: then there is one too many.
        await here.patch("Pod", "orphan", {"metadata": {"labels": LABELS}})
        await here.until(count(here), 3)
        assert await made(here) == 5


def owner(pod):
    return next((o["name"] for o in pod["metadata"].get("ownerReferences", ()) if o.get("controller")), None)


async def owner_of(here, name):
    return owner(await here.get("Pod", name))


async def test_a_selector_of_expressions_finds_its_orphans():
    selector = {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "www"]}]}
    async with world() as here:
        pod = {"containers": TEMPLATE["spec"]["containers"]}
        await here.create("ReplicaSet", "web", {**SPEC, "selector": selector, "replicas": 1})
        await here.until(ready(here), 1)
        await here.patch("ReplicaSet", "web", {"spec": {"replicas": 2}})
        await here.until(ready(here), 2)
        await here.create("Pod", "orphan", pod, labels={"app": "www"})
        await here.until(lambda: here.told("SuccessfulDelete"))
        await here.until(ready(here), 2)


async def test_deletion_costs_are_heeded():
    async with three_pods() as here:
        cheap, *rest = reversed(await here.names("Pod"))
        cost = {"controller.kubernetes.io/pod-deletion-cost": "-10"}
        await here.patch("Pod", cheap, {"metadata": {"annotations": cost}})
        await here.quiet()
        await here.patch("ReplicaSet", "web", {"spec": {"replicas": 2}})
        await here.until(lambda: here.names("Pod"), sorted(rest))


async def test_pods_become_available_when_they_have_been_ready_for_long_enough():
    clock = VirtualClock()
    async with world(clock=clock) as here:
        await here.create("ReplicaSet", "web", {**SPEC, "minReadySeconds": 30})
        await here.until(ready(here), 3)
        await here.quiet()
        assert "availableReplicas" not in await here.status("ReplicaSet", "web")
        await clock.advance(29)
        await here.quiet()
        assert "availableReplicas" not in await here.status("ReplicaSet", "web")
        await clock.advance(2)
        await here.until(lambda: available(here), 3)


async def available(here):
    return (await here.status("ReplicaSet", "web")).get("availableReplicas", 0)


async def test_at_rest_nothing_is_written():
    async with three_pods() as here:
        before = await here.quiet()
        for _ in range(3):
            here.controllers.nudge("replicaset-controller", "default/web")
            await here.drained()
        assert await here.quiet() == before


# --- bad times -------------------------------------------------------------------------------------


class Faults:
    """Errors to come, by verb and kind; each is used up."""

    def __init__(self):
        self.coming = []
        self.cluster = None

    def add(self, verb, resource, error, times=1):
        self.coming += [(verb, resource, error)] * times

    def __call__(self, verb, resource, name):
        for fault in self.coming:
            if fault[:2] == (verb, resource):
                self.coming.remove(fault)
                return fault[2]
        return None

    def through(self, cluster):
        wrapped = FaultyCluster(cluster, self)
        self.cluster = self.cluster or wrapped  # the first is that of the informers
        return wrapped


async def test_an_informer_that_is_behind_does_not_make_pods_twice():
    faults = Faults()
    async with world(through=faults.through) as here:
        faults.cluster.lag(PODS)
        await here.create("ReplicaSet", "web", SPEC)
        await here.until(lambda: made(here), 3)
        for number in range(5):
            await here.patch("ReplicaSet", "web", {"metadata": {"annotations": {"touched": str(number)}}})
            await here.drained()
        assert await made(here) == 3
        faults.cluster.catch_up()
        await here.until(ready(here), 3)
        await here.quiet()
        assert await made(here) == 3


async def test_an_informer_that_is_behind_does_not_make_pods_go_twice():
    faults = Faults()
    async with world(through=faults.through, kubelet=False) as here:
        await here.create("ReplicaSet", "web", {**SPEC, "replicas": 6})
        await here.until(lambda: made(here), 6)
        await here.quiet()
        faults.cluster.lag(PODS)
        await here.patch("ReplicaSet", "web", {"spec": {"replicas": 4}})
        await here.until(count(here), 4)
        for number in range(5):
            await here.patch("ReplicaSet", "web", {"metadata": {"annotations": {"touched": str(number)}}})
            await here.drained()
        assert len(await here.names("Pod")) == 4
        faults.cluster.catch_up()
        await here.quiet()
        assert len(await here.names("Pod")) == 4
        assert await made(here) == 6


@pytest.mark.parametrize("lost", [errors.ServiceUnavailable, errors.ServerTimeout, errors.InternalError])
async def test_a_creation_whose_answer_was_lost_is_not_repeated(lost):
    faults = Faults()
    faults.add("create", PODS, ("after", lost("connection reset")), times=2)
    async with world(through=faults.through) as here:
        faults.cluster.lag(PODS)
        await here.create("ReplicaSet", "web", SPEC)
        await here.until(lambda: made(here), 1)
        await here.quiet()
        faults.cluster.catch_up()
        await here.until(ready(here), 3)
        await here.quiet()
        assert not faults.coming
        assert await made(here) == 3


async def test_a_creation_that_failed_is_repeated():
    faults = Faults()
    faults.add("create", PODS, errors.ServiceUnavailable("no answer"), times=2)
    async with three_pods(through=faults.through) as here:
        await here.quiet()
        assert await made(here) == 3


async def test_lost_watches_forgotten_versions_and_a_busy_server_are_got_over():
    faults = Faults()
    for resource in (PODS, REPLICA_SETS):
        faults.add("watch", resource, errors.Expired("too old resource version"))
        faults.add("watch", resource, errors.ServiceUnavailable("connection refused"))
        faults.add("list", resource, errors.InternalError("no"))
    faults.add("create", PODS, errors.TooManyRequests("slow down", retry_after=0), times=2)
    async with three_pods(through=faults.through) as here:
        await here.quiet()
        assert not faults.coming
        assert await made(here) == 3


async def test_refusals_are_told_and_taken_back():
    refused = {"on": True}

    def quota(verb, resource, name):
        if refused["on"] and (verb, resource) == ("create", PODS):
            return errors.Forbidden('pods "web-x" is forbidden: exceeded quota')
        return None

    async with world(through=lambda cluster: FaultyCluster(cluster, quota)) as here:
        await here.create("ReplicaSet", "web", SPEC)
        (condition,) = await here.until(lambda: conditions(here))
        assert (condition["type"], condition["status"]) == ("ReplicaFailure", "True")
        assert condition["reason"] == "FailedCreate"
        assert condition["message"] == 'pods "web-x" is forbidden: exceeded quota'
        await here.until(
            lambda: here.told("FailedCreate"), ['Error creating: pods "web-x" is forbidden: exceeded quota']
        )
        refused["on"] = False
        await here.until(ready(here), 3)
        await here.until(lambda: conditions(here), [])


async def conditions(here):
    return (await here.status("ReplicaSet", "web")).get("conditions", [])


async def test_conflicts_and_failures_of_the_status_are_got_over():
    faults = Faults()
    faults.add("patch", REPLICA_SETS, errors.Conflict("the object has been modified"), times=2)
    faults.add("patch", REPLICA_SETS, ("after", errors.ServiceUnavailable("connection reset")), times=2)
    async with three_pods(through=faults.through) as here:
        await here.quiet()
        assert await made(here) == 3
        assert (await here.status("ReplicaSet", "web"))["availableReplicas"] == 3


async def test_one_that_cannot_be_served_keeps_nobody_else_waiting():
    def refuse(verb, resource, name):
        return errors.InternalError("no") if (verb, name) == ("patch", "bad") else None

    async with world(through=lambda cluster: FaultyCluster(cluster, refuse)) as here:
        await here.create("ReplicaSet", "bad", {**SPEC, "selector": {"matchLabels": {"app": "bad"}}, "template": {
            **TEMPLATE, "metadata": {"labels": {"app": "bad"}}}})  # fmt: skip
        await here.create("ReplicaSet", "web", SPEC)
        await here.until(ready(here), 3)
        assert len(await here.names("Pod", "app=bad")) == 3


async def test_a_controller_that_takes_over_goes_on_where_the_other_was():
    async with world(controllers=False) as here:
        first = Controllers(through=lambda cluster: cluster, clock=None, cluster_for=here.api.cluster)
        async with first.running():
            await here.create("ReplicaSet", "web", {**SPEC, "replicas": 40})
            await here.until(lambda: some_made(here))
        second = Controllers(through=lambda cluster: cluster, clock=None, cluster_for=here.api.cluster)
        async with second.running():
            await here.until(ready(here), 40)
            await here.quiet()
            assert len(await here.names("Pod")) == 40


async def some_made(here):
    return len(here.made) > 0


async def test_two_controllers_at_once_end_with_the_right_number():
    async with (
        world() as here,
        Controllers(through=lambda cluster: cluster, clock=None, cluster_for=here.api.cluster).running(),
    ):
        await here.create("ReplicaSet", "web", SPEC)
        await here.until(ready(here), 3)
        await here.quiet()
        assert len(await here.names("Pod")) == 3
