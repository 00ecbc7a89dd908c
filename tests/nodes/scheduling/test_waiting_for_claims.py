"""A Pod gets a node only once its claims have their volumes, and only one that its volumes can be used on."""

from seamark.kinds.resource import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES

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


async def volume_on(world, *nodes, name="v"):
    terms = [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": list(nodes)}]}]
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1Gi"},
        "local": {"path": "/disk"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
    }
    await world.cluster.create(PERSISTENT_VOLUMES, {"metadata": {"name": name}, "spec": spec})
    claimed = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "volumeName": name}
    await world.cluster.create(
        PERSISTENT_VOLUME_CLAIMS, {"metadata": {"name": "c"}, "spec": claimed}, namespace="default"
    )
    bound = {"status": {"phase": "Bound"}}
    await world.cluster.patch(PERSISTENT_VOLUME_CLAIMS, "c", bound, namespace="default", subresource="status")


async def test_a_pod_goes_where_its_volume_is(world):
    await world.start(count=4)
    await volume_on(world, "node-3")
    await world.make("p", volumes=VOLUMES)
    assert (await world.pod("p"))["spec"]["nodeName"] == "node-3"


async def test_a_volume_that_no_node_reaches_is_told(world):
    await world.start(count=2)
    await volume_on(world, "elsewhere")
    await world.make("p", volumes=VOLUMES)
    told = "0/2 nodes are available: 2 node(s) didn't match PersistentVolume's node affinity."
    assert (await problem(world)).startswith(told)
    await world.make("q")
    assert (await world.pod("q"))["spec"]["nodeName"]
