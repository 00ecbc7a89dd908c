"""Port-forward: connections to ports of a Pod, in one connection of the client.

kubectl speaks SPDY, in a WebSocket or without one: as many connections as it likes, each a pair of streams.  Older
clients of WebSockets name the ports in the query, and each port is one connection: a channel for its bytes and one for
errors, both begun by the port's number.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import struct
from asyncio import StreamWriter
from collections.abc import Awaitable, Callable, Mapping, Sequence

from seamark import errors
from seamark.access.pod_streams import Connection
from seamark.access.spdy.frames import Data, Reset, SpdyError, SynStream
from seamark.api.http.url import Query
from seamark.api.streaming.sockets import Socket, WebSocket
from seamark.api.streaming.spdy_streams import PATIENCE, SpdyStreams

TUNNELLED = "SPDY/3.1+portforward.k8s.io"
IN_SPDY = ("portforward.k8s.io",)
IN_WEBSOCKETS = (TUNNELLED, "v4.channel.k8s.io", "portforward.k8s.io")
MOST_CONNECTIONS = 256  # at the same time in one connection of a client
_PIECE = 64 << 10
_WAITING = 4  # pieces that wait for a connection that does not take them; then the client is read no further

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
            except OSError as error:
                problem = f"error forwarding port {self._port} to pod: {_reason(error)}"
            finally:
                sending.cancel()
                writer.close()
        with contextlib.suppress(ConnectionError):  # the client is gone
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


class _Pairs:
    """The pairs of streams: one for the bytes of a connection, and one that says what went wrong with it."""

    def __init__(self, streams: SpdyStreams, dial: Dial) -> None:
        self._streams, self._dial = streams, dial
        self._single: dict[str, tuple[str, int, asyncio.Task[None]]] = {}  # what waits for the other, by request
        self._carried: dict[int, tuple[_Carried, int]] = {}  # by the stream of bytes, with the other

    async def open(self, stream: int, headers: Mapping[str, str]) -> None:
        kind, port = headers.get("streamtype", ""), headers.get("port", "")
        # Clients before Kubernetes 1.2 name no request, and open the stream of bytes behind the other.
        request = headers.get("requestid") or str(stream if kind == "error" else stream - 2)
        other, beside, waiting = self._single.get(request, ("", 0, None))
        if kind not in ("data", "error") or kind == other or not _is_port(port) or (waiting is None and self._full):
            await self._streams.refuse(stream)
        elif waiting is None:
            await self._streams.accept(stream)
            self._single[request] = kind, stream, asyncio.create_task(self._give_up(request, stream))
        else:
            waiting.cancel()
            del self._single[request]
            await self._streams.accept(stream)
            self._carry(*((stream, beside) if kind == "data" else (beside, stream)), int(port))

    @property
    def _full(self) -> bool:
        return len(self._single) + len(self._carried) >= MOST_CONNECTIONS

    async def _give_up(self, request: str, stream: int) -> None:
        await asyncio.sleep(PATIENCE)
        del self._single[request]
        with contextlib.suppress(ConnectionError):
            await self._streams.refuse(stream)

    def _carry(self, stream: int, beside: int, port: int) -> None:
        send = self._streams.send

        async def tell(data: bytes) -> None:
            await send(stream, data, fin=not data)

        async def fail(problem: str) -> None:
            await send(beside, problem.encode(), fin=True)
            if problem:
                await send(stream, fin=True)

        made = _Carried(port, self._dial, tell, fail)
        self._carried[stream] = made, beside
        made.task.add_done_callback(lambda _: self._carried.pop(stream))

    async def take(self, stream: int, data: bytes, *, fin: bool) -> None:
        if data and stream in self._carried:
            await self._carried[stream][0].take(data)
        elif data and any(stream == each for _, each, _ in self._single.values()):
            raise SpdyError("bytes came before both streams of a pair were there")  # who lost them would not notice
        if fin and stream in self._carried:
            await self._carried[stream][0].take(b"")

    async def drop(self, stream: int) -> None:
        """The client wants no more of a connection; it waits for the end of the other stream."""
        if stream in self._carried:
            made, beside = self._carried[stream]
            made.task.cancel()
            await self._streams.send(beside, fin=True)

    async def end(self) -> None:
        await _end(
            [*(each.task for each, _ in self._carried.values()), *(each for _, _, each in self._single.values())]
        )


async def streams(socket: Socket, dial: Dial) -> None:
    """Until the client is gone."""
    session = SpdyStreams(socket)
    pairs = _Pairs(session, dial)
    try:
        while True:
            match await session.receive():
                case SynStream(stream, headers):
                    await pairs.open(stream, headers)
                case Data(stream, payload, fin):
                    await pairs.take(stream, payload, fin=fin)
                case Reset(stream):
                    await pairs.drop(stream)
    finally:
        await pairs.end()


# --- in channels -----------------------------------------------------------------------------------


def ports_of(query: Query) -> list[int]:
    """The ports that an older client names in the query."""
    texts = [text for each in query.get("ports", ()) for text in each.split(",")]
    if not texts:
        raise errors.BadRequest('query parameter "ports" is required')
    for text in texts:
        if not _is_port(text):
            raise errors.BadRequest(f'unable to parse "{text}" as a port')
    return [int(text) for text in texts]


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 6 and 0 < int(text) < 65536


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
        await _end([each.task for each in carried])


async def _listen(socket: WebSocket, carried: Sequence[_Carried]) -> None:
    channel = 0
    while True:
        begins, data = await socket.receive()
        if begins and data:
            channel, data = data[0], data[1:]
        if data and channel % 2 == 0 and channel // 2 < len(carried):
            await carried[channel // 2].take(data)


async def _end(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
