"""When addresses came and went: told from replayed versions, with the change behind it and the time it took."""

import asyncio

import pytest
from memory_cluster import MemoryCluster
from running import running
from scenery import flip, node, pod, put, service

from seamark import errors
from seamark.kinds.resource import PODS, SERVICES
from seamark.kinds.values import times
from seamark.why.history import chronicle, render
from seamark.why.observe import observe_service
from seamark.why.recall import recall
from seamark.why.render import Style
from virtual_time import VirtualClock

KEY = ("default", "web")
NOW = times.parse("2026-01-03T01:00:00Z")


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    """A cluster in memory tells at once what it has to tell."""
    monkeypatch.setattr("seamark.why.recall._SILENCE", 0.02)


async def lived(cluster):
    """A Service with one Pod: it becomes ready, not ready, ready again, and leaves by its labels."""
    async with running(cluster) as controllers:
        await put(cluster, node(), service())
        await controllers.settle()
        await put(cluster, pod("web-1", ready=False))
        await controllers.settle()
        for ready in (True, False, True):
            await flip(cluster, "web-1", ready)
            await controllers.settle()
        await cluster.patch(PODS, "web-1", {"metadata": {"labels": {"app": "other"}}}, namespace="default")
        await controllers.settle()


async def told(cluster, *, since=86400.0, key=KEY):
    world = await observe_service(cluster, key, clock=VirtualClock(NOW))
    return chronicle(world, key, await recall(cluster, key), since=since)


async def test_every_coming_and_going_has_its_cause():
    cluster = MemoryCluster()
    await lived(cluster)
    found = await told(cluster)
    story = [(moment.what, moment.cause) for moment in found.moments]
    assert story == [
        ("the Service was made", ""),
        ("10.0.0.2 was listed, not ready (web-1)", "Pod web-1 was made"),
        ("10.0.0.2 became ready (web-1)", "Pod web-1 became ready"),
        ("10.0.0.2 became not ready (web-1)", "Pod web-1 became not ready"),
        ("10.0.0.2 became ready (web-1)", "Pod web-1 became ready"),
        ("10.0.0.2 went (web-1)", "Pod web-1 was relabelled app=other"),
    ]
    assert [moment.revision for moment in found.moments] == sorted(moment.revision for moment in found.moments)
    assert found.unknown == ()


async def test_a_changed_selector_is_the_cause():
    cluster = MemoryCluster()
    async with running(cluster) as controllers:
        await put(cluster, node(), service(), pod("web-1"))
        await controllers.settle()
        await cluster.patch(SERVICES, "web", {"spec": {"selector": {"app": "gone"}}}, namespace="default")
        await controllers.settle()
    found = await told(cluster)
    assert ("10.0.0.2 went (web-1)", "the selector became app=gone") in [(m.what, m.cause) for m in found.moments]


async def test_what_is_forgotten_is_said_to_be():
    cluster = MemoryCluster()
    await lived(cluster)
    cluster.compacted = cluster.version - 6

    async def watch(resource, *, since, **more):
        if int(since) < cluster.compacted:
            raise errors.Expired(f"too old resource version: {since} ({cluster.compacted})")
        async for change in MemoryCluster.watch(cluster, resource, since=since, **more):
            yield change

    cluster.watch = watch
    found = await told(cluster)
    assert found.moments
    assert len(found.moments) < 6
    assert f"before version {cluster.compacted}" in found.unknown[0]


async def test_a_server_that_does_not_say_how_much_it_remembers_is_asked_by_halving():
    cluster = MemoryCluster()
    await lived(cluster)
    cluster.compacted = 9  # its refusals name no version
    memory = await recall(cluster, KEY)
    assert memory.oldest == 9


async def test_a_deleted_service_is_still_remembered():
    cluster = MemoryCluster()
    await lived(cluster)
    await cluster.delete(SERVICES, "web", namespace="default")
    found = await told(cluster)
    assert found.found
    assert found.moments[-1].what in ("the Service was deleted", "10.0.0.2 went (web-1)")
    assert not (await told(cluster, key=("default", "never"))).found


async def test_latency_of_each_hop():
    """From the kubelet's word to the API, and from there to the slice, as far as the objects carry times."""
    cluster = MemoryCluster()
    cluster.now = "2026-01-03T00:00:00Z"
    async with running(cluster) as controllers:
        await put(cluster, node(), service(), pod("web-1", ready=False))
        await controllers.settle()
        managed = [{"manager": "kubelet", "operation": "Update", "time": "2026-01-03T00:00:05Z"}]
        await cluster.patch(PODS, "web-1", {"metadata": {"managedFields": managed}}, namespace="default")
        await flip(cluster, "web-1", True)
        await controllers.settle()
    memory = await recall(cluster, KEY)
    stamped = [
        change if change.object.metadata.managed_fields or not hasattr(change.object, "endpoints") else _stamped(change)
        for change in memory.versions
    ]
    world = await observe_service(cluster, KEY, clock=VirtualClock(NOW))
    found = chronicle(world, KEY, type(memory)(tuple(stamped), (), memory.oldest, memory.newest), since=86400.0)
    ready = next(moment for moment in found.moments if "became ready" in moment.what)
    assert ready.latency == 7.0  # the condition changed at :00, the slice was written at :07
    assert ready.hops == ("5s until the API knew", "2s until the EndpointSlice was written")


def _stamped(change):
    import msgspec

    from seamark.why.views import Manager

    meta = msgspec.structs.replace(change.object.metadata, managed_fields=(Manager("x", "2026-01-03T00:00:07Z"),))
    return msgspec.structs.replace(change, object=msgspec.structs.replace(change.object, metadata=meta))


async def test_shown_in_eighty_columns():
    cluster = MemoryCluster()
    await lived(cluster)
    text = render(await told(cluster), Style())
    assert "because Pod web-1 became not ready" in " ".join(text.split())
    assert all(len(line) <= 80 for line in text.splitlines())


async def test_recalling_leaves_no_watch_open():
    cluster = MemoryCluster()
    await lived(cluster)
    before = asyncio.all_tasks()
    await recall(cluster, KEY)
    assert asyncio.all_tasks() == before
