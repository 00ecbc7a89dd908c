"""The metrics of a DNS server."""

from __future__ import annotations

from bisect import bisect_left

from seamark.dns.zone.names import Labels
from seamark.dns.zone.records import Rcode, Type
from seamark.metrics import Registry, Value

_BUCKETS = (0.00001, 0.000025, 0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0)
_TYPES = {kind.value: kind.name for kind in Type}
_RCODES = {rcode.value: rcode.name for rcode in Rcode}


class Measures:
    """The metrics of one server.  Children are looked up in the registry once and then kept, which is faster."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self.dropped = registry.counter("seamark_dns_dropped_total", "Packets that deserved no reply.")
        self.failed = registry.counter("seamark_dns_failures_total", "Queries that a mistake of ours left unanswered.")
        self.unsent = registry.counter("seamark_dns_unsent_total", "Replies the system would not take.")
        self.refused_connections = registry.counter(
            "seamark_dns_tcp_connections_refused_total", "New TCP connections closed because there were too many."
        )
        self.displaced_connections = registry.counter(
            "seamark_dns_tcp_connections_displaced_total", "Idle TCP connections closed to make room for a new one."
        )
        self._durations = {
            proto: registry.histogram(
                "seamark_dns_reply_duration_seconds",
                "From a query read to its reply handed over.",
                proto,
                labels=("proto",),
                buckets=_BUCKETS,
            )
            for proto in ("udp", "tcp")
        }
        self._replies: dict[tuple[str, int, int, Labels | None], Value] = {}

    def replies(self, *, proto: str, kind: int, rcode: int, zone: Labels | None) -> Value:
        """The counter of replies with these labels; ``zone`` is None for names outside the served zones."""
        key = (proto, kind if kind in _TYPES else -1, rcode, zone)
        child = self._replies.get(key)
        if child is None:
            child = self._replies[key] = self.registry.counter(
                "seamark_dns_replies_total",
                "Replies by protocol, type, rcode and zone.",
                proto,
                _TYPES.get(kind, "other"),
                _RCODES.get(rcode, str(rcode)),
                "." if zone is None else ".".join(zone) + ".",
                labels=("proto", "type", "rcode", "zone"),
            )
        return child

    def took(self, proto: str, seconds: float, count: int = 1) -> None:
        """Record ``count`` replies that took ``seconds`` each."""
        durations = self._durations[proto]
        durations.counts[bisect_left(durations.bounds, seconds)] += count
        durations.total += seconds * count
