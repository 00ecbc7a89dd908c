"""Connections that go on in another protocol: tasks read and write them, at the pace of the slower side."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from seamark.api.http.websocket import AT_ONCE, heard
from seamark.api.http.wire.messages import Streaming
from seamark.api.http.wire.protocol import Connection
from seamark.api.http.wire.stream import Stream

if TYPE_CHECKING:
    from wsproto.events import Event

    from seamark.api.streaming.upgrading import Upgrade

MOST_UNREAD = 1 << 20  # bytes that wait for their reader, before the client is read no further
PIECE_COST = 256  # what a piece counts for on top of its length, because it takes memory however short it is
Piece = tuple[bool, bytes]  # whether it begins a message, and its bytes


class Socket(Stream):
    """The server's side.  ``receive`` and ``send`` raise ``ConnectionError`` once the client is gone."""

    __slots__ = ("_arrived", "_closed", "_unread", "_waiting")

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._arrived: deque[Piece] = deque()
        self._unread = 0
        self._closed = False
        self._waiting: asyncio.Future[None] | None = None

    def _take(self, data: bytes, *, begins: bool) -> None:
        self._arrived.append((begins, data))
        self._unread += PIECE_COST + len(data)
        self.full = self._unread > MOST_UNREAD

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    async def receive(self) -> Piece:
        """The next piece of what the client sends."""
        if self._arrived:
            await asyncio.sleep(0)  # others have their turn between two pieces of a backlog
        while not self._arrived:
            if self._closed:
                raise ConnectionResetError("the client has closed the connection")
            self._waiting = asyncio.get_running_loop().create_future()
            await self._waiting
        piece = self._arrived.popleft()
        self._unread -= PIECE_COST + len(piece[1])
        if self.full and self._unread <= MOST_UNREAD:
            self.full = False
            self._connection.read_on()
        return piece

    async def send(self, data: bytes) -> None:
        raise NotImplementedError

    async def _ready(self) -> None:
        """Wait until the client has read most of what was sent: of all that wait, one may write then."""
        while self.stalled and await self.drain():
            pass
        if self._closed or self._transport.is_closing():
            raise ConnectionResetError("the client is gone")


class PlainSocket(Socket):
    """Bytes as they come: what they mean is the reader's to know."""

    __slots__ = ()

    def received(self, data: bytes) -> bytes | None:
        self._take(data, begins=True)
        self._wake()
        return b""

    async def send(self, data: bytes) -> None:
        await self._ready()
        self.write(data)

    def last(self) -> bytes:
        return b""


class WebSocket(Socket):
    """A piece is one of a message, and what is sent is a message.

    A client that closes is answered at once; without ``answers_close``, when all has been read that it sent before: as
    soon as it is answered, it goes.
    """

    __slots__ = ("_begins", "_messages", "answers_close")

    def __init__(self, connection: Connection) -> None:
        from wsproto.connection import Connection as Messages
        from wsproto.connection import ConnectionType

        super().__init__(connection)
        self._messages = Messages(ConnectionType.SERVER)
        self._begins = True
        self.answers_close = True

    def received(self, data: bytes) -> bytes | None:
        from wsproto.events import CloseConnection, Message, Ping

        answer, self.more = b"", False
        if self._closed:
            return answer  # what comes after the goodbye says nothing
        for number, event in enumerate(heard(self._messages, data), 1):
            self.more = number == AT_ONCE
            if isinstance(event, Message):
                data = event.data if isinstance(event.data, bytes) else bytes(event.data, "utf-8")
                self._take(data, begins=self._begins)
                self._begins = event.message_finished
            elif isinstance(event, Ping):
                answer = self._messages.send(event.response())  # to the last one is enough
            elif isinstance(event, CloseConnection):
                self._closed, self.more = True, False
                if self.answers_close:
                    answer = self._messages.send(event.response())
                break
        self._wake()
        return answer

    async def send(self, data: bytes) -> None:
        from wsproto.events import BytesMessage

        await self._send(BytesMessage(data))

    async def send_text(self, text: str) -> None:
        from wsproto.events import TextMessage

        await self._send(TextMessage(text))

    async def _send(self, message: Event) -> None:
        await self._ready()
        self.write(self._messages.send(message))

    def last(self) -> bytes:
        from wsproto.connection import ConnectionState
        from wsproto.events import CloseConnection

        # A client that broke the rules has had its goodbye, and may owe us its own.
        is_over = self._messages.state in (ConnectionState.CLOSED, ConnectionState.LOCAL_CLOSING)
        return b"" if is_over else self._messages.send(CloseConnection(1000))


class Tasks(set["asyncio.Task[None]"]):
    """What goes on after its answer has begun; all of it ends with the server."""

    def upgraded(self, upgrade: Upgrade, converse: Callable[[Any], Coroutine[Any, Any, None]]) -> Streaming:
        """The answer after which the connection is another, over whose socket ``converse`` then speaks."""

        async def speak(socket: Stream) -> None:
            with contextlib.suppress(ConnectionError):
                await converse(socket)
            socket.finish()

        return Streaming(
            self.starting(speak),
            status=101,
            upgrade=lambda connection: (upgrade.head, upgrade.socket(connection)),
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
            stream.paced = True

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
