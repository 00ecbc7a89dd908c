"""The settings of the DNS server.  The defaults are those of CoreDNS and its kubernetes plugin."""

from __future__ import annotations

import ipaddress
from typing import Literal

import msgspec

from seamark.dns.zone.names import Labels, is_reverse_zone, labels_of, within

PodMode = Literal["disabled", "insecure", "verified"]
EndpointSource = Literal["auto", "endpointslices", "endpoints"]
ReadyPolicy = Literal["synced", "connected"]

REVERSE_ZONES = ("in-addr.arpa", "ip6.arpa")


class ZoneConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The cluster's zones, and which names are served in them.

    ``fallthrough`` lists zones in which names that do not exist are forwarded to the upstream resolvers; ``.`` means
    all zones.  ``namespaces`` and ``namespace_labels`` restrict the namespaces served; only one of them may be set.
    """

    zones: tuple[str, ...] = ("cluster.local", *REVERSE_ZONES)
    pods: PodMode = "disabled"
    ttl: int = 5
    fallthrough: tuple[str, ...] = ()
    endpoint_pod_names: bool = False
    ignore_empty_services: bool = False
    endpoints: EndpointSource = "auto"
    namespaces: tuple[str, ...] = ()
    namespace_labels: str = ""
    labels: str = ""

    def __post_init__(self) -> None:
        if not 0 <= self.ttl <= 3600:
            raise ValueError(f"ttl must be from 0 to 3600 seconds, not {self.ttl}")
        if self.namespaces and self.namespace_labels:
            raise ValueError("choose namespaces by name or by labels, not both")
        if not any(not is_reverse_zone(zone) for zone in self.zone_labels):
            raise ValueError(
                f"no zone for names among {', '.join(self.zones) or 'none'}: reverse zones need one to name things in"
            )

    @property
    def zone_labels(self) -> tuple[Labels, ...]:
        """The zones, longest first, so that the first one that contains a name is the most specific one."""
        return tuple(sorted({labels_of(zone) for zone in self.zones}, key=len, reverse=True))

    @property
    def primary(self) -> Labels:
        """The zone of the names that PTR records point to: the first one that is not a reverse zone."""
        return next(zone for zone in map(labels_of, self.zones) if not is_reverse_zone(zone))

    def falls_through(self, name: Labels) -> bool:
        return any(within(name, labels_of(zone)) for zone in self.fallthrough)


class Route(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Questions about names in ``zone`` go to the resolvers ``to``: addresses, or the path of a resolv.conf."""

    zone: str = "."
    to: tuple[str, ...] = ("/etc/resolv.conf",)


class ForwardConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The upstream resolvers for names outside the cluster's zones.  Without routes such questions are refused.

    ``timeout`` applies to one resolver, ``deadline`` to all attempts together; ``stale_seconds`` is how long an expired
    answer may still be served while no upstream resolver answers.
    """

    routes: tuple[Route, ...] = ()
    timeout: float = 2.0
    deadline: float = 5.0
    most_failures: int = 2
    probe_seconds: float = 0.5
    most_concurrent: int = 1000
    cache_entries: int = 10_000
    longest_ttl: int = 3600
    longest_negative_ttl: int = 1800
    stale_seconds: float = 0.0


class DnsConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A DNS server.

    ``hosts`` are lines as in a hosts file; ``transfer_to`` lists the addresses and networks that may transfer zones.
    At the start, queries wait up to ``sync_patience`` seconds for the cluster's state; after that they get SERVFAIL.
    ``ready_policy`` says whether the server stays ready when it has been disconnected from the API for longer than
    ``lost_after`` seconds; it keeps answering from the last known state in either case.
    """

    listen: tuple[str, ...] = (":53",)
    status: str = ""
    workers: int = 1
    zone: ZoneConfig = ZoneConfig()
    forward: ForwardConfig = ForwardConfig()
    hosts: tuple[str, ...] = ()
    transfer_to: tuple[str, ...] = ()
    shuffle: bool = True
    sync_patience: float = 5.0
    ready_policy: ReadyPolicy = "synced"
    lost_after: float = 60.0
    tcp_connections: int = 1000
    tcp_idle_seconds: float = 10.0
    ready_answers: int = 20_000
    ready_octets: int = 64 * 1024 * 1024

    def __post_init__(self) -> None:
        if self.workers < 1:
            raise ValueError(f"at least one worker is needed, not {self.workers}")
        if not self.listen:
            raise ValueError("nowhere to listen: name at least one HOST:PORT")
        for network in self.transfer_to:
            if network != "*":
                ipaddress.ip_network(network, strict=False)
        if self.hosts:
            from seamark.dns.zone.static import StaticRecords

            StaticRecords(self.hosts)
