"""Exec and attach: the streams of a command, each a channel of one WebSocket.

The first byte of a message is its channel.  Channel 3 is the last: a Status that tells how the command ended.  Since v5
a client can also close a channel, by a message to channel 255: that is how its input ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

import msgspec

from seamark import errors
from seamark.access.pod_streams import STDERR, STDIN, STDOUT, Command, Session
from seamark.api.streaming.sockets import WebSocket
from seamark.errors import Cause, Object

PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
ERROR, RESIZE, CLOSE = 3, 4, 255
LINGER = 2.0  # seconds for output that children of an ended command still hold open


async def converse(socket: WebSocket, opening: Awaitable[Session], command: Command) -> None:
    """Until the command has ended or the client is gone; then the command is ended."""
    try:
        session = await opening
    except errors.ApiError as error:
        await socket.send(_told(errors.status(error)))
        return
    except OSError as error:
        await socket.send(_told(errors.status(_not_started(command, error))))
        return
    listening = asyncio.create_task(_listen(socket, session))
    outputs = [
        asyncio.create_task(_pass_on(socket, session, stream))
        for stream in (STDOUT, STDERR)
        if stream in command.streams
    ]
    ending = asyncio.ensure_future(session.ended())
    try:
        await asyncio.wait([listening, ending], return_when=asyncio.FIRST_COMPLETED)
        if not ending.done():
            return
        if outputs:
            await asyncio.wait(outputs, timeout=LINGER)
        await socket.send(_told(ended(ending.result())))
    finally:
        # To the end, also if the client goes meanwhile, which cancels this task.
        await asyncio.shield(asyncio.ensure_future(_close(session, listening, ending, *outputs)))


async def _close(session: Session, *tasks: asyncio.Future[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await session.close()


async def _pass_on(socket: WebSocket, session: Session, stream: int) -> None:
    while data := await session.read(stream):
        await socket.send(bytes([stream]) + data)


async def _listen(socket: WebSocket, session: Session) -> None:
    """Until the client is gone."""
    channel, control = STDIN, b""
    while True:
        begins, data = await socket.receive()
        if begins:
            if not data:
                continue
            channel, data, control = data[0], data[1:], b""
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


def _told(status: Object) -> bytes:
    return bytes([ERROR]) + msgspec.json.encode(status)


def _not_started(command: Command, error: OSError) -> errors.InternalError:
    program = command.words[0] if command.words else ""
    words = "executable file not found in $PATH" if isinstance(error, FileNotFoundError) else error.strerror or error
    return errors.InternalError(
        f'Internal error occurred: error executing command in container: exec: "{program}": {words}'
    )
