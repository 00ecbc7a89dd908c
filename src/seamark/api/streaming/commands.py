"""Exec and attach: the streams of a command, each a channel of one WebSocket.

The first byte of a message is its channel.  Channel 3 is the last: a Status that tells how the command ended, or in the
protocol without a version, a text if it failed.  Since v5 a client can also close a channel, by a message to channel
255: that is how its input ends.  The protocols with base64 are for clients that can only send text: the channel is a
digit there.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable
from typing import Any

import msgspec

from seamark import errors
from seamark.access.pod_streams import STDERR, STDIN, STDOUT, Command, Session
from seamark.api.streaming.sockets import WebSocket
from seamark.errors import Cause, Object

PROTOCOLS = (
    "v5.channel.k8s.io",
    "v4.channel.k8s.io",
    "v4.base64.channel.k8s.io",
    "base64.channel.k8s.io",
    "channel.k8s.io",
)
ERROR, RESIZE, CLOSE = 3, 4, 255
LINGER = 2.0  # seconds for output that children of an ended command still hold open


class Channels:
    """The channels of a WebSocket, in one of the protocols."""

    def __init__(self, socket: WebSocket, protocol: str) -> None:
        self._socket = socket
        self._as_text = "base64." in protocol
        self._versioned = protocol.startswith("v")
        self._held = b""  # of a message in base64: what cannot be decoded before the next piece

    async def send(self, channel: int, data: bytes) -> None:
        if self._as_text:
            await self._socket.send_text(f"{channel}{base64.b64encode(data).decode()}")
        else:
            await self._socket.send(bytes([channel]) + data)

    async def tell(self, status: Object) -> None:
        """How the command ended."""
        if self._versioned:
            await self.send(ERROR, msgspec.json.encode(status))
        elif status["status"] != "Success":
            await self.send(ERROR, status["message"].encode())

    async def receive(self) -> tuple[int | None, bytes]:
        """A piece of a message: its channel if it begins one, and None for more of the same."""
        begins, data = await self._socket.receive()
        channel = None
        if begins:
            channel, data, self._held = (data[0] if data else STDIN), data[1:], b""
        if self._as_text:
            channel = channel - ord("0") if channel else channel
            data = self._held + data
            whole = len(data) // 4 * 4
            data, self._held = base64.b64decode(data[:whole]), data[whole:]
        return channel, data


async def converse(socket: WebSocket, protocol: str, opening: Awaitable[Session], command: Command) -> None:
    """Until the command has ended or the client is gone; then the command is ended."""
    channels = Channels(socket, protocol)
    outgoing = [stream for stream in (STDOUT, STDERR) if stream in command.streams]
    try:
        session = await opening
    except errors.ApiError as error:
        await channels.tell(errors.status(error))
        return
    except OSError as error:
        await channels.tell(errors.status(_not_started(command, error)))
        return
    listening = asyncio.create_task(_listen(channels, session))
    outputs = [asyncio.create_task(_pass_on(channels, session, stream)) for stream in outgoing]
    ending = asyncio.ensure_future(session.ended())
    try:
        await channels.send((*outgoing, ERROR)[0], b"")  # which says that the connection is there
        await asyncio.wait([listening, ending], return_when=asyncio.FIRST_COMPLETED)
        if not ending.done():
            return
        if outputs:
            await asyncio.wait(outputs, timeout=LINGER)
        await channels.tell(ended(ending.result()))
    finally:
        # To the end, also if the client goes meanwhile, which cancels this task.
        await asyncio.shield(asyncio.ensure_future(_close(session, listening, ending, *outputs)))


async def _close(session: Session, *tasks: asyncio.Future[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await session.close()


async def _pass_on(channels: Channels, session: Session, stream: int) -> None:
    while data := await session.read(stream):
        await channels.send(stream, data)


async def _listen(channels: Channels, session: Session) -> None:
    """Until the client is gone."""
    channel, control = STDIN, b""
    while True:
        begun, data = await channels.receive()
        if begun is not None:
            channel, control = begun, b""
        if channel == STDIN:
            await session.write(data)
        elif channel == CLOSE and data[:1] == b"\0":
            session.end_input()
        elif channel == RESIZE:
            control = _resize(session, control + data)


def _resize(session: Session, control: bytes) -> bytes:
    """Do what a message says if it is complete; returns what is to be completed."""
    try:
        size = msgspec.json.decode(control, type=dict[str, int])
    except msgspec.DecodeError:
        return control[:4096]
    session.resize(size.get("Width", 0) & 0xFFFF, size.get("Height", 0) & 0xFFFF)
    return b""


def ended(code: int) -> Object:
    """The Status that tells how a command ended."""
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: exit status {code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [msgspec.to_builtins(Cause("ExitCode", str(code)))]},
    }


def _not_started(command: Command, error: OSError) -> errors.InternalError:
    program = command.words[0] if command.words else ""
    words = "executable file not found in $PATH" if isinstance(error, FileNotFoundError) else error.strerror or error
    return errors.InternalError(
        f'Internal error occurred: error executing command in container: exec: "{program}": {words}'
    )
