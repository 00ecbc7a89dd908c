"""HTTP/1.1 on a transport: bytes become a :class:`Request`, an answer becomes bytes.  Nothing here knows Kubernetes.

A protocol of our own on httptools rather than a web framework: an API server needs the client's certificate, back
pressure on streams, one write for many events, and a small cost per request (docs/architecture.md has the figures).
One connection handles one request at a time; pipelined ones wait their turn.

A request with a body is shown to ``admit`` as soon as its head is complete.  If that answers, the body is read but not
kept: clients without rights cannot make the server hold anything but the head.
"""

from __future__ import annotations

import asyncio
import re
import sys
import time
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, NoReturn
from urllib.parse import unquote

import httptools

from seamark.api.http.messages import Admit, Handler, Request, Response, Streaming, head
from seamark.api.http.pieces import PIECE, LongAnswer
from seamark.api.http.stream import Stream, Unchunked
from seamark.api.http.unread import Unread
from seamark.runtime.turns import Turns

MAX_BODY = 3 * 1024 * 1024
# A body that is not kept is read up to this size, so that the client gets to see the answer.
MAX_DRAINED = 8 * MAX_BODY
# The bodies of all connections together that wait to be complete, or for their turn.
MAX_BODIES = 128 * 1024 * 1024
MAX_HEAD = 128 * 1024
# What a header line counts for on top of its length, because it takes time however short it is: there can be about 500.
LINE_COST = 256
# A head has to be complete after this time.  A body gets the time that it takes at this rate (bytes per second) on top.
HEAD_SECONDS = 30.0
SLOWEST_BODY = 4096
MAX_PIPELINED = 32

_request_line = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+ /\S* HTTP/1\.[01]\r?\n")


class _Refused(Exception):
    """Stops the parser in the middle of its data; the client has its answer."""


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
        "_admit",
        "_answering",
        "_began",
        "_body",
        "_certificate",
        "_early",
        "_handler",
        "_head_size",
        "_headers",
        "_headless",
        "_held",
        "_keep_alive",
        "_owed",
        "_parser",
        "_peers",
        "_plain",
        "_refused",
        "_request",
        "_sending",
        "_size",
        "_taking",
        "_task",
        "_unread_size",
        "_upgraded",
        "_url",
        "_waiting",
        "_waits",
        "_writable",
        "busy",
        "last_active",
        "peer",
        "stalled_since",
        "stream",
        "transport",
    )

    def __init__(self, handler: Handler, peers: Connections, admit: Admit | None = None) -> None:
        self._handler = handler
        self._admit = admit
        self._peers = peers  # all connections of the server, for shutdown and for the idle sweep
        self._parser: Any = None  # made when something comes: it refers to this connection
        # Complete requests, whether the connection stays afterwards, and the answer if the head was enough for it.
        self._waiting: deque[tuple[Request, bool, Response | None]] = deque()
        self._held = 0  # bytes of bodies that are part of ``peers.held``
        self._answering: Request | None = None  # the one that is being answered
        self._task: asyncio.Task[None] | None = None
        self._waits: asyncio.Future[Any] | None = None  # the turn of the request that waits for one
        self._sending: LongAnswer | None = None
        self._certificate: bytes | None = None
        self._writable: asyncio.Future[None] | None = None  # set while the transport's buffer is full
        self._keep_alive = True
        self._headless = False  # HEAD was asked: only the head is answered
        self._plain = False  # the client speaks HTTP/1.0
        self._upgraded = False  # the client speaks another protocol since its last request
        self._taking = False  # what the client of an upgraded connection has sent waits for its turn
        self._owed = b""  # the last answer to such bytes, if the client does not read
        self._refused = False  # what the client sends from now on is ignored
        self._unread_size = 0  # bytes since the last head or piece of a body: the size of what is not understood yet
        self.transport: Any = None
        self.peer = ""
        self.busy = False
        self.stream: Stream | None = None
        self.last_active = time.monotonic()
        # When the request that is being read began to come; a new connection owes one from its start.
        self._began: float | None = self.last_active
        self.stalled_since: float | None = None  # when the reader stopped taking what is written, if it did
        self._reset()

    def _reset(self) -> None:
        self._url = b""
        self._headers: dict[str, str] = {}
        self._head_size = 0
        self._request: Request | None = None  # once its head is complete
        self._early: Response | None = None  # the answer, if the head was enough for it
        self._body = bytearray()
        self._size = 0

    # --- asyncio's side ----------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self._peers.add(self)
        name = transport.get_extra_info("peername")
        self.peer = name[0] if isinstance(name, tuple) else ""
        tls = transport.get_extra_info("ssl_object")
        if tls is not None:
            self._certificate = tls.getpeercert(binary_form=True)

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        self._peers.discard(self)
        # Without it, bodies go with the connection, not with the next collection of garbage.
        self._parser = None
        self._refused = True
        self._waiting.clear()
        self._release(self._held)
        self._reset()
        if self._waits is not None:
            self._waits.cancel()
        if self._answering is not None:
            self._answering.gone = True
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
        if self._refused:
            return
        if self._upgraded and self.stream is not None:
            self._take_in_turn(data)
            return
        if self._parser is None:
            self._parser = httptools.HttpRequestParser(self)
        if self._began is None:
            self._began = now
        self._unread_size += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            # What follows is another protocol only if the answer says so: a client waits for it.
            self._parser = httptools.HttpRequestParser(self)
            if rest := data[upgrade.args[0] :]:
                self.data_received(rest)
        except httptools.HttpParserInvalidMethodError:
            # The parser has a list of methods; others are no less well-formed, and nothing here has them.
            if _request_line.match(data):
                self._refuse(405, b"405: Method Not Allowed\n")
            else:
                self._refuse(400, b"malformed HTTP request\n")
        except httptools.HttpParserError:
            self._refuse(400, b"malformed HTTP request\n")
        if self._unread_size > MAX_HEAD:
            self._refuse(431, b"request header fields too large\n")

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

    # --- httptools' side ---------------------------------------------------------------------------

    def on_url(self, url: bytes) -> None:
        self._url += url
        self._head_size += len(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._head_size += LINE_COST + len(name) + len(value)
        if self._head_size > MAX_HEAD:
            self._stop(431, b"request header fields too large\n")
        if self._request is not None:
            return  # a trailer, behind the body: it cannot change what was decided by the head
        key = name.decode("latin-1").lower()
        text = value.decode("latin-1")
        if key not in self._headers:
            self._headers[key] = text
        elif key == "host":
            self._stop(400, b"too many Host headers\n")
        else:
            # A group that is to be impersonated may have a comma in its name.
            between = "\n" if key.startswith("impersonate-") else ", "
            self._headers[key] = f"{self._headers[key]}{between}{text}"

    def on_headers_complete(self) -> None:
        self._unread_size = 0
        headers = self._headers
        version = self._parser.get_http_version()
        if "host" not in headers and version != "1.0":
            self._stop(400, b"missing required Host header\n")
        path, _, query = self._url.partition(b"?")
        if path[:1] != b"/":
            # The form for proxies: http://host/path.
            path = b"/" + path.partition(b"://")[2].partition(b"/")[2]
        text = path.decode("latin-1")
        request = self._request = Request(
            method=self._parser.get_method().decode("latin-1"),
            path=unquote(text) if "%" in text else text,
            query=query.decode("latin-1"),
            headers=headers,
            certificate=self._certificate,
            peer=self.peer,
            version=version,
        )
        length = headers.get("content-length", "0")
        if length == "0" and "transfer-encoding" not in headers:
            return
        request.too_large = len(length) > 12 or int(length) > MAX_BODY
        if self._admit is not None:
            self._early = self._admit(request)
        # Only if no earlier request waits for its answer, for which this would be taken.
        if headers.get("expect", "").lower() == "100-continue" and not self.busy and not self._waiting:
            self._continue(request)

    def _continue(self, request: Request) -> None:
        """Tell a client that waits with its body to send it, or give it the answer if the body is not needed."""
        if self._early is None and not request.too_large and self.transport is not None:
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            return
        self._waiting.append((request, False, self._early))
        self._refused = True  # whether the body comes is not known, so that no further request can be found
        self._next()

    def on_body(self, body: bytes) -> None:
        self._unread_size = 0
        request = self._request
        if request is None or self._refused:
            return
        self._size += len(body)
        if self._early is None and not request.too_large and not request.crowded:
            self._body += body
            self._held += len(body)
            self._peers.held += len(body)
            request.too_large = self._size > MAX_BODY
            request.crowded = self._peers.held > MAX_BODIES
            if request.too_large or request.crowded:
                self._release(len(self._body))
                self._body = bytearray()
        if self._size > MAX_DRAINED:
            self._stop(413, b"request entity too large\n")

    def _release(self, size: int) -> None:
        self._held -= size
        self._peers.held -= size

    def on_message_complete(self) -> None:
        request = self._request
        if request is None or self._refused:
            return
        request.body = bytes(self._body)
        self._waiting.append((request, self._parser.should_keep_alive(), self._early))
        self._began = None
        self._reset()
        if not self.busy:
            self._next()
        elif not self._takes_more and self.transport is not None:
            self.transport.pause_reading()

    # --- answering ---------------------------------------------------------------------------------

    def _next(self) -> None:
        """Handle waiting requests, up to and including the first that cannot be answered at once.

        None is begun while the client does not read its answers.
        """
        while self._waiting and not self.busy and self._writable is None:
            request, self._keep_alive, early = self._waiting.popleft()
            if request.body:
                self._release(len(request.body))
            self.busy = True
            self._headless = request.method == "HEAD"
            self._plain = request.version == "1.0"
            answer = early or self._handler(request)
            if isinstance(answer, Response | Streaming):
                self._answer(answer)
            else:
                self._waits, self._answering = request.waits, request
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
        self._waits = self._answering = None
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
        if self._began is not None:
            self._began = time.monotonic()  # reading may have been paused for this answer
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

    def _refuse(self, status: int, text: bytes) -> None:
        """Answer what cannot be understood with an error and close, because the rest cannot be understood either."""
        if self._refused:
            return
        self._refused = True
        self._waiting.clear()
        if self.transport is None or self.transport.is_closing():
            return
        if not self.busy:
            self._keep_alive = False
            answer = Response(status, text, "text/plain; charset=utf-8")
            self.transport.write(self._head(answer, f"Content-Length: {len(text)}\r\n") + text)
        self.transport.close()

    def _stop(self, status: int, text: bytes) -> NoReturn:
        """Refuse, and leave the parser at once."""
        self._refuse(status, text)
        raise _Refused

    # --- the listener's side -----------------------------------------------------------------------

    def overdue(self, now: float) -> bool:
        """Whether a request that is being read takes too long."""
        began = self._began
        return began is not None and not self.busy and now - began > HEAD_SECONDS + self._size / SLOWEST_BODY

    def time_out(self) -> None:
        """Give up a request that takes too long to come."""
        if self._unread_size or self._request is not None:
            self._refuse(408, b"the request took too long to come\n")
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
