"""The order in which a namespace is emptied, and what its conditions say meanwhile."""

from own_cluster import own_cluster

from seamark.kinds.resource import CONFIGMAPS, NAMESPACES, PODS


async def conditions(own):
    space = await own.cluster.get(NAMESPACES, "ns")
    return {c["type"]: (c["status"], c["message"]) for c in space["status"].get("conditions") or ()}


async def test_pods_go_before_everything_else():
    async with own_cluster() as own, own.controlled(ending=True, namespace_contents=False):
        await own.cluster.create(NAMESPACES, {"metadata": {"name": "ns"}})
        spec = {"containers": [{"name": "c", "image": "i"}]}
        held = {"name": "p", "finalizers": ["example.com/stay"]}
        await own.cluster.create(PODS, {"metadata": held, "spec": spec}, namespace="ns")
        await own.cluster.create(CONFIGMAPS, {"metadata": {"name": "c"}}, namespace="ns")
        await own.cluster.delete(NAMESPACES, "ns")
        await own.quiet()
        assert await own.find(CONFIGMAPS, "c", "ns"), "it stays while there are Pods"
        found = await conditions(own)
        assert found["NamespaceContentRemaining"] == (
            "True",
            "Some resources are remaining: pods. has 1 resource instances",
        )
        assert found["NamespaceFinalizersRemaining"][0] == "True"
        assert found["NamespaceDeletionContentFailure"][0] == "False"
        await own.cluster.patch(PODS, "p", {"metadata": {"finalizers": None}}, namespace="ns")
        await own.quiet()
        assert await own.find(NAMESPACES, "ns") is None


async def test_what_is_in_a_namespace_can_be_deleted_one_by_one():
    """``kubectl delete -f`` of a file that begins with its Namespace finds everything else in it."""
    async with own_cluster() as own, own.controlled(ending=True, grace=1.0, namespace_contents=False):
        await own.cluster.create(NAMESPACES, {"metadata": {"name": "ns"}})
        for name in ("one", "two", "three"):
            await own.cluster.create(CONFIGMAPS, {"metadata": {"name": name}}, namespace="ns")
        await own.cluster.delete(NAMESPACES, "ns")
        await own.quiet()
        await own.cluster.delete(CONFIGMAPS, "one", namespace="ns")
        await own.quiet()
        assert await own.find(CONFIGMAPS, "two", "ns")
        await own.cluster.delete(CONFIGMAPS, "two", namespace="ns")
        await own.clock.advance(1.1)
        await own.quiet()
        assert await own.find(NAMESPACES, "ns") is None
