"""Clients of SPDY that mean harm: each is cut off or refused, and the server answers the next one."""

from __future__ import annotations

import asyncio
import contextlib
import random
from socket import SO_RCVBUF, SO_SNDBUF, SOL_SOCKET

import pytest
from fake_pods import listening
from spdy_client import V4, SpdyClient, spdy

from seamark.access.spdy import frames
from seamark.api.streaming.spdy_streams import MOST_REFUSED

PODS = "/api/v1/namespaces/default/pods"
EXEC = f"{PODS}/web/exec?command=0&stdin=true&stdout=true"
FORWARD = f"{PODS}/web/portforward"
BOTH = [pytest.param(EXEC, V4, id="exec"), pytest.param(FORWARD, "portforward.k8s.io", id="portforward")]


@contextlib.asynccontextmanager
async def attacked(api, path, protocol):
    """A connection whose server still answers others when the block is over, and has no task left of it."""
    async with listening(api) as client:
        async with spdy(client, path, protocol) as session:
            yield session
        async with spdy(client, EXEC, V4) as another:
            streams = [await another.open(each) for each in ("error", "stdout", "stdin")]
            another.send(streams[2], b"still here", fin=True)
            await another.closed()
            assert another.got[streams[1]] == b"still here"
        while api.api.connecting.tasks:  # their callbacks take turns
            await asyncio.sleep(0)


def opening(number: int) -> bytes:
    return frames.Session().open(number, {"streamtype": "stdin"})


@pytest.mark.parametrize(("path", "protocol"), BOTH)
@pytest.mark.parametrize(
    "sent",
    [
        bytes.fromhex("80020001 00000000"),
        bytes.fromhex("80030001 00ffffff"),
        bytes.fromhex("80030001 0000000c 00000001 00000000 0000ffff"),
        opening(2),
        opening(0),
        opening(3) + frames.reset(3) + bytes.fromhex("80030001 00000000"),
    ],
    ids=["version 2", "long", "no headers", "an even number", "number 0", "cut short"],
)
async def test_what_is_not_spdy_ends_the_connection(api, pods, path, protocol, sent):
    async with attacked(api, path, protocol) as session:
        session.writer.write(sent)
        await session.closed()


@pytest.mark.parametrize(("path", "protocol"), BOTH)
async def test_random_bytes(api, pods, path, protocol):
    async with attacked(api, path, protocol) as session:
        chance = random.Random(7)
        for _ in range(200):
            session.writer.write(chance.randbytes(chance.randrange(1, 2000)))
        session.writer.write(bytes.fromhex("80020001 00000000") * (1 << 21))  # ends the longest frame of data
        await session.closed()


@pytest.mark.parametrize(("path", "protocol"), BOTH)
async def test_thousands_of_streams(api, pods, path, protocol):
    async with attacked(api, path, protocol) as session:
        for number in range(MOST_REFUSED + 2000):
            session.begin("error", requestid=str(number), port="80")
        await session.closed()
        assert len(session.accepted) <= 256


@pytest.mark.parametrize(("path", "protocol"), BOTH)
async def test_data_for_streams_that_are_not_there(api, pods, path, protocol):
    async with attacked(api, path, protocol) as session:
        for number in range(20_000):
            session.writer.write(frames.data(number, b"x", fin=number % 2 == 0) + frames.reset(number))
        await session.until_pong()


async def test_much_input_before_the_streams_ends_the_connection(api, pods):
    async with attacked(api, EXEC, V4) as session:
        stdin = session.begin("stdin")
        for _ in range(1000):
            session.send(stdin, b"x")
        await session.closed()
    assert len(pods.sessions) == 1  # that of the client behind it


async def test_bytes_before_both_streams_of_a_pair_end_the_connection(api, pods):
    async with attacked(api, FORWARD, "portforward.k8s.io") as session:
        session.send(session.begin("data", port="80", requestid="0"), b"x")
        await session.closed()


async def test_pings_of_a_client_that_reads_no_answers(api, pods):
    async with attacked(api, EXEC, V4) as session:
        served = await serving(session)
        for transport, option in ((served.transport, SO_SNDBUF), (session.writer.transport, SO_RCVBUF)):
            transport.get_extra_info("socket").setsockopt(SOL_SOCKET, option, 4096)
        while served.stalled_since is None or served.transport.is_reading():
            if served.transport.is_reading():
                session.writer.write(frames.ping(1) * 5000)
            await asyncio.sleep(0)
        assert served.transport.get_write_buffer_size() < 1 << 20
        session.writer.transport.abort()


async def serving(session: SpdyClient):
    """The server's side of a connection, which is in the same process."""
    (found,) = [each for each in session.listener.connections if each.stream is not None]
    return found
