"""``seamark apiserver``: the API server alone."""

from __future__ import annotations

import argparse
import logging
import sys

from seamark.cli.failure import Failure

EXAMPLES = """\
examples:
  seamark apiserver --data-dir ./data
  seamark apiserver --data-dir ./data --api-port 6443 --store etcd://127.0.0.1:2379/seamark
  seamark apiserver --data-dir ./data --plain-http --api-port 8080    # loopback only, no TLS
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of everything that runs an API server."""
    parser.add_argument("--data-dir", metavar="DIR", help="certificates, kubeconfig and the SQLite store live here")
    parser.add_argument("--api-host", metavar="HOST", help="address to listen on (default 127.0.0.1)")
    parser.add_argument("--api-port", metavar="PORT", type=int, help="port to listen on; 0 takes a free one")
    parser.add_argument("--store", metavar="URL", help="sqlite:///FILE, memory: or etcd://HOST:PORT,…/PREFIX")
    parser.add_argument("--plain-http", action="store_true", default=None, help="no TLS; allowed on loopback only")
    parser.add_argument("--token-file", metavar="FILE", help='more users: lines of token,user,uid,"group,…"')
    parser.add_argument("--service-range", metavar="CIDR[,CIDR]", help="addresses for Services, one range per family")
    parser.add_argument("--node-port-range", metavar="LOW-HIGH", help="node ports (default 30000-32767)")
    parser.add_argument("--config", metavar="FILE", help="a TOML file with any of these settings")
    parser.add_argument("-v", "--verbose", action="count", default=0, help="say more; twice: say everything")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="seamark apiserver",
        description="Serve the Kubernetes API for service discovery.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_options(parser)
    options = parser.parse_args(arguments)
    set_up_logging(options.verbose)

    from seamark.config import ConfigError, from_options

    try:
        config = from_options(vars(options))
    except ConfigError as error:
        raise Failure(str(error), 2) from error

    from seamark import daemon

    async def ready(running: daemon.Daemon) -> None:
        print(f"API server   {running.url}")
        print(f"kubeconfig   {running.kubeconfig_path}")
        print("ready", flush=True)

    import uvloop

    try:
        uvloop.run(daemon.run(config, ["controllers"], ready))
    except daemon.StartError as error:
        raise Failure(str(error)) from error
    return 0


def set_up_logging(verbosity: int) -> None:
    """Quiet by default: warnings and worse, on stderr."""
    level = {0: logging.WARNING, 1: logging.INFO}.get(verbosity, logging.DEBUG)
    logging.basicConfig(
        level=level, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s %(message)s", datefmt="%H:%M:%S"
    )
