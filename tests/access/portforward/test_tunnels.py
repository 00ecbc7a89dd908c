"""Connections to ports of Pods through a server that forwards them as Kubernetes does, over real sockets."""

from __future__ import annotations

import asyncio
import os
from contextlib import asynccontextmanager

import pytest
from portforward_server import PortForwardServer

from seamark import errors
from seamark.access.credentials import Fixed, Identity
from seamark.access.kubeconfig import Connection
from seamark.access.portforward.tunnel import BUFFERED, PodConnection
from seamark.access.portforward.tunnels import MOST_IDLE, Tunnels
from seamark.access.spdy.frames import Data
from seamark.access.transport import Transport

POD = ("default", "web-1", "uid-1")


@asynccontextmanager
async def container(serve):
    """A program in a container: ``serve(reader, writer)`` is called for each connection."""

    async def handle(reader, writer):
        await serve(reader, writer)
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()
    finally:
        server.close()


async def shouting(reader, writer):
    """Answers what it has read up to the end of the input, in capitals: only a half-close gets an answer."""
    writer.write((await reader.read(-1)).upper())
    await writer.drain()


@asynccontextmanager
async def tunnels_to(server, token="secret"):
    connection = Connection(server.url, Fixed(Identity(authorization=f"Bearer {token}")))
    transport = Transport(connection)
    tunnels = Tunnels(transport)
    try:
        yield tunnels
    finally:
        await tunnels.close()
        await transport.close()


async def everything(connection):
    received = b""
    while chunk := await connection.receive():
        received += chunk
    return received


async def ask(tunnels, text, port=8080):
    connection = await tunnels.connect(POD, port)
    await connection.send(text)
    await connection.end()
    answer = await everything(connection)
    await connection.over()
    await connection.close()
    return answer, connection.problem


async def test_bytes_go_there_and_back_and_the_end_of_one_direction_is_not_the_end_of_both():
    async with container(shouting) as address, PortForwardServer() as server, tunnels_to(server) as tunnels:
        server.pods["default", "web-1"] = {8080: address}
        assert await ask(tunnels, b"hello") == (b"HELLO", "")
        assert server.tokens == ["Bearer secret"]


async def test_the_next_connection_uses_the_same_tunnel():
    async with container(shouting) as address, PortForwardServer() as server, tunnels_to(server) as tunnels:
        server.pods["default", "web-1"] = {8080: address}
        for text in (b"a", b"b", b"c"):
            assert await ask(tunnels, text) == (text.upper(), "")
        assert len(server.tunnels) == 1
        assert server.tunnels[0].pongs == [2], "a ping of the server is answered"


async def test_connections_at_the_same_time_have_tunnels_of_their_own_of_which_a_few_are_kept():
    async with container(shouting) as address, PortForwardServer() as server, tunnels_to(server) as tunnels:
        server.pods["default", "web-1"] = {8080: address}
        many = MOST_IDLE + 2
        answers = await asyncio.gather(*(ask(tunnels, b"x%d" % each) for each in range(many)))
        assert [answer for answer, _ in answers] == [b"X%d" % each for each in range(many)]
        assert len(server.tunnels) == many
        assert await ask(tunnels, b"one more") == (b"ONE MORE", "")
        assert len(server.tunnels) == many
        assert sum(not tunnel.websocket.closed for tunnel in server.tunnels) <= MOST_IDLE + 2


async def test_megabytes_pass_while_the_reader_is_slow_to_start():
    sent = os.urandom(8 * 1024 * 1024)

    async def pouring(reader, writer):
        writer.write(sent)
        await writer.drain()

    async with container(pouring) as address, PortForwardServer() as server, tunnels_to(server) as tunnels:
        server.pods["default", "web-1"] = {8080: address}
        connection = await tunnels.connect(POD, 8080)
        assert await everything(connection) == sent
        await connection.over()
        await connection.close()
        assert (await ask(tunnels, b""))[1] == "", "a connection that the other side ended leaves a usable tunnel"
        assert len(server.tunnels) == 1


async def test_a_reader_that_does_not_read_stops_the_sender():
    """Bytes wait in the kernel and in one small buffer here; the rest waits where it comes from."""
    connection = PodConnection(None, 1)
    received = 0

    async def pour():
        nonlocal received
        while True:
            await connection.take(Data(3, b"x" * 32_768))
            received += 32_768

    pouring = asyncio.ensure_future(pour())
    while connection._gate.open.is_set():
        await asyncio.sleep(0)
    stopped_at = received
    for _ in range(100):
        await asyncio.sleep(0)
    assert received == stopped_at <= BUFFERED
    while not connection._gate.open.is_set():
        await connection.receive()
    while received == stopped_at:
        await asyncio.sleep(0)
    pouring.cancel()


async def test_a_port_without_a_program_is_told_in_the_nodes_words_and_a_new_tunnel_follows():
    async with container(shouting) as address, PortForwardServer() as server, tunnels_to(server) as tunnels:
        server.pods["default", "web-1"] = {8080: address}
        answer, problem = await ask(tunnels, b"", port=81)
        assert (answer, "dial tcp4 127.0.0.1:81: connect: connection refused" in problem) == (b"", True)
        assert problem.startswith("error forwarding port 81 to pod web-1")
        assert await ask(tunnels, b"hello") == (b"HELLO", "")
        assert len(server.tunnels) == 2


async def test_a_tunnel_that_broke_while_idle_is_replaced():
    async with container(shouting) as address, PortForwardServer() as server, tunnels_to(server) as tunnels:
        server.pods["default", "web-1"] = {8080: address}
        await ask(tunnels, b"hello")
        await server.tunnels[0].websocket.close()
        assert await ask(tunnels, b"again") == (b"AGAIN", "")
        assert len(server.tunnels) == 2


async def test_a_connection_breaks_with_its_tunnel():
    async def silent(reader, writer):
        await reader.read(-1)

    async with container(silent) as address, PortForwardServer() as server, tunnels_to(server) as tunnels:
        server.pods["default", "web-1"] = {8080: address}
        connection = await tunnels.connect(POD, 8080)
        await server.tunnels[0].websocket.close()
        with pytest.raises(ConnectionError, match="closed the tunnel"):
            await everything(connection)
        await connection.over()
        with pytest.raises(ConnectionError):
            await connection.send(b"too late")
        await connection.close()


async def test_a_refused_stream_is_an_error():
    async with PortForwardServer() as server, tunnels_to(server) as tunnels:
        server.pods["default", "web-1"] = {}
        with pytest.raises(ConnectionRefusedError, match="node refused"):
            await tunnels.connect(POD, -1)


@pytest.mark.parametrize(
    ("refusal", "kind", "sentence"),
    [(0, errors.NotFound, 'pods "web-1" not found'), (501, errors.ApiError, "simulated nodes run no containers")],
)
async def test_a_refused_tunnel_has_the_words_of_the_server(refusal, kind, sentence):
    async with PortForwardServer(refusal=refusal) as server, tunnels_to(server) as tunnels:
        with pytest.raises(kind, match=sentence) as refused:
            await tunnels.connect(POD, 80)
        assert refused.value.code == (refusal or 404)


class Renewing:
    """Credentials whose token has to be renewed, as often as a server refuses it."""

    def __init__(self, renewable=True):
        self.renewable = renewable
        self.token = "Bearer old"

    async def current(self):
        return Identity(authorization=self.token)

    def refused(self, identity):
        self.token = "Bearer new"
        return self.renewable


async def test_an_expired_token_is_renewed_once():
    async with container(shouting) as address, PortForwardServer() as server:
        server.pods["default", "web-1"] = {8080: address}
        server.expired = "Bearer old"
        transport = Transport(Connection(server.url, Renewing()))
        tunnels = Tunnels(transport)
        assert await ask(tunnels, b"hello") == (b"HELLO", "")
        assert server.tokens == ["Bearer old", "Bearer new"]
        await tunnels.close()
        await transport.close()


async def test_a_token_that_cannot_be_renewed_is_refused():
    async with PortForwardServer() as server:
        server.expired = "Bearer old"
        transport = Transport(Connection(server.url, Renewing(renewable=False)))
        with pytest.raises(errors.Unauthorized):
            await Tunnels(transport).connect(POD, 80)
        await transport.close()


async def test_the_tunnels_of_pods_that_are_gone_are_forgotten():
    async with container(shouting) as address, PortForwardServer() as server, tunnels_to(server) as tunnels:
        for number in (1, 2, 3):
            server.pods["default", f"web-{number}"] = {8080: address}
            connection = await tunnels.connect(("default", f"web-{number}", "u"), 8080)
            await connection.close()
            await server.tunnels[-1].websocket.close()
        assert len(tunnels._tunnels) == 1


async def test_a_server_that_is_not_there_is_an_error_of_the_api():
    async with PortForwardServer() as server:
        pass
    async with tunnels_to(server) as tunnels:
        with pytest.raises(errors.ServiceUnavailable, match="cannot reach"):
            await tunnels.connect(POD, 80)
