"""The frames of a SPDY/3.1 session, from and to bytes.  No sockets, and none of SPDY that Kubernetes does not use.

There is no flow control within a session: the implementation in Kubernetes announces no window and ignores those of the
other side.  The connection underneath holds the sender back, and all streams of the session with it.

Little is kept of what comes, whatever its length: data are passed on as they come, and other frames are short.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping
from enum import IntEnum

import msgspec

from seamark.access.spdy.dictionary import DICTIONARY

VERSION = 3
CANCEL = 5  # the status of a stream that its own side no longer wants

_FIN = 1
_HEAD = 8  # bytes before the payload of every frame
_MOST_HEADERS = 16 * 1024  # bytes of one decompressed block of headers; Kubernetes' own have less than 200
_MOST_NAMES = 100  # headers in one block
_MOST_CONTROL = 2 * _MOST_HEADERS  # bytes of a frame that is kept until it is complete

Headers = Mapping[str, str]


class ControlFrame(IntEnum):
    """The control frames that matter here."""

    SYN_STREAM = 1
    SYN_REPLY = 2
    RST_STREAM = 3
    PING = 6
    GOAWAY = 7
    HEADERS = 8


class SpdyError(ConnectionError):
    """The other side sent what is not SPDY/3: nothing that follows can be understood."""


class SynStream(msgspec.Struct, frozen=True):
    """The other side opens a stream."""

    stream: int
    headers: dict[str, str]
    fin: bool = False


class SynReply(msgspec.Struct, frozen=True):
    """The other side accepts a stream."""

    stream: int
    headers: dict[str, str]
    fin: bool = False


class Reset(msgspec.Struct, frozen=True):
    """The other side refuses a stream, or ends it in both directions."""

    stream: int
    status: int


class Ping(msgspec.Struct, frozen=True):
    id: int


class GoAway(msgspec.Struct, frozen=True):
    """The other side takes no more streams."""

    last: int


class Data(msgspec.Struct, frozen=True):
    """Bytes of a stream, of a whole frame or a piece of it; with ``fin`` they are the last in this direction."""

    stream: int
    payload: bytes
    fin: bool = False


Frame = SynStream | SynReply | Reset | Ping | GoAway | Data


class Session:
    """One side's view of a session: headers are compressed as one stream in each direction, so it has a state."""

    def __init__(self) -> None:
        self._compressor = zlib.compressobj(zdict=DICTIONARY)
        self._decompressor = zlib.decompressobj(zdict=DICTIONARY)
        self._received = bytearray()

    def open(self, stream: int, headers: Headers, *, fin: bool = False) -> bytes:
        """The frame that opens a stream; a client's streams have odd numbers."""
        return _control(ControlFrame.SYN_STREAM, struct.pack(">IIH", stream, 0, 0) + self._compress(headers), fin=fin)

    def accept(self, stream: int, headers: Headers | None = None) -> bytes:
        """The frame that accepts a stream of the other side."""
        return _control(ControlFrame.SYN_REPLY, struct.pack(">I", stream) + self._compress(headers or {}))

    def frames(self, received: bytes) -> Iterator[Frame]:
        """The frames that have come with these bytes; kinds that Kubernetes has no use for are left out."""
        held = self._received
        held += received
        while len(held) >= _HEAD:
            first, second = struct.unpack_from(">II", held)
            size = second & 0xFFFFFF
            fin = bool(second >> 24 & _FIN)
            if not first >> 31:
                payload = bytes(held[_HEAD : _HEAD + size])
                if size and not payload:
                    return
                del held[: _HEAD + size]
                if left := size - len(payload):
                    held += struct.pack(">II", first, second - len(payload))  # the rest is read as another frame
                yield Data(first, payload, fin and not left)
                continue
            if size > _MOST_CONTROL:
                raise SpdyError(f"a frame of type {first & 0xFFFF} has {size} bytes")
            if len(held) < _HEAD + size:
                return
            payload = bytes(held[_HEAD : _HEAD + size])
            del held[: _HEAD + size]
            frame = self._control_frame(first, payload, fin)
            if frame is not None:
                yield frame

    def _control_frame(self, first: int, payload: bytes, fin: bool) -> Frame | None:
        if first >> 16 & 0x7FFF != VERSION:
            raise SpdyError(f"a frame is of version {first >> 16 & 0x7FFF}, not {VERSION}")
        try:
            match first & 0xFFFF:
                case ControlFrame.SYN_STREAM:
                    return SynStream(_number(payload), _headers(self._decompress(payload[10:])), fin)
                case ControlFrame.SYN_REPLY:
                    return SynReply(_number(payload), _headers(self._decompress(payload[4:])), fin)
                case ControlFrame.RST_STREAM:
                    return Reset(*struct.unpack(">II", payload))
                case ControlFrame.PING:
                    return Ping(_number(payload))
                case ControlFrame.GOAWAY:
                    return GoAway(_number(payload))
                case ControlFrame.HEADERS:
                    self._decompress(payload[4:])  # unused, but the decompressor has to see all
        except (struct.error, zlib.error, UnicodeDecodeError) as error:
            raise SpdyError(f"a frame of type {first & 0xFFFF} cannot be read: {error}") from error
        return None

    def _compress(self, headers: Headers) -> bytes:
        block = [struct.pack(">I", len(headers))]
        for text in (text.encode() for item in headers.items() for text in item):
            block += struct.pack(">I", len(text)), text
        return self._compressor.compress(b"".join(block)) + self._compressor.flush(zlib.Z_SYNC_FLUSH)

    def _decompress(self, block: bytes) -> bytes:
        if self._decompressor.eof:
            raise SpdyError("the compressed stream has ended, and headers follow")
        plain = self._decompressor.decompress(block, _MOST_HEADERS)
        if self._decompressor.unconsumed_tail:
            raise SpdyError(f"more than {_MOST_HEADERS} bytes of headers")
        return plain


def _headers(plain: bytes) -> dict[str, str]:
    count = _number(plain)
    if count > _MOST_NAMES:
        raise SpdyError(f"a stream with {count} headers")
    texts, at = [], 4
    for _ in range(2 * count):
        (length,) = struct.unpack_from(">I", plain, at)
        texts.append(plain[at + 4 : at + 4 + length].decode())
        at += 4 + length
    return dict(zip(texts[::2], texts[1::2], strict=True))


def data(stream: int, payload: bytes = b"", *, fin: bool = False) -> bytes:
    """The frame with these bytes of a stream; a frame has room for 16 MiB."""
    return struct.pack(">II", stream, (_FIN if fin else 0) << 24 | len(payload)) + payload


def reset(stream: int, status: int = CANCEL) -> bytes:
    return _control(ControlFrame.RST_STREAM, struct.pack(">II", stream, status))


def ping(id: int) -> bytes:
    """A ping, or the answer to one, which is the same frame; a client's own have odd numbers."""
    return _control(ControlFrame.PING, struct.pack(">I", id))


def go_away(last: int = 0) -> bytes:
    return _control(ControlFrame.GOAWAY, struct.pack(">II", last, 0))


def _control(kind: ControlFrame, payload: bytes, *, fin: bool = False) -> bytes:
    return struct.pack(">HHI", 0x8000 | VERSION, kind, (_FIN if fin else 0) << 24 | len(payload)) + payload


def _number(payload: bytes) -> int:
    """The 31-bit number at the start of a payload."""
    (number,) = struct.unpack_from(">I", payload)
    return int(number) & 0x7FFFFFFF
