"""One WebSocket to one Pod, which carries one connection to a port of it at a time.

A connection is a pair of SPDY streams: ``data`` carries its bytes, and on ``error`` the other side says what went
wrong, then ends it.  If that has ended as well as the data, the connection is over in both directions.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, cast

import msgspec

from seamark import errors
from seamark.access.spdy import frames as spdy
from seamark.access.spdy.frames import Data, GoAway, Ping, Reset, Session, SpdyError, SynReply

if TYPE_CHECKING:
    import aiohttp

PATIENCE = 30.0  # seconds that the other side has to accept a connection, as in kubectl
BUFFERED = 128 * 1024  # bytes that wait for a slow reader before the WebSocket is read no further


class _Gate:
    """What ``StreamReader`` takes for its transport: it stops and resumes the reading of the WebSocket."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.open.set()

    def pause_reading(self) -> None:
        self.open.clear()

    def resume_reading(self) -> None:
        self.open.set()


class PodConnection:
    """A connection to a port of a Pod."""

    def __init__(self, tunnel: Tunnel, first: int) -> None:
        self._tunnel = tunnel
        self._errors, self._data = first, first + 2  # the numbers of its two streams
        self._accepted = {each: asyncio.get_running_loop().create_future() for each in (self._errors, self._data)}
        self._gate = _Gate()
        self._received = asyncio.StreamReader(limit=BUFFERED // 2)
        self._received.set_transport(cast(asyncio.Transport, self._gate))
        self._said = bytearray()
        self._open = {self._errors, self._data}  # the streams that the other side has not ended
        self._ended = asyncio.Event()
        self._sent_all = False

    async def receive(self) -> bytes:
        """Some bytes; none at the end.  Raises ``ConnectionError`` if the tunnel breaks."""
        return await self._received.read(BUFFERED)

    async def send(self, data: bytes) -> None:
        """Send bytes, as fast as the WebSocket takes them."""
        await self._tunnel.write(spdy.data(self._data, data))

    async def end(self) -> None:
        """Send no more; the other side may still send."""
        self._sent_all = True
        await self._tunnel.write(spdy.data(self._data, fin=True))

    async def over(self) -> None:
        """Return once the other side neither sends nor takes anything more."""
        await self._ended.wait()

    @property
    def problem(self) -> str:
        """What the other side said went wrong, if anything: in plain text, or as JSON since Kubernetes 1.33."""
        said = self._said.decode(errors="replace").strip()
        with contextlib.suppress(msgspec.DecodeError, TypeError, KeyError):
            return str(msgspec.json.decode(said)["message"])
        return said

    async def close(self) -> None:
        """Give the tunnel back if the connection ended well, else close it."""
        if self._ended.is_set() and not self._said and not self._tunnel.closed:
            if not self._sent_all:
                await self._tunnel.write(spdy.reset(self._data))
            self._tunnel.release(self)
        else:
            await self._tunnel.close()

    # --- for the tunnel ----------------------------------------------------------------------------

    async def accepted(self) -> None:
        """Return once the other side has accepted both streams: it drops bytes that come earlier."""
        try:
            async with asyncio.timeout(PATIENCE):
                await asyncio.gather(*self._accepted.values())
        except TimeoutError:
            raise errors.Timeout(f"the node did not answer within {PATIENCE:.0f} s") from None

    async def take(self, frame: SynReply | Data | Reset) -> None:
        """Take a frame of one of the two streams in, once there is room for it."""
        if frame.stream not in self._accepted:
            return  # of an earlier connection
        accepted = self._accepted[frame.stream]
        if isinstance(frame, Reset):
            if not accepted.done():
                accepted.set_exception(ConnectionRefusedError("the node refused the connection"))
            self._end(frame.stream)
            return
        if isinstance(frame, SynReply):
            if not accepted.done():
                accepted.set_result(None)
        elif frame.stream == self._errors:
            self._said += frame.payload
        elif frame.payload and frame.stream in self._open:
            self._received.feed_data(frame.payload)
            await self._gate.open.wait()
        if frame.fin:
            self._end(frame.stream)

    def _end(self, stream: int) -> None:
        if stream == self._data and stream in self._open:
            self._received.feed_eof()
        self._open.discard(stream)
        if not self._open:
            self._ended.set()

    def broke(self, error: Exception) -> None:
        """The tunnel is gone."""
        for accepted in self._accepted.values():
            if not accepted.done():
                accepted.set_exception(error)
                accepted.exception()  # marks it as seen: of two such futures only one is awaited
        if self._data in self._open:
            self._received.set_exception(error)
        self._gate.open.set()
        self._ended.set()


class Tunnel:
    """A WebSocket to one Pod, read in the background until one side closes it."""

    def __init__(self, websocket: aiohttp.ClientWebSocketResponse) -> None:
        self._websocket = websocket
        self._session = Session()
        self._next = 1
        self._requests = 0
        self._connection: PodConnection | None = None
        self._going_away = False
        self._reading = asyncio.create_task(self._read(), name="port-forward tunnel")

    @property
    def closed(self) -> bool:
        """Whether it can carry no further connection."""
        return self._going_away or self._reading.done() or self._websocket.closed

    @property
    def free(self) -> bool:
        return self._connection is None and not self.closed

    async def connect(self, port: int) -> PodConnection:
        """A connection to a port of the Pod; raises an ``ApiError`` or ``ConnectionError``."""
        assert self.free
        made = self._connection = PodConnection(self, self._next)
        about = {"port": str(port), "requestid": str(self._requests)}
        opening = self._session.open(self._next, {"streamtype": "error", **about}, fin=True)
        opening += self._session.open(self._next + 2, {"streamtype": "data", **about})
        self._next += 4
        self._requests += 1
        try:
            await self.write(opening)
            await made.accepted()
        except BaseException:
            await self.close()
            raise
        return made

    def release(self, connection: PodConnection) -> None:
        if self._connection is connection:
            self._connection = None

    async def write(self, frames: bytes) -> None:
        if self._websocket.closed:
            raise ConnectionResetError("the tunnel to the Pod is closed")
        try:
            await self._websocket.send_bytes(frames)
        except OSError as error:
            raise ConnectionResetError(f"the tunnel to the Pod broke: {error}") from error

    async def close(self) -> None:
        self._going_away = True
        self._reading.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._reading
        await self._websocket.close()

    async def _read(self) -> None:
        import aiohttp

        problem: Exception = ConnectionResetError("the cluster closed the tunnel to the Pod")
        try:
            async for message in self._websocket:
                if message.type is aiohttp.WSMsgType.BINARY:
                    for frame in self._session.frames(message.data):
                        await self._take(frame)
        except SpdyError as error:
            problem = ConnectionResetError(f"the cluster does not speak SPDY/3 in the tunnel: {error}")
        finally:
            self._going_away = True
            if self._connection is not None:
                self._connection.broke(problem)

    async def _take(self, frame: spdy.Frame) -> None:
        match frame:
            case SynReply() | Data() | Reset():
                if self._connection is not None:
                    await self._connection.take(frame)
            case Ping(id) if id % 2 == 0:
                await self.write(spdy.ping(id))
            case GoAway():
                self._going_away = True
