"""Requests and answers, as the protocol reads and writes them and as everything above it sees them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from seamark.api.http.fairness import Load
    from seamark.api.http.wire.protocol import Connection
    from seamark.api.http.wire.stream import Stream


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
    recorded: bool = False  # whether the audit log shall have what its body says
    parsed: Any = None  # what that is, if the body was read and would take long to read again, or is in protobuf
    subject: Mapping[str, str] = {}  # of which object its body speaks: name, namespace, uid and resourceVersion
    # For its turn, or for another server that may never answer: cancelled when the client is gone.
    waits: asyncio.Future[Any] | None = None
    gone: bool = False  # the client is


class Response(msgspec.Struct, gc=False):
    """One answer.  ``headers`` are beyond Content-Type and Content-Length."""

    status: int
    body: bytes | list[bytes] = b""
    content_type: str = "application/json"
    headers: Sequence[tuple[str, str]] = ()
    pack: bool = False  # whether the body is to be compressed while it is sent
    write: Callable[[], list[bytes]] | None = None  # makes the body, if that takes long
    plain: Callable[[], bytes] | None = None  # the same in JSON, for the audit log, if the body is in protobuf
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


# --- the head of an answer --------------------------------------------------------------------------

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


def head(answer: Response | Streaming, length: str, *, keep_alive: bool, plain: bool) -> bytes:
    """The lines before the body.  ``length`` is the one about its length; ``plain`` is for a client of HTTP/1.0."""
    lines = [length]
    if answer.content_type:
        lines.append(f"Content-Type: {answer.content_type}\r\n")
    kept = "Cache-Control: no-cache, private\r\n"  # unless the answer itself says whether it may be kept
    for name, value in answer.headers:
        lines.append(f"{name}: {value}\r\n")
        if name == "Cache-Control":
            kept = ""
    if not keep_alive:
        lines.append("Connection: close\r\n")
    elif plain:
        lines.append("Connection: keep-alive\r\n")
    lines += (_date(int(time.time())), kept, "\r\n")
    status = _STATUS_LINES.get(answer.status) or b"HTTP/1.1 %d Other\r\n" % answer.status
    return status + "".join(lines).encode("utf-8", "replace")


@lru_cache(maxsize=1)
def _date(second: int) -> str:
    return time.strftime("Date: %a, %d %b %Y %H:%M:%S GMT\r\n", time.gmtime(second))
