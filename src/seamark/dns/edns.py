"""EDNS options as far as a query is refused for them.

No option is acted on, but one that cannot be read makes its query one that cannot be read, as in CoreDNS.
"""

from __future__ import annotations

from enum import IntEnum


class Option(IntEnum):
    """Those with a form that can be wrong."""

    LONG_LIVED_QUERY = 1
    UPDATE_LEASE = 2
    CLIENT_SUBNET = 8
    EXPIRE = 9
    KEEPALIVE = 11
    ERROR = 15


# Of an address family: how many bits a client's network may have, and how many the scope of an answer.
_BITS = {0: (0, 255), 1: (32, 32), 2: (128, 128)}


def options_whole(data: bytes) -> bool:
    """Whether these are options and nothing else, each of them whole."""
    at, size = 0, len(data)
    while at < size:
        if at + 4 > size:
            return False
        code = int.from_bytes(data[at : at + 2], "big")
        end = at + 4 + int.from_bytes(data[at + 2 : at + 4], "big")
        if end > size or not _whole(code, data[at + 4 : end]):
            return False
        at = end
    return True


def _whole(code: int, data: bytes) -> bool:
    size = len(data)
    match code:
        case Option.CLIENT_SUBNET:
            family = int.from_bytes(data[:2], "big")
            return size >= 4 and family in _BITS and data[2] <= _BITS[family][0] and data[3] <= _BITS[family][1]
        case Option.LONG_LIVED_QUERY:
            return size >= 18
        case Option.UPDATE_LEASE:
            return size in (4, 8)
        case Option.EXPIRE:
            return size == 0 or size >= 4
        case Option.KEEPALIVE:
            return size in (0, 2)
        case Option.ERROR:
            return size >= 2
    return True
