"""``seamark up``: the whole of it in one process."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from seamark.cli.apiserver import add_options, set_up_logging
from seamark.cli.failure import Failure

if TYPE_CHECKING:
    from seamark.daemon import Daemon

EXAMPLES = """\
examples:
  seamark up                                   # state in ~/.local/state/seamark
  seamark up --ephemeral --nodes 3             # nothing is kept
  seamark up --data-dir ./data --api-port 6443 --dns-port 1053
  seamark up --store etcd://127.0.0.1:2379/seamark
"""


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="seamark up",
        description="Run everything: API server, store, controllers, cluster DNS and simulated nodes.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_options(parser)
    parser.add_argument("--ephemeral", action="store_true", default=None, help="keep no state once it ends")
    parser.add_argument("--dns-host", metavar="HOST", help="address of DNS (default 127.0.0.1)")
    parser.add_argument("--dns-port", metavar="PORT", type=int, help="port of DNS (default 1053); 0 takes a free one")
    parser.add_argument("--nodes", metavar="N", type=int, help="simulated nodes (default 3); 0 for none")
    parser.add_argument("--cluster-domain", metavar="ZONE", help="the zone of cluster DNS (default cluster.local)")
    options = parser.parse_args(arguments)
    set_up_logging(options.verbose)

    from seamark.config import ConfigError, from_options

    try:
        config = from_options(vars(options))
    except ConfigError as error:
        raise Failure(str(error), 2) from error

    from seamark import daemon

    async def ready(running: Daemon) -> None:
        announce(running)

    import uvloop

    try:
        uvloop.run(daemon.run(config, daemon.EVERYTHING, ready))
    except daemon.StartError as error:
        raise Failure(str(error)) from error
    return 0


def announce(running: Daemon) -> None:
    """Where everything is, what to try, and that it is ready."""
    lines = [f"API server   {running.url}", f"kubeconfig   {running.kubeconfig_path}"]
    try_next = [f"export KUBECONFIG={running.kubeconfig_path}", "kubectl get svc,endpoints"]
    if running.dns is not None:
        host, port = running.dns.addresses[0]
        lines.append(f"DNS          {host}:{port} (UDP and TCP)")
        try_next.append(f"dig @{host} -p {port} kubernetes.default.svc.{running.config.cluster_domain}")
    print("\n".join(lines))
    print("try:")
    print("\n".join(f"  {line}" for line in try_next))
    print("ready", flush=True)
    sys.stdout.flush()
