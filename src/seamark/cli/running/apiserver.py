"""``seamark apiserver``: the API server alone."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from seamark.cli.parsing import verb_parser
from seamark.cli.running.serving import serve
from seamark.cli.settings import ENVIRONMENT, add_settings, config_of

if TYPE_CHECKING:
    from seamark.daemon import Daemon

EXAMPLES = """\
seamark apiserver --data-dir ./data
seamark apiserver --data-dir ./data --api-port 6443 --store etcd://127.0.0.1:2379/seamark
seamark apiserver --data-dir ./data --plain-http --api-port 8080    # loopback only, no TLS
"""


def parser() -> argparse.ArgumentParser:
    made = verb_parser(
        "apiserver",
        "Serve the Kubernetes API for service discovery.",
        examples=EXAMPLES,
        environment=ENVIRONMENT,
    )
    add_settings(made, "apiserver")
    return made


def main(arguments: list[str]) -> int:
    config = config_of(parser().parse_args(arguments), "apiserver")

    async def ready(running: Daemon) -> None:
        print(f"API server   {running.url}")
        print(f"kubeconfig   {running.kubeconfig_path}")
        print("ready", flush=True)

    serve(config, ["controllers"], ready)
    return 0
