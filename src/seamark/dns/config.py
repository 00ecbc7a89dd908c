"""The settings of a DNS server.  The defaults are those of CoreDNS and its kubernetes plugin."""

import ipaddress
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from seamark.dns.zone.names import Labels, is_reverse_zone, labels_of, within
from seamark.settings import Section, parse_listen, setting

PodMode = Literal["disabled", "insecure", "verified"]
EndpointSource = Literal["auto", "endpointslices", "endpoints"]
ReadyPolicy = Literal["synced", "connected"]

REVERSE_ZONES = ("in-addr.arpa", "ip6.arpa")


def _listed(words: Sequence[str]) -> tuple[str, ...]:
    return tuple(part.strip() for word in words for part in word.split(",") if part.strip())


def _zones(words: Sequence[str]) -> tuple[str, ...]:
    """The zones named on a command line, and the reverse zones unless one of those is among them."""
    zones = _listed(words)
    return zones if any(is_reverse_zone(labels_of(zone)) for zone in zones) else (*zones, *REVERSE_ZONES)


class ZoneConfig(Section, frozen=True):
    """The names of the cluster: how they look, and which objects have some."""

    zones: Annotated[
        tuple[str, ...],
        setting("Zones served; the default is `cluster_domain` and the reverse zones.", "--zone ZONE,…", _zones),
    ] = ("cluster.local", *REVERSE_ZONES)
    pods: Annotated[
        PodMode,
        setting(
            "Names of Pods (`10-0-0-1.ns.pod…`): `disabled` (the default), `insecure` (any address) or `verified` "
            "(Pods that exist; the default of `seamark up`).",
            "--pods MODE",
        ),
    ] = "disabled"
    ttl: Annotated[
        int, setting("Seconds that clients may keep answers about the cluster, 0 to 3600.", "--ttl SECONDS")
    ] = 5
    fallthrough: Annotated[
        tuple[str, ...],
        setting("Zones in which a name that does not exist is asked upstream; `.` for all.", "--fallthrough ZONE,…"),
    ] = ()
    endpoint_pod_names: Annotated[
        bool,
        setting("Name endpoints without a hostname after their Pods, not their addresses.", "--endpoint-pod-names"),
    ] = False
    ignore_empty_services: Annotated[
        bool, setting("Treat Services without ready endpoints as missing.", "--ignore-empty-services")
    ] = False
    endpoints: Annotated[
        EndpointSource,
        setting("Where endpoints are read from: `endpointslices`, `endpoints` or `auto`.", "--endpoints SOURCE"),
    ] = "auto"
    namespaces: Annotated[tuple[str, ...], setting("Serve these namespaces only.", "--namespaces NAME,…")] = ()
    namespace_labels: Annotated[
        str,
        setting(
            "Serve namespaces with such labels only; not together with `namespaces`.", "--namespace-labels SELECTOR"
        ),
    ] = ""
    labels: Annotated[
        str, setting("Serve Services, endpoints and Pods with such labels only.", "--labels SELECTOR")
    ] = ""

    def __post_init__(self) -> None:
        if not 0 <= self.ttl <= 3600:
            raise ValueError(f"ttl must be from 0 to 3600 seconds, not {self.ttl}")
        if self.namespaces and self.namespace_labels:
            raise ValueError("choose namespaces by name or by labels, not both")
        if all(is_reverse_zone(zone) for zone in self.zone_labels):
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
        return next(zone for zone in map(labels_of, self.zones) if not is_reverse_zone(zone))

    def falls_through(self, name: Labels) -> bool:
        return any(within(name, labels_of(zone)) for zone in self.fallthrough)


class Route(Section, frozen=True):
    """Names in ``zone`` are asked of these: addresses, or the path of a resolv.conf that lists some."""

    zone: str = "."
    to: tuple[str, ...] = ("/etc/resolv.conf",)

    def __post_init__(self) -> None:
        for address in self.to:
            if not address.startswith("/"):
                from seamark.dns.forwarding.upstream import parse_upstream

                parse_upstream(address)


def _routes(words: Sequence[str]) -> tuple[Route, ...]:
    """``[ZONE=]HOST:PORT,…`` for each route; ``none`` for none."""
    given = [word.rpartition("=") for text in words for word in text.split() if word != "none"]
    return tuple(Route(zone=zone or ".", to=_listed([addresses])) for zone, _, addresses in given)


class ForwardConfig(Section, frozen=True):
    """The resolvers that are asked about other names."""

    routes: Annotated[
        tuple[Route, ...],
        setting(
            "Resolvers for other names, by zone; a path is a resolv.conf, by default that of the machine. Without any, "
            "such questions are refused.",
            "--forward [ZONE=]HOST:PORT,…|none",
            _routes,
        ),
    ] = (Route(),)
    timeout: Annotated[float, setting("Seconds that one resolver has to answer.")] = 2.0
    deadline: Annotated[float, setting("Seconds that all resolvers together have to answer.")] = 5.0
    most_failures: Annotated[
        int, setting("Failures in a row after which a resolver is not used until it answers a probe.")
    ] = 2
    probe_seconds: Annotated[float, setting("Seconds between such probes.")] = 0.5
    most_concurrent: Annotated[int, setting("Questions in progress at once.")] = 1000
    cache_entries: Annotated[int, setting("Answers of resolvers that are kept; 0 for none.", "--cache N")] = 10_000
    longest_ttl: Annotated[int, setting("Seconds that an answer of a resolver is kept at most.")] = 3600
    longest_negative_ttl: Annotated[int, setting("The same for an answer that a name does not exist.")] = 1800
    stale_seconds: Annotated[
        float,
        setting("Seconds that an expired answer may be served while no resolver answers.", "--stale SECONDS"),
    ] = 0.0


def _lines(words: Sequence[str]) -> tuple[str, ...]:
    try:
        return tuple(Path(words[-1]).read_text(encoding="utf-8").splitlines())
    except OSError as error:
        raise ValueError(f"cannot read it: {error.strerror}") from error


class DnsConfig(Section, frozen=True):
    """A DNS server.

    It answers from what it knows even if it has lost sight of the API; ``ready_policy`` only decides whether it then
    still calls itself ready.
    """

    listen: Annotated[
        tuple[str, ...],
        setting(
            "Addresses and ports to answer on; default `:53`, but with `seamark up` `dns_host` and `dns_port`.",
            "--listen HOST:PORT",
        ),
    ] = (":53",)
    status: Annotated[
        str,
        setting("Where to serve `/health`, `/ready` and `/metrics` of DNS; empty: nowhere.", "--status HOST:PORT"),
    ] = ""
    workers: Annotated[int, setting("Processes of `seamark dns` that share the port.", "--workers N")] = 1
    zone: ZoneConfig = ZoneConfig()
    forward: ForwardConfig = ForwardConfig()
    hosts: Annotated[
        tuple[str, ...],
        setting("Static records, lines as in a hosts file, which win; the flag names a file.", "--hosts FILE", _lines),
    ] = ()
    transfer_to: Annotated[
        tuple[str, ...],
        setting("Addresses and networks that may transfer whole zones (AXFR); `*` for all.", "--transfer-to ADDRESS,…"),
    ] = ()
    shuffle: Annotated[bool, setting("Change the order of addresses from answer to answer.", "--shuffle")] = True
    sync_patience: Annotated[
        float, setting("Seconds that questions wait for the cluster's state at the start before they get SERVFAIL.")
    ] = 5.0
    ready_policy: Annotated[
        ReadyPolicy,
        setting(
            "`synced`: ready once the state is known; `connected`: only while the API was seen within `lost_after`.",
            "--ready-policy POLICY",
        ),
    ] = "synced"
    lost_after: Annotated[
        float,
        setting(
            "Seconds for which the API may be out of sight, by the ready policy `connected`.", "--lost-after SECONDS"
        ),
    ] = 60.0
    tcp_connections: Annotated[
        int,
        setting("TCP connections at once; a new one takes the place of the one idle longest.", "--tcp-connections N"),
    ] = 1000
    tcp_connections_per_client: Annotated[
        int, setting("The same for one client's address.", "--tcp-connections-per-client N")
    ] = 200
    tcp_idle_seconds: Annotated[
        float, setting("Seconds after which a silent TCP connection is closed.", "--tcp-idle SECONDS")
    ] = 10.0
    ready_answers: Annotated[int, setting("Answers kept ready as bytes.")] = 20_000
    ready_octets: Annotated[int, setting("Bytes that these may take.")] = 64 * 1024 * 1024

    def __post_init__(self) -> None:
        if self.workers < 1:
            raise ValueError(f"at least one worker is needed, not {self.workers}")
        if min(self.tcp_connections, self.tcp_connections_per_client) < 1:
            raise ValueError("at least one TCP connection is needed, in all and per client")
        if not self.listen:
            raise ValueError("nowhere to listen: name at least one HOST:PORT")
        for text in (*self.listen, *([self.status] if self.status else [])):
            parse_listen(text)
        for network in self.transfer_to:
            if network != "*":
                ipaddress.ip_network(network, strict=False)
        if self.hosts:
            from seamark.dns.zone.static import StaticRecords

            StaticRecords(self.hosts)
