"""Protobuf's wire format, written and read apart from the code under test."""

from __future__ import annotations

from collections.abc import Iterator


def varint(number: int) -> bytes:
    number &= 2**64 - 1
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def member(number: int, value: int | bytes) -> bytes:
    """One field: a varint, or something with a length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def envelope(api_version: str, kind: str, message: bytes) -> bytes:
    """A body as Go clients send it."""
    meta = member(1, api_version.encode()) + member(2, kind.encode())
    return b"k8s\x00" + member(1, meta) + member(2, message) + member(3, b"") + member(4, b"")


def members(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Every field's number and value; only the two kinds that :func:`member` writes, and doubles as their bytes."""
    position = 0

    def take() -> int:
        nonlocal position
        result = shift = 0
        while True:
            byte = message[position]
            position += 1
            result |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return result

    while position < len(message):
        tag = take()
        if tag & 7 == 0:
            yield tag >> 3, take()
        else:
            assert tag & 7 in (1, 2)
            size = take() if tag & 7 == 2 else 8
            yield tag >> 3, message[position : position + size]
            position += size
