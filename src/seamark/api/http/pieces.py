"""Long answers are written in pieces, and the connections that have one to write take turns."""

from __future__ import annotations

import asyncio
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from typing import Protocol

# Longer answers are written in pieces of this size, each when the client has read most of the last.
PIECE = 128 * 1024
# Seconds of writing after which the event loop looks at all connections again.
TURN = 0.002


def pieces_of(body: bytes | list[bytes]) -> Iterator[bytes]:
    """A long body in pieces of about the same size, each made when it is needed."""
    batch: list[bytes] = []
    size = 0
    for each in body if isinstance(body, list) else [body]:
        for at in range(0, len(each), PIECE) if len(each) > PIECE else (0,):
            batch.append(each[at : at + PIECE])
            size += len(batch[-1])
            if size >= PIECE:
                yield b"".join(batch)
                batch.clear()
                size = 0
    if batch:
        yield b"".join(batch)


def packed(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The pieces of a body as chunks of its compressed form."""
    packer = zlib.compressobj(1, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    for piece in pieces:
        if data := packer.compress(piece):
            yield frame(data)
    yield frame(packer.flush()) + b"0\r\n\r\n"


def frame(data: bytes) -> bytes:
    """One HTTP chunk: made once per event, then written to every reader."""
    return b"%x\r\n%b\r\n" % (len(data), data)


class Sender(Protocol):
    """A connection with a long answer."""

    def send_piece(self) -> None:
        """Write one piece, unless the client is gone or does not read."""
        ...


class Senders:
    """Those with a piece to write, each in its turn, and only for a short time in one turn of the event loop."""

    def __init__(self, *, now: Callable[[], float] = time.perf_counter) -> None:
        self._now = now
        self._ready: deque[Sender] = deque()
        self._next: asyncio.Handle | None = None

    def add(self, sender: Sender) -> None:
        self._ready.append(sender)
        if self._next is None:
            self._next = asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        until = self._now() + TURN
        try:
            for _ in range(len(self._ready)):  # a sender that comes back has its next piece in the next turn
                self._ready.popleft().send_piece()
                if self._now() >= until:
                    break
        finally:
            self._next = asyncio.get_running_loop().call_soon(self._turn) if self._ready else None
