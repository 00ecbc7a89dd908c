"""Servers in Pods that answer endlessly, wrongly or never.  What they get rid of is counted, not timed."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
from fake_pods import FakePods, listening, pod, put
from test_proxying import BASE

from seamark.api.streaming.proxying import LONGEST_HEAD, Endpoint, node_endpoint, service_endpoints

PAGE = f"{BASE}/pods/web/proxy/page"
LINE = b"X-Filler: " + b"x" * 50_000 + b"\r\n"
# Far more than is read of any head, so that a reader without a limit is told from one with a limit.
PLENTY = 16 * LONGEST_HEAD
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n"


class Backend:
    """Sends ``first``, then ``again`` until nobody takes it, or it is plenty."""

    def __init__(self, first=b"", again=b""):
        self.first, self.again = first, again
        self.sent = 0
        self.asked, self.left = asyncio.Event(), asyncio.Event()

    async def __call__(self, reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        self.asked.set()
        with contextlib.suppress(ConnectionError):
            writer.write(self.first)
            while self.again and self.sent < PLENTY:
                writer.write(self.again)
                await writer.drain()
                self.sent += len(self.again)
            await reader.read()
        writer.close()
        self.left.set()


@contextlib.asynccontextmanager
async def proxied(api, backend):
    """The backend as the server of a Pod, and a client of the API."""
    server = await asyncio.start_server(backend, "127.0.0.1", 0)
    api.api.connecting.pods = made = FakePods()
    made.server = server.sockets[0].getsockname()
    await put(api, pod("web", "main"))
    async with server, listening(api) as client:
        yield client


@pytest.mark.parametrize(
    "first",
    [b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nX-One: "],
    ids=["headers", "one header"],
)
async def test_a_head_without_end_is_no_answer(api, first):
    backend = Backend(first, LINE if first.endswith(b"\n") else b"x" * 50_000)
    async with proxied(api, backend) as client, client.get(PAGE) as answer:
        assert answer.status == 503
        assert "too many headers" in (await answer.json())["message"]
        await backend.left.wait()
    assert backend.sent < PLENTY


async def test_an_answer_that_is_always_still_to_come(api):
    backend = Backend(again=1000 * b"HTTP/1.1 100 Continue\r\n\r\n")
    async with proxied(api, backend) as client, client.get(PAGE) as answer:
        assert answer.status == 503
        await backend.left.wait()
    assert backend.sent < PLENTY


@pytest.mark.parametrize("again", [LINE, b"x" * 50_000], ids=["trailers", "one trailer"])
async def test_trailers_without_end_break_the_answer_off(api, again):
    backend = Backend(CHUNKED + b"0\r\nX-One: 1", again)
    async with proxied(api, backend) as client, client.get(PAGE) as answer:
        assert answer.status == 200
        with contextlib.suppress(OSError, Exception):
            await answer.read()
        await backend.left.wait()
    assert backend.sent < PLENTY


@pytest.mark.parametrize("digits", [6, 20, 5000])
async def test_lengths_with_any_number_of_digits(api, digits):
    body = b"x" * 200_000  # so that its end is not there with its head
    backend = Backend(b"HTTP/1.1 200 OK\r\nContent-Length: %s\r\n\r\n" % b"200000".zfill(digits) + body)
    async with proxied(api, backend) as client, client.get(PAGE) as answer:
        assert (answer.status, await answer.read()) == (200, body)


@pytest.mark.parametrize("first", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"], ids=["nothing", "a head"])
async def test_a_client_that_goes_leaves_no_connection_behind(api, first):
    backend = Backend(first)
    async with proxied(api, backend) as client:
        asking = asyncio.create_task(client.get(PAGE))
        await backend.asked.wait()
        asking.cancel()
        await backend.left.wait()


def test_an_address_is_where_kubernetes_reads_it():
    """The system's resolver reads leading zeros as octal numbers, and 0177.0.0.1 as this machine."""
    slice = {
        "ports": [{"name": "", "port": 80}],
        "endpoints": [
            {"addresses": [each]} for each in ("0177.0.0.1", "010.0.0.5", "127.0.0.1", "0127.0.0.1", "fd00::0:1")
        ],
    }
    found = service_endpoints({"metadata": {"name": "s"}, "spec": {}}, [slice], "", tls=False)
    assert found == [Endpoint(each, 80, pod=False) for each in ("177.0.0.1", "10.0.0.5", "fd00::1")]
    node = {"metadata": {"name": "n"}, "status": {"addresses": [{"type": "InternalIP", "address": "0177.0.0.1"}]}}
    assert node_endpoint(node, "80", tls=False).address == "177.0.0.1"
