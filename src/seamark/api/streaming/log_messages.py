"""A log over a WebSocket: its pieces are messages, of bytes or, for clients that can only read text, in base64."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator

from seamark.api.streaming.sockets import WebSocket

BASE64 = "base64.binary.k8s.io"
PROTOCOLS = ("binary.k8s.io", BASE64)


async def pump(socket: WebSocket, *, pieces: AsyncIterator[bytes], protocol: str) -> None:
    """Until the log ends; the first message is empty and says that the connection is there."""
    await socket.send(b"")
    async for piece in pieces:
        if protocol == BASE64:
            await socket.send_text(base64.b64encode(piece).decode())
        else:
            await socket.send(piece)
