"""``seamark proxy``: what kube-proxy does on a node, for any Kubernetes API."""

from __future__ import annotations

import argparse
import asyncio
import logging
import socket
from typing import TYPE_CHECKING

from seamark.cli import event_loop
from seamark.cli.clusters import connection_of
from seamark.cli.failure import Failure
from seamark.cli.light_imports import import_http_client
from seamark.cli.parsing import add_switch, verb_parser
from seamark.cli.running import limits, memory
from seamark.cli.running.serving import given_up
from seamark.cli.settings import ENVIRONMENT, add_settings, config_of

if TYPE_CHECKING:
    from seamark.access.kubeconfig import Connection
    from seamark.config import Config
    from seamark.metrics import Registry
    from seamark.proxy.engine import Engine, Report

log = logging.getLogger(__name__)

EXAMPLES = """\
seamark proxy --kubeconfig admin.conf --node-name node-a --cluster-cidr 10.244.0.0/16,fd00:10:244::/56
seamark proxy --mode userspace --node-name node-a          # without any rights: forwards in this process
seamark proxy --nodeport-addresses 0.0.0.0/0,::/0          # node ports on every address of the node
seamark proxy --cleanup                                    # removes the rules from the kernel

Only one proxy can serve a node: stop kube-proxy first, and clean up with kube-proxy --cleanup.
"""

# Options of kube-proxy that set up the node or its own rounds.  They are accepted, so that its command line can be
# kept, and a warning says that they do nothing.
WITHOUT_MEANING = (
    "--config-sync-period",
    "--conntrack-max-per-core",
    "--conntrack-min",
    "--conntrack-tcp-timeout-close-wait",
    "--conntrack-tcp-timeout-established",
    "--conntrack-udp-timeout",
    "--conntrack-udp-timeout-stream",
    "--iptables-min-sync-period",
    "--iptables-sync-period",
    "--oom-score-adj",
)


def parser() -> argparse.ArgumentParser:
    made = verb_parser(
        "proxy",
        "Route connections to Services on a node, by nftables or in userspace.",
        examples=EXAMPLES,
        environment=ENVIRONMENT,
    )
    add_settings(made, "proxy")
    same = argparse.SUPPRESS
    made.add_argument(
        "--hostname-override", metavar="NAME", dest="proxy.node_name", default=same, help="the same as --node-name"
    )
    modes = ("nftables", "userspace")
    made.add_argument("--proxy-mode", dest="proxy.mode", choices=modes, default=same, help="the same as --mode")
    for name in WITHOUT_MEANING:
        made.add_argument(name, help=argparse.SUPPRESS)
    add_switch(made, "--cleanup", help="remove all rules from the kernel and end")
    return made


def main(arguments: list[str]) -> int:
    options = parser().parse_args(arguments)
    config = config_of(options, "proxy")

    from seamark.cli.logging_setup import set_up

    set_up(config.log)
    for name in WITHOUT_MEANING:
        if getattr(options, name.removeprefix("--").replace("-", "_")) is not None:
            log.warning("%s does nothing here", name)
    if options.cleanup:
        return _clean_up()
    limits.check()

    try:
        connection = connection_of(config.cluster)
        event_loop.run(_run(connection, config))
    except Exception as error:
        raise _explained(error) from error
    return 0


def _clean_up() -> int:
    from seamark.proxy.engine import Unsupported
    from seamark.proxy.nftables.engine import remove_tables

    try:
        print("the rules are removed" if remove_tables() else "there are no rules to remove")
    except Unsupported as error:
        raise Failure(str(error)) from error
    return 0


def _explained(error: Exception) -> Failure:
    from seamark.proxy.engine import Unsupported
    from seamark.runtime.supervisor import first_cause

    cause = first_cause(error)
    return Failure(str(cause)) if isinstance(cause, Unsupported) else given_up("the proxy", error)


def _engine(config: Config, metrics: Registry, report: Report) -> Engine:
    if config.proxy.mode == "userspace":
        from seamark.proxy.userspace.engine import UserspaceEngine

        return UserspaceEngine(config.userspace, report=report, metrics=metrics)
    from seamark.proxy.nftables.engine import NftablesEngine

    return NftablesEngine(masquerade_bit=config.proxy.masquerade_bit)


async def _run(connection: Connection, config: Config) -> None:
    from seamark.access.informers import Informers
    from seamark.access.remote import RemoteCluster
    from seamark.metrics import Registry
    from seamark.proxy.events import ProblemEvents
    from seamark.proxy.server import ProxyServer

    ended = event_loop.told_to_end()
    import_http_client()
    memory.settle()
    metrics = Registry()
    node = config.proxy.node_name or socket.gethostname().lower()
    async with RemoteCluster(connection, agent="seamark-proxy") as cluster:
        informers = Informers(cluster, metrics=metrics)
        events = ProblemEvents(cluster, informers, host=node)
        engine = _engine(config, metrics, events.record)
        server = ProxyServer(informers, engine, config.proxy, node_name=node, metrics=metrics, report=events.record)
        print(f"cluster      {connection.server}")
        print(f"node         {node}")
        print(f"mode         {config.proxy.mode}", flush=True)
        working = asyncio.create_task(server.run(_announce), name="proxy")
        ending = asyncio.create_task(ended.wait(), name="signals")
        await asyncio.wait({working, ending}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            working.result()
        for task in (working, ending):
            task.cancel()
        await asyncio.gather(working, ending, return_exceptions=True)
        await events.stop()


def _announce() -> None:
    print("ready", flush=True)
    memory.settle()
