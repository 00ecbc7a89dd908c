"""Objects that own each other in a circle, deleted in the foreground."""

import asyncio

import pytest
from own_cluster import own_cluster

from seamark.controllers.housekeeping.everything import Bare, BareMetadata
from seamark.controllers.housekeeping.garbage import FOREGROUND, GarbageCollector
from seamark.kinds.resource import CONFIGMAPS
from seamark.rules.objects.metadata import OwnerReference
from seamark.runtime.turns import STEPS


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


# --- very many of them ---------------------------------------------------------------------------------


class Collector(GarbageCollector):
    """Knows objects that are all being deleted, and counts how often it looks one up in one turn of the event loop."""

    def __init__(self):
        self._dependants, self._keys, self.things = {}, {}, {}
        self.looked, self.most, self.dropped = 0, 0, []

    def add(self, uid, *owners):
        references = tuple(
            OwnerReference(api_version="v1", kind="ConfigMap", name=each, uid=each, block_owner_deletion=True)
            for each in owners
        )
        meta = BareMetadata(uid, "default", uid, "1", "2026-01-01T00:00:00Z", (FOREGROUND,), references)
        self.things[uid], self._keys[uid] = Bare(meta), uid
        for each in owners:
            self._dependants.setdefault(each, set()).add(uid)

    def layers(self, count, width):
        """Every object of a layer belongs to all of the one before; returns the last layer."""
        above = ["top"]
        for layer in range(count):
            here = [f"{layer}-{n}" for n in range(width)]
            for each in here:
                self.add(each, *above)
            above = here
        return above

    def _find(self, key):
        self.looked += 1
        self.most = max(self.most, self.looked)
        asyncio.get_running_loop().call_soon(self._turned)
        return (CONFIGMAPS, self.things[key]) if key in self.things else None

    def _turned(self):
        self.looked = 0

    async def _drop_finalizer(self, resource, thing, finalizer):
        self.dropped.append(thing.metadata.uid)


@pytest.mark.parametrize("closed", [False, True], ids=["open", "a circle"])
@pytest.mark.parametrize("first", ["top", "9-0"])
async def test_thousands_of_references_are_not_followed_in_one_go(first, closed):
    collector = Collector()
    last = collector.layers(10, 40)
    collector.add("top", *(last if closed else ()))
    collector.add("leaf", "9-0")
    await collector._delete_dependants(CONFIGMAPS, collector.things[first])
    assert collector.most <= STEPS + 1
    # The leaf waits for nothing, so it blocks what it belongs to.
    assert collector.dropped == (["top"] if closed and first == "top" else [])
