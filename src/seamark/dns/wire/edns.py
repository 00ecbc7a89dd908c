"""EDNS options as far as a query is refused for them.

No option is acted on, but one that cannot be read makes its query one that cannot be read, as in CoreDNS.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

# Of an address family: how many bits a client's network may have, and how many the scope of an answer.
_BITS = {0: (0, 255), 1: (32, 32), 2: (128, 128)}


def _subnet_whole(data: bytes) -> bool:
    """A client's network; of no family it has no bits."""
    family = int.from_bytes(data[:2], "big")
    if len(data) < 4 or family not in _BITS:
        return False
    network, scope = _BITS[family]
    return data[2] <= network and data[3] <= scope


# The options with a form that can be wrong, and when it is right.
_WHOLE: Mapping[int, Callable[[bytes], bool]] = {
    1: lambda data: len(data) >= 18,  # a query that stays open
    2: lambda data: len(data) in (4, 8),  # how long an update lasts
    8: _subnet_whole,
    9: lambda data: not data or len(data) >= 4,  # when a zone expires
    11: lambda data: len(data) in (0, 2),  # how long a connection is kept
    15: lambda data: len(data) >= 2,  # an error in words
}


def options_whole(data: bytes) -> bool:
    """Whether these are options and nothing else, each of them whole."""
    at, size = 0, len(data)
    while at < size:
        if at + 4 > size:
            return False
        whole = _WHOLE.get(int.from_bytes(data[at : at + 2], "big"))
        end = at + 4 + int.from_bytes(data[at + 2 : at + 4], "big")
        if end > size or (whole is not None and not whole(data[at + 4 : end])):
            return False
        at = end
    return True
