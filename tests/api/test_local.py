"""The cluster in process: the same rules as over HTTP."""

import asyncio

import pytest
from served import served

from seamark.access.cluster import Change
from seamark.api import local
from seamark.errors import Conflict, Expired, Invalid, NotFound
from seamark.kinds.resource import CONFIGMAPS, EVENTS, NEW_EVENTS, PODS, Resource

POD = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


@pytest.fixture
def cluster(api):
    return api.api.cluster("tester")


async def test_the_caller_keeps_its_object(cluster):
    given = {"metadata": {"name": "p", "namespace": "default"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    made = await cluster.create(PODS, given, namespace="default")
    assert set(given["metadata"]) == {"name", "namespace"}
    assert made["spec"]["restartPolicy"] == "Always"
    assert made["metadata"]["managedFields"][0]["manager"] == "tester"


async def test_nothing_is_bypassed(cluster):
    with pytest.raises(Invalid):
        await cluster.create(PODS, {"metadata": {"name": "P!"}, "spec": {}}, namespace="default")
    with pytest.raises(NotFound):
        await cluster.create(PODS, POD, namespace="nowhere")
    with pytest.raises(NotFound):
        await cluster.get(Resource("x.example", "v1", "things", "Thing"), "x")
    with pytest.raises(NotFound):
        await cluster.list(Resource("x.example", "v1", "things", "Thing"))


async def test_updates_insist_on_their_version(cluster):
    made = await cluster.create(CONFIGMAPS, {"metadata": {"name": "c"}}, namespace="default")
    await cluster.update(CONFIGMAPS, {**made, "data": {"a": "1"}}, namespace="default")
    with pytest.raises(Conflict):
        await cluster.update(CONFIGMAPS, {**made, "data": {"a": "2"}}, namespace="default")


async def test_many_patches_at_once(cluster):
    await cluster.create(CONFIGMAPS, {"metadata": {"name": "c"}}, namespace="default")
    await asyncio.gather(
        *(cluster.patch(CONFIGMAPS, "c", {"data": {f"k{n}": "v"}}, namespace="default") for n in range(50))
    )
    assert len((await cluster.get(CONFIGMAPS, "c", namespace="default"))["data"]) == 50


async def test_apply_creates_and_conflicts(cluster):
    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c", "namespace": "default"},
        "data": {"a": "1"},
    }
    await cluster.patch(CONFIGMAPS, "c", config, namespace="default", type="apply", field_manager="one")
    other = {**config, "data": {"a": "2"}}
    with pytest.raises(Conflict):
        await cluster.patch(CONFIGMAPS, "c", other, namespace="default", type="apply", field_manager="two")
    forced = await cluster.patch(
        CONFIGMAPS, "c", other, namespace="default", type="apply", field_manager="two", force=True
    )
    assert forced["data"] == {"a": "2"}


async def test_a_status_patch_leaves_the_rest_alone(cluster):
    await cluster.create(PODS, POD, namespace="default")
    before = await cluster.get(PODS, "p", namespace="default")
    patch = {"spec": {"nodeName": "n"}, "status": {"phase": "Running"}}
    after = await cluster.patch(PODS, "p", patch, namespace="default", subresource="status")
    assert after["spec"] == before["spec"]
    assert after["status"]["phase"] == "Running"


async def test_a_long_list_keeps_nobody_waiting(api, cluster, monkeypatch):
    """And is still of one moment."""
    monkeypatch.setattr(local, "DECODED_AT_ONCE", 2)
    for number in range(6):
        await cluster.create(CONFIGMAPS, {"metadata": {"name": f"n{number}"}}, namespace="default")
    listing = asyncio.create_task(cluster.list(CONFIGMAPS, namespace="default"))
    await asyncio.sleep(0)
    assert not listing.done()
    await cluster.delete(CONFIGMAPS, "n5", namespace="default")
    assert [each["metadata"]["name"] for each in (await listing).items] == [f"n{number}" for number in range(6)]


async def test_watching_from_a_list(api, cluster):
    await cluster.create(CONFIGMAPS, {"metadata": {"name": "a"}}, namespace="default")
    listing = await cluster.list(CONFIGMAPS)
    for settled in (False, True):
        if settled:
            api.api.cache.settle()  # older versions are read from the store's log
        stream = cluster.watch(CONFIGMAPS, since=listing.version, namespace="default")
        assert await anext(stream) == Change("BOOKMARK", None, listing.version)
        name = f"n{settled}".lower()
        await cluster.create(CONFIGMAPS, {"metadata": {"name": name}}, namespace="default")
        await cluster.delete(CONFIGMAPS, name, namespace="default")
        told = []
        while ("DELETED", name) not in told:
            change = await anext(stream)
            told.append((change.type, change.object["metadata"]["name"]))
        await stream.aclose()
        assert told[-2:] == [("ADDED", name), ("DELETED", name)]
        assert len(set(told)) == len(told)
    assert api.api.cache.of(CONFIGMAPS).watcher_count == 0


async def test_a_forgotten_version_is_expired(api, cluster):
    await cluster.create(CONFIGMAPS, {"metadata": {"name": "a"}}, namespace="default")
    api.api.cache.settle()
    await api.store.compact(await api.store.revision())
    with pytest.raises(Expired):
        async for _ in cluster.watch(CONFIGMAPS, since="1"):
            pass


async def test_a_reader_that_lets_too_much_wait_begins_again():
    async with served(watch_bytes=4 * 100_000) as api:
        cluster = api.api.cluster("tester")
        stream = cluster.watch(CONFIGMAPS, since=str(api.api.cache.revision))
        await anext(stream)
        for number in range(40):
            await cluster.create(CONFIGMAPS, {"metadata": {"name": f"a{number}"}}, namespace="default")
        first = [(await anext(stream)).object["metadata"]["name"] for _ in range(40)]
        assert first == [f"a{number}" for number in range(40)]
        for number in range(40):
            body = {"metadata": {"name": f"b{number}"}, "data": {"k": "x" * 10_000}}
            await cluster.create(CONFIGMAPS, body, namespace="default")
        assert api.api.cache.room.used <= 100_000
        with pytest.raises(Expired):
            await anext(stream)
        assert api.api.cache.of(CONFIGMAPS).behind == 0


async def test_deleting_many(cluster):
    for number in range(4):
        meta = {"name": f"c{number}", "labels": {"odd": str(number % 2)}}
        await cluster.create(CONFIGMAPS, {"metadata": meta}, namespace="default")
    await cluster.delete_all(CONFIGMAPS, namespace="default", labels="odd=1")
    assert [o["metadata"]["name"] for o in (await cluster.list(CONFIGMAPS)).items] == ["c0", "c2"]


async def test_a_view_is_read_as_what_it_is(cluster):
    about = {"kind": "Pod", "namespace": "default", "name": "p"}
    event = {"metadata": {"name": "e"}, "involvedObject": about, "message": "hello", "reason": "Because"}
    await cluster.create(EVENTS, event, namespace="default")
    found = await cluster.get(NEW_EVENTS, "e", namespace="default")
    assert (found["apiVersion"], found["note"], found["regarding"]["name"]) == ("events.k8s.io/v1", "hello", "p")
    assert (await cluster.list(NEW_EVENTS)).items == [found]
