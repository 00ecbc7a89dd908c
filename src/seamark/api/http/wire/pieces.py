"""Long answers are written in pieces, and the connections that have one to write take turns."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from seamark.runtime.turns import Turns

if TYPE_CHECKING:
    from seamark.api.http.fairness import Load
    from seamark.api.http.wire.messages import Response
    from seamark.api.http.wire.protocol import Connection
    from seamark.api.http.wire.unread import Unread

# Longer answers are written in pieces of this size, each when the client has read most of the last.
PIECE = 128 * 1024
# After this time a client that does not read no longer keeps others waiting.  What its answer holds counts as unread.
UNREAD_SECONDS = 1.0


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


class LongAnswer:
    """A long answer that is being sent to a client, from the first piece on."""

    __slots__ = ("_connection", "_load", "_patience", "_pieces", "_senders", "_unread", "_unsent")

    def __init__(self, connection: Connection, answer: Response, size: int, senders: Turns, unread: Unread) -> None:
        self._connection = connection
        pieces = pieces_of(answer.body)
        self._pieces: Iterator[bytes] | None = packed(pieces) if answer.pack else pieces  # None once it is stopped
        self._unsent = size  # bytes that are not written
        self._load: Load | None = answer.load  # its part of the room for such answers
        self._patience: asyncio.Handle | None = None  # gives up a client that does not read
        self._senders = senders
        self._unread = unread
        senders.add(self.send_piece)

    def send_piece(self) -> None:
        """Write the next piece, unless the client is gone or does not read; the one after it in another turn."""
        connection = self._connection
        transport = connection.transport
        stalled = connection.stalled_since is not None
        if self._pieces is None or stalled or transport is None or transport.is_closing():
            return
        piece = next(self._pieces, None)
        if piece is None:
            connection.sent()
            return
        self._unsent -= PIECE
        transport.write(piece)
        if connection.stalled_since is None:
            self._senders.add(self.send_piece)

    def stalls(self) -> None:
        """The client does not take what was written."""
        self._patience = asyncio.get_running_loop().call_later(UNREAD_SECONDS, self._let_others_go_first)

    def goes_on(self) -> None:
        """The client has taken it."""
        self._unread.moves(self._connection)
        self._wait_no_longer()
        self._senders.add(self.send_piece)

    def stop(self) -> None:
        """All is written, or the client is gone."""
        self._pieces = None
        self._wait_no_longer()
        self._unread.moves(self._connection)
        load, self._load = self._load, None
        if load is not None:
            load.release()

    def _let_others_go_first(self) -> None:
        """The client does not read: others need not wait for it."""
        if self._load is not None:
            self._load.release()
        self._unread.stalls(self._connection, max(0, self._unsent) + PIECE)

    def _wait_no_longer(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None
