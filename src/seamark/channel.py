"""Questions and answers between two processes over one socket: either side asks, and answers come in any order.

A question names a *topic*, whose handler on the other side answers once, or with a series that goes on until one side
has enough.  What the bytes of a question and an answer mean is the topic's.  Processes that share a channel trust each
other.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, suppress
from enum import IntEnum
from itertools import count
from typing import Any

import msgspec

log = logging.getLogger(__name__)

LENGTH_BYTES = 4  # before each frame, they say how long it is
# Answers of a series that may be on their way: further ones wait until the asker has taken half of them.
AHEAD = 64


class Lost(ConnectionError):
    """The other process is gone, or has closed the channel; whether it did what it was asked is not known."""


class Refused(Exception):
    """What a handler raises, and its asker gets, instead of an answer; the topic says what ``body`` means."""

    def __init__(self, body: bytes) -> None:
        super().__init__(body)
        self.body = body


class Handler:
    """Answers the questions of one topic; raises :class:`Refused` to refuse."""

    async def answer(self, body: bytes) -> bytes:
        raise NotImplementedError

    def series(self, body: bytes) -> AsyncGenerator[bytes, None]:
        """Only of topics that have questions with a series of answers."""
        raise NotImplementedError


class _Kind(IntEnum):
    ASK = 0  # for one answer
    FOLLOW = 1  # for a series
    ANSWER = 2
    END = 3  # of a series
    REFUSE = 4
    FAIL = 5
    MORE = 6  # the asker has taken some of the series
    ENOUGH = 7  # the asker wants no more of it


class _Frame(msgspec.Struct, frozen=True, array_like=True, gc=False):
    kind: _Kind
    number: int  # of the question
    body: bytes = b""
    topic: str = ""


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Frame).decode


class Channel(asyncio.Protocol):
    """One end; ``await Channel.over(socket, handlers)`` makes it."""

    def __init__(self, handlers: Mapping[str, Handler]) -> None:
        self._handlers = handlers
        self._transport: asyncio.Transport
        self._received = bytearray()
        self._numbers = count(1)
        self._asked: dict[int, asyncio.Future[bytes] | _Arriving] = {}
        self._answering: dict[int, _Answering] = {}
        self.closed = asyncio.Event()

    @classmethod
    async def over(cls, connected: socket.socket, handlers: Mapping[str, Handler]) -> Channel:
        channel = cls(handlers)
        await asyncio.get_running_loop().create_unix_connection(lambda: channel, sock=connected)
        return channel

    # --- asking ------------------------------------------------------------------------------------

    async def ask(self, topic: str, body: bytes) -> bytes:
        """The other side's answer; raises :class:`Refused` or :class:`Lost`."""
        self._check_open()
        number = next(self._numbers)
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._asked[number] = answer
        self._send(_Frame(_Kind.ASK, number, body, topic))
        try:
            return await answer
        finally:
            self._asked.pop(number, None)

    def follow(self, topic: str, body: bytes) -> Series:
        """The other side's answers, until it ends them."""
        self._check_open()
        number = next(self._numbers)
        arriving = self._asked[number] = _Arriving()
        self._send(_Frame(_Kind.FOLLOW, number, body, topic))
        return Series(self, number, arriving)

    def more(self, number: int) -> None:
        self._send(_Frame(_Kind.MORE, number))

    def enough(self, number: int) -> None:
        if self._asked.pop(number, None) is not None and not self.closed.is_set():
            self._send(_Frame(_Kind.ENOUGH, number))

    async def close(self) -> None:
        if not self.closed.is_set():
            self._transport.close()
            await self.closed.wait()

    def _check_open(self) -> None:
        if self.closed.is_set():
            raise Lost("the channel is closed")

    # --- the protocol ------------------------------------------------------------------------------

    def _send(self, frame: _Frame) -> None:
        encoded = _encode(frame)
        self._transport.write(len(encoded).to_bytes(LENGTH_BYTES, "big") + encoded)

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        at = 0
        with memoryview(self._received) as received:
            while (start := at + LENGTH_BYTES) <= len(received):
                end = start + int.from_bytes(received[at:start], "big")
                if end > len(received):
                    break
                self._take(_decode(received[start:end]))
                at = end
        del self._received[:at]

    def _take(self, frame: _Frame) -> None:
        number = frame.number
        match frame.kind:
            case _Kind.ASK | _Kind.FOLLOW:
                answering = self._answering[number] = _Answering()
                answering.task = asyncio.get_running_loop().create_task(self._answer(frame, answering))
                answering.task.add_done_callback(lambda _: self._answering.pop(number))
            case _Kind.MORE if number in self._answering:
                self._answering[number].taken()
            case _Kind.ENOUGH if number in self._answering:
                self._answering[number].task.cancel()
            case _Kind.ANSWER | _Kind.END | _Kind.REFUSE | _Kind.FAIL:
                waiting = self._asked.get(number)
                if isinstance(waiting, _Arriving):
                    waiting.arrive(frame)
                elif waiting is not None and not waiting.done():
                    if frame.kind is _Kind.ANSWER:
                        waiting.set_result(frame.body)
                    else:
                        waiting.set_exception(_error(frame))

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed.set()
        for waiting in list(self._asked.values()):
            if isinstance(waiting, _Arriving):
                waiting.arrive(None)
            elif not waiting.done():
                waiting.set_exception(Lost("the other process is gone"))
        for answering in list(self._answering.values()):
            answering.task.cancel()

    # --- answering ---------------------------------------------------------------------------------

    async def _answer(self, frame: _Frame, answering: _Answering) -> None:
        number, handler = frame.number, self._handlers[frame.topic]
        try:
            if frame.kind is _Kind.ASK:
                last = _Frame(_Kind.ANSWER, number, await handler.answer(frame.body))
            else:
                async with aclosing(handler.series(frame.body)) as series:
                    async for body in series:
                        await answering.turn()
                        self._send(_Frame(_Kind.ANSWER, number, body))
                last = _Frame(_Kind.END, number)
        except Refused as refused:
            last = _Frame(_Kind.REFUSE, number, refused.body)
        except Exception as error:
            log.exception("a question of another process was not answered")
            last = _Frame(_Kind.FAIL, number, repr(error).encode())
        if not self.closed.is_set():
            self._send(last)


class _Answering:
    """A question of the other side that is being answered."""

    def __init__(self) -> None:
        self.task: asyncio.Task[None]
        self._room = AHEAD
        self._taken = asyncio.Event()

    async def turn(self) -> None:
        """Wait until the asker is ready for one more answer of a series."""
        while not self._room:
            self._taken.clear()
            await self._taken.wait()
        self._room -= 1

    def taken(self) -> None:
        self._room += AHEAD // 2
        self._taken.set()


class _Arriving:
    """The answers of a series that have come and are not taken yet; None is the end of the channel."""

    def __init__(self) -> None:
        self._frames: deque[_Frame | None] = deque()
        self._reader: asyncio.Future[None] | None = None

    def arrive(self, frame: _Frame | None) -> None:
        self._frames.append(frame)
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    async def next(self) -> _Frame | None:
        while not self._frames:
            self._reader = asyncio.get_running_loop().create_future()
            try:
                await self._reader
            finally:
                self._reader = None
        return self._frames.popleft()


class Series(AsyncIterator[bytes]):
    """The answers to one question, in order.  One task at a time may read them; dropping the series ends it."""

    def __init__(self, channel: Channel, number: int, arriving: _Arriving) -> None:
        self._channel, self._number, self._arriving = channel, number, arriving
        self._taken = 0

    async def __anext__(self) -> bytes:
        frame = await self._arriving.next()
        if frame is not None and frame.kind is _Kind.ANSWER:
            self._taken += 1
            if self._taken % (AHEAD // 2) == 0 and not self._channel.closed.is_set():
                self._channel.more(self._number)
            return frame.body
        self._arriving.arrive(frame)  # a further read ends the same way
        if frame is None:
            raise Lost("the other process is gone")
        raise StopAsyncIteration if frame.kind is _Kind.END else _error(frame)

    def end(self) -> None:
        """Take no more answers; a task that waits for one is told that there are none."""
        self._channel.enough(self._number)
        self._arriving.arrive(_Frame(_Kind.END, self._number))

    def __del__(self) -> None:
        with suppress(RuntimeError):  # the event loop has ended before
            self._channel.enough(self._number)


def _error(frame: _Frame) -> Exception:
    return Refused(frame.body) if frame.kind is _Kind.REFUSE else RuntimeError(frame.body.decode())
