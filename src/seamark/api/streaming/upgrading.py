"""How a connection goes on after its request: as a WebSocket, or in SPDY/3.1, and in which protocol within that.

A client names the protocols that it knows, in the order in which it likes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from seamark import errors
from seamark.api.authentication import BEARER_PROTOCOL, subprotocols
from seamark.api.http.websocket import asked_for, head
from seamark.api.http.wire.messages import Request, Response
from seamark.api.streaming.sockets import PlainSocket, Socket, WebSocket

SPDY = "SPDY/3.1"
VERSION = "X-Stream-Protocol-Version"
ACCEPTED_VERSIONS = "X-Accepted-Stream-Protocol-Versions"


class Upgrade(msgspec.Struct, frozen=True):
    """The protocol, the head of the answer, and what the connection is from then on."""

    protocol: str
    head: bytes
    socket: type[Socket]


def as_websocket(request: Request, known: Iterable[str]) -> Upgrade:
    """Raises BadRequest if the client asks for no WebSocket, or for none of these protocols."""
    if not asked_for(request.headers):
        raise errors.BadRequest("Upgrade request required")
    offered = [each for each in subprotocols(request.headers) if not each.startswith(BEARER_PROTOCOL)]
    found = next((each for each in offered if each in known), "")
    if not found and offered:
        raise errors.BadRequest(f"unable to upgrade: unable to negotiate protocol: client supports {offered}")
    return Upgrade(found, head(request, found), WebSocket)


def as_either(request: Request, known: Iterable[str], in_spdy: Sequence[str]) -> Upgrade | Response:
    """The same, or SPDY; the refusal of a client of SPDY names the protocols that are known."""
    if not _asked_for_spdy(request.headers):
        return as_websocket(request, known)
    texts = request.headers.get(VERSION.lower(), "").split(",")
    offered = [name for each in texts if (name := each.strip())]
    if not offered:
        raise errors.BadRequest(f"unable to upgrade: {VERSION} is required")
    found = next((each for each in offered if each in in_spdy), "")
    if not found:
        sentence = f"client supports [{' '.join(offered)}], server accepts [{' '.join(in_spdy)}]"
        return Response(
            403,
            f"unable to upgrade: unable to negotiate protocol: {sentence}\n".encode(),
            "text/plain; charset=utf-8",
            [(ACCEPTED_VERSIONS, each) for each in in_spdy],
        )
    lines = ("HTTP/1.1 101 Switching Protocols", f"Upgrade: {SPDY}", "Connection: Upgrade", f"{VERSION}: {found}")
    return Upgrade(found, "\r\n".join([*lines, "", ""]).encode(), PlainSocket)


def _asked_for_spdy(headers: Mapping[str, str]) -> bool:
    return SPDY.lower() in headers.get("upgrade", "").lower() and "upgrade" in headers.get("connection", "").lower()
