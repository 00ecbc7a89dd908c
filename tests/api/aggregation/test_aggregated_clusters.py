"""Components of the server's own process reach the kinds of aggregated servers, with their own names and rights."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.api.aggregation.extension_server import ExtensionServer
from tests.api.aggregation.keeping_server import FLUNDERS, KeepingServer
from tests.api.aggregation.test_aggregation import available
from tests.api.served import Served, served

from seamark import errors
from seamark.access.cluster import Receipt
from seamark.api.aggregation.front_proxy import FrontProxy
from seamark.api.authorization import User


@pytest.fixture
async def extension(tmp_path: Path) -> AsyncIterator[KeepingServer]:
    front_proxy = FrontProxy(tmp_path / "front")
    front_proxy.prepare()
    async with KeepingServer(front_proxy, tmp_path / "extension", FLUNDERS).running() as server:
        assert isinstance(server, KeepingServer)
        yield server


@pytest.fixture
async def api(tmp_path: Path, extension: KeepingServer) -> AsyncIterator[Served]:
    async with served(front_proxy=FrontProxy(tmp_path / "front")) as server:
        await server.post("/api/v1/namespaces", {"metadata": {"name": "wardle"}})
        yield server


async def test_objects_are_written_read_and_deleted(api: Served, extension: KeepingServer) -> None:
    await available(api, extension)
    cluster = api.api.cluster("a-component")
    made = await cluster.create(FLUNDERS, {"metadata": {"name": "a"}, "spec": {"fins": 2}}, namespace="default")
    assert made["spec"] == {"fins": 2}
    assert extension.requests[-1].headers["X-Remote-User"] == "system:a-component"
    assert (await cluster.get(FLUNDERS, "a", namespace="default"))["metadata"]["name"] == "a"
    extension.put(FLUNDERS, "b", "default", labels={"x": "y"})
    chosen = await cluster.list(FLUNDERS, namespace="default", labels="x=y")
    assert [item["metadata"]["name"] for item in chosen.items] == ["b"]
    await cluster.update(FLUNDERS, made, namespace="default", as_=Receipt)
    await cluster.patch(FLUNDERS, "a", {"spec": {"fins": 3}}, namespace="default", as_=Receipt)
    assert [request.method for request in extension.requests[-2:]] == ["PUT", "PATCH"]
    await cluster.delete(FLUNDERS, "a", namespace="default")
    with pytest.raises(errors.NotFound):
        await cluster.get(FLUNDERS, "a", namespace="default")
    await cluster.delete_all(FLUNDERS, namespace="default")
    assert not extension.objects


async def test_a_watch_brings_what_the_other_server_tells(tmp_path: Path, api: Served) -> None:
    front_proxy = FrontProxy(tmp_path / "front")
    front_proxy.prepare()
    async with ExtensionServer(front_proxy, tmp_path / "other").running() as extension:
        await available(api, extension)
        event = b'{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"7"}}}\n'
        extension.events.put_nowait(event)
        extension.events.put_nowait(b"")
        found = [change async for change in api.api.cluster("watcher").watch(FLUNDERS, since="1")]
        assert [(change.type, change.version) for change in found] == [("BOOKMARK", "1"), ("ADDED", "7")]


async def test_a_component_without_rights_is_refused_here(api: Served, extension: KeepingServer) -> None:
    await available(api, extension)
    before = len(extension.requests)
    with pytest.raises(errors.Forbidden, match='User "jane" cannot list resource "flunders"'):
        await api.api.cluster("x", user=User("jane")).list(FLUNDERS)
    assert len(extension.requests) == before


async def test_a_server_that_is_away_is_told(api: Served, extension: KeepingServer) -> None:
    await available(api, extension)
    cluster = api.api.cluster("a-component")
    key = (FLUNDERS.group, FLUNDERS.version)
    api.api.aggregation.backends[key] = replace(api.api.aggregation.backends[key], available=False)
    with pytest.raises(errors.ServiceUnavailable, match="service unavailable"):
        await cluster.list(FLUNDERS)
    del api.api.aggregation.backends[key]
    with pytest.raises(errors.NotFound):
        await cluster.list(FLUNDERS)
