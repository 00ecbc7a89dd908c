"""A command in a Pod, as ``kubectl exec`` runs it: its streams and its exit code over one WebSocket."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from seamark.access.sending import Request
from seamark.access.transport import Transport
from seamark.kinds.resource import PODS

if TYPE_CHECKING:
    import aiohttp

PROTOCOL = "v5.channel.k8s.io"
STDIN, STDOUT, STDERR, STATUS, RESIZE, CLOSE = 0, 1, 2, 3, 4, 255


class RemoteCommand:
    """A command that runs; ``output`` ends when it does, and then ``code`` is its exit code."""

    def __init__(self, websocket: aiohttp.ClientWebSocketResponse) -> None:
        self._websocket = websocket
        self.code = 0
        self.problem = ""

    @classmethod
    async def start(
        cls, transport: Transport, namespace: str, pod: str, container: str, command: Sequence[str], *, terminal: bool
    ) -> RemoteCommand:
        """Raises an ``ApiError`` if the server refuses."""
        query = [("container", container), *(("command", word) for word in command)]
        query += [("stdin", "true"), ("stdout", "true"), ("stderr", "false" if terminal else "true")]
        query.append(("tty", "true" if terminal else "false"))
        path = PODS.path(namespace=namespace, name=pod, subresource="exec")
        return cls(await transport.websocket(Request("GET", path, tuple(query)), PROTOCOL))

    async def send(self, data: bytes) -> None:
        await self._websocket.send_bytes(bytes([STDIN]) + data)

    async def end_input(self) -> None:
        await self._websocket.send_bytes(bytes([CLOSE, STDIN]))

    async def resize(self, columns: int, rows: int) -> None:
        await self._websocket.send_bytes(bytes([RESIZE]) + msgspec.json.encode({"Width": columns, "Height": rows}))

    async def output(self) -> AsyncIterator[tuple[int, bytes]]:
        """What it writes, by stream."""
        async for message in self._websocket:
            data = message.data if isinstance(message.data, bytes) else b""
            if data[:1] == bytes([STATUS]):
                self.code, self.problem = outcome(msgspec.json.decode(data[1:]))
                break
            if len(data) > 1:
                yield data[0], data[1:]

    async def close(self) -> None:
        await self._websocket.close()


def outcome(status: dict[str, Any]) -> tuple[int, str]:
    """The exit code that a Status tells, and what went wrong if it tells none."""
    if status.get("status") == "Success":
        return 0, ""
    for cause in (status.get("details") or {}).get("causes") or ():
        if cause.get("reason") == "ExitCode":
            return int(cause["message"]), ""
    return 1, str(status.get("message", ""))
