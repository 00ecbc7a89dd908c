"""Requests for what another server serves, through a real one over HTTPS."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from msgspec.structs import replace
from tests.api.aggregation.extension_server import AGGREGATED_FORM, GROUP, RESOURCES, ROOT, VERSION, ExtensionServer
from tests.api.served import ADMIN, OTHER, TOKENS, Served, served

from seamark.api.aggregation import asking
from seamark.api.aggregation.asking import LONGEST_DOCUMENT, MOST_RESOURCES
from seamark.api.aggregation.front_proxy import FrontProxy
from seamark.api.authorization import User
from seamark.api.openapi.discovery import AGGREGATED
from seamark.api.outgoing.targets import Client

NAME = f"{VERSION}.{GROUP}"
APISERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
FLUNDERS = f"{ROOT}/namespaces/default/flunders"


@pytest.fixture
async def extension(tmp_path: Path) -> AsyncIterator[ExtensionServer]:
    front_proxy = FrontProxy(tmp_path / "front")
    front_proxy.prepare()
    async with ExtensionServer(front_proxy, tmp_path / "extension").running() as server:
        yield server


@pytest.fixture
async def api(tmp_path: Path, extension: ExtensionServer) -> AsyncIterator[Served]:
    async with served(front_proxy=FrontProxy(tmp_path / "front")) as server:
        await server.post("/api/v1/namespaces", {"metadata": {"name": "wardle"}})
        await server.api.listen("127.0.0.1", 0, None)
        yield server


@pytest.fixture
async def client(api: Served) -> AsyncIterator[aiohttp.ClientSession]:
    """A client of the listening server, as the admin."""
    assert api.api.listener is not None
    headers = {"Authorization": f"Bearer {ADMIN}"}
    async with aiohttp.ClientSession(api.api.listener.url, headers=headers) as session:
        yield session


async def register(api: Served, extension: ExtensionServer, *, service: bool = True, **more: Any) -> None:
    """The Service that leads to the server, and its APIService.  Slices may not have addresses of loopback."""
    if service:
        await make_service(api)
    spec: dict[str, Any] = {"group": GROUP, "version": VERSION, "groupPriorityMinimum": 2000, "versionPriority": 200}
    spec["service"] = {"namespace": "wardle", "name": "sample", "port": extension.port}
    spec["caBundle"] = base64.b64encode(extension.ca).decode()
    spec = {key: value for key, value in (spec | more).items() if value is not None}
    await api.post(APISERVICES, {"metadata": {"name": NAME}, "spec": spec})


async def make_service(api: Served) -> None:
    service = {"metadata": {"name": "sample"}, "spec": {"type": "ExternalName", "externalName": "localhost"}}
    await api.post("/api/v1/namespaces/wardle/services", service)


async def condition(api: Served, reason: str) -> dict[str, Any]:
    """The ``Available`` condition, once it has this reason."""
    lines, seen = await api.watch(APISERVICES, query=f"watch=true&fieldSelector=metadata.name%3D{NAME}"), 0
    while True:
        for event in (await lines.wait_for(seen + 1))[seen:]:
            seen += 1
            for each in (event["object"].get("status") or {}).get("conditions") or ():
                if each["reason"] == reason:
                    lines.abort()
                    return dict(each)


async def available(api: Served, extension: ExtensionServer, **more: Any) -> None:
    """The server registered, found well, and its discovery known."""
    await register(api, extension, **more)
    await condition(api, "Passed")
    # The status is written before discovery is read.
    await api.api.aggregation.settled()


@pytest.fixture
async def reaching(api: Served, extension: ExtensionServer, client: aiohttp.ClientSession) -> aiohttp.ClientSession:
    """A client, once the other server is available."""
    await available(api, extension)
    return client


async def test_a_request_goes_to_the_other_server_with_the_user(
    extension: ExtensionServer, reaching: aiohttp.ClientSession
) -> None:
    headers = {"X-Remote-User": "somebody-else", "X-Mine": "1"}
    params = {"limit": "5", "labelSelector": "a in (b,c),d=50%"}
    async with reaching.get(FLUNDERS, params=params, headers=headers) as answer:
        assert (answer.status, (await answer.json())["kind"]) == (200, "FlunderList")
        assert answer.headers["X-Sample"] == "yes"
    got = extension.last(FLUNDERS)
    assert dict(got.query) == params
    assert got.headers.getall("X-Remote-User") == ["admin"]
    assert got.headers.getall("X-Remote-Group") == ["system:masters", "system:authenticated"]
    assert got.headers["X-Remote-Uid"] == "admin-uid"
    assert got.headers["X-Mine"] == "1"
    assert "Authorization" not in got.headers


async def test_a_body_goes_there_and_the_status_comes_back(reaching: aiohttp.ClientSession) -> None:
    async with reaching.post(FLUNDERS, json={"kind": "Flunder"}) as answer:
        assert (answer.status, await answer.json()) == (201, {"kind": "Flunder"})


async def test_a_user_without_rights_is_refused_here(api: Served, extension: ExtensionServer) -> None:
    await available(api, extension)
    before = len(extension.requests)
    refused = await api.ask("GET", FLUNDERS, token=OTHER)
    assert refused.status == 403
    assert refused.json["message"] == (
        'flunders.wardle.example.com is forbidden: User "other" cannot list resource "flunders" in API group '
        '"wardle.example.com" in the namespace "default"'
    )
    assert len(extension.requests) == before


async def test_whom_the_sender_acts_as_is_told(extension: ExtensionServer, reaching: aiohttp.ClientSession) -> None:
    headers = {"Impersonate-User": "jane", "Impersonate-Group": "system:masters", "Impersonate-Extra-team": "a"}
    async with reaching.get(FLUNDERS, headers=headers) as answer:
        assert answer.status == 200
    got = extension.last(FLUNDERS)
    assert got.headers["X-Remote-User"] == "jane"
    assert got.headers["X-Remote-Extra-team"] == "a"
    assert "Impersonate-User" not in got.headers


async def test_a_watch_comes_event_by_event(extension: ExtensionServer, reaching: aiohttp.ClientSession) -> None:
    async with reaching.get(FLUNDERS, params={"watch": "1"}) as answer:
        for text in (b'{"type":"ADDED"}\n', b'{"type":"DELETED"}\n'):
            extension.events.put_nowait(text)
            assert await answer.content.readline() == text
        extension.events.put_nowait(b"")
        assert await answer.content.read() == b""


async def test_an_upgrade_is_passed_through(reaching: aiohttp.ClientSession) -> None:
    async with reaching.ws_connect(f"{FLUNDERS}/one/talk") as socket:
        for word in ("hello", "you"):
            await socket.send_str(word)
            assert await socket.receive_str() == f"heard {word}"


@pytest.mark.parametrize("head", ["HTTP/1.1", "HTTP/1.1 x", "HTTP/1.1 2000 OK", "x", "HTTP/2 101", "HTTP/1.1 1010"])
async def test_an_answer_that_is_none_is_no_upgrade(
    api: Served, extension: ExtensionServer, client: aiohttp.ClientSession, head: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await available(api, extension)
    closed = []

    class Writer:
        def close(self) -> None:
            closed.append(head)

    async def tunnel(*_: object) -> tuple[bytes, None, Writer]:
        return f"{head}\r\n\r\n".encode(), None, Writer()

    monkeypatch.setattr(api.api.aggregation.servers, "tunnel", tunnel)
    upgrade = {"Upgrade": "websocket", "Connection": "Upgrade"}
    async with client.get(FLUNDERS, headers=upgrade) as answer:
        assert (answer.status, (await answer.json())["kind"]) == (200, "FlunderList")
    assert closed == [head]


@pytest.mark.parametrize("upgrade", [{}, {"Upgrade": "websocket", "Connection": "Upgrade"}])
async def test_a_name_cannot_add_headers(tmp_path: Path, extension: ExtensionServer, upgrade: dict[str, str]) -> None:
    """A client certificate may name anybody; in a header, what follows a line break would be another header."""
    names = ("jane\r\nX-Remote-Group: system:masters", "jane\nX-Remote-User: admin", "jane\0", "jane\x7f")
    tokens = {f"token-{n}": User(name, ("system:masters",)) for n, name in enumerate(names)}
    async with served(front_proxy=FrontProxy(tmp_path / "front"), tokens={**TOKENS, **tokens}) as api:
        await api.post("/api/v1/namespaces", {"metadata": {"name": "wardle"}})
        await available(api, extension)
        before = len(extension.requests)
        for token in tokens:
            answer = await api.ask("GET", FLUNDERS, token=token, headers=upgrade)
            assert (answer.status, answer.body.startswith(b"error trying to reach service: ")) == (503, True)
        assert len(extension.requests) == before


async def test_who_does_not_wait_is_not_waited_for(
    api: Served, extension: ExtensionServer, client: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server may never answer: what waits for it goes with its client."""
    await available(api, extension)
    asked, gone = asyncio.Event(), asyncio.Event()

    @contextlib.asynccontextmanager
    async def hang(*_: object) -> AsyncIterator[None]:
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            gone.set()
        yield

    monkeypatch.setattr(api.api.aggregation.servers, "answer", hang)
    asking = asyncio.create_task(client.get(FLUNDERS))
    await asked.wait()
    asking.cancel()
    await gone.wait()


async def test_discovery_has_the_other_servers_group_in_its_place(api: Served, extension: ExtensionServer) -> None:
    await available(api, extension)
    names = [group["name"] for group in (await api.get("/apis"))["groups"]]
    assert names[0] == "apiregistration.k8s.io"
    assert names[-1] == GROUP
    listed = [{"groupVersion": f"{GROUP}/{VERSION}", "version": VERSION}]
    group = {"kind": "APIGroup", "apiVersion": "v1", "name": GROUP, "versions": listed, "preferredVersion": listed[0]}
    assert await api.get(f"/apis/{GROUP}") == group
    assert ROOT in (await api.get("/"))["paths"]
    items = (await api.get("/apis", headers={"accept": AGGREGATED}))["items"]
    version = {"version": VERSION, "resources": AGGREGATED_FORM, "freshness": "Current"}
    assert items[-1] == {"metadata": {"name": GROUP}, "versions": [version]}


async def test_openapi_has_the_other_servers_part(api: Served, reaching: aiohttp.ClientSession) -> None:
    index = (await api.get("/openapi/v3"))["paths"]
    assert index[ROOT[1:]] == {"serverRelativeURL": f"/openapi/v3{ROOT}?hash=1"}
    assert "version" not in index
    whole = await api.get("/openapi/v2")
    assert f"{ROOT}/flunders" in whole["paths"]
    assert whole["definitions"]["com.example.Flunder"] == {"type": "object"}
    async with reaching.get(f"/openapi/v3{ROOT}") as answer:
        assert await answer.json() == {"openapi": "3.0.0"}


async def test_a_server_that_fails_is_not_available_and_its_discovery_is_stale(
    api: Served, extension: ExtensionServer
) -> None:
    await available(api, extension)
    extension.broken = True
    await api.merge(f"{APISERVICES}/{NAME}", {"metadata": {"labels": {"look": "again"}}})
    wrong = await condition(api, "FailedDiscoveryCheck")
    url = f"https://localhost:{extension.port}{ROOT}"
    assert wrong["message"] == f"failing or missing response from {url}: bad status from {url}: 500"
    await api.api.aggregation.settled()
    answer = await api.ask("GET", FLUNDERS)
    assert (answer.status, answer.body) == (503, b"service unavailable\n")
    items = (await api.get("/apis", headers={"accept": AGGREGATED}))["items"]
    assert items[-1]["versions"] == [{"version": VERSION, "resources": AGGREGATED_FORM, "freshness": "Stale"}]


async def test_a_server_that_breaks_off_its_documents_is_asked_again(api: Served, extension: ExtensionServer) -> None:
    extension.breaks_off = True
    await available(api, extension)
    assert api.api.aggregation.foreign[0].stale
    extension.breaks_off = False
    await api.merge(f"{APISERVICES}/{NAME}", {"metadata": {"labels": {"look": "again"}}})
    await api.api.aggregation.settled()
    assert api.api.aggregation.foreign[0].openapi["v3"]


@pytest.mark.parametrize("says", [b"[" * 100_000, b"{}" + b" " * 1000], ids=["nested too deep", "too long"])
async def test_documents_that_cannot_be_read_are_not_kept(
    api: Served, extension: ExtensionServer, says: bytes, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    """One server that sends them does not keep the others from being followed."""
    monkeypatch.setattr(asking, "LONGEST_DOCUMENT", 100_000 if says[:1] == b"[" else 1000)
    extension.says = says
    await available(api, extension)
    assert api.api.aggregation.foreign[0].stale
    assert ["kinds may be missing" in record.getMessage() for record in caplog.records] == [True]


@pytest.mark.parametrize(("many", "long"), [(MOST_RESOURCES + 1, 1), (10, LONGEST_DOCUMENT // 10)])
async def test_very_much_discovery_is_not_taken_in(
    api: Served,
    extension: ExtensionServer,
    client: aiohttp.ClientSession,
    caplog: pytest.LogCaptureFixture,
    many: int,
    long: int,
) -> None:
    """It would be decoded and compared again and again while nobody else is answered; requests go there as ever."""
    entry = {"singularName": "", "namespaced": True, "kind": "K" * long, "verbs": ["get"]}
    extension.resources = RESOURCES | {"resources": [{"name": f"things{i}", **entry} for i in range(many)]}
    await available(api, extension)
    (found,) = api.api.aggregation.foreign
    assert (found.stale, list(found.resources)) == (True, [])
    assert "kinds may be missing" in caplog.text
    async with client.get(FLUNDERS) as answer:
        assert answer.status == 200


async def test_a_service_that_comes_makes_the_server_available(api: Served, extension: ExtensionServer) -> None:
    await register(api, extension, service=False)
    missing = await condition(api, "ServiceNotFound")
    assert missing["message"] == 'service/sample in "wardle" is not present'
    await make_service(api)
    assert (await condition(api, "Passed"))["status"] == "True"


async def test_a_server_that_is_gone_is_told(
    api: Served, extension: ExtensionServer, client: aiohttp.ClientSession
) -> None:
    await available(api, extension, caBundle=None, insecureSkipTLSVerify=True)
    async with client.get(FLUNDERS) as answer:
        assert answer.status == 200
    nowhere = replace(backend := api.api.aggregation.backends[GROUP, VERSION], client=Client("https://localhost:1"))
    assert backend.client.insecure
    api.api.aggregation.backends[GROUP, VERSION] = nowhere
    answer_ = await api.ask("GET", FLUNDERS)
    assert answer_.status == 503
    assert answer_.body == b"error trying to reach service: dial tcp localhost:1: connect: connection refused\n"


async def test_a_certificate_that_is_not_the_authoritys_is_refused(
    api: Served, extension: ExtensionServer, client: aiohttp.ClientSession
) -> None:
    await available(api, extension, caBundle=None)
    answer = await api.ask("GET", FLUNDERS)
    assert answer.status == 503
    assert answer.body.startswith(b"error trying to reach service: tls: failed to verify certificate: ")


async def test_when_the_apiservice_goes_so_does_the_group(api: Served, extension: ExtensionServer) -> None:
    await available(api, extension)
    await api.delete(f"{APISERVICES}/{NAME}")
    await api.api.aggregation.settled()
    assert (await api.ask("GET", FLUNDERS)).status == 404
    assert GROUP not in [group["name"] for group in (await api.get("/apis"))["groups"]]
