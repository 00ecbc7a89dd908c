"""Calls of the API server over HTTPS, to real servers on loopback."""

from __future__ import annotations

import socket
import threading
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from called_servers import Trusted, endpoint_slice, issue_authority, service

from free_ports import free_port
from seamark.api.outgoing import calling
from seamark.api.outgoing.calling import CallFailed, Outgoing
from seamark.api.outgoing.targets import Client, Reference
from seamark.haste import LARGE_WITH_FEW_ENTRIES
from seamark.kinds.resource import NODES, SERVICES, Resource
from seamark.kinds.wellknown import SIMULATED_ANNOTATION

HOOK = Reference("default", "hook")


class Objects:
    """A cluster with one Service and its slice."""

    def __init__(self) -> None:
        self.slices: list[dict[str, Any]] = []

    def get(self, resource: Resource, name: str, namespace: str = "") -> dict[str, Any] | None:
        if (resource, name) == (NODES, "simulated"):
            return {"metadata": {"name": name, "annotations": {SIMULATED_ANNOTATION: "true"}}}
        return service() if (resource, name, namespace) == (SERVICES, "hook", "default") else None

    def all(self, resource: Resource, namespace: str = "", *, containing: bytes = b"") -> Iterable[dict[str, Any]]:
        return self.slices

    def labels_of(self, resource: Resource, name: str) -> None:
        return None


@pytest.fixture
def objects() -> Objects:
    return Objects()


@pytest_asyncio.fixture
async def outgoing(objects: Objects) -> AsyncIterator[Outgoing]:
    calls = Outgoing(objects)
    yield calls
    await calls.close()


async def echo(exchange: Any) -> None:
    await exchange.answer(200, exchange.request.body)


async def post(outgoing: Outgoing, client: Client, seconds: float = 600.0) -> calling.Answer:
    return await outgoing.post(client, b'"hello"', query="timeout=9s", seconds=seconds, accept="application/json")


async def test_a_url_is_called_again_over_the_same_connection(outgoing: Outgoing, trusted: Trusted) -> None:
    async with trusted.server(echo) as server:
        client = Client(url=f"{server.url}/x", authority=trusted.pem)
        for _ in range(3):
            assert await post(outgoing, client) == calling.Answer(200, "application/json", b'"hello"')
        assert server.connections == 1
        request = server.requests[0]
        assert (request.method, request.path, request.query) == ("POST", "/x", {"timeout": "9s"})


async def test_a_service_is_called_at_its_endpoints_by_its_name(
    outgoing: Outgoing, objects: Objects, trusted: Trusted
) -> None:
    async with trusted.server(echo) as one, trusted.server(echo) as two:
        objects.slices = [endpoint_slice(one.port), endpoint_slice(two.port)]
        for _ in range(4):
            assert (await post(outgoing, Client(service=HOOK, path="/x", authority=trusted.pem))).status == 200
        assert [len(one.requests), len(two.requests)] == [2, 2]
        assert one.requests[0].headers["host"] == ["hook.default.svc:443"]


async def test_a_service_that_is_not_there_is_said_to_be_missing(outgoing: Outgoing) -> None:
    with pytest.raises(CallFailed, match='service "none" not found'):
        await post(outgoing, Client(service=Reference("default", "none")))


async def test_a_server_of_another_name_or_authority_is_not_trusted(
    outgoing: Outgoing, objects: Objects, trusted: Trusted, tmp_path: Path
) -> None:
    other = Trusted(tmp_path, ("127.0.0.1",))
    async with trusted.server(echo) as server, other.server(echo) as nameless:
        objects.slices = [endpoint_slice(nameless.port)]
        with pytest.raises(CallFailed, match="x509: certificate signed by unknown authority"):
            await post(outgoing, Client(url=server.url, authority=other.pem))
        with pytest.raises(CallFailed, match=r"x509: certificate is not valid for hook\.default\.svc"):
            await post(outgoing, Client(service=HOOK, authority=other.pem))
        assert (await post(outgoing, Client(service=HOOK, insecure=True))).status == 200


@pytest.mark.parametrize("subject", [["issued"], []])
async def test_an_authority_that_another_one_issued_is_trusted_by_itself(
    outgoing: Outgoing, tmp_path: Path, subject: list[str]
) -> None:
    issue_authority(tmp_path, *subject)
    issued = Trusted(tmp_path)
    async with issued.server(echo) as server:
        assert (await post(outgoing, Client(url=server.url, authority=issued.pem))).status == 200


async def test_an_authority_that_is_no_certificate_is_refused(outgoing: Outgoing) -> None:
    with pytest.raises(CallFailed, match="unable to parse bytes as PEM block"):
        await post(outgoing, Client(url="https://127.0.0.1:1/", authority=b"nonsense"))


async def test_a_server_that_is_gone_hangs_or_speaks_no_http_is_reported(outgoing: Outgoing, trusted: Trusted) -> None:
    async def hang(exchange: Any) -> None:
        await exchange.begin()
        await exchange.piece(b"x")

    async def drop(exchange: Any) -> None:
        exchange.drop()

    async def babble(exchange: Any) -> None:
        exchange.writer.write(b"hello\r\n\r\n")
        exchange.cut = True

    port = free_port()
    with pytest.raises(CallFailed, match=rf"dial tcp 127\.0\.0\.1:{port}: connect: connection refused"):
        await post(outgoing, Client(url=f"https://127.0.0.1:{port}/"))
    for handler, sentence in ((hang, "context deadline exceeded"), (drop, "EOF"), (babble, "Bad")):
        async with trusted.server(handler) as server:
            with pytest.raises(CallFailed, match=sentence):
                await post(outgoing, Client(url=server.url, authority=trusted.pem), 1.0 if handler is hang else 600.0)


async def test_a_connection_that_was_closed_while_idle_is_replaced(outgoing: Outgoing, trusted: Trusted) -> None:
    async def answer_once(exchange: Any) -> None:
        if len(server.requests) == 2:
            exchange.drop()
        else:
            await echo(exchange)

    async with trusted.server(answer_once) as server:
        client = Client(url=server.url, authority=trusted.pem)
        assert [(await post(outgoing, client)).status for _ in range(2)] == [200, 200]
        assert server.connections == 2


async def test_an_answer_without_end_is_given_up(
    outgoing: Outgoing, trusted: Trusted, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def endless(exchange: Any) -> None:
        await exchange.begin()
        while True:
            await exchange.piece(b"x" * 1000)

    monkeypatch.setattr(calling, "LONGEST_ANSWER", 5000)
    async with trusted.server(endless) as server:
        with pytest.raises(CallFailed, match="longer than 5000 bytes"):
            await post(outgoing, Client(url=server.url, authority=trusted.pem))


async def test_nothing_is_asked_once_the_server_stops(outgoing: Outgoing, trusted: Trusted) -> None:
    async with trusted.server(echo) as server:
        await outgoing.close()
        with pytest.raises(CallFailed, match="stopping"):
            await post(outgoing, Client(url=server.url, authority=trusted.pem))
        assert server.connections == 0


async def test_who_asks_says_how_long_an_answer_may_be(outgoing: Outgoing, trusted: Trusted) -> None:
    async with trusted.server(echo) as server:
        client = Client(url=server.url, authority=trusted.pem)
        for size, fits in ((1000, True), (1001, False)):
            asking = outgoing.post(client, b"x" * size, seconds=600.0, accept="*/*", longest=1000)
            if fits:
                assert (await asking).body == b"x" * size
            else:
                with pytest.raises(CallFailed, match="longer than 1000 bytes"):
                    await asking


@pytest.mark.parametrize(("size", "here"), [(LARGE_WITH_FEW_ENTRIES - 1, True), (LARGE_WITH_FEW_ENTRIES, False)])
async def test_a_long_answer_is_read_in_a_thread(outgoing: Outgoing, size: int, here: bool) -> None:
    answer = calling.Answer(200, "", b"x" * size)
    found = await outgoing.understood(answer, lambda body: (len(body), threading.get_ident()))
    assert found[0] == size
    assert (found[1] == threading.get_ident()) is here


async def test_an_answer_can_be_read_as_it_comes(outgoing: Outgoing, trusted: Trusted) -> None:
    async def stream(exchange: Any) -> None:
        await exchange.begin()
        await exchange.piece(exchange.request.path.encode())
        await exchange.end()

    async with trusted.server(stream) as server:
        client = Client(url=server.url, authority=trusted.pem)
        async with outgoing.open(client, "GET", path="/apis/x", query="watch=1") as response:
            assert await response.read() == b"/apis/x"
        assert server.requests[0].query == {"watch": "1"}


class Pods:
    """Pods that run, as far as connections to them go: all of 127.0.0.1 is theirs."""

    def __init__(self) -> None:
        self.opened: list[socket.socket] = []

    def runs(self, pod: str) -> bool:
        return pod == "running"

    async def socket(self, address: str) -> socket.socket | None:
        if address != "127.0.0.1":
            return None
        self.opened.append(socket.socket())
        self.opened[-1].setblocking(False)
        return self.opened[-1]


async def test_pods_are_called_with_sockets_of_their_network(objects: Objects, trusted: Trusted) -> None:
    pods = Pods()
    outgoing = Outgoing(objects, lambda: pods)  # type: ignore[arg-type,return-value]
    client = Client(service=HOOK, authority=trusted.pem)
    async with trusted.server(echo) as server:
        objects.slices = [endpoint_slice(server.port)]
        for _ in range(3):
            assert (await post(outgoing, client)).status == 200
        assert [each.getpeername()[1] for each in pods.opened] == [server.port]  # one connection, which was kept
        reader, writer = await outgoing.connect(client)
        assert writer.get_extra_info("sockname") == pods.opened[1].getsockname()
        writer.write(b"GET / HTTP/1.1\r\nHost: hook\r\nConnection: close\r\n\r\n")
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        writer.close()
        await writer.wait_closed()
    await outgoing.close()
    with pytest.raises(ConnectionRefusedError):
        await outgoing.connect(client)
    assert pods.opened[-1].fileno() == -1


async def test_what_is_no_pod_is_called_from_this_machine(objects: Objects, trusted: Trusted) -> None:
    pods = Pods()
    outgoing = Outgoing(objects, lambda: pods)  # type: ignore[arg-type,return-value]
    async with trusted.server(echo, "127.0.0.2") as server:
        objects.slices = [endpoint_slice(server.port, address="127.0.0.2")]
        client = Client(service=HOOK, authority=trusted.pem)
        assert (await post(outgoing, client)).status == 200
        _, writer = await outgoing.connect(client)
        writer.close()
        assert pods.opened == []
    await outgoing.close()


async def test_a_pod_that_is_simulated_is_not_called(objects: Objects, trusted: Trusted) -> None:
    """Its address may be another host's on the network of this machine."""
    pods = Pods()
    outgoing = Outgoing(objects, lambda: pods)  # type: ignore[arg-type,return-value]
    client = Client(service=HOOK, authority=trusted.pem)

    def endpoint(uid: str, node: str) -> dict[str, Any]:
        target = {"kind": "Pod", "name": f"hook-{uid}", "uid": uid}
        return {"addresses": ["127.0.0.1"], "nodeName": node, "targetRef": target}

    async with trusted.server(echo) as server:
        one = endpoint_slice(server.port)
        objects.slices = [{**one, "endpoints": [endpoint("1", "simulated"), endpoint("running", "simulated")]}]
        for _ in range(2):
            assert (await post(outgoing, client)).status == 200
        objects.slices = [{**one, "endpoints": [endpoint("1", "simulated"), endpoint("1", "real")]}]
        for _ in range(2):
            assert (await post(outgoing, client)).status == 200
        objects.slices = [{**one, "endpoints": [endpoint("1", "simulated")]}]
        told = f'dial tcp 127.0.0.1:{server.port}: connect: connection refused: pod "hook-1" is simulated'
        with pytest.raises(CallFailed, match=told):
            await post(outgoing, client)
        with pytest.raises(CallFailed, match=told):
            await outgoing.connect(client)
    await outgoing.close()
