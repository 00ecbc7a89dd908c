"""Owners: several, of which one is deleted in the foreground; and owners that cannot be one, being in another place."""

import pytest
from own_cluster import own_cluster

from seamark.controllers.housekeeping.garbage import lost
from seamark.kinds.resource import CONFIGMAPS, EVENTS, NAMESPACES, STORAGE_CLASSES
from seamark.rules.objects.metadata import OwnerReference


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


async def test_what_is_in_no_namespace_never_goes_for_an_owner_in_one():
    async with own_cluster() as own, own.controlled(ending=True, namespace_contents=False):
        owner = await made(own, "owner")
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
        meta = {"name": "kept", "ownerReferences": [reference]}
        await own.cluster.create(STORAGE_CLASSES, {"metadata": meta, "provisioner": "example.com/none"})
        await own.quiet()
        assert await own.reasons("kept") == ["OwnerRefInvalidNamespace"]
        await own.cluster.delete(CONFIGMAPS, "owner", namespace="default")
        await own.quiet()
        kept = await own.cluster.get(STORAGE_CLASSES, "kept")
        assert kept["metadata"]["ownerReferences"] == [reference]


async def test_an_owner_in_another_namespace_is_none():
    async with own_cluster() as own, own.controlled(ending=True, namespace_contents=False):
        uid = (await made(own, "owner"))["metadata"]["uid"]
        await own.cluster.create(NAMESPACES, {"metadata": {"name": "elsewhere"}})
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid}
        meta = {"name": "lost", "ownerReferences": [reference]}
        await own.cluster.create(CONFIGMAPS, {"metadata": meta}, namespace="elsewhere")
        await own.quiet()
        assert not (await own.cluster.list(CONFIGMAPS, namespace="elsewhere")).items
        (event,) = (await own.cluster.list(EVENTS, namespace="elsewhere")).items
        assert (event["type"], event["reason"]) == ("Warning", "OwnerRefInvalidNamespace")
        where = f"[v1/ConfigMap, namespace: elsewhere, name: owner, uid: {uid}]"
        assert event["message"] == f'ownerRef {where} does not exist in namespace "elsewhere"'


class Counted(str):
    """A text that counts how often one is compared."""

    comparisons = 0

    def __eq__(self, other: object) -> bool:
        Counted.comparisons += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def test_references_that_are_replaced_are_not_compared_one_by_one():
    old, new = ([OwnerReference(uid=Counted(f"{letter}{i}")) for i in range(300)] for letter in "ab")
    assert lost(old, [*new, *old[:299]]) == old[299:]
    assert Counted.comparisons < 3000
