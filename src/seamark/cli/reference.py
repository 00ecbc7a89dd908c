"""Every setting there is: its default, its flag, its variable and a sentence about it, as ``docs/configuration.md``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from seamark.cli.toml_text import toml_value
from seamark.config import FLAGS, Config

# A sentence for each setting, by its dotted name in the file.
ABOUT = {
    "data_dir": "Where certificates, the kubeconfig and the SQLite store live.",
    "store": (
        "Where objects live: `sqlite:///FILE`, `memory:` or `etcd://HOST:PORT,…/PREFIX`. "
        "Empty: `store.db` in the data directory."
    ),
    "ephemeral": "Objects are in memory only, unless a store is named; certificates and kubeconfig are kept.",
    "cluster_domain": "The zone of cluster DNS.",
    "dns_host": "The address DNS listens on.",
    "dns_port": "The port DNS listens on, UDP and TCP; 0 takes a free one.",
    "api.host": "The address the API server listens on.",
    "api.port": "The port the API server listens on; 0 takes a free one.",
    "api.plain_http": "No TLS; on loopback only.",
    "api.token_file": 'More users: lines of `token,user,uid,"group,…"`.',
    "api.advertise": (
        "The address in the Endpoints of `default/kubernetes`. Empty: the one listened on, or the machine's own."
    ),
    "api.max_in_flight": "Requests worked on at once before further ones are told to come back.",
    "network.ranges": "Addresses for Services, one range per IP family; the first one's family is the default.",
    "network.node_ports": "The first and the last node port.",
    "log.level": "`debug`, `info`, `warning` or `error`; `-v` is info, `-vv` debug.",
    "log.format": "`text` for people, `json` for machines: one object per line.",
    "log.file": "Where to write the log. Empty: stderr. It may be rotated by moving it away.",
    "dns.listen": "Addresses and ports to answer on. Default: `dns_host` and `dns_port`.",
    "dns.status": "Where to serve `/health`, `/ready` and `/metrics` of DNS alone; empty: nowhere.",
    "dns.workers": "For `seamark dns` only: processes that share the port.",
    "dns.zone.zones": "Zones served. Default: `cluster_domain` and the reverse zones.",
    "dns.zone.pods": (
        "Names of Pods (`10-0-0-1.ns.pod…`): `disabled`, `insecure` (any address) or `verified` (Pods that are there)."
    ),
    "dns.zone.ttl": "Seconds that answers may be kept, 0 to 3600.",
    "dns.zone.fallthrough": "Zones in which a name that does not exist is asked upstream; `.` for all.",
    "dns.zone.endpoint_pod_names": "Name endpoints without a hostname after their Pods rather than their addresses.",
    "dns.zone.ignore_empty_services": "Services without ready endpoints do not exist.",
    "dns.zone.endpoints": "Where endpoints are read from: `endpointslices`, `endpoints` or `auto`.",
    "dns.zone.namespaces": "Serve these namespaces only.",
    "dns.zone.namespace_labels": "Serve namespaces with such labels only; not together with `namespaces`.",
    "dns.zone.labels": "Serve Services, endpoints and Pods with such labels only.",
    "dns.forward.routes": (
        'Who is asked about other names: `[{zone = ".", to = ["1.1.1.1"]}]`; a path is a resolv.conf. '
        "None: such questions are refused."
    ),
    "dns.forward.timeout": "Seconds one upstream resolver has.",
    "dns.forward.deadline": "Seconds all of them have together.",
    "dns.forward.most_failures": "Failures in a row after which a resolver is left alone until it answers a probe.",
    "dns.forward.probe_seconds": "Seconds between such probes.",
    "dns.forward.most_concurrent": "Questions upstream at once.",
    "dns.forward.cache_entries": "Answers of others that are kept; 0 for none.",
    "dns.forward.longest_ttl": "Seconds an answer of others is kept at most.",
    "dns.forward.longest_negative_ttl": "The same for answers that there is nothing.",
    "dns.forward.stale_seconds": "Seconds an expired answer may still be served when nobody upstream answers.",
    "dns.hosts": "Static records, lines as in a hosts file; they win.",
    "dns.transfer_to": "Addresses and networks that may have whole zones (AXFR); `*` for all.",
    "dns.shuffle": "Addresses in another order in each answer.",
    "dns.sync_patience": "Seconds that questions wait for the cluster's state at the start; then they get SERVFAIL.",
    "dns.ready_policy": "`synced`: ready from then on; `connected`: not without sight of the API for `lost_after`.",
    "dns.lost_after": "Seconds; see `ready_policy`.",
    "dns.tcp_connections": "TCP connections at once.",
    "dns.tcp_idle_seconds": "Seconds a silent TCP connection is kept.",
    "dns.ready_answers": "Answers kept ready as bytes.",
    "dns.ready_octets": "Bytes they may take.",
    "nodes.count": "How many simulated nodes; 0 for none.",
    "nodes.prefix": "What they are called: `node-1`, `node-2` …",
    "nodes.zones": "Their zones, in turn.",
    "nodes.region": "Their region.",
    "nodes.pod_ranges": "Addresses for Pods, one range per IP family; each node gets a part.",
    "nodes.node_ranges": "Addresses of the nodes, one range per IP family.",
    "nodes.cpu": "What each node says it has.",
    "nodes.memory": "What each node says it has.",
    "nodes.storage": "What each node says it has.",
    "nodes.pods": "How many Pods a node takes.",
    "nodes.version": "The kubelet version a node says it has.",
    "nodes.scheduler": "Pods of this `schedulerName` are given to nodes.",
    "nodes.seed": "Decides between nodes that are equally good.",
    "nodes.heartbeat": "Seconds between two renewals of a node's Lease.",
    "nodes.lease": "Seconds a Lease says it is good for.",
    "nodes.grace": "Seconds without a heartbeat after which a node is NotReady.",
    "nodes.stop_after": "Seconds a simulated process takes to end.",
    "nodes.crash_backoff": "Seconds before the second restart of a container that fails; twice as long each time.",
    "nodes.crash_backoff_cap": "Seconds it is at most.",
    "nodes.orphan_after": "Seconds after which Pods of a Node that is gone are collected.",
    "nodes.workers": "Writes under way at once, per kind of work.",
    "discovery.workers": "Services handled at once by each discovery controller.",
    "discovery.max_endpoints_per_slice": "Endpoints in one EndpointSlice, 1 to 1000.",
    "discovery.batch": "Seconds within which further changes of a Service's Pods are written, together.",
    "surroundings.namespace_contents": "Give namespaces a `default` ServiceAccount (and see `root_certificates`).",
    "surroundings.root_certificates": (
        "Give namespaces the ConfigMap `kube-root-ca.crt` as well. Off by itself with `--nodes 0`: it is for Pods."
    ),
    "surroundings.load_balancer_pool": (
        "Addresses for Services of type LoadBalancer: CIDRs and ranges `FIRST-LAST`. None: such Services stay pending. "
        "None by itself with `--nodes 0`."
    ),
    "surroundings.keep_events_seconds": "Seconds an Event stays after it last changed.",
}

HEAD = """\
# Configuration

<!-- Written by `seamark config --reference`; do not edit. -->

Every setting of `seamark up` and `seamark apiserver`. A setting comes from, later ones winning: its default, the TOML
file named by `--config` (or `SEAMARK_CONFIG`), its environment variable, its flag. An unknown setting is refused.
`seamark config` prints what all of it adds up to, as a file that can be used as it is.

"""


class Setting(msgspec.Struct, frozen=True):
    """One setting: its dotted name and its default."""

    name: str
    default: Any

    @property
    def flag(self) -> str:
        """The option that sets it, empty if none does."""
        found = [flag for flag, place in FLAGS.items() if ".".join(place) == self.name]
        if self.name == "log.level":
            return "-v"
        return f"--{found[0].replace('_', '-')}" if found else ""

    @property
    def variable(self) -> str:
        found = [flag for flag, place in FLAGS.items() if ".".join(place) == self.name]
        return f"SEAMARK_{found[0].upper()}" if found else ""


def settings() -> list[Setting]:
    """All of them, in the order of the file."""
    from seamark.sections import SECTIONS

    found: list[Setting] = []
    for field in msgspec.structs.fields(Config):
        section = SECTIONS.get(field.name)
        found += _of(type(section(Config())), field.name) if section else _field(field, "")
    return found


def _of(struct: type[msgspec.Struct], prefix: str) -> Iterator[Setting]:
    for field in msgspec.structs.fields(struct):
        yield from _field(field, f"{prefix}.")


def _field(field: msgspec.structs.FieldInfo, prefix: str) -> Iterator[Setting]:
    default = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
    if isinstance(default, msgspec.Struct):
        yield from _of(type(default), f"{prefix}{field.name}")
    else:
        yield Setting(f"{prefix}{field.name}", default)


def reference() -> str:
    """The reference as Markdown: a table for each section of the file."""
    by_section: dict[str, list[str]] = {}
    for setting in settings():
        section, _, name = setting.name.rpartition(".")
        cells = [f"`{name}`", _default(setting), _code(setting.flag), _code(setting.variable), ABOUT[setting.name]]
        by_section.setdefault(section, []).append(f"| {' | '.join(cells)} |")
    lines = [HEAD.rstrip("\n")]
    for section, rows in by_section.items():
        lines += ["", f"## `[{section}]`" if section else "## The top of the file", ""]
        lines += ["| setting | default | flag | environment | |", "|---|---|---|---|---|", *rows]
    return "\n".join(lines) + "\n"


def _default(setting: Setting) -> str:
    if setting.name == "data_dir":
        return "`$XDG_STATE_HOME/seamark`, or `~/.local/state/seamark`"
    if setting.name == "dns.zone.pods":
        return '`"verified"`'  # in a cluster of our own; see seamark.sections
    if setting.name in ("dns.listen", "dns.zone.zones"):
        return ""  # made of other settings
    return _code(toml_value(setting.default))


def _code(text: str) -> str:
    return f"`{text}`" if text else ""
