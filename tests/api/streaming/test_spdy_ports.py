"""Port-forward over SPDY without a WebSocket: pairs of streams over real sockets, with Pods that are made up."""

from __future__ import annotations

import asyncio

import pytest
from fake_pods import listening
from spdy_client import spdy

from seamark.api.streaming import forwarding

FORWARD = "/api/v1/namespaces/default/pods/web/portforward"
PROTOCOL = "portforward.k8s.io"
REFUSED = b"error forwarding port 1 to pod: connection refused"


@pytest.mark.parametrize("order", [("error", "data"), ("data", "error")])
async def test_connections_are_pairs_of_streams(api, pods, echoing, order):
    async with listening(api) as client, spdy(client, FORWARD, PROTOCOL) as session:
        assert session.header("X-Stream-Protocol-Version") == [PROTOCOL]
        pairs = []
        for request in ("0", "1"):
            opened = {kind: await session.open(kind, port="80", requestid=request) for kind in order}
            pairs.append((opened["data"], opened["error"]))
        for data, _ in pairs:
            session.send(data, b"x" * 1_000_000, fin=True)
        await session.until(lambda: session.ended == {each for pair in pairs for each in pair})
        for data, error in pairs:
            assert (session.got[data], session.got[error]) == (b"X" * 1_000_000, b"")


async def test_a_port_that_nobody_listens_at(api, pods, echoing):
    async with listening(api) as client, spdy(client, FORWARD, PROTOCOL) as session:
        error = await session.open("error", port="1", requestid="0", fin=True)
        data = await session.open("data", port="1", requestid="0")
        await session.until(lambda: session.ended == {data, error})
        assert session.got == {data: b"", error: REFUSED}
        # The next connection finds another answer.
        error, data = session.begin("error", port="80"), session.begin("data", port="80")  # as clients before 1.2
        session.send(data, b"y", fin=True)
        await session.until(lambda: {data, error} <= session.ended)
        assert session.got[data] == b"Y"


@pytest.mark.parametrize("headers", [{}, {"port": "0"}, {"port": "65536"}, {"port": "\u0661"}, {"port": "x"}])
async def test_streams_without_a_port_are_refused(api, pods, headers):
    async with listening(api) as client, spdy(client, FORWARD, PROTOCOL) as session:
        refused = await session.open("data", requestid="0", **headers)
        other = await session.open("other", requestid="0", port="80")
        assert session.refused == {refused, other}


async def test_a_stream_that_stays_alone_is_reset(api, pods, monkeypatch):
    monkeypatch.setattr(forwarding, "PATIENCE", 0.1)
    async with listening(api) as client, spdy(client, FORWARD, PROTOCOL) as session:
        alone = await session.open("error", port="80", requestid="0")
        again = await session.open("error", port="80", requestid="0")
        await session.until(lambda: session.refused == {alone, again})
        await session.until_pong()


async def test_a_connection_that_the_client_drops_is_closed(api, pods):
    """kubectl resets its stream, then waits for the end of the other one."""
    closed = asyncio.Event()

    async def handle(reader, writer):
        writer.write(b"hello")
        await reader.read(-1)
        closed.set()
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    pods.server = server.sockets[0].getsockname()
    async with listening(api) as client, spdy(client, FORWARD, PROTOCOL) as session:
        error, data = [await session.open(kind, port="80", requestid="0") for kind in ("error", "data")]
        await session.until(lambda: session.got.get(data) == b"hello")
        session.reset(data)
        await session.until(lambda: error in session.ended)
        await closed.wait()
    server.close()


async def test_connections_have_a_limit(api, pods, monkeypatch):
    monkeypatch.setattr(forwarding, "MOST_CONNECTIONS", 3)
    dialed = []

    async def dial(pod, port):
        dialed.append(port)
        await asyncio.Event().wait()

    pods.dial = dial
    async with listening(api) as client, spdy(client, FORWARD, PROTOCOL) as session:
        for number in range(5):
            await session.open("error", port="80", requestid=str(number))
        assert len(session.refused) == 2
        for number in range(5):
            await session.open("data", port="80", requestid=str(number))
        assert len(session.refused) == 4
        assert dialed == [80, 80, 80]
