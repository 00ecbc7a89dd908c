"""Connections that go on in another protocol, at the pace of the slower side; the transport is the test's."""

from __future__ import annotations

import asyncio

import pytest
from held_transport import Transport

from seamark.api.http.wire.messages import Streaming
from seamark.api.http.wire.protocol import Connection, Connections
from seamark.api.streaming.sockets import MOST_UNREAD, PlainSocket, WebSocket
from turns import turns


def upgraded_to(kind):
    """A connection that goes on as a socket of this kind, with its transport and the socket."""
    made = []

    def upgrade(connection):
        made.append(kind(connection))
        return b"", made[0]

    connection, transport = Connection(lambda _: Streaming(made.append, upgrade=upgrade), Connections()), Transport()
    connection.connection_made(transport)
    connection.data_received(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    return connection, transport, made[0]


@pytest.fixture
def upgraded():
    return upgraded_to(PlainSocket)


async def test_what_comes_waits_for_its_reader(upgraded):
    connection, transport, socket = upgraded
    connection.data_received(b"hello")
    assert await socket.receive() == (True, b"hello")
    connection.data_received(bytes(MOST_UNREAD))
    assert not transport.reading
    await socket.receive()
    assert transport.reading


async def test_many_small_pieces_are_read_no_further_either(upgraded):
    """Each takes memory, however short it is."""
    connection, transport, _ = upgraded
    count = 0
    while transport.reading:
        connection.data_received(b"x")
        count += 1
    assert count < MOST_UNREAD // 50


async def test_a_client_that_reads_again_does_not_have_to_be_read(upgraded):
    """A command that writes much and reads nothing: its client is slow, then reads, and goes on sending."""
    connection, transport, socket = upgraded
    connection.data_received(bytes(MOST_UNREAD))
    connection.pause_writing()
    connection.resume_writing()
    assert not transport.reading
    await socket.receive()
    assert transport.reading


async def test_a_slow_client_is_sent_one_piece_at_a_time(upgraded):
    """However many tasks have something for it."""
    connection, transport, socket = upgraded
    connection.pause_writing()
    tasks = [asyncio.create_task(socket.send(b"x")) for _ in range(3)]
    await turns()
    assert transport.take() == b""
    write = transport.write

    def write_and_stall(data):
        write(data)
        connection.pause_writing()

    transport.write = write_and_stall
    for _ in range(3):
        connection.resume_writing()
        await turns()
        assert transport.take() == b"x"
    await asyncio.gather(*tasks)


async def test_a_backlog_does_not_keep_others_waiting(upgraded):
    connection, _, socket = upgraded
    for _ in range(3):
        connection.data_received(b"x")
    order = []

    async def read():
        for _ in range(3):
            await socket.receive()
            order.append("reader")

    reading = asyncio.create_task(read())
    asyncio.get_running_loop().call_soon(order.append, "other")
    await reading
    assert order.index("other") < 2


async def test_who_sends_learns_that_the_client_is_gone(upgraded):
    connection, transport, socket = upgraded
    connection.pause_writing()
    sending = asyncio.create_task(socket.send(b"x"))
    await turns()
    transport.close()
    connection.connection_lost(None)
    with pytest.raises(ConnectionResetError):
        await sending


async def test_who_breaks_the_rules_is_told_goodbye_once():
    connection, transport, socket = upgraded_to(WebSocket)
    connection.data_received(b"\x8f\x80abcd")  # an opcode that does not exist
    await turns()
    socket.finish()
    assert bytes(transport.sent).count(b"\x88") == 1
