"""A WebSocket whose messages tasks read and write, at the pace of the slower side."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from typing import TYPE_CHECKING, Any

from seamark import errors
from seamark.api.authentication import BEARER_PROTOCOL, subprotocols
from seamark.api.http.messages import Request, Streaming
from seamark.api.http.protocol import Connection
from seamark.api.http.stream import Stream
from seamark.api.http.websocket import AT_ONCE, asked_for, head, heard

if TYPE_CHECKING:
    from wsproto.events import Event

MOST_UNREAD = 1 << 20  # bytes that wait for their reader, before the client is read no further
PIECE_COST = 256  # what a piece counts for on top of its length, because it takes memory however short it is
Piece = tuple[bool, bytes]  # whether it begins a message, and its bytes


class WebSocket(Stream):
    """The server's side.  ``receive`` and ``send`` raise ``ConnectionError`` once the client is gone."""

    __slots__ = ("_arrived", "_begins", "_closed", "_messages", "_unread", "_waiting")

    def __init__(self, connection: Connection) -> None:
        from wsproto.connection import Connection as Messages
        from wsproto.connection import ConnectionType

        super().__init__(connection)
        self._messages = Messages(ConnectionType.SERVER)
        self._arrived: deque[Piece] = deque()
        self._unread = 0
        self._begins = True
        self._closed = False
        self._waiting: asyncio.Future[None] | None = None

    def received(self, data: bytes) -> bytes | None:
        from wsproto.events import CloseConnection, Message, Ping

        answer, self.more = b"", False
        if self._closed:
            return answer  # what comes after the goodbye says nothing
        for number, event in enumerate(heard(self._messages, data), 1):
            self.more = number == AT_ONCE
            if isinstance(event, Message):
                self._take(event.data if isinstance(event.data, bytes) else bytes(event.data, "utf-8"))
                self._begins = event.message_finished
            elif isinstance(event, Ping):
                answer = self._messages.send(event.response())  # to the last one is enough
            elif isinstance(event, CloseConnection):
                answer = self._messages.send(event.response())
                self._closed, self.more = True, False
                break
        self._wake()
        return answer

    def _take(self, data: bytes) -> None:
        self._arrived.append((self._begins, data))
        self._unread += PIECE_COST + len(data)
        self.full = self._unread > MOST_UNREAD

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    async def receive(self) -> Piece:
        """The next piece of a message."""
        while not self._arrived:
            if self._closed:
                raise ConnectionResetError("the client has closed the WebSocket")
            self._waiting = asyncio.get_running_loop().create_future()
            await self._waiting
        piece = self._arrived.popleft()
        self._unread -= PIECE_COST + len(piece[1])
        if self.full and self._unread <= MOST_UNREAD:
            self.full = False
            self._connection.read_on()
        return piece

    async def send(self, data: bytes) -> None:
        """Send one message."""
        from wsproto.events import BytesMessage

        await self._send(BytesMessage(data))

    async def send_text(self, text: str) -> None:
        from wsproto.events import TextMessage

        await self._send(TextMessage(text))

    async def _send(self, message: Event) -> None:
        if self._closed or not self.write(self._messages.send(message)):
            raise ConnectionResetError("the client is gone")
        if self.stalled:
            await self.drain()

    def last(self) -> bytes:
        from wsproto.events import CloseConnection

        return b"" if self._closed else self._messages.send(CloseConnection(1000))


def chosen(request: Request, known: Iterable[str]) -> str:
    """The first protocol that the client offers and that is known; raises if there is none, or no WebSocket."""
    if not asked_for(request.headers):
        raise errors.BadRequest("Upgrade request required")
    offered = [each for each in subprotocols(request.headers) if not each.startswith(BEARER_PROTOCOL)]
    found = next((each for each in offered if each in known), None)
    if found is None and offered:
        raise errors.BadRequest(f"unable to upgrade: unable to negotiate protocol: client supports {offered}")
    return found or ""


class Tasks(set["asyncio.Task[None]"]):
    """What goes on after its answer has begun; all of it ends with the server."""

    def upgraded(
        self, request: Request, protocol: str, converse: Callable[[WebSocket], Coroutine[Any, Any, None]]
    ) -> Streaming:
        """The answer that turns the connection into a WebSocket, over which ``converse`` then speaks."""

        async def speak(stream: Stream) -> None:
            assert isinstance(stream, WebSocket)
            with contextlib.suppress(ConnectionError):
                await converse(stream)
            stream.finish()

        return Streaming(
            self.starting(speak),
            status=101,
            upgrade=lambda connection: (head(request, protocol), WebSocket(connection)),
        )

    def starting(self, pump: Callable[[Stream], Coroutine[Any, Any, None]]) -> Callable[[Stream], None]:
        """What starts to write an answer, until the client goes; a failure cuts the answer off."""

        def start(stream: Stream) -> None:
            task = asyncio.get_running_loop().create_task(self._run(pump, stream))
            self.add(task)
            task.add_done_callback(self.discard)

            def stop() -> None:
                task.cancel()

            stream.on_close = stop

        return start

    @staticmethod
    async def _run(pump: Callable[[Stream], Coroutine[Any, Any, None]], stream: Stream) -> None:
        try:
            await pump(stream)
        except BaseException:
            stream.abort()
            raise

    def end(self) -> None:
        for task in tuple(self):
            task.cancel()
