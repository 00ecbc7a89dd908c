"""A Pod gets a node only once its claims have their volumes, and only one that its volumes can be used on.

Claims whose class waits for the first Pod get theirs when the node is chosen."""

from seamark.kinds.resource import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS, STORAGE_CLASSES
from seamark.rules.volumes import BOUND_BY_CONTROLLER, SELECTED_NODE

VOLUMES = [{"name": "data", "persistentVolumeClaim": {"claimName": "c"}}]


CLASS = "later"


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


# --- claims that wait for their first Pod -----------------------------------------------------------------


async def waiting_class(world, provisioner="example.com/disks", **more):
    made = {"metadata": {"name": CLASS}, "provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"}
    await world.cluster.create(STORAGE_CLASSES, made | more)


async def waiting_claim(world, name="c"):
    wanted = {"requests": {"storage": "1Gi"}}
    spec = {"accessModes": ["ReadWriteOnce"], "resources": wanted, "storageClassName": CLASS}
    made = {"metadata": {"name": name}, "spec": spec}
    return await world.cluster.create(PERSISTENT_VOLUME_CLAIMS, made, namespace="default")


async def local_volume(world, name, node, size="1Gi"):
    terms = [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}]
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": size},
        "local": {"path": "/disk"},
        "storageClassName": CLASS,
        "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
    }
    await world.cluster.create(PERSISTENT_VOLUMES, {"metadata": {"name": name}, "spec": spec})
    free = {"status": {"phase": "Available"}}
    await world.cluster.patch(PERSISTENT_VOLUMES, name, free, subresource="status")


async def bind(world, name="c", volume="v"):
    """What the controller does when the claim's volume is there."""
    taken = {"spec": {"volumeName": volume}}
    await world.cluster.patch(PERSISTENT_VOLUME_CLAIMS, name, taken, namespace="default")
    bound = {"status": {"phase": "Bound"}}
    await world.cluster.patch(PERSISTENT_VOLUME_CLAIMS, name, bound, namespace="default", subresource="status")
    await world.settle()


async def waiting_pod(world, *provisioner):
    """A Pod whose claim waits for it."""
    await waiting_class(world, *provisioner)
    await waiting_claim(world)
    await world.make("p", volumes=VOLUMES, settled=False)
    await world.settle()


async def selected(world, name="c"):
    claim = await world.cluster.get(PERSISTENT_VOLUME_CLAIMS, name, namespace="default")
    return claim["metadata"].get("annotations", {}).get(SELECTED_NODE)


async def node_of(world, name="p"):
    return (await world.pod(name))["spec"].get("nodeName")


async def test_the_claim_is_told_the_node_before_the_pod_gets_it(world):
    await world.start(count=2)
    await waiting_pod(world)
    node = await selected(world)
    assert node in ("node-1", "node-2")
    assert await node_of(world) is None
    await bind(world)
    assert await node_of(world) == node


async def test_a_restarted_scheduler_keeps_to_the_node_that_a_claim_was_told(world):
    await world.start(count=4)
    await waiting_pod(world)
    node = await selected(world)
    await world.start(count=4, seed=7)
    assert await selected(world) == node
    await bind(world)
    assert await node_of(world) == node


async def test_the_node_is_chosen_again_if_no_volume_can_be_made_there(world):
    await world.start(count=1)
    await waiting_pod(world)
    assert await selected(world) == "node-1"
    withdrawn = {"metadata": {"annotations": {SELECTED_NODE: None}}}
    await world.cluster.patch(PERSISTENT_VOLUME_CLAIMS, "c", withdrawn, namespace="default")
    await world.settle()
    assert await selected(world) == "node-1"


async def test_a_local_volume_decides_the_node(world):
    await world.start(count=4)
    await waiting_pod(world, "kubernetes.io/no-provisioner")
    none = "0/4 nodes are available: 4 node(s) didn't find available persistent volumes to bind."
    assert await problem(world) == none
    await local_volume(world, "large", "node-2", "5Gi")
    await world.settle()
    taken = await world.cluster.get(PERSISTENT_VOLUMES, "large")
    assert taken["spec"]["claimRef"]["name"] == "c"
    assert taken["metadata"]["annotations"] == {BOUND_BY_CONTROLLER: "yes"}
    assert await selected(world) is None
    await bind(world, volume="large")
    assert await node_of(world) == "node-2"


async def test_each_claim_of_a_pod_needs_a_volume_of_its_own(world):
    await world.start(count=2)
    await waiting_class(world, "kubernetes.io/no-provisioner")
    await waiting_claim(world, "c")
    await waiting_claim(world, "d")
    await local_volume(world, "v1", "node-1")
    await local_volume(world, "v2", "node-2")
    both = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in ("c", "d")]
    await world.make("p", volumes=both, settled=False)
    await world.settle()
    assert "didn't find available persistent volumes to bind" in await problem(world)
    await local_volume(world, "v3", "node-2")
    await world.settle()
    owners = {name: await world.cluster.get(PERSISTENT_VOLUMES, name) for name in ("v1", "v2", "v3")}
    assert {name for name, volume in owners.items() if "claimRef" in volume["spec"]} == {"v2", "v3"}


async def test_a_class_may_be_for_some_nodes_only(world):
    await world.start(count=3)
    on = [{"matchLabelExpressions": [{"key": "kubernetes.io/hostname", "values": ["node-3"]}]}]
    await waiting_class(world, allowedTopologies=on)
    await waiting_claim(world)
    await world.make("p", volumes=VOLUMES, settled=False)
    await world.settle()
    assert await selected(world) == "node-3"


async def test_a_pod_that_goes_meanwhile_leaves_its_room(world):
    await world.start(count=1)
    await waiting_pod(world)
    assert world.simulation.scheduler.occupancy.get("default/p") is not None
    await world.cluster.delete(PODS, "p", namespace="default")
    await world.settle()
    assert world.simulation.scheduler.occupancy.get("default/p") is None
