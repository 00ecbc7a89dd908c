"""``seamark up``: the whole of it in one process."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from seamark.cli.failure import Failure
from seamark.cli.parsing import add_switch, verb_parser
from seamark.cli.serving import ENVIRONMENT, add_up_options, check_sections, config_of, serve
from seamark.cli.terminal import colourful, styled

if TYPE_CHECKING:
    from seamark.daemon import Daemon
    from seamark.presence import Presence

EXAMPLES = """\
seamark up                                   # state in ~/.local/state/seamark
seamark up --ephemeral --nodes 3             # no objects are kept
seamark up --detach --merge-kubeconfig       # in the background, and `kubectl --context seamark` knows it
seamark up --data-dir ./data --api-port 6443 --dns-port 1053
seamark up --store etcd://127.0.0.1:2379/seamark
"""


def parser() -> argparse.ArgumentParser:
    made = verb_parser(
        "up",
        "Run everything: API server, store, controllers, cluster DNS and simulated nodes.\n"
        "It is up once its last line says `ready`, and stays until SIGTERM or Ctrl-C.",
        examples=EXAMPLES,
        environment=ENVIRONMENT,
    )
    add_up_options(made)
    add_switch(made, "--detach", help="run in the background: see `seamark status`, `logs` and `down`")
    made.add_argument(
        "--merge-kubeconfig",
        nargs="?",
        const="seamark",
        metavar="CONTEXT",
        help="add a context (default seamark) to $KUBECONFIG's first file, or ~/.kube/config; all else in it stays",
    )
    return made


def main(arguments: list[str]) -> int:
    options = parser().parse_args(arguments)
    config = config_of(options)
    check_sections(config)
    if options.detach:
        from seamark.cli.background import start_in_background

        started = start_in_background(config, arguments)
        try:
            _is_up(started, options.merge_kubeconfig)
        except Failure:
            os.kill(started.pid, signal.SIGTERM)  # it is not what was asked for
            raise
        return 0

    from seamark.daemon import EVERYTHING

    async def ready(running: Daemon) -> None:
        _is_up(running.presence(""), options.merge_kubeconfig)

    serve(config, EVERYTHING, ready)
    return 0


def _is_up(presence: Presence, context: str | None) -> None:
    if context:
        from seamark.cli.kubeconfig_merge import merge_for_user

        merge_for_user(Path(presence.kubeconfig), context)
    announce(presence, context)


def own_command(called: str) -> str:
    """What to type for this program: its name if the shell finds it, else as it was called."""
    if shutil.which("seamark"):
        return "seamark"
    return called if Path(called).name == "seamark" else f"{sys.executable} -m seamark"


def announce(presence: Presence, context: str | None) -> None:
    """Where everything is, what to try, and that it is ready."""
    seamark = own_command(sys.argv[0])
    get = "kubectl" if shutil.which("kubectl") else seamark
    lines = [("API server", presence.api), ("kubeconfig", presence.kubeconfig)]
    try_next = [f"export KUBECONFIG={presence.kubeconfig}", f"{get} get svc,endpoints"]
    if context:
        lines.append(("context", context))
        try_next = [f"{get} get svc,endpoints --context {context}"]
    if presence.dns:
        host, _, port = presence.dns[0].rpartition(":")
        lines.append(("DNS", f"{presence.dns[0]} (UDP and TCP)"))
        name = f"kubernetes.default.svc.{presence.cluster_domain}"
        dig = f"dig @{host.strip('[]')} -p {port} {name}"
        try_next.append(dig if shutil.which("dig") else f"{seamark} resolve {name}. --server {presence.dns[0]}")
    if presence.nodes:
        lines.append(("nodes", f"{presence.nodes} simulated"))
    if presence.log:
        lines.append(("log", presence.log))
    colour = colourful(sys.stdout)
    print("\n".join(styled(f"{name:<13}", "bold", colour=colour) + text for name, text in lines))
    print("try:")
    print("\n".join(f"  {line}" for line in try_next))
    print(styled("ready", "green", colour=colour), flush=True)
