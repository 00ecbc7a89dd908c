"""Exec and attach: a conversation between a client and a command, in the channels that the client has chosen."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from seamark import errors
from seamark.access.pod_streams import STDERR, STDIN, STDOUT, Command, Session
from seamark.api.streaming.channels import RESIZE, Channels
from seamark.errors import Cause, Object

LINGER = 2.0  # seconds for output that children of an ended command still hold open
AFTER_CLOSE = 10.0  # seconds for a command to end by itself after its client has closed the connection
_LONGEST_SIZE = 4096  # bytes of what tells the size of a terminal


async def converse(channels: Channels, command: Command, open: Callable[[], Awaitable[Session]]) -> None:
    """Until the command has ended or the client is gone; then the command is ended.

    A client that closes its WebSocket, and does not just vanish, has ended the input: before v5 there is no other way,
    and clients that upload files close it as soon as all is sent.
    """
    await channels.begin(command)
    try:
        session = await open()
    except errors.ApiError as error:
        await channels.tell(errors.status(error))
        return
    except OSError as error:
        await channels.tell(errors.status(_not_started(command, error)))
        return
    listening = asyncio.create_task(_listen(channels, session))
    outgoing = [stream for stream in (STDOUT, STDERR) if stream in command.streams]
    outputs = [asyncio.create_task(_pass_on(channels, session, stream)) for stream in outgoing]
    ending = asyncio.ensure_future(session.ended())
    try:
        await asyncio.wait([listening, ending], return_when=asyncio.FIRST_COMPLETED)
        if not ending.done() and command.words and STDIN in command.streams and not command.terminal:
            session.end_input()
            await asyncio.wait([ending], timeout=AFTER_CLOSE)
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
    """To the end, also if the client has closed the connection: a command whose output is not read would not go on."""
    while data := await session.read(stream):
        with contextlib.suppress(ConnectionError):
            await channels.send(stream, data)
    with contextlib.suppress(ConnectionError):
        await channels.end(stream)


async def _listen(channels: Channels, session: Session) -> None:
    """Until the client is gone."""
    sizes = b""
    while True:
        channel, data = await channels.receive()
        if channel == STDIN and data is None:
            session.end_input()
        elif channel == STDIN and data is not None:
            await session.write(data)
        elif channel == RESIZE and data is not None:
            sizes = _resize(session, sizes + data)


def _resize(session: Session, sizes: bytes) -> bytes:
    """Do what the last complete object says; returns what is to be completed."""
    whole, brace, rest = sizes.rpartition(b"}")
    if brace:
        with contextlib.suppress(msgspec.DecodeError):
            size = msgspec.json.decode(b"{" + whole.rpartition(b"{")[2] + brace, type=dict[str, int])
            session.resize(size.get("Width", 0) & 0xFFFF, size.get("Height", 0) & 0xFFFF)
    return rest[:_LONGEST_SIZE]


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
    return errors.internal(f'error executing command in container: exec: "{program}": {words}')
