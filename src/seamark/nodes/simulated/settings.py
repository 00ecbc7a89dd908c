"""The settings of the simulated nodes: how many, where, how large, how fast."""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network, ip_network
from math import ceil
from typing import Annotated

import msgspec

from seamark.kinds.values.metadata import dns_subdomain, label_value
from seamark.kinds.values.quantity import QuantityError, amount
from seamark.settings import Section, setting

Network = IPv4Network | IPv6Network

MOST_HEARTBEATS = 100  # a second, of all nodes together
LONGEST_IPV6_PREFIX = 64  # of a node's part of an IPv6 range: /64 is the usual size of a network


class NodeSettings(Section, frozen=True):
    """Times are in seconds.  With a ``count`` of 0 nothing is simulated: no nodes and no scheduler."""

    count: Annotated[int, setting("How many simulated nodes; 0 for none.", "--nodes N")] = 3
    prefix: Annotated[str, setting("Nodes are called `node-1`, `node-2` … if this is `node`.")] = "node"
    run_on: Annotated[
        tuple[str, ...],
        setting("Nodes whose Pods run as processes, with `--pods chosen`.", "--run-on NODE"),
    ] = ()
    zones: Annotated[tuple[str, ...], setting("The zones of the nodes, in turn.")] = ("zone-a", "zone-b", "zone-c")
    region: Annotated[str, setting("The region of all nodes.")] = "region-1"
    pod_ranges: Annotated[
        tuple[str, ...], setting("Addresses for Pods, one range per IP family; each node gets a part of each.")
    ] = ("10.244.0.0/14", "fd00:10:244::/56")
    node_ranges: Annotated[tuple[str, ...], setting("Addresses of the nodes, one range per IP family.")] = (
        "172.18.0.0/16",
        "fd00:172:18::/64",
    )
    cpu: Annotated[str, setting("The CPUs that each node reports.")] = "64"
    memory: Annotated[str, setting("The memory that each node reports.")] = "256Gi"
    storage: Annotated[str, setting("The storage that each node reports.")] = "1Ti"
    pods: Annotated[int, setting("How many Pods a node takes.")] = 1000
    version: Annotated[str, setting("The kubelet version that each node reports.")] = "v1.38.0"
    scheduler: Annotated[str, setting("Pods with this `schedulerName` are assigned to nodes.")] = "default-scheduler"
    seed: Annotated[int, setting("Decides between nodes that are equally good.")] = 0
    heartbeat: Annotated[float, setting("Seconds between two renewals of a node's Lease; beyond 1,000 nodes more.")] = (
        10.0
    )
    lease: Annotated[int, setting("Seconds for which such a Lease is valid.")] = 40
    grace: Annotated[float, setting("Seconds without a heartbeat after which a node is NotReady.")] = 50.0
    stop_after: Annotated[float, setting("Seconds that a simulated process takes to end.")] = 0.1
    complete_after: Annotated[
        float,
        setting(
            "Seconds that Pods with restartPolicy Never or OnFailure run until they complete; negative: they do not "
            "end."
        ),
    ] = 1.0
    failing_images: Annotated[
        tuple[str, ...], setting("Images whose containers end in failure; `*` stands for any text.")
    ] = ()
    missing_images: Annotated[
        tuple[str, ...],
        setting("Images that cannot be pulled, so that their Pods stay pending; `*` stands for any text."),
    ] = ("*:404", "*:non-existent", "invalid.*", "*.invalid/*")
    crash_backoff: Annotated[
        float, setting("Seconds before the second restart of a failing container; doubled each time.")
    ] = 10.0
    crash_backoff_cap: Annotated[float, setting("Seconds before a restart at most.")] = 300.0
    orphan_after: Annotated[float, setting("Seconds after which the Pods of a Node that is gone are deleted.")] = 40.0
    events: Annotated[
        float,
        setting(
            "Events per second, at most, about Pods that do well: scheduled, and if simulated also pulled, created and "
            "started. About Pods beyond that only problems are told; 0 for only problems."
        ),
    ] = 10.0
    workers: Annotated[int, setting("Writes in progress at once, per kind of work.")] = 32

    def __post_init__(self) -> None:
        _check(self)

    def name(self, number: int) -> str:
        return f"{self.prefix}-{number}"

    def number(self, name: str) -> int | None:
        """The number of the node with this name; None if the name does not have our form."""
        prefix, dash, digits = name.rpartition("-")
        if prefix != self.prefix or not dash or not (digits.isascii() and digits.isdigit()) or digits.startswith("0"):
            return None
        return int(digits)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.name(number) for number in range(1, self.count + 1))

    def paced(self) -> NodeSettings:
        """The same for very many nodes: heartbeats come, and are missed, so much later that there are not too many.

        All of them are writes of this process.  If it fell behind with them, all nodes would count as dead.
        """
        slower = self.count / MOST_HEARTBEATS / self.heartbeat
        if slower <= 1:
            return self
        return msgspec.structs.replace(
            self, heartbeat=self.heartbeat * slower, lease=ceil(self.lease * slower), grace=self.grace * slower
        )

    def zone(self, number: int) -> str:
        return self.zones[(number - 1) % len(self.zones)] if self.zones else ""


def _check(settings: NodeSettings) -> None:
    """Raise ``ValueError`` if no nodes can be created from these settings."""
    if settings.count < 0:
        raise ValueError(f"{settings.count} is not a number of nodes")
    if wrong := dns_subdomain(settings.prefix):
        raise ValueError(f"prefix {settings.prefix!r}: {wrong[0]}")
    for zone in (*settings.zones, settings.region):
        if wrong := label_value(zone):
            raise ValueError(f"zone or region {zone!r}: {wrong[0]}")
    for name in ("cpu", "memory", "storage"):
        try:
            positive = amount(getattr(settings, name)) > 0
        except QuantityError as error:
            raise ValueError(f"{name} {getattr(settings, name)!r}: {error}") from None
        if not positive:
            raise ValueError(f"{name} must be more than nothing")
    for name in ("pods", "heartbeat", "lease", "grace", "workers", "crash_backoff", "crash_backoff_cap"):
        if getattr(settings, name) <= 0:
            raise ValueError(f"{name} must be greater than 0")
    for name in ("stop_after", "orphan_after", "events"):
        if getattr(settings, name) < 0:
            raise ValueError(f"{name} must not be negative")
    _check_ranges(settings)


def _check_ranges(settings: NodeSettings) -> None:
    for what, texts in (("pod", settings.pod_ranges), ("node", settings.node_ranges)):
        networks = [_network(what, text) for text in texts]
        if not 1 <= len(networks) <= 2 or len({network.version for network in networks}) != len(networks):
            raise ValueError(f"{what} ranges: one, or one of each IP family, is needed")
        for network in networks:
            room = parts(network, settings.pods) if what == "pod" else network.num_addresses - 2
            if room < settings.count:
                each = f" of {settings.pods} pods" if what == "pod" else ""
                raise ValueError(
                    f"{what} range {network} has room for {room} nodes{each}, not for {settings.count}: "
                    "choose a larger range or fewer nodes"
                )
    if {_network("pod", t).version for t in settings.pod_ranges} - {
        _network("node", t).version for t in settings.node_ranges
    }:
        raise ValueError("pod ranges of a family without a node range: nodes need addresses of both")


def _network(what: str, text: str) -> Network:
    try:
        return ip_network(text)
    except ValueError as error:
        raise ValueError(f"{what} range {text}: {error}") from None


def part_length(network: Network, pods: int) -> int:
    """The prefix length of one node's part: the smallest part with an address for each of so many Pods."""
    # Besides the Pods, the network itself and the node need an address, and IPv4 a broadcast address.
    needed = (pods + 3 - 1).bit_length()
    length = network.max_prefixlen - needed
    return min(length, LONGEST_IPV6_PREFIX) if network.version == 6 else length


def parts(network: Network, pods: int) -> int:
    """How many nodes the range has room for."""
    bits = part_length(network, pods) - network.prefixlen
    return 0 if bits < 0 else 1 << bits
