"""Claims get volumes, and volumes are reclaimed, over a real API server in this process."""

import contextlib

import pytest_asyncio
from own_cluster import own_cluster

from seamark.access.informers import Informers
from seamark.controllers.storage.binding_controller import BindingController
from seamark.controllers.storage.ephemeral_controller import EphemeralController
from seamark.controllers.storage.expansion_controller import ExpansionController
from seamark.controllers.storage.protection_controller import ProtectionController
from seamark.kinds.resource import EVENTS, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS, STORAGE_CLASSES
from seamark.rules.volumes import PROVISIONER, PROVISIONER_ANNOTATION, SELECTED_NODE
from seamark.runtime.manager import Manager

CLAIMS, VOLUMES = PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES


@pytest_asyncio.fixture
async def own():
    async with own_cluster() as cluster, _bound(cluster):
        yield cluster


@contextlib.asynccontextmanager
async def _bound(own):
    manager = Manager(Informers(own.api.cluster("controllers")), clock=own.clock)
    manager.add(BindingController(manager, own.api.cluster("persistent-volume-binder")))
    manager.add(EphemeralController(manager, own.api.cluster("ephemeral-volume-controller")))
    manager.add(ExpansionController(manager, own.api.cluster("expand-controller")))
    manager.add(ProtectionController(manager, own.api.cluster("pvc-protection-controller")))
    async with own.managed(manager):
        yield


async def claim(own, name="c", **spec):
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec}
    return await own.cluster.create(CLAIMS, {"metadata": {"name": name}, "spec": spec}, namespace="default")


async def volume(own, name="v", **spec):
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1Gi"},
        "hostPath": {"path": "/x"},
        "storageClassName": "s",
        **spec,
    }
    return await own.cluster.create(VOLUMES, {"metadata": {"name": name}, "spec": spec})


async def storage_class(own, name="s", **more):
    made = {"metadata": {"name": name}, "provisioner": PROVISIONER, **more}
    return await own.cluster.create(STORAGE_CLASSES, made)


async def pod(own, name="p", **spec):
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "c"}}]
    body = {
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "i"}], "volumes": volumes, **spec},
    }
    return await own.cluster.create(PODS, body, namespace="default")


async def phase_is(own, resource, name, phase, namespace=""):
    async def look():
        found = await own.find(resource, name, namespace)
        return found if found and found["status"].get("phase") == phase else None

    return await own.until(look)


async def told(own, reason):
    async def look():
        events = await own.cluster.list(EVENTS, namespace="default")
        return [event for event in events.items if event["reason"] == reason]

    (event, *_) = await own.until(look)
    return event["message"]


async def test_a_volume_is_available_and_then_taken(own):
    await volume(own)
    await phase_is(own, VOLUMES, "v", "Available")
    await claim(own, storageClassName="s")
    bound = await phase_is(own, CLAIMS, "c", "Bound", "default")
    assert bound["spec"]["volumeName"] == "v"
    assert bound["status"]["capacity"] == {"storage": "1Gi"}
    taken = await phase_is(own, VOLUMES, "v", "Bound")
    assert taken["spec"]["claimRef"]["uid"] == bound["metadata"]["uid"]


async def test_a_claim_may_name_its_volume(own):
    await volume(own, "a")
    await volume(own, "b")
    await claim(own, storageClassName="s", volumeName="b")
    bound = await phase_is(own, CLAIMS, "c", "Bound", "default")
    assert bound["spec"]["volumeName"] == "b"
    assert "pv.kubernetes.io/bound-by-controller" not in bound["metadata"]["annotations"]


async def test_volumes_are_made_and_deleted_with_their_claims(own):
    await storage_class(own)
    made = await claim(own, storageClassName="s")
    await phase_is(own, CLAIMS, "c", "Bound", "default")
    name = f"pvc-{made['metadata']['uid']}"
    assert await told(own, "ProvisioningSucceeded") == f"Successfully provisioned volume {name}"
    await own.cluster.delete(CLAIMS, "c", namespace="default")

    async def gone():
        return await own.find(VOLUMES, name) is None and await own.find(CLAIMS, "c", "default") is None

    await own.until(gone)


async def test_a_claim_without_a_class_gets_the_default_one_later(own):
    await claim(own)
    assert "no storage class is set" in await told(own, "FailedBinding")
    annotations = {"storageclass.kubernetes.io/is-default-class": "true"}
    await own.cluster.create(
        STORAGE_CLASSES, {"metadata": {"name": "s", "annotations": annotations}, "provisioner": PROVISIONER}
    )
    bound = await phase_is(own, CLAIMS, "c", "Bound", "default")
    assert bound["spec"]["storageClassName"] == "s"


async def test_a_class_may_wait_for_the_first_pod(own):
    await storage_class(own, volumeBindingMode="WaitForFirstConsumer")
    await claim(own, storageClassName="s")
    assert await told(own, "WaitForFirstConsumer") == "waiting for first consumer to be created before binding"
    await pod(own)
    assert await told(own, "WaitForPodScheduled") == "waiting for pod p to be scheduled"
    await own.quiet()
    assert (await own.find(CLAIMS, "c", "default"))["status"]["phase"] == "Pending"
    await own.cluster.patch(CLAIMS, "c", {"metadata": {"annotations": {SELECTED_NODE: "n"}}}, namespace="default")
    await phase_is(own, CLAIMS, "c", "Bound", "default")


async def test_claims_of_unknown_and_foreign_classes_wait(own):
    await claim(own, storageClassName="missing")
    assert await told(own, "ProvisioningFailed") == 'storageclass.storage.k8s.io "missing" not found'
    await storage_class(own, "foreign", provisioner="example.com/disks")
    await claim(own, "d", storageClassName="foreign")
    assert "external provisioner 'example.com/disks'" in await told(own, "ExternalProvisioning")
    waiting = await own.find(CLAIMS, "d", "default")
    assert waiting["metadata"]["annotations"][PROVISIONER_ANNOTATION] == "example.com/disks"


async def test_a_used_claim_stays_until_its_pod_is_gone(own):
    await volume(own, persistentVolumeReclaimPolicy="Retain")
    await claim(own, storageClassName="s")
    await pod(own, nodeName="node-1")
    await phase_is(own, CLAIMS, "c", "Bound", "default")
    await own.cluster.delete(CLAIMS, "c", namespace="default")
    await own.quiet()
    assert await own.find(CLAIMS, "c", "default") is not None
    await own.cluster.delete(PODS, "p", namespace="default", grace_seconds=0)
    await phase_is(own, VOLUMES, "v", "Released")
    assert await own.find(CLAIMS, "c", "default") is None


async def test_a_recycled_volume_is_free_again(own):
    await volume(own, persistentVolumeReclaimPolicy="Recycle")
    await claim(own, storageClassName="s")
    await phase_is(own, CLAIMS, "c", "Bound", "default")
    await own.cluster.delete(CLAIMS, "c", namespace="default")
    free = await phase_is(own, VOLUMES, "v", "Available")
    assert "claimRef" not in free["spec"]


async def test_a_claim_whose_volume_vanishes_is_lost(own):
    await volume(own)
    await claim(own, storageClassName="s")
    await phase_is(own, CLAIMS, "c", "Bound", "default")
    await phase_is(own, VOLUMES, "v", "Bound")
    await own.cluster.patch(VOLUMES, "v", {"metadata": {"finalizers": None}})
    await own.cluster.delete(VOLUMES, "v")
    await phase_is(own, CLAIMS, "c", "Lost", "default")
    assert "has lost its PersistentVolume" in await told(own, "ClaimLost")


# --- claims that Pods describe ---------------------------------------------------------------------------------------


def described(**meta):
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "s"}
    return [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"metadata": meta, "spec": spec}}}]


async def test_a_pod_gets_the_claim_that_it_describes(own):
    await storage_class(own)
    made = await pod(own, volumes=described(labels={"a": "b"}))
    found = await phase_is(own, CLAIMS, "p-scratch", "Bound", "default")
    assert found["metadata"]["labels"] == {"a": "b"}
    assert found["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": "p",
            "uid": made["metadata"]["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    await own.cluster.delete(CLAIMS, "p-scratch", namespace="default")

    async def another():
        now = await own.find(CLAIMS, "p-scratch", "default")
        return now is not None and now["metadata"]["uid"] != found["metadata"]["uid"]

    await own.until(another)


async def test_a_claim_of_another_owner_is_not_taken(own):
    await storage_class(own)
    await claim(own, "p-scratch", storageClassName="s")
    await own.quiet()
    await pod(own, volumes=described())
    await own.quiet()
    told = [e for e in (await own.cluster.list(EVENTS)).items if e["involvedObject"]["kind"] == "Pod"]
    assert [(e["reason"], e["message"]) for e in told] == [
        (
            "FailedBinding",
            "ephemeral volume scratch: PVC default/p-scratch was not created for pod default/p (pod is not owner)",
        )
    ]


# --- growing ---------------------------------------------------------------------------------------------------------


async def grow(own, name="c", to="3Gi"):
    larger = {"spec": {"resources": {"requests": {"storage": to}}}}
    await own.cluster.patch(CLAIMS, name, larger, namespace="default")
    await own.quiet()


async def test_a_claim_and_its_volume_grow(own):
    await storage_class(own, allowVolumeExpansion=True)
    await claim(own, storageClassName="s")
    await phase_is(own, CLAIMS, "c", "Bound", "default")
    await own.quiet()
    own.clock.now += 1  # Events of one moment share their name
    await grow(own)
    found = await own.find(CLAIMS, "c", "default")
    assert found["status"]["capacity"] == {"storage": "3Gi"}
    assert (await own.find(VOLUMES, found["spec"]["volumeName"]))["spec"]["capacity"] == {"storage": "3Gi"}
    assert {"Resizing", "VolumeResizeSuccessful"} <= set(await own.reasons("c"))


async def test_a_volume_made_by_hand_is_left_to_others(own):
    await storage_class(own, allowVolumeExpansion=True)
    await volume(own)
    await claim(own, storageClassName="s", volumeName="v")
    await phase_is(own, CLAIMS, "c", "Bound", "default")
    await own.quiet()
    await grow(own)
    assert (await own.find(CLAIMS, "c", "default"))["status"]["capacity"] == {"storage": "1Gi"}
    assert "ExternalExpanding" in await own.reasons("c")
