"""What the simulated nodes are like: how many, where, how large, how fast."""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network, ip_network

import msgspec

from seamark.kinds.values.metadata import dns_subdomain, label_value
from seamark.kinds.values.quantity import QuantityError, amount

Network = IPv4Network | IPv6Network

LONGEST_IPV6_PREFIX = 64  # a node's own part of an IPv6 range, as networks are cut


class NodeSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Times are in seconds.  ``count`` 0 means no nodes, no scheduler, nothing."""

    count: int = 3
    prefix: str = "node"  # nodes are called node-1, node-2 …
    zones: tuple[str, ...] = ("zone-a", "zone-b", "zone-c")
    region: str = "region-1"
    pod_ranges: tuple[str, ...] = ("10.244.0.0/14", "fd00:10:244::/56")  # each node gets a part of each
    node_ranges: tuple[str, ...] = ("172.18.0.0/16", "fd00:172:18::/64")  # the nodes' own addresses
    cpu: str = "64"
    memory: str = "256Gi"
    storage: str = "1Ti"
    pods: int = 1000
    version: str = "v1.38.0"
    scheduler: str = "default-scheduler"
    seed: int = 0  # decides between nodes that are equally good
    heartbeat: float = 10.0
    lease: int = 40
    grace: float = 50.0  # without a heartbeat for so long, a node is NotReady
    stop_after: float = 0.1  # how long a simulated process takes to end
    crash_backoff: float = 10.0  # before the second restart; twice as long each time
    crash_backoff_cap: float = 300.0
    orphan_after: float = 40.0  # Pods of a foreign Node that is gone are collected after this
    workers: int = 32  # writes under way at once, per kind of work

    def name(self, number: int) -> str:
        return f"{self.prefix}-{number}"

    def number(self, name: str) -> int | None:
        """Which of our nodes this name means; None if it is not the kind of name we give."""
        prefix, dash, digits = name.rpartition("-")
        if prefix != self.prefix or not dash or not (digits.isascii() and digits.isdigit()) or digits.startswith("0"):
            return None
        return int(digits)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.name(number) for number in range(1, self.count + 1))

    def zone(self, number: int) -> str:
        return self.zones[(number - 1) % len(self.zones)] if self.zones else ""


def check(settings: NodeSettings) -> None:
    """Raise ``ValueError``, one clear line, if no cluster could be made of this."""
    if settings.count < 0:
        raise ValueError(f"nodes: {settings.count} is not a number of nodes")
    if wrong := dns_subdomain(settings.prefix):
        raise ValueError(f"nodes: prefix {settings.prefix!r}: {wrong[0]}")
    for zone in (*settings.zones, settings.region):
        if wrong := label_value(zone):
            raise ValueError(f"nodes: zone or region {zone!r}: {wrong[0]}")
    for name in ("cpu", "memory", "storage"):
        try:
            positive = amount(getattr(settings, name)) > 0
        except QuantityError as error:
            raise ValueError(f"nodes: {name} {getattr(settings, name)!r}: {error}") from None
        if not positive:
            raise ValueError(f"nodes: {name} must be more than nothing")
    for name in ("pods", "heartbeat", "lease", "grace", "workers", "crash_backoff", "crash_backoff_cap"):
        if getattr(settings, name) <= 0:
            raise ValueError(f"nodes: {name} must be greater than 0")
    for name in ("stop_after", "orphan_after"):
        if getattr(settings, name) < 0:
            raise ValueError(f"nodes: {name} must not be negative")
    _check_ranges(settings)


def _check_ranges(settings: NodeSettings) -> None:
    for what, texts in (("pod", settings.pod_ranges), ("node", settings.node_ranges)):
        networks = [_network(what, text) for text in texts]
        if not 1 <= len(networks) <= 2 or len({network.version for network in networks}) != len(networks):
            raise ValueError(f"nodes: {what} ranges: one, or one of each IP family, is needed")
        for network in networks:
            room = parts(network, settings.pods) if what == "pod" else network.num_addresses - 2
            if room < settings.count:
                each = f" of {settings.pods} pods" if what == "pod" else ""
                raise ValueError(
                    f"nodes: {what} range {network} has room for {room} nodes{each}, not for {settings.count}: "
                    "choose a larger range or fewer nodes"
                )
    if {_network("pod", t).version for t in settings.pod_ranges} - {
        _network("node", t).version for t in settings.node_ranges
    }:
        raise ValueError("nodes: pod ranges of a family without a node range: nodes need addresses of both")


def _network(what: str, text: str) -> Network:
    try:
        return ip_network(text)
    except ValueError as error:
        raise ValueError(f"nodes: {what} range {text}: {error}") from None


def part_length(network: Network, pods: int) -> int:
    """The prefix length of one node's part: the smallest with an address for each of so many Pods."""
    # Beside the Pods' there are the network's own address, the node's, and for IPv4 that of broadcast.
    needed = (pods + 3 - 1).bit_length()
    length = network.max_prefixlen - needed
    return min(length, LONGEST_IPV6_PREFIX) if network.version == 6 else length


def parts(network: Network, pods: int) -> int:
    """How many nodes the range has room for."""
    bits = part_length(network, pods) - network.prefixlen
    return 0 if bits < 0 else 1 << bits
