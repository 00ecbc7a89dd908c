"""Objects that own each other in a circle, deleted in the foreground."""

import pytest
from own_cluster import own_cluster

from seamark.kinds.resource import CONFIGMAPS


def owner(obj, *, blocking=True):
    meta = obj["metadata"]
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": meta["name"], "uid": meta["uid"]}
    return {**reference, "blockOwnerDeletion": blocking}


async def circle(own, size, *, blocking=True):
    """``c-1`` belongs to ``c-0`` and so on; ``c-0`` belongs to the last."""
    made = [
        await own.cluster.create(CONFIGMAPS, {"metadata": {"name": f"c-{i}"}}, namespace="default") for i in range(size)
    ]
    for i, each in enumerate(made):
        patch = {"metadata": {"ownerReferences": [owner(made[i - 1], blocking=blocking)]}}
        await own.cluster.patch(CONFIGMAPS, each["metadata"]["name"], patch, namespace="default")
    return made


async def left(own):
    listing = await own.cluster.list(CONFIGMAPS, namespace="default")
    return sorted(item["metadata"]["name"] for item in listing.items)


@pytest.mark.parametrize("size", [1, 2, 3, 6])
@pytest.mark.parametrize("policy", ["Foreground", "Background"])
async def test_a_circle_goes_with_any_of_its_members(size, policy):
    async with own_cluster() as own, own.controlled(ending=True, namespace_contents=False):
        await circle(own, size)
        await own.quiet()
        assert len(await left(own)) == size
        await own.cluster.delete(CONFIGMAPS, "c-0", namespace="default", propagation=policy)
        await own.quiet()
        assert await left(own) == []


async def test_a_circle_that_is_deleted_at_several_places_at_once():
    async with own_cluster() as own, own.controlled(ending=True, namespace_contents=False):
        await circle(own, 4)
        await own.quiet()
        for name in ("c-0", "c-2"):
            await own.cluster.delete(CONFIGMAPS, name, namespace="default", propagation="Foreground")
        await own.quiet()
        assert await left(own) == []


async def test_what_hangs_off_a_circle_still_blocks_it():
    async with own_cluster() as own, own.controlled(ending=True, namespace_contents=False):
        made = await circle(own, 2)
        meta = {"name": "leaf", "ownerReferences": [owner(made[0])], "finalizers": ["example.com/stay"]}
        await own.cluster.create(CONFIGMAPS, {"metadata": meta}, namespace="default")
        await own.quiet()
        await own.cluster.delete(CONFIGMAPS, "c-1", namespace="default", propagation="Foreground")
        await own.quiet()
        assert "leaf" in await left(own)
        assert "c-0" in await left(own)
        await own.cluster.patch(CONFIGMAPS, "leaf", {"metadata": {"finalizers": None}}, namespace="default")
        await own.quiet()
        assert await left(own) == []
