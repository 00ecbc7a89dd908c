"""Garbage collection and the end of namespaces follow kinds that appear and vanish while they run."""

import asyncio
import gc
import weakref

import pytest
from own_cluster import own_cluster

from seamark.access.informers import Informers
from seamark.controllers.housekeeping.everything import Everything
from seamark.kinds.resource import CONFIGMAPS, EVENTS, NAMESPACES, NEW_EVENTS, PODS
from seamark.runtime.following import Following
from widgets import WIDGETS, widget, widget_kind


@pytest.fixture
async def own():
    async with own_cluster() as own, own.controlled(ending=True):
        yield own


def owned_by(owner, **more):
    reference = {
        "apiVersion": "example.com/v1" if "spec" in owner else "v1",
        "kind": "Widget" if "spec" in owner else "ConfigMap",
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        **more,
    }
    return {"ownerReferences": [reference]}


async def create(own, resource, name, namespace="default", **metadata):
    obj = widget(name, size=1) if resource == WIDGETS else {"metadata": {"name": name}}
    obj["metadata"] |= metadata
    return await own.cluster.create(resource, obj, namespace=namespace)


async def gone(own, resource, name, namespace="default"):
    await own.until(lambda: own.find(resource, name, namespace), lambda found: found is None)


async def test_what_a_widget_owns_goes_with_it(own):
    await own.api.add_kind(widget_kind())
    owner = await create(own, WIDGETS, "owner")
    await create(own, CONFIGMAPS, "dependant", **owned_by(owner))
    await own.quiet()
    assert await own.find(CONFIGMAPS, "dependant", "default") is not None
    await own.cluster.delete(WIDGETS, "owner", namespace="default")
    await gone(own, CONFIGMAPS, "dependant")


async def test_what_a_widget_owned_goes_when_widgets_are_served_only_after_it_was_deleted(own):
    """As in a process that hears of the kind later than of the object, when other processes have served both."""
    owner = widget("owner", size=1)
    owner["metadata"]["uid"] = "5f6e7a3c-0000-4000-8000-000000000000"
    await create(own, CONFIGMAPS, "dependant", **owned_by(owner))
    await own.quiet()
    assert await own.find(CONFIGMAPS, "dependant", "default") is not None
    await own.api.add_kind(widget_kind())
    await gone(own, CONFIGMAPS, "dependant")


async def test_a_widget_goes_with_its_owner(own):
    owner = await create(own, CONFIGMAPS, "owner")
    await own.api.add_kind(widget_kind())
    await create(own, WIDGETS, "dependant", **owned_by(owner))
    await own.cluster.delete(CONFIGMAPS, "owner", namespace="default")
    await gone(own, WIDGETS, "dependant")


async def test_foreground_deletion_waits_for_widgets_and_removes_them(own):
    owner = await create(own, CONFIGMAPS, "owner")
    await own.api.add_kind(widget_kind())
    held = owned_by(owner, blockOwnerDeletion=True) | {"finalizers": ["example.com/hold"]}
    await create(own, WIDGETS, "dependant", **held)
    await own.cluster.delete(CONFIGMAPS, "owner", namespace="default", propagation="Foreground")
    await own.until(
        lambda: own.find(WIDGETS, "dependant", "default"), lambda found: "deletionTimestamp" in found["metadata"]
    )
    assert await own.find(CONFIGMAPS, "owner", "default") is not None
    await own.cluster.patch(WIDGETS, "dependant", {"metadata": {"finalizers": None}}, namespace="default")
    await gone(own, CONFIGMAPS, "owner")


async def test_orphaned_widgets_lose_their_reference(own):
    """Custom resources take no strategic merge patch, with which other kinds are told."""
    await own.api.add_kind(widget_kind())
    owner = await create(own, WIDGETS, "owner")
    other = await create(own, CONFIGMAPS, "other")
    references = owned_by(owner)["ownerReferences"] + owned_by(other)["ownerReferences"]
    await create(own, WIDGETS, "dependant", ownerReferences=references)
    await own.cluster.delete(WIDGETS, "owner", namespace="default", propagation="Orphan")
    await gone(own, WIDGETS, "owner")
    left = await own.find(WIDGETS, "dependant", "default")
    assert [reference["name"] for reference in left["metadata"]["ownerReferences"]] == ["other"]


async def test_a_namespace_takes_its_widgets_with_it(own):
    await own.cluster.create(NAMESPACES, {"metadata": {"name": "space"}})
    await own.api.add_kind(widget_kind())
    await create(own, WIDGETS, "a", namespace="space", finalizers=["example.com/hold"])
    await create(own, WIDGETS, "b", namespace="space")
    await own.cluster.delete(NAMESPACES, "space")
    space = await own.until(
        lambda: own.find(NAMESPACES, "space"), lambda found: (found.get("status") or {}).get("conditions")
    )
    remaining = {c["type"]: c["message"] for c in space["status"]["conditions"]}["NamespaceContentRemaining"]
    assert remaining == "Some resources are remaining: widgets.example.com has 1 resource instances"
    await own.cluster.patch(WIDGETS, "a", {"metadata": {"finalizers": None}}, namespace="space")
    await gone(own, NAMESPACES, "space", "")


async def test_widgets_hold_nothing_once_their_kind_is_gone(own):
    """Their owners and their namespace wait for them no longer; what they own may still have its owner elsewhere."""
    await own.cluster.create(NAMESPACES, {"metadata": {"name": "space"}})
    await own.api.add_kind(widget_kind())
    held = {"finalizers": ["example.com/hold"]}
    owner = await create(own, CONFIGMAPS, "owner", namespace="space")
    await create(own, WIDGETS, "a", namespace="space", **held, **owned_by(owner, blockOwnerDeletion=True))
    parent = await create(own, WIDGETS, "parent")
    await create(own, CONFIGMAPS, "child", **owned_by(parent))
    await own.cluster.delete(CONFIGMAPS, "owner", namespace="space", propagation="Foreground")
    await own.cluster.delete(NAMESPACES, "space")
    await own.until(lambda: own.find(NAMESPACES, "space"), lambda found: (found.get("status") or {}).get("conditions"))
    await own.api.remove_kind(WIDGETS)
    await gone(own, CONFIGMAPS, "owner", "space")
    await gone(own, NAMESPACES, "space", "")
    await own.quiet()
    assert await own.find(CONFIGMAPS, "child", "default") is not None


async def test_controllers_do_not_keep_a_kind_that_is_gone(own):
    kind = widget_kind()
    kept = [weakref.ref(kind), weakref.ref(kind.shape)]
    await own.api.add_kind(kind)
    del kind
    owner = await create(own, WIDGETS, "owner")
    await create(own, WIDGETS, "dependant", **owned_by(owner))
    await own.cluster.delete(WIDGETS, "owner", namespace="default")
    await gone(own, WIDGETS, "dependant")
    await own.api.remove_kind(WIDGETS)
    await own.quiet()
    gc.collect()
    assert [ref() for ref in kept] == [None, None]


async def test_followed_are_the_kinds_that_are_served():
    async with own_cluster() as own:
        informers = Informers(own.api.cluster("tester"))
        everything = Everything(informers, own.api.kinds)
        assert {PODS, NAMESPACES} < set(everything.resources)
        assert not {EVENTS, NEW_EVENTS, WIDGETS} & set(everything.resources)
        assert "tokenreviews" not in {resource.plural for resource in everything.resources}
        running = asyncio.create_task(informers.run())
        seen = []
        everything.follow(lambda resource, key, old, new: seen.append((resource, key, old, new)))
        Following(everything).connect()
        await everything.synced()
        await own.api.add_kind(widget_kind())
        await create(own, WIDGETS, "a")
        await everything.synced()
        assert everything.by_kind("example.com/v1", "Widget") == WIDGETS
        await own.until(lambda: asyncio.sleep(0, everything.find(WIDGETS, "default/a")))
        await own.api.remove_kind(WIDGETS)
        resource, key, old, new = seen[-1]
        assert (resource, key, old.metadata.name, new) == (WIDGETS, "default/a", "a", None)
        assert everything.by_kind("example.com/v1", "Widget") is None
        assert everything.find(WIDGETS, "default/a") is None
        assert informers.connected  # none is left that looks for Widgets in vain
        everything.close()
        await own.api.add_kind(widget_kind())
        assert WIDGETS not in everything.resources
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_waiting_for_a_kind_that_vanishes_ends():
    async with own_cluster() as own:
        informers = Informers(own.api.cluster("tester"))  # not running, so that nothing is ever listed
        everything = Everything(informers, own.api.kinds)
        for informer, _ in everything.watches:
            informer.synced.set()
        await own.api.add_kind(widget_kind())
        waiting = asyncio.create_task(everything.synced())
        await asyncio.sleep(0)
        assert not waiting.done()
        await own.api.remove_kind(WIDGETS)
        await waiting
