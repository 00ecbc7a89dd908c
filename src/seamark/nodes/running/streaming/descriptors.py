"""Pipes and terminals read and written by tasks: a task waits while there is nothing to read, or no room to write."""

from __future__ import annotations

import asyncio
import fcntl
import os
import struct
import termios
from collections.abc import Callable

_CHUNK = 64 << 10


async def read(opened: int) -> bytes:
    """Some bytes; none at the end."""
    loop = asyncio.get_running_loop()
    while True:
        try:
            return os.read(opened, _CHUNK)
        except BlockingIOError:
            await _wait(loop.add_reader, loop.remove_reader, opened)
        except OSError:  # the other end of a terminal is gone
            return b""


async def write(opened: int, data: bytes) -> None:
    """All of these bytes; raises ``OSError`` if nothing reads them any more."""
    loop = asyncio.get_running_loop()
    while data:
        try:
            data = data[os.write(opened, data) :]
        except BlockingIOError:
            await _wait(loop.add_writer, loop.remove_writer, opened)


def resize(terminal: int, width: int, height: int) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))


async def _wait(add: Callable[..., object], remove: Callable[[int], object], opened: int) -> None:
    ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    add(opened, _resolve, ready)
    try:
        await ready
    finally:
        remove(opened)


def _resolve(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)
