"""Ranges of numbers and of addresses, and how a free one is found.

A range has two bands.  A value the server chooses comes from the upper band while it has room, so that the small values
that people like to choose themselves stay free.  Random tries come before a search of the whole band, so finding a free
value costs the same however many are taken, until nearly all are.
"""

from __future__ import annotations

import random as chance
from collections.abc import Callable, Iterator
from functools import lru_cache
from ipaddress import ip_address

import msgspec

from seamark.kinds.values.addresses import parse, parse_network

PROBES = 16  # random tries before a band is searched one by one


class Band(msgspec.Struct, frozen=True):
    """Numbers to choose from, first and last included."""

    first: int
    last: int

    def pick(self, taken: Callable[[int], bool], random: chance.Random) -> int | None:
        """A number that is not taken, by chance; None if there is none."""
        return next((number for number in self._candidates(random) if not taken(number)), None)

    def _candidates(self, random: chance.Random) -> Iterator[int]:
        size = self.last - self.first + 1
        if size <= 0:
            return
        for _ in range(PROBES):
            yield self.first + random.randrange(size)
        start = random.randrange(size)
        for step in range(size):
            yield self.first + (start + step) % size


class AddressRange(msgspec.Struct, frozen=True):
    """The usable addresses of a CIDR: never the network's own, nor the broadcast address of IPv4."""

    cidr: str
    version: int
    first: int
    last: int
    upper: int  # the upper band begins here

    def holds(self, address: str) -> bool:
        parsed = parse(address)
        return (
            parsed is not None
            and parsed.address.version == self.version
            and (self.first <= int(parsed.address) <= self.last)
        )

    def text(self, number: int) -> str:
        # Small numbers alone do not say which family they are of.
        size = 4 if self.version == 4 else 16
        return str(ip_address(number.to_bytes(size, "big")))

    def pick(self, taken: Callable[[str], bool], random: chance.Random) -> str | None:
        for band in (Band(self.upper, self.last), Band(self.first, self.upper - 1)):
            number = band.pick(lambda candidate: taken(self.text(candidate)), random)
            if number is not None:
                return self.text(number)
        return None


def lower_band(size: int, *, step: int, most: int) -> int:
    """How many numbers at the beginning of a range are left to people."""
    return 0 if size <= 16 else min(max(16, size // step), most)


@lru_cache(maxsize=64)
def address_range(cidr: str) -> AddressRange:
    parsed = parse_network(cidr)
    if parsed is None:
        raise ValueError(f"{cidr} is no CIDR")
    network = parsed.network
    first, last = int(network.network_address) + 1, int(network.broadcast_address)
    if network.version == 4:
        last -= 1
    upper = first + lower_band(network.num_addresses, step=16, most=256)
    return AddressRange(str(network), network.version, first, last, upper)
