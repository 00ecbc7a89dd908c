"""What ``up`` and ``apiserver`` share: from options to a configuration, and running a daemon by it."""

from __future__ import annotations

import argparse
import gc
from collections.abc import Awaitable, Callable, Collection
from typing import TYPE_CHECKING

from seamark.cli.failure import Failure
from seamark.cli.logging_setup import add_log_options, level_of
from seamark.cli.parsing import add_switch, truth
from seamark.cli.terminal import Progress

if TYPE_CHECKING:
    from seamark.config import Config
    from seamark.daemon import Daemon, Part

ENVIRONMENT = {
    "SEAMARK_CONFIG": "the same as --config",
    "SEAMARK_DATA_DIR, …": "every flag that sets something can be set so; flags win",
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of everything that runs an API server."""
    parser.add_argument("--data-dir", metavar="DIR", help="certificates, kubeconfig and the SQLite store live here")
    parser.add_argument("--api-host", metavar="HOST", help="address to listen on (default 127.0.0.1)")
    parser.add_argument(
        "--api-port", metavar="PORT", type=int, help="port to listen on (default 6443); 0 takes a free one"
    )
    parser.add_argument("--store", metavar="URL", help="sqlite:///FILE, memory: or etcd://HOST:PORT,…/PREFIX")
    add_switch(parser, "--plain-http", default=None, help="no TLS; allowed on loopback only")
    parser.add_argument("--token-file", metavar="FILE", help='more users: lines of token,user,uid,"group,…"')
    parser.add_argument("--service-range", metavar="CIDR[,CIDR]", help="addresses for Services, one range per family")
    parser.add_argument("--node-port-range", metavar="LOW-HIGH", help="node ports (default 30000-32767)")
    parser.add_argument("--config", metavar="FILE", help="a TOML file with any of these settings")
    add_log_options(parser)
    parser.add_argument("--log-file", metavar="FILE", help="where to say it (default: stderr)")


def add_up_options(parser: argparse.ArgumentParser) -> None:
    """What only the whole of it has."""
    add_options(parser)
    add_switch(parser, "--ephemeral", default=None, help="objects in memory only, gone when it ends")
    parser.add_argument("--dns-host", metavar="HOST", help="address of DNS (default 127.0.0.1)")
    parser.add_argument("--dns-port", metavar="PORT", type=int, help="port of DNS (default 1053); 0 takes a free one")
    parser.add_argument("--nodes", metavar="N", type=int, help="simulated nodes (default 3); 0 for none")
    parser.add_argument("--cluster-domain", metavar="ZONE", help="the zone of cluster DNS (default cluster.local)")
    parser.add_argument(
        "--load-balancer-pool",
        metavar="CIDR,…|none",
        help="addresses for Services of type LoadBalancer (default: addresses for examples, which lead nowhere)",
    )
    parser.add_argument(
        "--namespace-contents",
        metavar="BOOL",
        type=truth,
        help="whether namespaces begin with a ServiceAccount and the CA's certificate (default true)",
    )


def config_of(options: argparse.Namespace) -> Config:
    """The configuration these options make, with the file and the environment."""
    from seamark.config import ConfigError, from_options

    given = dict(vars(options))
    if options.verbose:
        given["log_level"] = level_of(options.verbose)
    try:
        return from_options(given)
    except ConfigError as error:
        raise Failure(str(error), 2) from error


def check_sections(config: Config) -> None:
    """Say what is wrong with a component's section before anything is started."""
    from seamark import sections
    from seamark.config import ConfigError

    try:
        for section in sections.SECTIONS.values():
            section(config)
    except ConfigError as error:
        raise Failure(str(error), 2) from error


def serve(config: Config, parts: Collection[Part], ready: Callable[[Daemon], Awaitable[None]]) -> None:
    """Run a daemon until it is told to stop."""
    from seamark.cli.logging_setup import set_up

    try:
        set_up(config.log)
    except OSError as error:
        raise Failure(f"cannot write the log file {config.log.file}: {error.strerror}") from error

    import uvloop

    from seamark import daemon
    from seamark.config import ConfigError

    progress = Progress("starting …")

    async def is_up(running: Daemon) -> None:
        progress.done()
        await ready(running)
        collect_less()

    try:
        with progress:
            uvloop.run(daemon.run(config, parts, is_up))
    except (daemon.StartError, daemon.PartFailed) as error:
        raise Failure(str(error)) from error
    except ConfigError as error:
        raise Failure(str(error), 2) from error


def collect_less() -> None:
    """Have Python look for cyclic garbage less often.

    Next to nothing here is cyclic, and what is loaded by now stays; walking it again and again took a fourteenth of the
    time it takes to write.
    """
    gc.freeze()
    gc.set_threshold(10_000, 20, 50)
