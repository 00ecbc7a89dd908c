"""Pods get the ResourceClaims for which they name a template, and give them back, over a real API server."""

import contextlib

import pytest
import pytest_asyncio
from own_cluster import own_cluster

from seamark.access.informers import Informers
from seamark.controllers.devices.claims_controller import POD_CLAIM, ClaimsController, base_name
from seamark.controllers.devices.release_controller import FINALIZER, ReleaseController
from seamark.kinds.resource import EVENTS, PODS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS
from seamark.runtime.manager import Manager

TEMPLATES, CLAIMS = RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS
SPEC = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpus"}}]}}
ALLOCATION = {"devices": {"results": [{"request": "gpu", "driver": "d.example.com", "pool": "p", "device": "d0"}]}}


@pytest_asyncio.fixture
async def own():
    async with own_cluster() as cluster, _claimed(cluster):
        yield cluster


@contextlib.asynccontextmanager
async def _claimed(own):
    manager = Manager(Informers(own.api.cluster("controllers")), clock=own.clock)
    cluster = own.api.cluster("resource-claim-controller")
    manager.add(ClaimsController(manager, cluster), ReleaseController(manager, cluster))
    async with own.managed(manager):
        yield


async def template(own, name="t", **meta):
    body = {"metadata": {"name": name}, "spec": {"metadata": meta, "spec": SPEC}}
    return await own.cluster.create(TEMPLATES, body, namespace="default")


async def pod(own, name="p", node="", **claim):
    spec = {
        "containers": [{"name": "c", "image": "i", "resources": {"claims": [{"name": "dev"}]}}],
        "resourceClaims": [{"name": "dev", **(claim or {"resourceClaimTemplateName": "t"})}],
    }
    if node:
        spec["nodeName"] = node
    return await own.cluster.create(PODS, {"metadata": {"name": name}, "spec": spec}, namespace="default")


async def claim(own, name="c", finalizers=()):
    body = {"metadata": {"name": name, "finalizers": list(finalizers)}, "spec": SPEC}
    return await own.cluster.create(CLAIMS, body, namespace="default")


async def allocate(own, name, *pods):
    consumers = [
        {"resource": "pods", "name": each["metadata"]["name"], "uid": each["metadata"]["uid"]} for each in pods
    ]
    status = {"status": {"allocation": ALLOCATION, "reservedFor": consumers}}
    await own.cluster.patch(CLAIMS, name, status, namespace="default", subresource="status")


async def end(own, name="p"):
    await own.cluster.patch(PODS, name, {"status": {"phase": "Succeeded"}}, namespace="default", subresource="status")


async def claim_of(own, name="p"):
    """The claim that the Pod's status names."""

    async def look():
        statuses = (await own.find(PODS, name, "default"))["status"].get("resourceClaimStatuses") or []
        return await own.find(CLAIMS, statuses[0]["resourceClaimName"], "default") if statuses else None

    return await own.until(look)


async def test_a_pod_gets_the_claim_that_a_template_describes(own):
    await template(own, labels={"a": "b"}, annotations={"x": "y"})
    made = await pod(own)
    found = await claim_of(own)
    meta = found["metadata"]
    assert meta["generateName"] == "p-dev-"
    assert (meta["labels"], meta["annotations"]) == ({"a": "b"}, {"x": "y", POD_CLAIM: "dev"})
    assert meta["ownerReferences"] == [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": "p",
            "uid": made["metadata"]["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    assert found["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] == "gpus"
    assert [each["metadata"]["name"] for each in (await own.cluster.list(CLAIMS)).items] == [meta["name"]]


async def test_a_claim_that_somebody_deletes_is_made_again(own):
    await template(own)
    await pod(own)
    first = (await claim_of(own))["metadata"]
    await own.cluster.delete(CLAIMS, first["name"], namespace="default")

    async def another():
        found = (await claim_of(own))["metadata"]
        return found["uid"] != first["uid"]

    await own.until(another)


async def test_a_template_may_come_after_its_pod(own):
    await pod(own)

    async def told():
        return [each["message"] for each in (await own.cluster.list(EVENTS, namespace="default")).items]

    assert await own.until(told) == [
        'PodResourceClaim dev: resource claim template "t": resourceclaimtemplate.resource.k8s.io "t" not found'
    ]
    await template(own)
    assert await claim_of(own)


async def test_a_claim_made_for_a_pod_goes_when_the_pod_is_done(own):
    await template(own)
    await pod(own)
    name = (await claim_of(own))["metadata"]["name"]
    await end(own)

    async def gone():
        return await own.find(CLAIMS, name, "default") is None

    await own.until(gone)


async def test_a_claim_of_the_users_is_taken_back_and_stays(own):
    await claim(own, finalizers=[FINALIZER])
    one, other = await pod(own, "one", resourceClaimName="c"), await pod(own, "other", resourceClaimName="c")
    await allocate(own, "c", one, other)
    await end(own, "one")

    async def reserved():
        return [each["name"] for each in (await own.find(CLAIMS, "c", "default"))["status"].get("reservedFor") or []]

    await own.until(reserved, lambda names: names == ["other"])
    assert (await own.find(CLAIMS, "c", "default"))["status"]["allocation"]
    await own.cluster.delete(PODS, "other", namespace="default")

    async def free():
        now = await own.find(CLAIMS, "c", "default")
        return not now["status"].get("reservedFor") and "allocation" not in now["status"] and now["metadata"]

    assert "finalizers" not in await own.until(free, lambda meta: meta and "finalizers" not in meta)


async def test_an_allocated_claim_is_reserved_for_a_pod_that_is_on_a_node(own):
    await claim(own, finalizers=[FINALIZER])
    await allocate(own, "c")
    made = await pod(own, node="n", resourceClaimName="c")

    async def reserved():
        return (await own.find(CLAIMS, "c", "default"))["status"].get("reservedFor")

    assert await own.until(reserved) == [{"resource": "pods", "name": "p", "uid": made["metadata"]["uid"]}]


async def test_a_deleted_claim_that_nobody_uses_is_let_go(own):
    await claim(own, finalizers=[FINALIZER])
    await allocate(own, "c")
    await own.cluster.delete(CLAIMS, "c", namespace="default")

    async def gone():
        return await own.find(CLAIMS, "c", "default") is None

    await own.until(gone)


@pytest.mark.parametrize(
    ("pod_name", "claim_name", "base"),
    [("p", "c", "p-c-"), ("p" * 80, "c" * 20, "p" * 44 + "-" + "c" * 11)],
)
def test_long_names_are_cut_alike(pod_name, claim_name, base):
    assert base_name(pod_name, claim_name) == base
