"""HTTP/1.1 on a transport: bytes become a :class:`Request`, an answer becomes bytes.  Nothing here knows Kubernetes.

A protocol of our own on httptools rather than a web framework: an API server needs the client's certificate, back
pressure on streams, one write for many events, and a small cost per request (docs/architecture.md has the figures).
One connection handles one request at a time; pipelined ones wait their turn.

A request with a body is shown to ``admit`` as soon as its head is complete.  If that answers, the body is read but not
kept: clients without rights cannot make the server hold anything but the head.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NoReturn
from urllib.parse import unquote

import httptools
import msgspec

from seamark.api.http.fairness import Load
from seamark.api.http.pieces import PIECE, Senders, packed, pieces_of
from seamark.api.http.unread import Unread

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
# After this time a client that does not read no longer keeps others waiting.  What its answer holds counts as unread.
UNREAD_SECONDS = 1.0
# A stream's reader that lets this much pile up is too slow: it is cut off and has to list again.
MAX_STREAM_BACKLOG = 16 * 1024 * 1024

REASONS = {
    200: "OK",
    201: "Created",
    202: "Accepted",
    204: "No Content",
    301: "Moved Permanently",
    304: "Not Modified",
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    406: "Not Acceptable",
    408: "Request Timeout",
    409: "Conflict",
    410: "Gone",
    413: "Request Entity Too Large",
    415: "Unsupported Media Type",
    422: "Unprocessable Entity",
    429: "Too Many Requests",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    501: "Not Implemented",
    502: "Bad Gateway",
    503: "Service Unavailable",
    504: "Gateway Timeout",
}
_STATUS_LINES = {code: f"HTTP/1.1 {code} {reason}\r\n".encode() for code, reason in REASONS.items()}


@lru_cache(maxsize=1)
def _date(second: int) -> str:
    return time.strftime("Date: %a, %d %b %Y %H:%M:%S GMT\r\n", time.gmtime(second))


class Request(msgspec.Struct, gc=False):
    """One request, complete unless it is shown to ``admit``.  Header names are lower case."""

    method: str
    path: str  # percent-decoded
    query: str
    headers: dict[str, str]
    body: bytes = b""
    too_large: bool = False
    certificate: bytes | None = None  # the client's, DER, already verified by TLS
    peer: str = ""
    version: str = "1.1"
    crowded: bool = False  # the body was not kept, because too many others wait
    checked: Any = None  # what ``admit`` has found out about the head
    waits: asyncio.Future[Any] | None = None  # for its turn: cancelled when the client is gone


class Response(msgspec.Struct, gc=False):
    """One answer.  ``headers`` are beyond Content-Type and Content-Length."""

    status: int
    body: bytes | list[bytes] = b""
    content_type: str = "application/json"
    headers: Sequence[tuple[str, str]] = ()
    pack: bool = False  # whether the body is to be compressed while it is sent
    load: Load | None = None  # released when the client has been sent all, is gone, or does not read


class Streaming(msgspec.Struct, gc=False):
    """An answer that goes on: its head is sent, then ``start`` gets the :class:`Stream` to write to."""

    start: Callable[[Stream], None]
    content_type: str = "application/json"
    headers: Sequence[tuple[str, str]] = ()
    status: int = 200
    # Makes the head and the stream of an answer in another protocol, if the client asked for one.
    upgrade: Callable[[Connection], tuple[bytes, Stream]] | None = None


Handler = Callable[[Request], Response | Streaming | Awaitable[Response | Streaming]]
# Looks at the head of a request whose body has not come: an answer means that the body is not needed.
Admit = Callable[[Request], Response | None]


class _Refused(Exception):
    """Stops the parser in the middle of its data; the client has its answer."""


class Stream:
    """The writing end of a streaming answer.  Data must already be in HTTP chunks (:func:`frame`)."""

    __slots__ = ("_connection", "_transport", "on_close", "on_end", "on_writable", "stalled")

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._transport = connection.transport
        # Whether the reader has yet to take what was written; wait for :meth:`drain` or ``on_writable``.
        self.stalled = connection.stalled_since is not None
        self.on_close: Callable[[], None] | None = None  # called when the reader is gone
        self.on_end: Callable[[], None] | None = None  # called when the answer has ended, by either side
        self.on_writable: Callable[[], None] | None = None  # called when the reader has caught up after a stall

    def write(self, frames: bytes | memoryview) -> bool:
        """False once the reader is gone or so slow that it was cut off."""
        transport = self._transport
        if transport.is_closing():
            return False
        transport.write(frames)
        if self.stalled and transport.get_write_buffer_size() > MAX_STREAM_BACKLOG:
            self.abort()
            return False
        return True

    async def drain(self) -> bool:
        """Wait until the reader has taken most of what was written; False once it is gone."""
        await self._connection.writable()
        return not self._transport.is_closing()

    def abort(self) -> None:
        """Cut the reader off."""
        self._transport.abort()

    def finish(self) -> None:
        """End the answer cleanly; the connection can be used again."""
        self.on_close = self.on_writable = None
        self.ended()
        self._connection.end_stream()

    def last(self) -> bytes:
        """What tells the reader that the answer is complete."""
        return b"0\r\n\r\n"

    def received(self, data: bytes) -> bytes | None:
        """What to answer to bytes that come meanwhile; None to close.  Only upgraded connections have such bytes."""
        raise NotImplementedError

    def ended(self) -> None:
        on_end, self.on_end = self.on_end, None
        if on_end is not None:
            on_end()


class Unchunked(Stream):
    """A stream without chunks, for a client of HTTP/1.0: its answer ends with the connection."""

    __slots__ = ("_rest",)

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._rest = b""  # of a chunk that is not complete

    def write(self, frames: bytes | memoryview) -> bool:
        data, pieces, at = self._rest + bytes(frames), [], 0
        while (start := data.find(b"\r\n", at) + 2) > 1:
            end = start + int(data[at : start - 2], 16)
            if len(data) < end + 2:
                break
            pieces.append(data[start:end])
            at = end + 2
        self._rest = data[at:]
        return super().write(self.join(pieces))

    def join(self, pieces: list[bytes]) -> bytes:
        """What is written for the contents of some chunks."""
        return b"".join(pieces)

    def last(self) -> bytes:
        return b""


class Connections(set["Connection"]):
    """The open connections of a server; says when the last one has gone."""

    def __init__(self, unread: Unread | None = None) -> None:
        super().__init__()
        self.entering: dict[Connection, asyncio.Task[None]] = {}  # those whose TLS handshake is not done
        self.held = 0  # bytes of bodies that wait to be complete, or for their turn
        self.unread = unread or Unread(sys.maxsize)  # bytes of answers that clients do not read
        self.senders = Senders()  # those with a piece of a long answer to write
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
        "_load",
        "_parser",
        "_patience",
        "_peers",
        "_pieces",
        "_plain",
        "_refused",
        "_request",
        "_size",
        "_task",
        "_unread_size",
        "_unsent",
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
        self._parser: Any = httptools.HttpRequestParser(self)
        # Complete requests, whether the connection stays afterwards, and the answer if the head was enough for it.
        self._waiting: deque[tuple[Request, bool, Response | None]] = deque()
        self._held = 0  # bytes of bodies that are part of ``peers.held``
        self._task: asyncio.Task[None] | None = None
        self._waits: asyncio.Future[Any] | None = None  # the turn of the request that waits for one
        # A long answer that is being sent: its pieces, its bytes that are not written, its part of the room for such
        # answers, and what gives up a client that does not read.
        self._pieces: Iterator[bytes] | None = None
        self._unsent = 0
        self._load: Load | None = None
        self._patience: asyncio.Handle | None = None
        self._certificate: bytes | None = None
        self._writable: asyncio.Future[None] | None = None  # set while the transport's buffer is full
        self._keep_alive = True
        self._headless = False  # HEAD was asked: only the head is answered
        self._plain = False  # the client speaks HTTP/1.0
        self._upgraded = False  # the client speaks another protocol since its last request
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
        # The parser refers to this connection: without it, bodies go with the connection, not with the next collection.
        self._parser = None
        self._refused = True
        self._waiting.clear()
        self._release(self._held)
        self._reset()
        if self._waits is not None:
            self._waits.cancel()
        self._stop_sending()
        self.resume_writing()
        stream, self.stream = self.stream, None
        if stream is not None:
            stream.ended()
            stream.on_writable = None  # it refers to what refers to the stream, as the parser does
            if stream.on_close is not None:
                on_close, stream.on_close = stream.on_close, None
                on_close()

    def data_received(self, data: bytes) -> None:
        self.last_active = now = time.monotonic()
        if self._refused:
            return
        if self._upgraded and self.stream is not None:
            self._received(self.stream.received(data))
            return
        if self._began is None:
            self._began = now
        self._unread_size += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            # Of the upgrades only watches over WebSockets are supported; other requests are answered in HTTP.
            self._parser = httptools.HttpRequestParser(self)
            if rest := data[upgrade.args[0] :]:
                self.data_received(rest)
        except httptools.HttpParserError:
            self._refuse(400, b"malformed HTTP request\n")
        if self._unread_size > MAX_HEAD:
            self._refuse(431, b"request header fields too large\n")

    def _received(self, answer: bytes | None) -> None:
        if answer is None and self.transport is not None:
            self.transport.close()
        elif answer and self.transport is not None:
            self.transport.write(answer)

    def pause_writing(self) -> None:
        """The client does not read fast enough: take no further requests from it until it has caught up."""
        if self._writable is None:
            self._writable = asyncio.get_running_loop().create_future()
            self.stalled_since = time.monotonic()
            if self.stream is not None:
                self.stream.stalled = True
            elif self.transport is not None:
                self.transport.pause_reading()
            if self._pieces is not None:
                self._patience = asyncio.get_running_loop().call_later(UNREAD_SECONDS, self._unread)

    def resume_writing(self) -> None:
        waiting, self._writable = self._writable, None
        self.stalled_since = None
        if self.stream is not None:
            self.stream.stalled = False
        if waiting is not None and not waiting.done():
            waiting.set_result(None)
        if self.transport is not None and not self.transport.is_closing():
            self.transport.resume_reading()
            if not self.busy:
                self._next()
            elif self._pieces is not None:
                self._peers.unread.moves(self)
                self._wait_no_longer()
                self._peers.senders.add(self)
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
                self._waits = request.waits
                self._task = asyncio.ensure_future(self._wait(answer))
        if self.transport is not None and self._writable is None and self._takes_more:
            self.transport.resume_reading()

    @property
    def _takes_more(self) -> bool:
        return len(self._waiting) < MAX_PIPELINED and self._held <= MAX_BODY

    async def _wait(self, answer: Awaitable[Response | Streaming]) -> None:
        made = await answer
        self._waits = None
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
        head = self._head(answer, "Transfer-Encoding: chunked\r\n" if answer.pack else f"Content-Length: {size}\r\n")
        if size > PIECE and not self._headless:
            pieces = pieces_of(body)
            self._pieces, self._unsent, self._load = packed(pieces) if answer.pack else pieces, size, answer.load
            self.transport.write(head)
            self._peers.senders.add(self)
            return
        if answer.load is not None:
            answer.load.release()
        if self._headless:
            self.transport.write(head)
        else:
            self.transport.write(head + (b"".join(body) if isinstance(body, list) else body))
        self._answered()

    def send_piece(self) -> None:
        """Write the next piece of a long answer; the one after it when other connections have had their turn."""
        if self._pieces is None or self._writable is not None or self.transport is None or self.transport.is_closing():
            return
        piece = next(self._pieces, None)
        if piece is None:
            self._stop_sending()
            self._answered()
            self._next()
            return
        self._unsent -= PIECE
        self.transport.write(piece)
        if self._writable is None:
            self._peers.senders.add(self)

    def _unread(self) -> None:
        """The client does not read: others need not wait for it."""
        if self._load is not None:
            self._load.release()
        self._peers.unread.stalls(self, max(0, self._unsent) + PIECE)

    def _wait_no_longer(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _stop_sending(self) -> None:
        self._pieces = None
        self._wait_no_longer()
        self._peers.unread.moves(self)
        load, self._load = self._load, None
        if load is not None:
            load.release()

    def _begin_stream(self, answer: Streaming) -> Stream:
        if answer.upgrade is not None:
            self._upgraded, self._keep_alive = True, False
            head, stream = answer.upgrade(self)
            self.transport.write(head)
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
        lines = [length]
        if answer.content_type:
            lines.append(f"Content-Type: {answer.content_type}\r\n")
        lines += [f"{name}: {value}\r\n" for name, value in answer.headers]
        if not self._keep_alive:
            lines.append("Connection: close\r\n")
        elif self._plain:
            lines.append("Connection: keep-alive\r\n")
        lines += (_date(int(time.time())), "Cache-Control: no-cache, private\r\n\r\n")
        status = _STATUS_LINES.get(answer.status) or b"HTTP/1.1 %d Other\r\n" % answer.status
        return status + "".join(lines).encode("utf-8", "replace")

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
