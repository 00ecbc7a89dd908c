"""Objects with several owners, one of which is deleted in the foreground."""

import pytest
from own_cluster import own_cluster

from seamark.kinds.resource import CONFIGMAPS


async def made(own, name, *owners):
    references = [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": each["metadata"]["name"], "uid": each["metadata"]["uid"]}
        for each in owners
    ]
    blocking = [{**reference, "blockOwnerDeletion": True} for reference in references]
    meta = {"name": name, "ownerReferences": blocking}
    return await own.cluster.create(CONFIGMAPS, {"metadata": meta}, namespace="default")


async def owners_by_name(own):
    listing = await own.cluster.list(CONFIGMAPS, namespace="default")
    return {
        item["metadata"]["name"]: [owner["name"] for owner in item["metadata"].get("ownerReferences", ())]
        for item in listing.items
    }


async def test_an_owner_does_not_wait_for_what_another_owner_keeps():
    async with own_cluster() as own, own.controlled(ending=True, namespace_contents=False):
        leaving, staying = await made(own, "leaving"), await made(own, "staying")
        await made(own, "shared", leaving, staying)
        await own.quiet()
        await own.cluster.delete(CONFIGMAPS, "leaving", namespace="default", propagation="Foreground")
        await own.quiet()
        assert await owners_by_name(own) == {"staying": [], "shared": ["staying"]}


@pytest.mark.parametrize(
    "change", [None, {"blockOwnerDeletion": False}], ids=["without the reference", "no longer blocking"]
)
async def test_an_owner_that_waits_is_released_by_a_change_of_its_dependant(change):
    async with own_cluster() as own, own.controlled(ending=True, namespace_contents=False):
        leaving = await made(own, "leaving")
        dependant = await made(own, "dependant", leaving)
        held = {"metadata": {"finalizers": ["example.com/stay"]}}
        await own.cluster.patch(CONFIGMAPS, "dependant", held, namespace="default")
        await own.quiet()
        await own.cluster.delete(CONFIGMAPS, "leaving", namespace="default", propagation="Foreground")
        await own.quiet()
        assert "leaving" in await owners_by_name(own)
        references = [{**owner, **change} for owner in dependant["metadata"]["ownerReferences"]] if change else None
        edit = {"metadata": {"ownerReferences": references}}
        await own.cluster.patch(CONFIGMAPS, "dependant", edit, namespace="default")
        await own.quiet()
        assert list(await owners_by_name(own)) == ["dependant"]


async def test_what_has_its_owner_is_not_looked_at_until_that_changes():
    async with own_cluster() as own, own.controlled(ending=True, namespace_contents=False) as manager:
        (collector,) = (each for each in manager.controllers if each.name == "garbage-collector")
        owner = await made(own, "owner")
        await own.quiet()
        queued = []
        add, collector.queue.add = collector.queue.add, lambda key: (queued.append(key), add(key))
        for number in range(3):
            await made(own, f"dependant-{number}", owner)
        await own.quiet()
        assert queued == []
        stranger = {**owner, "metadata": {**owner["metadata"], "uid": "that of another"}}
        await made(own, "lost", stranger)
        await own.quiet()
        assert queued == ["configmaps|default/lost"]
        await own.cluster.delete(CONFIGMAPS, "owner", namespace="default", propagation="Background")
        await own.quiet()
        assert await owners_by_name(own) == {}
