"""The server's side of a SPDY session: the streams that a client opens, over a socket of either kind."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from seamark.access.spdy import frames
from seamark.access.spdy.frames import Data, Frame, Ping, Reset, Session, SpdyError, SynStream
from seamark.api.streaming.sockets import Socket

PATIENCE = 30.0  # seconds in which a client opens the streams that belong together, as in Kubernetes
TURN = 256  # frames after which others have their turn: they may be as short as eight bytes
MOST_REFUSED = 1000  # streams; a client that goes on asking is cut off
REFUSED = 3  # the status of a stream that was not begun


class SpdyStreams:
    """What is received is in order, and what is sent is sent at the client's pace."""

    def __init__(self, socket: Socket) -> None:
        self._socket = socket
        self._session = Session()
        self._frames: Iterator[Frame] = iter(())  # of the last piece that came
        self._count = 0  # frames
        self._last = 0  # the number of the last stream that the client has opened
        self._refused = 0

    async def receive(self) -> SynStream | Data | Reset:
        """The next that the client says about a stream; raises ``ConnectionError``."""
        while True:
            for frame in self._frames:
                self._count += 1
                if self._count % TURN == 0:
                    await asyncio.sleep(0)
                match frame:
                    case SynStream(stream):
                        if stream % 2 == 0 or stream <= self._last:
                            raise SpdyError(f"a client cannot open stream {stream} after {self._last}")
                        self._last = stream
                        return frame
                    case Data() | Reset():
                        return frame
                    case Ping(id) if id % 2:
                        await self._socket.send(frames.ping(id))
            _, received = await self._socket.receive()
            self._frames = self._session.frames(received)

    async def accept(self, stream: int) -> None:
        await self._socket.send(self._session.accept(stream))

    async def refuse(self, stream: int) -> None:
        self._refused += 1
        if self._refused > MOST_REFUSED:
            raise SpdyError(f"more than {MOST_REFUSED} streams were refused")
        await self._socket.send(frames.reset(stream, REFUSED))

    async def send(self, stream: int, data: bytes = b"", *, fin: bool = False) -> None:
        await self._socket.send(frames.data(stream, data, fin=fin))
