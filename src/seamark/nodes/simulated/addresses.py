"""The Pod addresses of one node, from the node's own part of the Pod ranges, in both families, never used twice.

A Pod gets one number, which is its position in every range, so that its IPv4 and IPv6 addresses end alike.  Numbers are
assigned in a circle, so that a released address is the last to be used again.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

from seamark.kinds.values.addresses import printed

FIRST = 2  # 0 is the network's own address, 1 the node's


class Addresses:
    """The taken and the free addresses of one node."""

    def __init__(self, ranges: Sequence[str]) -> None:
        networks = [ip_network(text) for text in ranges]
        self._networks = networks
        # The last IPv4 address is for broadcast.  With two families, the smaller range limits the numbers.
        self._end = min((n.num_addresses - (n.version == 4) for n in networks), default=0)
        self._bases = [(int(n.network_address), n.version) for n in networks]
        self._next = FIRST
        self._owners: dict[int, str] = {}
        self._numbers: dict[str, set[int]] = {}
        self._texts: dict[str, tuple[str, ...]] = {}

    def of(self, owner: str) -> tuple[str, ...] | None:
        """The addresses that a Pod has."""
        return self._texts.get(owner)

    def take(self, owner: str) -> tuple[str, ...] | None:
        """Addresses for a Pod, the same ones if it has some already; None if all are taken."""
        known = self._texts.get(owner)
        if known is not None:
            return known
        room = self._end - FIRST
        if len(self._owners) >= room:
            return None
        number = self._next
        while number in self._owners:
            number = number + 1 if number + 1 < self._end else FIRST
        self._next = number + 1 if number + 1 < self._end else FIRST
        self._owners[number] = owner
        self._numbers[owner] = {number}
        texts = self._texts[owner] = tuple(printed(base + number, version) for base, version in self._bases)
        return texts

    def adopt(self, owner: str, addresses: Iterable[str]) -> bool:
        """Record the addresses that a Pod has; False if they are outside our ranges, or another Pod's."""
        if owner in self._texts:
            return True
        texts = tuple(addresses)
        if len(texts) != len(self._networks) or not texts:
            return False
        found = set()
        for network, text in zip(self._networks, texts, strict=True):
            number = _place(network, text)
            if number is None or not FIRST <= number < self._end or number in self._owners:
                return False
            found.add(number)
        for number in found:
            self._owners[number] = owner
        self._numbers[owner] = found
        self._texts[owner] = texts
        self._next = max(found) + 1 if max(found) + 1 < self._end else FIRST
        return True

    def retain(self, owners: Container[str]) -> None:
        """Release the addresses of all other Pods."""
        for owner in [owner for owner in self._texts if owner not in owners]:
            self.release(owner)

    def release(self, owner: str) -> bool:
        """Release the addresses of a Pod; returns whether it had any."""
        for number in self._numbers.pop(owner, ()):
            del self._owners[number]
        return self._texts.pop(owner, None) is not None


def _place(network: IPv4Network | IPv6Network, text: str) -> int | None:
    """The position of an address in the network; None if it is invalid or outside."""
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return int(address) - int(network.network_address) if address in network else None
