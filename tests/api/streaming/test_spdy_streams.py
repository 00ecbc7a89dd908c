"""The server's side of a SPDY session, over a socket in the test's hands."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from seamark.access.spdy import frames
from seamark.access.spdy.frames import Data, Ping, Reset, Session, SpdyError, SynReply, SynStream
from seamark.api.streaming.spdy_streams import MOST_REFUSED, REFUSED, TURN, SpdyStreams


class FakeSocket:
    """What comes is what the test put there; what is sent is kept."""

    def __init__(self, *pieces):
        self.pieces = list(pieces)
        self.sent = b""

    async def receive(self):
        if not self.pieces:
            raise ConnectionResetError
        return True, self.pieces.pop(0)

    async def send(self, data):
        self.sent += data


async def everything(streams):
    found = []
    with contextlib.suppress(ConnectionResetError):
        while True:
            found.append(await streams.receive())
    return found


async def test_what_a_client_says_about_streams():
    client = Session()
    said = client.open(1, {"a": "b"}) + frames.ping(3) + frames.ping(2) + frames.data(1, b"x") + frames.go_away()
    socket = FakeSocket(said[:20], said[20:], frames.reset(1))
    streams = SpdyStreams(socket)
    assert await everything(streams) == [SynStream(1, {"a": "b"}), Data(1, b"x"), Reset(1, frames.CANCEL)]
    assert list(client.frames(socket.sent)) == [Ping(3)]


async def test_what_is_answered():
    socket = FakeSocket()
    streams = SpdyStreams(socket)
    await streams.accept(1)
    await streams.refuse(3)
    await streams.send(1, b"x")
    await streams.send(1, fin=True)
    assert list(Session().frames(socket.sent)) == [
        SynReply(1, {}),
        Reset(3, REFUSED),
        Data(1, b"x"),
        Data(1, b"", fin=True),
    ]


@pytest.mark.parametrize("numbers", [[0], [2], [3, 3], [3, 1]])
async def test_numbers_of_streams_are_odd_and_grow(numbers):
    client = Session()
    streams = SpdyStreams(FakeSocket(b"".join(client.open(number, {}) for number in numbers)))
    with pytest.raises(SpdyError, match="cannot open stream"):
        await everything(streams)


async def test_who_is_refused_again_and_again_is_cut_off():
    streams = SpdyStreams(FakeSocket())
    for number in range(MOST_REFUSED):
        await streams.refuse(number)
    with pytest.raises(SpdyError, match="were refused"):
        await streams.refuse(1)


@pytest.mark.parametrize("frame", [frames.data(1), frames.ping(1)])
async def test_others_have_their_turn_among_many_frames(frame):
    streams = SpdyStreams(FakeSocket(frame * 10 * TURN))
    reading = asyncio.create_task(everything(streams))
    turns = 0
    while not reading.done():
        await asyncio.sleep(0)
        turns += 1
    assert turns >= 10
