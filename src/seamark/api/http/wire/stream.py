"""The writing end of an answer that goes on: a watch, a log, an upgraded connection."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from seamark.api.http.wire.protocol import Connection

# A stream's reader that lets this much pile up is too slow: it is cut off and has to list again.
MAX_STREAM_BACKLOG = 16 * 1024 * 1024


class Outlet(Protocol):
    """What many streams are written to in one go.  It does not tell whether the reader is gone, or has yet to read."""

    def write(self, frames: bytes, /) -> object: ...


class Stream:
    """The writing end of a streaming answer.  Data must already be in HTTP chunks (``pieces.frame``)."""

    __slots__ = (
        "_connection",
        "_transport",
        "full",
        "more",
        "on_close",
        "on_end",
        "on_stall",
        "on_writable",
        "paced",
        "stalled",
    )

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._transport = connection.transport
        # Whether the reader has yet to take what was written; wait for :meth:`drain` or ``on_writable``.
        self.stalled = connection.stalled_since is not None
        # Whether its writer waits for its reader, so that little piles up for a reader that pauses.
        self.paced = False
        # Of an upgraded connection: whether part of what has come waits for another turn, and whether no more is to be
        # read before a call of ``Connection.read_on``.
        self.more = self.full = False
        self.on_close: Callable[[], None] | None = None  # called when the reader is gone
        self.on_end: Callable[[], None] | None = None  # called when the answer has ended, by either side
        self.on_stall: Callable[[], None] | None = None  # called when the reader does not take what is written
        self.on_writable: Callable[[], None] | None = None  # called when the reader has caught up after a stall

    @property
    def outlet(self) -> Outlet:
        """Where :meth:`write` writes to, without its checks."""
        outlet: Outlet = self._transport
        return outlet

    @property
    def unsent(self) -> int:
        """The bytes that the system has not taken yet."""
        size: int = self._transport.get_write_buffer_size()
        return size

    def write(self, frames: bytes | memoryview) -> bool:
        """False once the reader is gone or so slow that it was cut off."""
        transport = self._transport
        if transport.is_closing():
            return False
        transport.write(frames)
        if self.stalled and self.unsent > MAX_STREAM_BACKLOG:
            self.abort()
            return False
        return True

    async def drain(self) -> bool:
        """Wait until the reader has taken most of what was written; False once it is gone."""
        await self._connection.writable()
        return not self._transport.is_closing()

    def abort(self) -> None:
        """Cut the reader off."""
        self._transport.abort()

    def finish(self) -> None:
        """End the answer cleanly; the connection can be used again."""
        self.forget()
        self.ended()
        self._connection.end_stream()

    def forget(self) -> None:
        """Call its writer no more: that refers to this stream."""
        self.on_close = self.on_stall = self.on_writable = None

    def last(self) -> bytes:
        """What tells the reader that the answer is complete."""
        return b"0\r\n\r\n"

    def received(self, data: bytes) -> bytes | None:
        """What to answer to bytes that come meanwhile; None to close.  Only upgraded connections have such bytes.

        If the client does not read, only the last answer is sent, when it does.
        """
        raise NotImplementedError

    def ended(self) -> None:
        on_end, self.on_end = self.on_end, None
        if on_end is not None:
            on_end()


class Unchunked(Stream):
    """A stream without chunks, for a client of HTTP/1.0: its answer ends with the connection."""

    __slots__ = ("_rest",)

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._rest = b""  # of a chunk that is not complete

    @property
    def outlet(self) -> Outlet:
        return self

    def write(self, frames: bytes | memoryview) -> bool:
        if self._transport.is_closing():
            return False  # before :meth:`join`, which may be for clients only that have not said goodbye
        data, pieces, at = self._rest + bytes(frames), [], 0
        while (start := data.find(b"\r\n", at) + 2) > 1:
            end = start + int(data[at : start - 2], 16)
            if len(data) < end + 2:
                break
            pieces.append(data[start:end])
            at = end + 2
        self._rest = data[at:]
        return super().write(self.join(pieces))

    def join(self, pieces: list[bytes]) -> bytes:
        """What is written for the contents of some chunks."""
        return b"".join(pieces)

    def last(self) -> bytes:
        return b""
