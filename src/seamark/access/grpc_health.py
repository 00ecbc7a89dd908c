"""Asks a server for its health by gRPC (``grpc.health.v1.Health/Check``) over a connection that is open already.

One question and one answer need little of HTTP/2, so no gRPC library is needed, and the connection may come from any
network namespace.  Headers are sent without compression; those of the answer are not read: a server that is healthy
or not says so in its message, and one that sends none does not answer the question.
"""

from __future__ import annotations

import struct
from asyncio import IncompleteReadError, StreamReader, StreamWriter

_DATA, _HEADERS, _RESET, _SETTINGS, _PING, _GO_AWAY = 0, 1, 3, 4, 6, 7
_END_STREAM, _ACKNOWLEDGED, _END_HEADERS, _PADDED = 1, 1, 4, 8
_STREAM = 1
_LARGEST = 1 << 14  # bytes of a frame, before anything else was agreed on
_STATES = ("UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN")
SERVING = "SERVING"


class NoAnswer(Exception):
    """The server ended the call without a message."""


async def ask(reader: StreamReader, writer: StreamWriter, *, authority: str, service: str = "") -> str:
    """``SERVING`` or another state; raises ``NoAnswer``, and ``OSError`` if the connection breaks."""
    name = service.encode()
    request = b"\x0a" + _number(len(name)) + name if name else b""
    headers = {
        ":method": "POST",
        ":scheme": "http",
        ":path": "/grpc.health.v1.Health/Check",
        ":authority": authority,
        "content-type": "application/grpc",
        "te": "trailers",
        "user-agent": "kube-probe/1.38",
    }
    writer.write(
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
        + _frame(_SETTINGS, 0, 0, b"")
        + _frame(_HEADERS, _END_HEADERS, _STREAM, b"".join(_header(*each) for each in headers.items()))
        + _frame(_DATA, _END_STREAM, _STREAM, b"\x00" + struct.pack(">I", len(request)) + request)
    )
    try:
        return await _answer(reader, writer)
    except IncompleteReadError as error:
        raise ConnectionResetError("the server closed the connection") from error


async def _answer(reader: StreamReader, writer: StreamWriter) -> str:
    message = b""
    while True:
        kind, flags, stream, content = await _read(reader)
        if kind == _SETTINGS and not flags & _ACKNOWLEDGED:
            writer.write(_frame(_SETTINGS, _ACKNOWLEDGED, 0, b""))
        elif kind == _PING and not flags & _ACKNOWLEDGED:
            writer.write(_frame(_PING, _ACKNOWLEDGED, 0, content))
        elif kind == _GO_AWAY or (kind == _RESET and stream == _STREAM):
            raise NoAnswer("the server ended the call")
        elif stream == _STREAM and kind in (_DATA, _HEADERS):
            if kind == _DATA:
                message += content[1 : len(content) - content[0]] if flags & _PADDED else content
                if len(message) >= 5 and len(message) >= 5 + struct.unpack(">I", message[1:5])[0]:
                    return _state(message[5:])
            if flags & _END_STREAM:
                raise NoAnswer("the server does not answer grpc.health.v1.Health/Check for this service")


async def _read(reader: StreamReader) -> tuple[int, int, int, bytes]:
    head = await reader.readexactly(9)
    length = int.from_bytes(head[:3], "big")
    if length > _LARGEST:
        raise NoAnswer("the server does not speak HTTP/2")
    stream = int.from_bytes(head[5:9], "big") & 0x7FFFFFFF
    return head[3], head[4], stream, await reader.readexactly(length)


def _frame(kind: int, flags: int, stream: int, content: bytes) -> bytes:
    return len(content).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + content


def _header(name: str, value: str) -> bytes:
    """A literal header that is not indexed, without Huffman coding (RFC 7541, 6.2.2)."""
    return b"\x00" + b"".join(_length(len(each)) + each for each in (name.encode(), value.encode()))


def _length(value: int) -> bytes:
    """An integer with a prefix of seven bits (RFC 7541, 5.1)."""
    return bytes((value,)) if value < 127 else b"\x7f" + _number(value - 127)


def _number(value: int) -> bytes:
    """Seven bits per byte, the lowest first; the highest bit says that more follow."""
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes((*found, value))


def _state(message: bytes) -> str:
    number = message[1] if message[:1] == b"\x08" and len(message) > 1 else 0
    return _STATES[number] if number < len(_STATES) else str(number)
