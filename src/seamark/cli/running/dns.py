"""``seamark dns``: cluster DNS for any Kubernetes API."""

from __future__ import annotations

import argparse
import asyncio
from typing import TYPE_CHECKING

from seamark.cli import event_loop
from seamark.cli.clusters import WHICH_CLUSTER, connection_of, kubeconfig_of
from seamark.cli.failure import Failure
from seamark.cli.parsing import verb_parser
from seamark.cli.running import limits
from seamark.cli.running.serving import given_up
from seamark.cli.settings import ENVIRONMENT, add_settings, config_of
from seamark.kinds.values.hosts import bracketed

if TYPE_CHECKING:
    from seamark.config import ClusterSettings
    from seamark.dns.config import DnsConfig

EXAMPLES = """\
seamark dns --kubeconfig data/kubeconfig --listen 127.0.0.1:10053
seamark dns --listen :53 --pods insecure --ttl 30 --fallthrough in-addr.arpa,ip6.arpa   # as kubeadm sets it up
seamark dns --listen :53 --forward 1.1.1.1,9.9.9.9 --forward corp.example=10.0.0.53 --workers 2
"""


def parser() -> argparse.ArgumentParser:
    made = verb_parser(
        "dns",
        f"Serve the cluster's names from its own state.\n\n{WHICH_CLUSTER}\nInside a Pod it is that Pod's cluster.",
        examples=EXAMPLES,
        environment=ENVIRONMENT,
    )
    add_settings(made, "dns")
    return made


def main(arguments: list[str]) -> int:
    config = config_of(parser().parse_args(arguments), "dns")
    limits.check()

    from seamark.cli.logging_setup import set_up

    set_up(config.log)
    serving = _serve_in_workers if config.dns.workers > 1 else _serve_here
    try:
        event_loop.run(serving(config.dns, config.cluster))
    except Exception as error:
        raise _explained(error) from error
    return 0


def _explained(error: Exception) -> Failure:
    from seamark.dns.server import ListenError
    from seamark.runtime.supervisor import first_cause

    cause = first_cause(error)
    if not isinstance(cause, ListenError):
        return given_up("DNS", error)
    refused = isinstance(cause.__cause__, PermissionError)
    right = "; ports below 1024 need a right (CAP_NET_BIND_SERVICE)" if refused else ""
    return Failure(f"{cause}{right}; choose another with --listen or --status")


def _announce(addresses: list[tuple[str, int]], status: tuple[str, int]) -> None:
    for host, port in addresses:
        print(f"DNS          {bracketed(host)}:{port}")
    if status[1]:
        print(f"status       http://{status[0]}:{status[1]}")
    print("listening", flush=True)


async def _serve_here(config: DnsConfig, where: ClusterSettings) -> None:
    from seamark.access.remote import RemoteCluster
    from seamark.dns.server import DnsServer
    from seamark.dns.worker import freeze_when_synced

    ended = event_loop.told_to_end()
    async with RemoteCluster(connection_of(where), agent="seamark-dns") as cluster:
        server = DnsServer(config, cluster)
        async with server.running():
            _announce(server.addresses, server.status.address)
            waiting = [asyncio.ensure_future(freeze_when_synced(server)), asyncio.ensure_future(ended.wait())]
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            if not ended.is_set():
                print("ready", flush=True)
            await ended.wait()
            waiting[0].cancel()


async def _serve_in_workers(config: DnsConfig, where: ClusterSettings) -> None:
    from seamark.dns.workers import WorkerPool

    connection_of(where)  # so that a mistake in it is reported once, not by every worker
    ended = event_loop.told_to_end()
    pool = WorkerPool(config, kubeconfig=str(kubeconfig_of(where) or ""), context=where.context)
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
