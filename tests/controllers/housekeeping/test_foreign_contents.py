"""A namespace that is deleted is emptied on aggregated servers too, and owners there are asked for."""

import pytest
from own_cluster import own_cluster
from tests.api.aggregation.keeping_server import FLUNDERS, KeepingServer

from seamark.api.aggregation.front_proxy import FrontProxy
from seamark.controllers.housekeeping.garbage import ASK_AGAIN_SECONDS
from seamark.kinds.resource import API_SERVICES, CONFIGMAPS, NAMESPACES


@pytest.fixture
async def server(tmp_path):
    front_proxy = FrontProxy(tmp_path / "front")
    front_proxy.prepare()
    async with KeepingServer(front_proxy, tmp_path / "extension", FLUNDERS).running() as server:
        yield server


async def known(own):
    """The other server is available, and what it serves is known."""
    return own.api.aggregation.backends and not own.api.aggregation.unknown()


@pytest.mark.parametrize("collections", [True, False])
async def test_objects_of_other_servers_go_with_their_namespace(tmp_path, server, collections):
    if not collections:
        server.verbs = ["create", "delete", "get", "list"]
    async with own_cluster(front_proxy=FrontProxy(tmp_path / "front")) as own, own.controlled(ending=True):
        await server.register(own.cluster)
        await own.until(lambda: known(own))
        await own.cluster.create(NAMESPACES, {"metadata": {"name": "going"}})
        server.put(FLUNDERS, "a", "going")
        server.put(FLUNDERS, "b", "default")
        await own.cluster.delete(NAMESPACES, "going")
        await own.clock.advance(1, own.quiet)
        assert await own.find(NAMESPACES, "going") is None
        assert [key[1:] for key in server.objects] == [("default", "b")]
        assert all("/default/" not in each.path for each in server.requests if each.method == "DELETE")
        await own.api.outgoing.close()


def owned(name, uid):
    owner = {"apiVersion": FLUNDERS.api_version, "kind": FLUNDERS.kind, "name": "a", "uid": uid}
    return {"metadata": {"name": name, "ownerReferences": [owner]}}


async def test_an_object_goes_with_its_owner_on_another_server(tmp_path, server):
    """The server is asked: an owner that it does not have is gone, one that it cannot tell about is not."""
    async with own_cluster(front_proxy=FrontProxy(tmp_path / "front")) as own, own.controlled(ending=True):
        await server.register(own.cluster)
        await own.until(lambda: known(own))
        server.put(FLUNDERS, "a", "default")
        server.objects[FLUNDERS, "default", "a"]["metadata"]["uid"] = "1"
        await own.cluster.create(CONFIGMAPS, owned("mine", "1"), namespace="default")
        await own.cluster.create(CONFIGMAPS, owned("stale", "2"), namespace="default")
        await own.until(lambda: gone(own, "stale"))
        assert not await gone(own, "mine")
        del server.objects[FLUNDERS, "default", "a"]
        server.broken = True
        await own.clock.advance(ASK_AGAIN_SECONDS, own.quiet)
        assert not await gone(own, "mine")
        server.broken = False
        await own.clock.advance(10 * ASK_AGAIN_SECONDS, own.quiet)
        assert await gone(own, "mine")
        await own.api.outgoing.close()


async def gone(own, name):
    return await own.find(CONFIGMAPS, name, namespace="default") is None


async def test_a_namespace_stays_while_a_server_cannot_say_what_it_has(tmp_path, server):
    async with own_cluster(front_proxy=FrontProxy(tmp_path / "front")) as own, own.controlled(ending=True):
        server.broken = True
        await server.register(own.cluster)
        await own.until(lambda: _backends(own))
        await own.cluster.create(NAMESPACES, {"metadata": {"name": "going"}})
        await own.cluster.delete(NAMESPACES, "going")
        await own.clock.advance(1, own.quiet)
        status = (await own.cluster.get(NAMESPACES, "going"))["status"]
        found = {each["type"]: each for each in status["conditions"]}
        assert found["NamespaceDeletionDiscoveryFailure"]["message"] == (
            "Discovery failed for some groups, 1 failing: unable to retrieve the complete list of server APIs: "
            "wardle.example.com/v1: stale GroupVersion discovery: wardle.example.com/v1"
        )
        assert found["NamespaceContentRemaining"]["reason"] == "ContentRemoved"
        await own.cluster.delete(API_SERVICES, "v1.wardle.example.com")
        await own.until(lambda: _no_backends(own))
        await own.clock.advance(5, own.quiet)
        assert await own.find(NAMESPACES, "going") is None
        await own.api.outgoing.close()


async def _backends(own):
    return own.api.aggregation.backends


async def _no_backends(own):
    return not own.api.aggregation.backends
