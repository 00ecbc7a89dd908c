"""HTTP/1.1 on a transport: bytes become a :class:`Request`, an answer becomes bytes.  Nothing here knows Kubernetes.

A protocol of our own on httptools rather than a web framework: an API server needs the client's certificate, back
pressure on streams, one write for many events, and a small cost per request (docs/benchmarks.md has the figures).
One connection handles one request at a time; pipelined ones wait their turn.

:mod:`incoming` reads the requests; the connection answers them, and minds the transport on both sides.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from seamark.api.http.wire.incoming import MAX_BODY, Incoming
from seamark.api.http.wire.messages import Admit, Handler, Request, Response, Streaming, head
from seamark.api.http.wire.pieces import PIECE, LongAnswer
from seamark.api.http.wire.stream import Stream, Unchunked
from seamark.api.http.wire.unread import Unread
from seamark.runtime.turns import Turns

MAX_PIPELINED = 32


class Connections(set["Connection"]):
    """The open connections of a server; says when the last one has gone."""

    def __init__(self, unread: Unread | None = None) -> None:
        super().__init__()
        self.entering: dict[Connection, asyncio.Task[None]] = {}  # those whose TLS handshake is not done
        self.held = 0  # bytes of bodies that wait to be complete, or for their turn
        self.unread = unread or Unread(sys.maxsize)  # bytes of answers that clients do not read
        self.senders = Turns()  # those with a piece of a long answer to write
        self.takers = Turns()  # upgraded ones, whose clients have sent something
        self.on_empty: Callable[[], None] | None = None
        self.on_change: Callable[[], None] | None = None  # called when one has gone, or has got further

    def changed(self) -> None:
        if self.on_change is not None:
            self.on_change()

    def add(self, connection: Connection) -> None:
        self.entering.pop(connection, None)
        super().add(connection)

    def discard(self, connection: object) -> None:
        super().discard(connection)
        self.changed()
        if not self and self.on_empty is not None:
            self.on_empty()


class Connection(asyncio.Protocol):
    """One client's connection."""

    __slots__ = (
        "_answering",
        "_handler",
        "_headless",
        "_held",
        "_keep_alive",
        "_owed",
        "_peers",
        "_plain",
        "_sending",
        "_taking",
        "_task",
        "_upgraded",
        "_waiting",
        "_writable",
        "busy",
        "incoming",
        "last_active",
        "peer",
        "stalled_since",
        "stream",
        "transport",
    )

    def __init__(self, handler: Handler, peers: Connections, admit: Admit | None = None) -> None:
        self._handler = handler
        self._peers = peers  # all connections of the server, for shutdown and for the idle sweep
        # Complete requests, whether the connection stays afterwards, and the answer if the head was enough for it.
        self._waiting: deque[tuple[Request, bool, Response | None]] = deque()
        self._held = 0  # bytes of bodies that are part of ``peers.held``
        self._answering: Request | None = None  # the one that is being answered
        self._task: asyncio.Task[None] | None = None
        self._sending: LongAnswer | None = None
        self._writable: asyncio.Future[None] | None = None  # set while the transport's buffer is full
        self._keep_alive = True
        self._headless = False  # HEAD was asked: only the head is answered
        self._plain = False  # the client speaks HTTP/1.0
        self._upgraded = False  # the client speaks another protocol since its last request
        self._taking = False  # what the client of an upgraded connection has sent waits for its turn
        self._owed = b""  # the last answer to such bytes, if the client does not read
        self.transport: Any = None
        self.peer = ""
        self.busy = False
        self.stream: Stream | None = None
        self.last_active = time.monotonic()
        self.stalled_since: float | None = None  # when the reader stopped taking what is written, if it did
        self.incoming = Incoming(admit, self.last_active)

    # --- asyncio's side ----------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self._peers.add(self)
        name = transport.get_extra_info("peername")
        self.peer = name[0] if isinstance(name, tuple) else ""
        tls = transport.get_extra_info("ssl_object")
        self.incoming.attach(self, None if tls is None else tls.getpeercert(binary_form=True))

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        self._peers.discard(self)
        self.incoming.drop()
        self._waiting.clear()
        self.hold(-self._held)
        if self._answering is not None:
            self._answering.gone = True
            if self._answering.waits is not None:
                self._answering.waits.cancel()
        self._stop_sending()
        self.resume_writing()
        stream, self.stream = self.stream, None
        if stream is not None:
            stream.ended()
            on_close = stream.on_close
            stream.forget()
            if on_close is not None:
                on_close()

    def data_received(self, data: bytes) -> None:
        self.last_active = now = time.monotonic()
        while data and not self.incoming.closed:
            if self._upgraded and self.stream is not None:
                self._take_in_turn(data)
                return
            data = self.incoming.feed(data, now)

    def _take_in_turn(self, data: bytes) -> None:
        """Nothing further is read until then: a client that sends thousands of short messages delays only itself."""
        self._taking = True
        self.transport.pause_reading()
        self._peers.takers.add(partial(self._take, data))

    def _take(self, data: bytes) -> None:
        self._taking = False
        if self.stream is None or self.transport is None:
            return
        try:
            answer = self.stream.received(data)
        except BaseException:
            self.transport.abort()
            raise
        if answer is None:
            self.transport.close()
            return
        if self._writable is not None:
            self._owed = answer or self._owed  # one is enough for a client that does not read any
        elif answer:
            self.transport.write(answer)
        self.read_on()

    def read_on(self) -> None:
        """Read from the client again, unless it has sent enough, or does not read its answers."""
        if self.transport is None or self.transport.is_closing():
            return
        if not self._upgraded or self.stream is None:
            if self._writable is None and self._takes_more:
                self.transport.resume_reading()
        elif self._taking or self.stream.full:
            return
        elif self.stream.more:
            self._take_in_turn(b"")
        else:
            self.transport.resume_reading()

    def pause_writing(self) -> None:
        """The client does not read fast enough: take no further requests from it until it has caught up."""
        if self._writable is None:
            self._writable = asyncio.get_running_loop().create_future()
            self.stalled_since = time.monotonic()
            if self.stream is not None:
                self.stream.stalled = True
                if self.stream.on_stall is not None:
                    self.stream.on_stall()
            elif self.transport is not None:
                self.transport.pause_reading()
            if self._sending is not None:
                self._sending.stalls()

    def resume_writing(self) -> None:
        waiting, self._writable = self._writable, None
        self.stalled_since = None
        if self.stream is not None:
            self.stream.stalled = False
        if waiting is not None and not waiting.done():
            waiting.set_result(None)
        if self.transport is not None and not self.transport.is_closing():
            owed, self._owed = self._owed, b""
            if owed:
                self.transport.write(owed)
            self.read_on()
            if not self.busy:
                self._next()
            elif self._sending is not None:
                self._sending.goes_on()
            elif self.stream is not None and self.stream.on_writable is not None:
                self.stream.on_writable()

    async def writable(self) -> None:
        if self._writable is not None:
            await asyncio.shield(self._writable)

    # --- requests that came ------------------------------------------------------------------------

    def take_request(self, request: Request, keep_alive: bool, early: Response | None) -> None:
        """Answer a complete request, or keep it until those before it are answered."""
        self._waiting.append((request, keep_alive, early))
        if not self.busy:
            self._next()
        elif not self._takes_more and self.transport is not None:
            self.transport.pause_reading()

    def invite(self, request: Request, early: Response | None) -> None:
        """Tell a client that waits with its body to send it, or give it the answer if the body is not needed."""
        if self.busy or self._waiting:
            return  # an earlier request waits for its answer, for which this would be taken
        if early is None and not request.too_large and self.transport is not None:
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            return
        self._waiting.append((request, False, early))
        self.incoming.closed = True  # whether the body comes is not known, so that no further request can be found
        self._next()

    def hold(self, size: int) -> int:
        """Count bytes of a body that waits, or no longer if ``size`` is negative; returns what all connections hold."""
        self._held += size
        self._peers.held += size
        return self._peers.held

    # --- answering ---------------------------------------------------------------------------------

    def _next(self) -> None:
        """Handle waiting requests, up to and including the first that cannot be answered at once.

        None is begun while the client does not read its answers.
        """
        while self._waiting and not self.busy and self._writable is None:
            request, self._keep_alive, early = self._waiting.popleft()
            if request.body:
                self.hold(-len(request.body))
            self.busy = True
            self._headless = request.method == "HEAD"
            self._plain = request.version == "1.0"
            answer = early or self._handler(request)
            if isinstance(answer, Response | Streaming):
                self._answer(answer)
            else:
                self._answering = request
                self._task = asyncio.ensure_future(self._wait(answer))
        self.read_on()

    @property
    def _takes_more(self) -> bool:
        return len(self._waiting) < MAX_PIPELINED and self._held <= MAX_BODY

    async def _wait(self, answer: Awaitable[Response | Streaming]) -> None:
        try:
            made = await answer
        except BaseException:
            self.cut()  # a client that gets no answer must not wait for one
            raise
        self._answering = None
        self._answer(made)
        if not self.busy:
            self._next()

    def _answer(self, answer: Response | Streaming) -> None:
        if self.transport is None or self.transport.is_closing():
            if isinstance(answer, Response) and answer.load is not None:
                answer.load.release()
            return
        if isinstance(answer, Streaming):
            self.stream = self._begin_stream(answer)
            answer.start(self.stream)
            return
        body = answer.body
        size = sum(map(len, body)) if isinstance(body, list) else len(body)
        start = self._head(answer, "Transfer-Encoding: chunked\r\n" if answer.pack else f"Content-Length: {size}\r\n")
        if size > PIECE and not self._headless:
            self.transport.write(start)
            self._sending = LongAnswer(self, answer, size, self._peers.senders, self._peers.unread)
            return
        if answer.load is not None:
            answer.load.release()
        if self._headless:
            self.transport.write(start)
        else:
            self.transport.write(start + (b"".join(body) if isinstance(body, list) else body))
        self._answered()

    def sent(self) -> None:
        """The last piece of a long answer is written."""
        self._stop_sending()
        self._answered()
        self._next()

    def _stop_sending(self) -> None:
        sending, self._sending = self._sending, None
        if sending is not None:
            sending.stop()

    def _begin_stream(self, answer: Streaming) -> Stream:
        if answer.upgrade is not None:
            self._upgraded, self._keep_alive = True, False
            start, stream = answer.upgrade(self)
            self.transport.write(start)
            stream.stalled = self.stalled_since is not None  # since the head
            return stream
        if self._plain:
            self._keep_alive = False
        self.transport.write(self._head(answer, "" if self._plain else "Transfer-Encoding: chunked\r\n"))
        return Unchunked(self) if self._plain else Stream(self)

    def _answered(self) -> None:
        self.busy = False
        self._task = None
        self.incoming.restart_clock()
        if not self._keep_alive and self.transport is not None:
            self._waiting.clear()
            self.transport.close()

    def _head(self, answer: Response | Streaming, length: str) -> bytes:
        return head(answer, length, keep_alive=self._keep_alive, plain=self._plain)

    def end_stream(self) -> None:
        stream, self.stream = self.stream, None
        if stream is not None and self.transport is not None and not self.transport.is_closing():
            if last := stream.last():
                self.transport.write(last)
            self._answered()
            self._next()

    def refuse(self, status: int, text: bytes) -> None:
        """Answer what cannot be understood with an error and close, because the rest cannot be understood either."""
        if self.incoming.closed:
            return
        self.incoming.closed = True
        self._waiting.clear()
        if self.transport is None or self.transport.is_closing():
            return
        if not self.busy:
            self._keep_alive = False
            answer = Response(status, text, "text/plain; charset=utf-8")
            self.transport.write(self._head(answer, f"Content-Length: {len(text)}\r\n") + text)
        self.transport.close()

    # --- the listener's side -----------------------------------------------------------------------

    def overdue(self, now: float) -> bool:
        """Whether a request that is being read takes too long."""
        return not self.busy and self.incoming.overdue(now)

    def time_out(self) -> None:
        """Give up a request that takes too long to come."""
        if self.incoming.begun:
            self.refuse(408, b"the request took too long to come\n")
        elif self.transport is not None:
            self.transport.close()

    def cut(self) -> None:
        """Close at once, whatever the client still has to read."""
        self._peers.discard(self)
        self._stop_sending()
        if self.transport is not None:
            self.transport.abort()

    def finish_soon(self) -> None:
        """Shutting down: an idle connection closes now, a busy one after its answer."""
        self._keep_alive = False
        self._waiting.clear()
        if not self.busy and self.transport is not None:
            self.transport.close()
