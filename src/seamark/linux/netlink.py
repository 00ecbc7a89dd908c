"""Netlink, how programs talk to the kernel's network: messages and attributes to bytes and back, and the socket."""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections.abc import Iterable, Iterator

import msgspec

_HEADER = struct.Struct("=IHHII")  # length, type, flags, sequence number, port
_GENERAL = struct.Struct(">BBH")  # family, version, resource: what every netfilter message begins with
_ATTRIBUTE = struct.Struct("=HH")  # length, type
_PADDING = (b"", b"\0\0\0", b"\0\0", b"\0")  # by length modulo 4

ROUTING, NETFILTER = 0, 12  # the families of sockets that are used here: interfaces and routes, and rules for packets
NFTABLES = 10  # the subsystems of netfilter that are used here
CONNTRACK = 1

REQUEST, ACK, DUMP, CREATE, APPEND = 0x1, 0x4, 0x300, 0x400, 0x800
_NESTED = 0x8000
_TYPE = 0x3FFF
_ERROR, _DONE = 2, 3
_BATCH_BEGIN, _BATCH_END = 16, 17
_SOL_NETLINK, _CAP_ACK, _EXT_ACK, _STRICT = 270, 10, 11, 12
_SO_SNDBUFFORCE, _SO_RCVBUFFORCE = 32, 33
_ACK_TLVS = 0x200
_BUFFER = 1 << 20
_PATIENCE = 30  # seconds for an answer, which the kernel gives at once


class NetlinkError(Exception):
    """The kernel refused a request; nothing of its transaction was carried out."""

    def __init__(self, number: int, explanation: str = "") -> None:
        self.number = number
        text = os.strerror(number)
        super().__init__(f"{text} ({explanation})" if explanation else text)


# --- to bytes --------------------------------------------------------------------------------------


def attribute(kind: int, value: bytes) -> bytes:
    return _ATTRIBUTE.pack(len(value) + 4, kind) + value + _PADDING[len(value) & 3]


def nested(kind: int, *parts: bytes) -> bytes:
    return attribute(kind | _NESTED, b"".join(parts))


def number(kind: int, value: int) -> bytes:
    """Numbers are in network order."""
    return attribute(kind, (value & 0xFFFFFFFF).to_bytes(4))


def long(kind: int, value: int) -> bytes:
    return attribute(kind, value.to_bytes(8))


def text(kind: int, value: str) -> bytes:
    return attribute(kind, value.encode() + b"\0")


class Message(msgspec.Struct, frozen=True):
    """One request to netfilter: its kind, the address family it is about, and its attributes."""

    kind: int
    family: int
    body: bytes = b""
    flags: int = 0

    def general(self) -> bytes:
        return _GENERAL.pack(self.family, 0, 0)


def _packed(subsystem: int, message: Message, flags: int, sequence: int) -> bytes:
    size = _HEADER.size + _GENERAL.size + len(message.body)
    kind = subsystem << 8 | message.kind
    header = _HEADER.pack(size, kind, REQUEST | flags | message.flags, sequence, 0)
    return header + message.general() + message.body


def _bracket(kind: int, sequence: int) -> bytes:
    """The begin and the end of a transaction."""
    return _HEADER.pack(20, kind, REQUEST, sequence, 0) + _GENERAL.pack(0, 0, NFTABLES)


# --- back ------------------------------------------------------------------------------------------


def pairs(data: bytes | memoryview) -> Iterator[tuple[int, bytes]]:
    """The attributes in these bytes, in order; a kind may occur several times."""
    at, end = 0, len(data)
    while at + 4 <= end:
        length, kind = _ATTRIBUTE.unpack_from(data, at)
        yield kind & _TYPE, bytes(data[at + 4 : at + length])
        at += (length + 3) & ~3


def attributes(data: bytes | memoryview) -> dict[int, bytes]:
    return dict(pairs(data))


def string(value: bytes) -> str:
    return value.rstrip(b"\0").decode()


# --- the socket ------------------------------------------------------------------------------------


class Netlink:
    """A socket to the kernel.  Requests are carried out while they are sent, so no call here waits for long.

    A socket belongs to the network namespace it was opened in, so one that is handed in may act on another namespace
    than this process lives in.
    """

    def __init__(self, opened: socket.socket | None = None, *, family: int = NETFILTER) -> None:
        self._socket = opened or socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, family)
        self._socket.bind((0, 0))
        for option in (_CAP_ACK, _EXT_ACK, _STRICT):
            try:
                self._socket.setsockopt(_SOL_NETLINK, option, 1)
            except OSError:  # an older kernel: its errors come without an explanation
                continue
        self._reserve(_SO_RCVBUFFORCE, 8 * _BUFFER)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("@ll", _PATIENCE, 0))
        self._room = 0
        self._sequence = 0

    def close(self) -> None:
        self._socket.close()

    def transaction(self, messages: Iterable[Message]) -> None:
        """Carry out all of these or none; raises ``NetlinkError`` if the kernel refuses one of them."""
        parts = [_bracket(_BATCH_BEGIN, 0)]
        parts += [_packed(NFTABLES, message, 0, index) for index, message in enumerate(messages, 1)]
        parts.append(_bracket(_BATCH_END, len(parts)))
        self._send(b"".join(parts))
        errors = [(body, flags) for _, kind, flags, body in self._received(wait=False) if kind == _ERROR]
        for body, flags in errors:
            _raise(body, flags)

    def request(self, subsystem: int, message: Message) -> list[bytes]:
        """One request to netfilter outside of a transaction; returns the attributes of the answers."""
        answers = self.ask(subsystem << 8 | message.kind, message.flags, message.general() + message.body)
        return [body[_GENERAL.size :] for body in answers]

    def ask(self, kind: int, flags: int, content: bytes) -> list[bytes]:
        """One request of any kind; returns the contents of the answers."""
        self._sequence += 1
        head = _HEADER.pack(_HEADER.size + len(content), kind, REQUEST | ACK | flags, self._sequence, 0)
        self._send(head + content)
        found: list[bytes] = []
        for sequence, answer, answer_flags, body in self._received(wait=True):
            if sequence != self._sequence:
                continue
            if answer == _ERROR:
                _raise(body, answer_flags)
                break
            found.append(body)
        return found

    def dump(self, subsystem: int, message: Message) -> Iterator[bytes]:
        """All objects of a kind: the attributes of each."""
        self._sequence += 1
        self._send(_packed(subsystem, message, DUMP, self._sequence))
        for sequence, kind, flags, body in self._received(wait=True):
            if sequence != self._sequence:
                continue
            if kind == _DONE:
                return
            if kind == _ERROR:
                _raise(body, flags)
            yield body[_GENERAL.size :]

    def _send(self, data: bytes) -> None:
        if len(data) > self._room:
            self._room = max(2 * len(data), _BUFFER)
            self._reserve(_SO_SNDBUFFORCE, self._room)
        self._socket.send(data)

    def _reserve(self, option: int, size: int) -> None:
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, option, size)
        except PermissionError:  # within the limits for every user, then
            ordinary = socket.SO_SNDBUF if option == _SO_SNDBUFFORCE else socket.SO_RCVBUF
            self._socket.setsockopt(socket.SOL_SOCKET, ordinary, size)

    def _received(self, *, wait: bool) -> Iterator[tuple[int, int, int, bytes]]:
        """Sequence number, type, flags and content of the messages there are; of all that come, with ``wait``."""
        while True:
            try:
                data = self._socket.recv(_BUFFER, 0 if wait else socket.MSG_DONTWAIT)
            except BlockingIOError as error:
                if wait:
                    raise NetlinkError(errno.ETIMEDOUT) from error
                return
            except OSError as error:
                raise NetlinkError(error.errno or errno.EIO) from error
            at = 0
            while at + _HEADER.size <= len(data):
                length, kind, flags, sequence, _ = _HEADER.unpack_from(data, at)
                yield sequence, kind, flags, data[at + _HEADER.size : at + length]
                at += (length + 3) & ~3


def _raise(body: bytes, flags: int) -> None:
    """Raise what an error message says; number 0 is an acknowledgement."""
    (code,) = struct.unpack_from("=i", body)
    if not code:
        return
    explanation = ""
    if flags & _ACK_TLVS:
        explanation = string(attributes(body[4 + _HEADER.size :]).get(1, b""))
    raise NetlinkError(-code, explanation)
