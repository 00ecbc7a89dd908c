"""``seamark controllers``: the discovery controllers against any Kubernetes API."""

from __future__ import annotations

import argparse
import asyncio
import logging
from typing import TYPE_CHECKING

from seamark.cli import event_loop
from seamark.cli.clusters import WHICH_CLUSTER, connection_of
from seamark.cli.failure import Failure
from seamark.cli.parsing import verb_parser
from seamark.cli.running import limits
from seamark.cli.running.serving import given_up
from seamark.cli.settings import ENVIRONMENT, add_settings, config_of
from seamark.kinds.values.hosts import bracketed

if TYPE_CHECKING:
    from seamark.access.kubeconfig import Connection
    from seamark.config import Config
    from seamark.controllers.discovery.process import ControllerProcess

log = logging.getLogger(__name__)

EXAMPLES = """\
seamark controllers --kubeconfig data/kubeconfig --no-leader-elect
seamark controllers --controllers endpointslices --max-endpoints-per-slice 500
seamark controllers --controllers probes --leader-elect-name seamark-probes     # only docs/health-checks.md
seamark controllers --controllers why --leader-elect-name seamark-why           # Events that say why, see docs/why.md
seamark controllers --status :8080 --leader-elect-namespace seamark-system      # in a Pod, see deploy/controllers

Those of the cluster must not run beside ours (probes may): in kube-controller-manager they are switched off by
  --controllers=*,-endpoints-controller,-endpointslice-controller,-endpointslice-mirroring-controller
"""


def parser() -> argparse.ArgumentParser:
    made = verb_parser(
        "controllers",
        "Keep and probe Endpoints and EndpointSlices of any cluster; nothing else is touched.\n\n"
        f"{WHICH_CLUSTER}\nInside a Pod it is that Pod's cluster.",
        examples=EXAMPLES,
        environment=ENVIRONMENT,
    )
    add_settings(made, "controllers")
    return made


def main(arguments: list[str]) -> int:
    config = config_of(parser().parse_args(arguments), "controllers")
    limits.check()

    from seamark.cli.logging_setup import set_up

    set_up(config.log)
    try:
        connection = connection_of(config.cluster)
        event_loop.run(_run(connection, config))
    except Exception as error:
        raise given_up("the controllers", error) from error
    return 0


async def _run(connection: Connection, config: Config) -> None:
    from seamark.access.remote import RemoteCluster
    from seamark.access.status import StatusServer
    from seamark.controllers.discovery.process import ControllerProcess
    from seamark.settings import parse_listen
    from seamark.why.telling.notices import keep_events

    ended = event_loop.told_to_end()
    settings = config.discovery
    async with RemoteCluster(connection, agent="seamark-controllers") as cluster:
        process = ControllerProcess(
            cluster,
            which=[each for each in settings.controllers if each != "why"],
            beside=[lambda: keep_events(cluster)] if "why" in settings.controllers else [],
            settings=settings,
            election=config.election if config.election.enabled else None,
        )
        status = StatusServer(ready=lambda: _ready(process), metrics=lambda: _metrics(process))
        if settings.status:
            listen = parse_listen(settings.status)
            try:
                await status.start([host for host, _ in listen], listen[0][1])
            except OSError as error:
                raise Failure(f"cannot serve the status on {settings.status}: {error.strerror or error}") from error
        try:
            print(f"cluster      {connection.server}")
            if settings.status:
                host, port = status.address
                print(f"status       http://{bracketed(host)}:{port}")
            print("running", flush=True)
            await _until(ended, process)
        finally:
            await status.close()


async def _until(ended: asyncio.Event, process: ControllerProcess) -> None:
    """Run the process until it is told to end; then it finishes its current work and gives its lease back."""
    working = asyncio.create_task(process.run(), name="controllers")
    announcing = asyncio.create_task(_announce(process), name="announcement")
    ending = asyncio.create_task(ended.wait(), name="signals")
    try:
        await asyncio.wait({working, ending}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            working.result()
    finally:
        for task in (working, announcing, ending):
            task.cancel()
        await asyncio.gather(working, announcing, ending, return_exceptions=True)


async def _announce(process: ControllerProcess) -> None:
    await process.settled.wait()
    print(f"role         {process.readiness.text}")
    print("ready", flush=True)


async def _ready(process: ControllerProcess) -> tuple[int, str]:
    now = process.readiness
    return (200 if now.ready else 503), f"{now.text}\n"


async def _metrics(process: ControllerProcess) -> str:
    return process.metrics_text()
