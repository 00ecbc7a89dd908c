"""Moves bytes between a client and a backend until both have ended, at the pace of the slower side."""

from __future__ import annotations

import asyncio
from typing import Protocol

CHUNK = 64 * 1024


class Stream(Protocol):
    """A connection to a backend."""

    async def receive(self) -> bytes:
        """Some bytes; none at the end."""
        ...

    async def send(self, data: bytes) -> None: ...

    async def end(self) -> None:
        """Send no more, but go on receiving."""
        ...

    async def over(self) -> None:
        """Return once neither direction can carry anything more."""
        ...

    @property
    def problem(self) -> str:
        """What the other side said went wrong, if anything."""
        ...

    async def close(self) -> None: ...


async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, stream: Stream) -> None:
    """Carry a client's connection over a stream; raises ``OSError`` if one of the two breaks."""
    up = asyncio.create_task(_up(reader, stream))
    down = asyncio.create_task(_down(stream, writer))
    try:
        await asyncio.wait({up, down}, return_when=asyncio.FIRST_COMPLETED)
        if not down.done():
            up.result()
        await down
    finally:
        for task in (up, down):
            task.cancel()
        await asyncio.gather(up, down, return_exceptions=True)


async def _up(reader: asyncio.StreamReader, stream: Stream) -> None:
    while data := await reader.read(CHUNK):
        await stream.send(data)
    await stream.end()


async def _down(stream: Stream, writer: asyncio.StreamWriter) -> None:
    while data := await stream.receive():
        writer.write(data)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()
    await stream.over()
