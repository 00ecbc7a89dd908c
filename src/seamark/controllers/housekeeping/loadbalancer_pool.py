"""The pool of addresses for Services of type LoadBalancer: which are taken, and which are free."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from ipaddress import IPv4Address, IPv6Address

import msgspec

from seamark.kinds.values.addresses import Address, Family, parse, parse_network

# The default where `seamark up` serves load-balancer addresses: all of 127.0.0.0/8 is this machine on Linux, so each
# Service can have an address of its own and be reached there.  IPv6 has one loopback address only.
LOOPBACK_POOL = ("127.200.0.0/24", "2001:db8:ffff::/112")

# The default for a cluster that cannot be reached from outside: addresses reserved for documentation (RFC 5737, RFC
# 3849), which belong to no real host.  Clients that wait for a Service to get an address can go on.
EXAMPLE_POOL = ("203.0.113.0/24", "2001:db8:ffff::/112")


def check_pool(pool: Sequence[str]) -> None:
    """Raise ``ValueError`` with a one-line message if this is not a valid pool."""
    found = [address_range(text) for text in pool]
    for i, one in enumerate(found):
        for other in found[:i]:
            if one.version == other.version and one.first <= other.last and other.first <= one.last:
                raise ValueError(f"load balancer pool: {one.text} and {other.text} overlap")


class AddressRange(msgspec.Struct, frozen=True):
    """Addresses from the first to the last, both included, as numbers."""

    text: str
    version: int
    first: int
    last: int

    def holds(self, address: Address) -> bool:
        return address.version == self.version and self.first <= int(address) <= self.last


def address_range(text: str) -> AddressRange:
    """``10.0.0.0/24`` without its first and last address (of IPv4), or exactly ``10.0.0.5-10.0.0.9``."""
    first, dash, last = (part.strip() for part in text.partition("-"))
    if not dash:
        network = parse_network(text)
        if network is None or network.address != network.network.network_address:
            raise ValueError(f"load balancer pool: {text} is neither a CIDR nor a range FIRST-LAST of addresses")
        lowest, highest = int(network.network.network_address), int(network.network.broadcast_address)
        if network.network.version == 4 and highest - lowest > 1:
            lowest, highest = lowest + 1, highest - 1
        return AddressRange(text, network.network.version, lowest, highest)
    low, high = parse(first), parse(last)
    if low is None or high is None or low.address.version != high.address.version:
        raise ValueError(f"load balancer pool: {text} is no range of addresses of one family")
    if int(low.address) > int(high.address):
        raise ValueError(f"load balancer pool: {text} ends before it begins")
    return AddressRange(text, low.address.version, int(low.address), int(high.address))


class Pool:
    """Which Service has which address.  Several Services may claim the same address: the oldest of them has it.

    A free address is found without checking all taken ones, because below ``_lowest`` of a range none is free.
    """

    def __init__(self, ranges: Sequence[str]) -> None:
        self._ranges = [address_range(text) for text in ranges]
        self._lowest = [each.first for each in self._ranges]
        self._claims: dict[str, dict[str, tuple[str, str]]] = {}  # address → claimant → what to sort by age

    def has(self, family: Family) -> bool:
        """Whether the pool has any addresses of this family, free or taken."""
        return any(f"IPv{each.version}" == family for each in self._ranges)

    def contains(self, address: str) -> bool:
        parsed = parse(address)
        return parsed is not None and any(each.holds(parsed.address) for each in self._ranges)

    def owner(self, address: str) -> str | None:
        """The Service that has the address: the oldest of its claimants."""
        claims = self._claims.get(address)
        return min(claims, key=claims.__getitem__) if claims else None

    def claimants(self, address: str) -> Collection[str]:
        return self._claims.get(address, {}).keys()

    def claim(self, address: str, claimant: str, since: str) -> None:
        """``since`` is when the claimant was created."""
        self._claims.setdefault(address, {})[claimant] = (since, claimant)

    def release(self, address: str, claimant: str) -> None:
        claims = self._claims.get(address)
        if claims is None or claims.pop(claimant, None) is None or claims:
            return
        del self._claims[address]
        parsed = parse(address)
        for i, each in enumerate(self._ranges):
            if parsed is not None and each.holds(parsed.address):
                self._lowest[i] = min(self._lowest[i], int(parsed.address))

    def free(self, family: Family) -> str | None:
        """The lowest free address of a family; None if all are taken."""
        for i, each in enumerate(self._ranges):
            if f"IPv{each.version}" != family:
                continue
            number = self._lowest[i]
            while number <= each.last and _text(number, each.version) in self._claims:
                number += 1
            self._lowest[i] = number
            if number <= each.last:
                return _text(number, each.version)
        return None


def _text(number: int, version: int) -> str:
    return str(IPv4Address(number) if version == 4 else IPv6Address(number))
