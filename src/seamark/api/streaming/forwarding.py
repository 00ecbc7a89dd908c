"""Port-forward: connections to ports of a Pod, in one WebSocket.

kubectl speaks SPDY in it (:mod:`seamark.access.portforward`): as many connections as it likes, each a pair of streams.
Older clients name the ports in the query, and each port is one connection: a channel for its bytes and one for errors,
both begun by the port's number.
"""

from __future__ import annotations

import asyncio
import os
import struct
from asyncio import StreamWriter
from collections.abc import Awaitable, Callable, Sequence

from seamark import errors
from seamark.access.pod_streams import Connection
from seamark.access.spdy import frames as spdy
from seamark.access.spdy.frames import Data, Ping, Reset, Session, SpdyError, SynStream
from seamark.api.http.url import Query
from seamark.api.streaming.sockets import WebSocket

TUNNELLED = "SPDY/3.1+portforward.k8s.io"
CHANNELS = ("v4.channel.k8s.io", "portforward.k8s.io")
PROTOCOLS = (TUNNELLED, *CHANNELS)
_PIECE = 64 << 10
_WAITING = 16  # pieces that wait for a connection that does not take them; then the client is read no further

Dial = Callable[[int], Awaitable[Connection]]


class _Carried:
    """One connection to a port.  ``tell`` sends its bytes and, at the end, none; ``fail`` sends a sentence."""

    def __init__(
        self, port: int, dial: Dial, tell: Callable[[bytes], Awaitable[None]], fail: Callable[[str], Awaitable[None]]
    ) -> None:
        self._port, self._dial, self._tell, self._fail = port, dial, tell, fail
        self._sent: asyncio.Queue[bytes] = asyncio.Queue(_WAITING)
        self.task = asyncio.create_task(self._run())

    async def take(self, data: bytes) -> None:
        """Bytes from the client; none at their end."""
        if not self.task.done():
            putting = asyncio.ensure_future(self._sent.put(data))
            await asyncio.wait([putting, self.task], return_when=asyncio.FIRST_COMPLETED)
            putting.cancel()

    async def _run(self) -> None:
        problem = ""
        try:
            reader, writer = await self._dial(self._port)
        except (OSError, errors.ApiError) as error:
            problem = f"error forwarding port {self._port} to pod: {_reason(error)}"
        else:
            sending = asyncio.create_task(self._send(writer))
            try:
                while data := await reader.read(_PIECE):
                    await self._tell(data)
                await self._tell(b"")
                await sending
            except ConnectionError as error:
                problem = f"error forwarding port {self._port} to pod: {_reason(error)}"
            finally:
                sending.cancel()
                writer.close()
        await self._fail(problem)

    async def _send(self, writer: StreamWriter) -> None:
        while data := await self._sent.get():
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        return os.strerror(error.errno).lower() if error.errno else str(error)
    return str(error)


# --- in SPDY ---------------------------------------------------------------------------------------


async def tunnel(socket: WebSocket, dial: Dial) -> None:
    """Until the client is gone."""
    session = Session()
    opened: dict[str, int] = {}  # the error streams that wait for their data streams, by request
    carried: dict[int, _Carried] = {}  # by data stream

    def carry(stream: int, beside: int, port: int) -> None:
        async def tell(data: bytes) -> None:
            await socket.send(spdy.data(stream, data, fin=not data))

        async def fail(problem: str) -> None:
            if problem:
                await socket.send(spdy.data(beside, problem.encode(), fin=True) + spdy.data(stream, fin=True))
            else:
                await socket.send(spdy.data(beside, fin=True))

        carried[stream] = made = _Carried(port, dial, tell, fail)
        made.task.add_done_callback(lambda _: carried.pop(stream, None))

    try:
        while True:
            _, received = await socket.receive()
            for frame in session.frames(received):
                match frame:
                    case SynStream(stream, headers):
                        await socket.send(session.accept(stream))
                        request = headers.get("requestid", "")
                        if headers.get("streamtype") == "error":
                            opened[request] = stream
                        elif request in opened:
                            carry(stream, opened.pop(request), int(headers.get("port", "0")))
                    case Data(stream, payload, fin) if stream in carried:
                        if payload:
                            await carried[stream].take(payload)
                        if fin and stream in carried:
                            await carried[stream].take(b"")
                    case Reset(stream) if stream in carried:
                        await carried[stream].take(b"")
                    case Ping(id) if id % 2:
                        await socket.send(spdy.ping(id))
    except (SpdyError, ValueError):
        return
    finally:
        await _end(list(carried.values()))


# --- in channels -----------------------------------------------------------------------------------


def ports_of(query: Query) -> list[int]:
    """The ports that an older client names in the query."""
    texts = [text for each in query.get("ports", ()) for text in each.split(",")]
    if not texts:
        raise errors.BadRequest('query parameter "ports" is required')
    for text in texts:
        if not (text.isdecimal() and len(text) < 6 and 0 < int(text) < 65536):
            raise errors.BadRequest(f'unable to parse "{text}" as a port')
    return [int(text) for text in texts]


async def channels(socket: WebSocket, dial: Dial, ports: Sequence[int]) -> None:
    """Until the client is gone, or no port sends any more: a channel has no end of its own."""
    open = set(range(len(ports)))
    over = asyncio.Event()

    def end(index: int) -> None:
        open.discard(index)
        if not open:
            over.set()

    def carry(index: int, port: int) -> _Carried:
        async def tell(data: bytes) -> None:
            if data:
                await socket.send(bytes([2 * index]) + data)
            else:
                end(index)

        async def fail(problem: str) -> None:
            if problem:
                await socket.send(bytes([2 * index + 1]) + problem.encode())
            end(index)

        return _Carried(port, dial, tell, fail)

    for index, port in enumerate(ports):
        for channel in (2 * index, 2 * index + 1):
            await socket.send(bytes([channel]) + struct.pack("<H", port))
    carried = [carry(index, port) for index, port in enumerate(ports)]
    listening = asyncio.create_task(_listen(socket, carried))
    ending = asyncio.create_task(over.wait())
    try:
        await asyncio.wait([listening, ending], return_when=asyncio.FIRST_COMPLETED)
    finally:
        listening.cancel()
        ending.cancel()
        await asyncio.gather(listening, ending, return_exceptions=True)
        await _end(carried)


async def _listen(socket: WebSocket, carried: Sequence[_Carried]) -> None:
    channel = 0
    while True:
        begins, data = await socket.receive()
        if begins and data:
            channel, data = data[0], data[1:]
        if data and channel % 2 == 0 and channel // 2 < len(carried):
            await carried[channel // 2].take(data)


async def _end(carried: Sequence[_Carried]) -> None:
    for each in carried:
        each.task.cancel()
    await asyncio.gather(*(each.task for each in carried), return_exceptions=True)
