"""A Pod gets a node only once its claims have their volumes."""

from seamark.kinds.resource import PERSISTENT_VOLUME_CLAIMS

VOLUMES = [{"name": "data", "persistentVolumeClaim": {"claimName": "c"}}]


async def problem(world):
    (condition,) = (await world.pod("p"))["status"]["conditions"]
    return condition["message"]


async def test_a_pod_waits_for_its_claims(world):
    await world.start(count=1)
    await world.make("p", volumes=VOLUMES, settled=False)
    await world.settle()
    assert (await problem(world)).startswith('0/1 nodes are available: persistentvolumeclaim "c" not found.')
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "volumeName": "v"}
    await world.cluster.create(PERSISTENT_VOLUME_CLAIMS, {"metadata": {"name": "c"}, "spec": spec}, namespace="default")
    await world.settle()
    assert "pod has unbound immediate PersistentVolumeClaims" in await problem(world)
    bound = {"status": {"phase": "Bound"}}
    await world.cluster.patch(PERSISTENT_VOLUME_CLAIMS, "c", bound, namespace="default", subresource="status")
    await world.settle()
    assert (await world.pod("p"))["spec"]["nodeName"] == "node-1"
