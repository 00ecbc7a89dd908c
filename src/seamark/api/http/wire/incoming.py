"""What comes in on a connection: bytes become requests, within bounds of size and time.

A request with a body is shown to ``admit`` as soon as its head is complete.  If that answers, the body is read but not
kept: clients without rights cannot make the server hold anything but the head.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import unquote

import httptools

from seamark.api.http.wire.messages import Admit, Request, Response

if TYPE_CHECKING:
    from seamark.api.http.wire.protocol import Connection

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

_request_line = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+ /\S* HTTP/1\.[01]\r?\n")


class _Refused(Exception):
    """Stops the parser in the middle of its data; the client has its answer."""


class Incoming:
    """Reads the requests of one connection, and hands each to it.  The methods ``on_…`` are called by httptools."""

    __slots__ = (
        "_admit",
        "_began",
        "_body",
        "_certificate",
        "_connection",
        "_early",
        "_headers",
        "_parser",
        "_request",
        "_size",
        "_unread_size",
        "_url",
        "closed",
        "head_size",
    )

    _connection: Connection  # while there is one
    _certificate: bytes | None

    def __init__(self, admit: Admit | None, now: float) -> None:
        self._admit = admit
        self._parser: Any = None  # made when something comes: it refers to this object
        self.closed = False  # what the client sends from now on is ignored
        self._unread_size = 0  # bytes since the last head or piece of a body: the size of what is not understood yet
        # When the request that is being read began to come; a new connection owes one from its start.
        self._began: float | None = now
        self._reset()

    def _reset(self) -> None:
        self._url = b""
        self._headers: dict[str, str] = {}
        self.head_size = 0
        self._request: Request | None = None  # once its head is complete
        self._early: Response | None = None  # the answer, if the head was enough for it
        self._body = bytearray()
        self._size = 0

    def attach(self, connection: Connection, certificate: bytes | None) -> None:
        """There is a connection; ``certificate`` is its client's."""
        self._connection = connection
        self._certificate = certificate

    def feed(self, data: bytes, now: float) -> bytes:
        """Read what has come; returns what is behind a request that asks for another protocol."""
        if self._parser is None:
            self._parser = httptools.HttpRequestParser(self)
        if self._began is None:
            self._began = now
        rest = b""
        self._unread_size += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            # What follows is another protocol only if the answer says so: a client waits for it.
            self._parser = httptools.HttpRequestParser(self)
            rest = data[upgrade.args[0] :]
        except httptools.HttpParserInvalidMethodError:
            # The parser has a list of methods; others are no less well-formed, and nothing here has them.
            if _request_line.match(data):
                self._connection.refuse(405, b"405: Method Not Allowed\n")
            else:
                self._connection.refuse(400, b"malformed HTTP request\n")
        except httptools.HttpParserError:
            self._connection.refuse(400, b"malformed HTTP request\n")
        if self._unread_size > MAX_HEAD:
            self._connection.refuse(431, b"request header fields too large\n")
        return rest

    def drop(self) -> None:
        """The connection is gone.

        It and the parser refer to this object, and this object to them.  Without that, all three and what they hold go
        now, not with the next collection of garbage.
        """
        self._parser = None
        del self._connection
        self.closed = True
        self._reset()

    # --- httptools' side ---------------------------------------------------------------------------

    def on_url(self, url: bytes) -> None:
        self._url += url
        self.head_size += len(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self.head_size += LINE_COST + len(name) + len(value)
        if self.head_size > MAX_HEAD:
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
            peer=self._connection.peer,
            version=version,
        )
        length = headers.get("content-length", "0")
        if length == "0" and "transfer-encoding" not in headers:
            return
        request.too_large = len(length) > 12 or int(length) > MAX_BODY
        if self._admit is not None:
            self._early = self._admit(request)
        if headers.get("expect", "").lower() == "100-continue":
            self._connection.invite(request, self._early)

    def on_body(self, body: bytes) -> None:
        self._unread_size = 0
        request = self._request
        if request is None or self.closed:
            return
        self._size += len(body)
        if self._early is None and not request.too_large and not request.crowded:
            self._body += body
            held_by_all = self._connection.hold(len(body))
            request.too_large = self._size > MAX_BODY
            request.crowded = held_by_all > MAX_BODIES
            if request.too_large or request.crowded:
                self._connection.hold(-len(self._body))
                self._body = bytearray()
        if self._size > MAX_DRAINED:
            self._stop(413, b"request entity too large\n")

    def on_message_complete(self) -> None:
        request, early = self._request, self._early
        if request is None or self.closed:
            return
        request.body = bytes(self._body)
        keep_alive = self._parser.should_keep_alive()
        self._began = None
        self._reset()
        self._connection.take_request(request, keep_alive, early)

    def _stop(self, status: int, text: bytes) -> NoReturn:
        """Refuse, and leave the parser at once."""
        self._connection.refuse(status, text)
        raise _Refused

    # --- the clock ---------------------------------------------------------------------------------

    def overdue(self, now: float) -> bool:
        """Whether the request that is being read takes too long."""
        began = self._began
        return began is not None and now - began > HEAD_SECONDS + self._size / SLOWEST_BODY

    @property
    def begun(self) -> bool:
        """Whether a part of a request has come."""
        return self._unread_size > 0 or self._request is not None

    def restart_clock(self) -> None:
        """Reading may have been paused: that time is not the client's."""
        if self._began is not None:
            self._began = time.monotonic()
