"""``seamark dns``: cluster DNS for any Kubernetes API."""

from __future__ import annotations

import argparse
import asyncio
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from seamark.cli.failure import Failure
from seamark.cli.logging_setup import add_log_options, set_up_logging
from seamark.cli.parsing import add_switch, verb_parser

if TYPE_CHECKING:
    from seamark.dns.config import DnsConfig, ForwardConfig, ZoneConfig

EXAMPLES = """\
seamark dns --kubeconfig data/kubeconfig --listen 127.0.0.1:10053
seamark dns --listen :53 --pods insecure --ttl 30 --fallthrough in-addr.arpa,ip6.arpa   # as kubeadm sets it up
seamark dns --listen :53 --forward 1.1.1.1,9.9.9.9 --forward corp.example=10.0.0.53 --workers 2
"""


def add_zone_options(parser: argparse.ArgumentParser, *, words: Literal["*", 1] = 1) -> None:
    """What the cluster's names are; the same for everything that looks them up.

    ``words`` lets an option take several where no argument could follow it.
    """
    parser.add_argument("--kubeconfig", metavar="FILE", help="the cluster; without, kubectl's rules, then in-cluster")
    parser.add_argument("--context", metavar="NAME", default="", help="the kubeconfig's context to use")
    parser.add_argument(
        "--zone",
        metavar="ZONE",
        action="extend",
        nargs=words,
        help="zones to serve (default cluster.local); repeatable",
    )
    add_switch(parser, "--no-reverse", help="do not serve in-addr.arpa and ip6.arpa")
    parser.add_argument("--pods", choices=("disabled", "insecure", "verified"), default="disabled")
    add_switch(parser, "--endpoint-pod-names", help="name endpoints after Pods, not addresses")
    add_switch(parser, "--ignore-empty-services", help="Services without ready endpoints do not exist")
    parser.add_argument("--endpoints", choices=("auto", "endpointslices", "endpoints"), default="auto")
    parser.add_argument("--namespaces", metavar="NAME,…", default="", help="serve only these namespaces")
    parser.add_argument("--namespace-labels", metavar="SELECTOR", default="", help="serve only such namespaces")
    parser.add_argument("--labels", metavar="SELECTOR", default="", help="serve only such Services, endpoints, Pods")
    parser.add_argument(
        "--fallthrough", metavar="ZONE", action="extend", nargs=words, help="where unknown names are asked upstream"
    )
    parser.add_argument(
        "--forward",
        metavar="[ZONE=]HOST:PORT,…|none",
        action="append",
        help="upstream resolvers for other names (default those of /etc/resolv.conf); repeatable, per zone",
    )


def add_server_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--listen", metavar="HOST:PORT", action="append", help="where to answer; repeatable")
    parser.add_argument("--ttl", metavar="SECONDS", type=int, default=5, help="of the cluster's records (default 5)")
    parser.add_argument("--workers", metavar="N", type=int, default=1, help="processes that share the port")
    parser.add_argument("--status", metavar="HOST:PORT", default="", help="/health, /ready and /metrics over HTTP")
    parser.add_argument("--ready-policy", choices=("synced", "connected"), default="synced", help="see --lost-after")
    parser.add_argument(
        "--lost-after", metavar="SECONDS", type=float, default=60.0, help="without the API: ready no more (connected)"
    )
    parser.add_argument("--hosts", metavar="FILE", help="static records, as in /etc/hosts; they win")
    parser.add_argument(
        "--transfer-to", metavar="ADDRESS,…", default="", help="who may have whole zones (AXFR); *: all"
    )
    add_switch(parser, "--no-shuffle", help="keep addresses in one order")
    parser.add_argument("--stale", metavar="SECONDS", type=float, default=0.0, help="serve expired answers of others")
    parser.add_argument("--cache", metavar="N", type=int, default=10_000, help="answers of others kept; 0 for none")
    parser.add_argument("--tcp-connections", metavar="N", type=int, default=1000)
    parser.add_argument("--tcp-idle", metavar="SECONDS", type=float, default=10.0)
    add_log_options(parser)


def parser() -> argparse.ArgumentParser:
    made = verb_parser("dns", "Serve the cluster's names from its own state.", examples=EXAMPLES)
    add_zone_options(made, words="*")
    add_server_options(made)
    return made


def main(arguments: list[str]) -> int:
    options = parser().parse_args(arguments)
    set_up_logging(options.verbose, options.log_format)
    config = config_of(options)

    import uvloop

    from seamark.access.kubeconfig_file import KubeconfigError
    from seamark.dns.server import ListenError

    serving = _serve_in_workers if config.workers > 1 else _serve_here
    try:
        uvloop.run(serving(config, options.kubeconfig or "", options.context))
    except* (ListenError, KubeconfigError) as group:
        raise Failure(str(group.exceptions[0])) from group
    return 0


# --- options to configuration ----------------------------------------------------------------------


def config_of(options: argparse.Namespace) -> DnsConfig:
    """The configuration that the flags describe."""
    from seamark.dns.config import DnsConfig
    from seamark.dns.sockets.addresses import parse_listen

    try:
        config = DnsConfig(
            listen=tuple(options.listen or (":53",)),
            status=options.status,
            workers=options.workers,
            zone=zone_of(options, ttl=options.ttl),
            forward=forward_of(options, stale=options.stale, cache=options.cache),
            hosts=tuple(Path(options.hosts).read_text().splitlines()) if options.hosts else (),
            transfer_to=_listed(options.transfer_to),
            shuffle=not options.no_shuffle,
            ready_policy=options.ready_policy,
            lost_after=options.lost_after,
            tcp_connections=options.tcp_connections,
            tcp_idle_seconds=options.tcp_idle,
        )
        for text in (*config.listen, *([config.status] if config.status else [])):
            parse_listen(text)
    except OSError as error:
        raise Failure(f"cannot read {options.hosts}: {error.strerror}", 2) from error
    except ValueError as error:
        raise Failure(str(error), 2) from error
    return config


def zone_of(options: argparse.Namespace, *, ttl: int = 5) -> ZoneConfig:
    from seamark.dns.config import REVERSE_ZONES, ZoneConfig

    zones = _listed(",".join(options.zone or ())) or ("cluster.local",)
    if not options.no_reverse and not any(zone.rstrip(".").endswith(".arpa") for zone in zones):
        zones += REVERSE_ZONES
    return ZoneConfig(
        zones=zones,
        pods=options.pods,
        ttl=ttl,
        fallthrough=_fallthrough(options.fallthrough),
        endpoint_pod_names=options.endpoint_pod_names,
        ignore_empty_services=options.ignore_empty_services,
        endpoints=options.endpoints,
        namespaces=_listed(options.namespaces),
        namespace_labels=options.namespace_labels,
        labels=options.labels,
    )


def forward_of(options: argparse.Namespace, *, stale: float = 0.0, cache: int = 10_000) -> ForwardConfig:
    from seamark.dns.config import ForwardConfig, Route
    from seamark.dns.forwarding.upstream import parse_upstream

    routes = []
    for text in options.forward or ["/etc/resolv.conf"]:
        if text == "none":
            continue
        zone, _, addresses = text.rpartition("=")
        to = _listed(addresses)
        for address in to:
            if not address.startswith("/"):
                parse_upstream(address)
        routes.append(Route(zone=zone or ".", to=to))
    return ForwardConfig(routes=tuple(routes), stale_seconds=stale, cache_entries=cache)


def _fallthrough(zones: list[str] | None) -> tuple[str, ...]:
    """Named without zones it means all of them, as in a Corefile."""
    return () if zones is None else _listed(",".join(zones)) or (".",)


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


# --- serving ---------------------------------------------------------------------------------------


def _until_signalled() -> asyncio.Event:
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    return ended


def _announce(addresses: list[tuple[str, int]], status: tuple[str, int]) -> None:
    for host, port in addresses:
        print(f"DNS          {f'[{host}]' if ':' in host else host}:{port}")
    if status[1]:
        print(f"status       http://{status[0]}:{status[1]}")
    print("listening", flush=True)


async def _serve_here(config: DnsConfig, kubeconfig: str, context: str) -> None:
    from seamark.access.kubeconfig import load
    from seamark.access.remote import RemoteCluster
    from seamark.dns.server import DnsServer
    from seamark.dns.worker import freeze_when_synced

    ended = _until_signalled()
    async with RemoteCluster(load(kubeconfig or None, context=context), agent="seamark-dns") as cluster:
        server = DnsServer(config, cluster)
        async with server.running():
            _announce(server.addresses, server.status.address)
            waiting = [asyncio.ensure_future(freeze_when_synced(server)), asyncio.ensure_future(ended.wait())]
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            if not ended.is_set():
                print("ready", flush=True)
            await ended.wait()
            waiting[0].cancel()


async def _serve_in_workers(config: DnsConfig, kubeconfig: str, context: str) -> None:
    from seamark.access.kubeconfig import load
    from seamark.dns.workers import WorkerPool

    load(kubeconfig or None, context=context)  # a mistake in it is better told once than by every worker
    ended = _until_signalled()
    pool = WorkerPool(config, kubeconfig=kubeconfig, context=context)
    async with pool.running():
        _announce(pool.addresses, pool.status.address)
        while not ended.is_set():
            code, _ = await pool.ready()
            if code == 200:
                print("ready", flush=True)
                await ended.wait()
            else:
                await _wait_a_little(ended)


async def _wait_a_little(ended: asyncio.Event) -> None:
    try:
        async with asyncio.timeout(0.1):
            await ended.wait()
    except TimeoutError:
        return
