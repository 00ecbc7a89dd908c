"""What budgets allow: decided from Pods and the scale of their owners, and kept in their status."""

import contextlib

import pytest
from own_cluster import own_cluster

from seamark.access.informers import Informers
from seamark.controllers.policy.budgets import DisruptionController
from seamark.controllers.policy.disruption import recheck_after, status, still_going, wanted
from seamark.controllers.policy.stale_targets import StaleTargets
from seamark.errors import TooManyRequests
from seamark.kinds.extensions.custom import kinds_of
from seamark.kinds.resource import DEPLOYMENTS, POD_DISRUPTION_BUDGETS, PODS, REPLICA_SETS
from seamark.rules.objects.budget import Budget, BudgetSpec
from seamark.rules.objects.metadata import Metadata
from seamark.rules.objects.pod import Pod
from seamark.runtime.manager import Manager

LABELS = {"a": "b"}


@pytest.mark.parametrize(
    ("spec", "present", "scale", "expected"),
    [
        (BudgetSpec(min_available=2), 3, 9, (3, 2)),
        (BudgetSpec(min_available="50%"), 3, 9, (9, 5)),
        (BudgetSpec(max_unavailable=2), 3, 9, (9, 7)),
        (BudgetSpec(max_unavailable=20), 3, 9, (9, 0)),
        (BudgetSpec(max_unavailable="30%"), 3, 9, (9, 6)),
        (BudgetSpec(), 3, 9, (0, 0)),
    ],
)
def test_how_many_must_be_healthy(spec, present, scale, expected):
    assert wanted(spec, present, scale) == expected


def test_an_evicted_pod_is_waited_for():
    then = "2030-01-01T00:00:00Z"
    names = {"going": then, "deleted": then, "late": "2029-12-31T23:00:00Z", "gone": then}
    budget = Budget(Metadata(name="b"), BudgetSpec(min_available=1), {"disruptedPods": names})
    pods = [
        Pod(Metadata(name="going")),
        Pod(Metadata(name="late")),
        Pod(Metadata(name="deleted", deletion_timestamp=then)),
    ]
    now = 1893456000.0 + 60
    assert still_going(budget, pods, now) == {"going": then}
    found = status(budget, pods, 0, now)
    assert (found["currentHealthy"], found["expectedPods"], found["disruptedPods"]) == (0, 3, {"going": then})
    assert recheck_after(found, now) == 61.0
    assert recheck_after({}, now) is None


# --- in a cluster ----------------------------------------------------------------------------------------------------


def pod(name, **meta):
    spec = {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}
    return {"metadata": {"name": name, "labels": LABELS, **meta}, "spec": spec}


@contextlib.asynccontextmanager
async def watched():
    async with own_cluster() as own:
        manager = Manager(Informers(own.api.cluster("controllers")), clock=own.clock)
        cluster = own.api.cluster("disruption-controller")
        manager.add(DisruptionController(manager, cluster, own.api.kinds), StaleTargets(manager, cluster))
        async with own.managed(manager):
            yield own


async def make(own, name, *, ready=True, **meta):
    await own.cluster.create(PODS, pod(name, **meta), namespace="default")
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    running = {"status": {"phase": "Running", "conditions": conditions}}
    await own.cluster.patch(PODS, name, running, namespace="default", subresource="status")


async def budget(own, **spec):
    body = {"metadata": {"name": "b"}, "spec": {"selector": {"matchLabels": LABELS}, **spec}}
    await own.cluster.create(POD_DISRUPTION_BUDGETS, body, namespace="default")


async def counts(own):
    found = (await own.cluster.get(POD_DISRUPTION_BUDGETS, "b", namespace="default"))["status"]
    return tuple(found[field] for field in ("currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods"))


async def evict(own, name, **options):
    eviction = {"metadata": {"name": name}, **({"deleteOptions": options} if options else {})}
    await own.cluster.create(PODS, eviction, namespace="default", name=name, subresource="eviction")


async def test_evictions_stop_where_the_budget_ends():
    async with watched() as own:
        for name in ("p", "q", "r"):
            await make(own, name)
        await budget(own, minAvailable=2)
        await own.quiet()
        assert await counts(own) == (3, 2, 1, 3)
        await evict(own, "p", dryRun=["All"])
        assert await counts(own) == (3, 2, 1, 3)
        await evict(own, "p")
        with pytest.raises(TooManyRequests):
            await evict(own, "q")
        await own.quiet()
        assert await counts(own) == (2, 2, 0, 3)
        with pytest.raises(TooManyRequests, match="disruption budget"):
            await evict(own, "q", dryRun=["All"])
        # Another eviction of a Pod that is already going takes nothing.
        await evict(own, "p")
        await make(own, "s")
        await own.quiet()
        await evict(own, "q")


async def owner(own, *, replicas, deployment):
    template = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": LABELS}, "template": template}
    meta = {"name": "rs"}
    if deployment:
        body = {"metadata": {"name": "d"}, "spec": {**spec, "replicas": deployment}}
        above = await own.cluster.create(DEPLOYMENTS, body, namespace="default")
        meta["ownerReferences"] = [reference(above, "Deployment")]
    made = await own.cluster.create(REPLICA_SETS, {"metadata": meta, "spec": spec}, namespace="default")
    return reference(made, "ReplicaSet")


def reference(obj, kind):
    meta = obj["metadata"]
    return {"apiVersion": "apps/v1", "kind": kind, "name": meta["name"], "uid": meta["uid"], "controller": True}


@pytest.mark.parametrize(("deployment", "expected"), [(0, (2, 5, 0, 10)), (4, (2, 2, 0, 4))])
async def test_percentages_are_of_what_the_owners_want(deployment, expected):
    async with watched() as own:
        owned = await owner(own, replicas=10, deployment=deployment)
        for name in ("p", "q"):
            await make(own, name, ownerReferences=[owned])
        await budget(own, minAvailable="50%")
        await own.quiet()
        assert await counts(own) == expected
        assert await own.reasons("b") == []


def fleets():
    """A custom kind that has a Scale."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    scale = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}
    version = {"name": "v1", "served": True, "storage": True, "subresources": {"scale": scale}}
    names = {"plural": "fleets", "singular": "fleet", "kind": "Fleet", "listKind": "FleetList"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names}
    spec["versions"] = [{**version, "schema": {"openAPIV3Schema": schema}}]
    (kind,) = kinds_of({"metadata": {"name": "fleets.example.com"}, "spec": spec, "status": {"acceptedNames": names}})
    return kind


async def test_an_owner_of_any_kind_that_has_a_scale_is_counted():
    async with watched() as own:
        kind = fleets()
        await own.api.add_kind(kind)
        fleet = {"apiVersion": "example.com/v1", "kind": "Fleet", "metadata": {"name": "f"}, "spec": {"size": 4}}
        made = await own.cluster.create(kind.resource, fleet, namespace="default")
        owned = {**reference(made, "Fleet"), "apiVersion": "example.com/v1"}
        for name in ("p", "q", "r"):
            await make(own, name, ownerReferences=[owned])
        await budget(own, maxUnavailable="50%")
        await own.quiet()
        assert await counts(own) == (3, 2, 1, 4)
        assert await own.reasons("b") == []


async def test_bare_pods_are_not_in_any_scale():
    async with watched() as own:
        await make(own, "p")
        await budget(own, maxUnavailable=1)
        await own.quiet()
        assert await counts(own) == (1, 0, 0, 0)
        assert await own.reasons("b") == ["UnmanagedPods"]


async def test_an_owner_without_a_scale_allows_nothing():
    async with watched() as own:
        job = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": True}
        await make(own, "p", ownerReferences=[job])
        await budget(own, maxUnavailable=1)
        await own.quiet()
        found = (await own.cluster.get(POD_DISRUPTION_BUDGETS, "b", namespace="default"))["status"]
        condition = found["conditions"][0]
        assert (condition["reason"], condition["message"]) == (
            "SyncFailed",
            "jobs.batch does not implement the scale subresource",
        )
        assert "CalculateExpectedPodCountFailed" in await own.reasons("b")
        with pytest.raises(TooManyRequests):
            await evict(own, "p")


async def test_a_budget_without_pods_says_so():
    async with watched() as own:
        await budget(own, minAvailable=1)
        await own.quiet()
        assert await counts(own) == (0, 1, 0, 0)
        assert await own.reasons("b") == ["NoPods"]


async def test_the_status_is_all_that_is_written():
    async with watched() as own:
        mine = {"name": "b", "labels": {"team": "shop"}, "annotations": {"why": "because"}, "finalizers": ["x.io/y"]}
        made = await own.cluster.create(
            POD_DISRUPTION_BUDGETS, {"metadata": mine, "spec": {"minAvailable": 1}}, namespace="default"
        )
        await own.quiet()
        found = await own.cluster.get(POD_DISRUPTION_BUDGETS, "b", namespace="default")
        assert found["status"]["conditions"]
        same = ("labels", "annotations", "finalizers", "generation")
        assert [found["metadata"][name] for name in same] == [made["metadata"][name] for name in same]


async def test_an_eviction_that_never_comes_is_given_up():
    async with watched() as own:
        await make(own, "p")
        await budget(own, minAvailable=0)
        await own.quiet()
        found = await own.cluster.get(POD_DISRUPTION_BUDGETS, "b", namespace="default")
        found["status"].update(disruptedPods={"p": found["metadata"]["creationTimestamp"]}, disruptionsAllowed=0)
        await own.cluster.update(POD_DISRUPTION_BUDGETS, found, namespace="default", subresource="status")
        await own.quiet()
        assert await counts(own) == (0, 0, 0, 1)
        await own.clock.advance(125)
        await own.quiet()
        assert await counts(own) == (1, 0, 1, 1)


@pytest.mark.parametrize(("reason", "status"), [("EvictionByEvictionAPI", "False"), ("TerminationByKubelet", "True")])
async def test_a_pod_that_should_have_gone_is_no_longer_said_to_go(reason, status):
    async with watched() as own:
        await make(own, "p")
        made = (await own.cluster.get(PODS, "p", namespace="default"))["metadata"]["creationTimestamp"]
        mark = {"type": "DisruptionTarget", "status": "True", "reason": reason, "lastTransitionTime": made}
        patch = {"status": {"conditions": [mark]}}
        await own.cluster.patch(PODS, "p", patch, namespace="default", type="strategic", subresource="status")

        async def target():
            found = (await own.cluster.get(PODS, "p", namespace="default"))["status"]["conditions"]
            return next(condition for condition in found if condition["type"] == "DisruptionTarget")

        await own.quiet()
        assert (await target())["status"] == "True"
        await own.clock.advance(125)
        await own.quiet()
        assert (await target())["status"] == status
        assert ("reason" in await target()) == (status == "True")
