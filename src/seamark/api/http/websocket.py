"""WebSockets: how they begin, and watches over them, as browsers ask for them: every event is one message.

A browser cannot set headers on a WebSocket, so its token comes as one of the subprotocols that it offers
(:mod:`seamark.api.authentication`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING

from seamark.api.authentication import BEARER_PROTOCOL, subprotocols
from seamark.api.http.wire.messages import Request
from seamark.api.http.wire.protocol import Connection
from seamark.api.http.wire.stream import Unchunked

if TYPE_CHECKING:
    from wsproto.connection import Connection as Messages
    from wsproto.events import Event

# Messages, or parts of them, that are looked at in one turn: each takes its time, however short it is.
AT_ONCE = 64


def asked_for(headers: Mapping[str, str]) -> bool:
    """Whether a request asks to go on as a WebSocket."""
    return headers.get("upgrade", "").lower() == "websocket" and "sec-websocket-key" in headers


def head(request: Request, protocol: str = "") -> bytes:
    """The head of the answer that turns a connection into a WebSocket."""
    from wsproto.utilities import generate_accept_token

    accepted = generate_accept_token(request.headers["sec-websocket-key"].encode()).decode()
    lines = ["HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade"]
    lines.append(f"Sec-WebSocket-Accept: {accepted}")
    if protocol:
        lines.append(f"Sec-WebSocket-Protocol: {protocol}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def upgraded(request: Request, content_type: str, connection: Connection) -> tuple[bytes, MessageStream]:
    """The head of the answer, and the stream that events are written to."""
    chosen = [name for name in subprotocols(request.headers) if not name.startswith(BEARER_PROTOCOL)]
    stream = MessageStream(connection, binary=content_type != "application/json")
    return head(request, chosen[0] if chosen else ""), stream


def heard(messages: Messages, data: bytes) -> Iterator[Event]:
    """The next events of a WebSocket, now that these bytes have come; there may be more if there are ``AT_ONCE``."""
    messages.receive_data(data)
    return islice(messages.events(), AT_ONCE)


class MessageStream(Unchunked):
    """The writing end of a watch whose client asked for a WebSocket."""

    __slots__ = ("_binary", "_messages")

    def __init__(self, connection: Connection, *, binary: bool) -> None:
        from wsproto.connection import Connection as Messages
        from wsproto.connection import ConnectionType

        super().__init__(connection)
        self._messages = Messages(ConnectionType.SERVER)
        self._binary = binary

    def join(self, pieces: list[bytes]) -> bytes:
        from wsproto.events import BytesMessage, TextMessage

        if self._binary:
            return b"".join([self._messages.send(BytesMessage(piece)) for piece in pieces])
        return b"".join([self._messages.send(TextMessage(piece.decode())) for piece in pieces])

    def received(self, data: bytes) -> bytes | None:
        """What to answer to bytes from the client; None if it closes or does not speak the protocol."""
        from wsproto.events import CloseConnection, Ping

        answer, self.more = b"", False
        for number, event in enumerate(heard(self._messages, data), 1):
            self.more = number == AT_ONCE
            if isinstance(event, CloseConnection):
                return None
            if isinstance(event, Ping):
                answer = self._messages.send(event.response())  # to the last one is enough (RFC 6455, section 5.5.3)
        return answer

    def last(self) -> bytes:
        from wsproto.events import CloseConnection

        return self._messages.send(CloseConnection(1000))
