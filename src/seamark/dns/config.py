"""How a DNS server is set up.  The defaults are those of CoreDNS and its kubernetes plugin."""

from __future__ import annotations

from typing import Literal

import msgspec

from seamark.dns.names import IPV4_REVERSE, IPV6_REVERSE, Labels, is_reverse, labels_of, within

PodMode = Literal["disabled", "insecure", "verified"]
EndpointSource = Literal["auto", "endpointslices", "endpoints"]
ReadyPolicy = Literal["synced", "connected"]

REVERSE_ZONES = ("in-addr.arpa", "ip6.arpa")


class ZoneConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the cluster's own names look like and who may see them.

    ``fallthrough`` lists zones in which a name that does not exist is asked of the upstream resolvers instead; ``.``
    stands for all.  ``namespaces`` and ``namespace_labels`` exclude each other.
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
        if not any(not _reverse_zone(zone) for zone in self.zone_labels):
            raise ValueError(
                f"no zone for names among {', '.join(self.zones) or 'none'}: reverse zones need one to name things in"
            )

    @property
    def zone_labels(self) -> tuple[Labels, ...]:
        """The zones, the longest first, so that the first that contains a name is the right one."""
        return tuple(sorted({labels_of(zone) for zone in self.zones}, key=len, reverse=True))

    @property
    def primary(self) -> Labels:
        """The zone in which addresses are named: the first that is not a reverse zone."""
        return next(zone for zone in map(labels_of, self.zones) if not _reverse_zone(zone))

    def falls_through(self, name: Labels) -> bool:
        return any(within(name, labels_of(zone)) for zone in self.fallthrough)


def _reverse_zone(zone: Labels) -> bool:
    return is_reverse(zone) or zone in (IPV4_REVERSE, IPV6_REVERSE)
