"""``seamark controllers``: the discovery controllers against any Kubernetes API."""

from __future__ import annotations

import argparse
import asyncio
import signal
from typing import TYPE_CHECKING, Any

from seamark.cli.failure import Failure
from seamark.cli.logging_setup import add_log_options, set_up_logging
from seamark.cli.parsing import verb_parser

if TYPE_CHECKING:
    from seamark.access.kubeconfig import Connection
    from seamark.controllers.discovery.discovery import DiscoverySettings, Name
    from seamark.controllers.discovery.process import ControllerProcess, ElectionSettings

EXAMPLES = """\
seamark controllers --kubeconfig data/kubeconfig --no-leader-elect
seamark controllers --controllers endpointslices --max-endpoints-per-slice 500
seamark controllers --status :8080 --leader-elect-namespace seamark-system      # in a Pod, see deploy/controllers

The cluster's own must not run at the same time: in kube-controller-manager they are switched off by
  --controllers=*,-endpoints-controller,-endpointslice-controller,-endpointslice-mirroring-controller
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--kubeconfig", metavar="FILE", help="the cluster; without, kubectl's rules, then in-cluster")
    parser.add_argument("--context", metavar="NAME", default="", help="the kubeconfig's context to use")
    parser.add_argument(
        "--controllers",
        metavar="NAME,…",
        default="endpoints,endpointslices,endpointslicemirroring",
        help="which to run (default: endpoints,endpointslices,endpointslicemirroring)",
    )
    parser.add_argument("--max-endpoints-per-slice", metavar="N", type=int, default=100, help="1 to 1000 (default 100)")
    parser.add_argument("--concurrent", metavar="N", type=int, default=5, help="Services handled at once (default 5)")
    parser.add_argument(
        "--batch",
        metavar="SECONDS",
        type=float,
        default=0.0,
        help="write further changes of a Service's Pods together, each within this time (default 0: at once)",
    )
    parser.add_argument("--status", metavar="HOST:PORT", default="", help="/health, /ready and /metrics over HTTP")
    add_log_options(parser)
    election = parser.add_argument_group("election of a leader, when there are several of these processes")
    election.add_argument("--leader-elect", action=argparse.BooleanOptionalAction, default=True)
    election.add_argument("--leader-elect-namespace", metavar="NAME", default="kube-system", help="of the Lease")
    election.add_argument("--leader-elect-name", metavar="NAME", default="seamark-discovery", help="of the Lease")
    election.add_argument("--leader-elect-identity", metavar="TEXT", default="", help="default: made up")
    election.add_argument(
        "--leader-elect-lease-duration", metavar="SECONDS", type=int, default=15, help="promised to the others"
    )
    election.add_argument(
        "--leader-elect-renew-deadline", metavar="SECONDS", type=float, default=10.0, help="stop leading after"
    )
    election.add_argument("--leader-elect-retry-period", metavar="SECONDS", type=float, default=2.0)


def parser() -> argparse.ArgumentParser:
    made = verb_parser(
        "controllers", "Keep Endpoints and EndpointSlices of any cluster; nothing else is touched.", examples=EXAMPLES
    )
    add_options(made)
    return made


def main(arguments: list[str]) -> int:
    options = parser().parse_args(arguments)
    set_up_logging(options.verbose, options.log_format)
    which, settings, election = settings_of(options)
    listen = _listen(options.status)

    import uvloop

    from seamark.access.kubeconfig import load
    from seamark.access.kubeconfig_file import KubeconfigError

    try:
        connection = load(options.kubeconfig, context=options.context)
    except KubeconfigError as error:
        raise Failure(str(error)) from error
    uvloop.run(_run(connection, listen, which=which, settings=settings, election=election))
    return 0


def settings_of(
    options: argparse.Namespace,
) -> tuple[tuple[Name, ...], DiscoverySettings, ElectionSettings | None]:
    """Which controllers, how they work, and how a leader is found, as the flags say."""
    from seamark.access.leader import Timing
    from seamark.controllers.discovery.discovery import ALL, DiscoverySettings
    from seamark.controllers.discovery.process import ElectionSettings

    asked = [name.strip() for name in options.controllers.split(",") if name.strip()]
    unknown = [name for name in asked if name not in ALL]
    if unknown or not asked:
        said = f"no such controller: {', '.join(unknown)}" if unknown else "which controllers?"
        raise Failure(f"--controllers {options.controllers}: {said}; there are {', '.join(ALL)}", 2)
    try:
        settings = DiscoverySettings(
            workers=options.concurrent,
            max_endpoints_per_slice=options.max_endpoints_per_slice,
            batch=options.batch,
        )
        election = None
        if options.leader_elect:
            election = ElectionSettings(
                namespace=options.leader_elect_namespace,
                name=options.leader_elect_name,
                identity=options.leader_elect_identity,
                timing=Timing(
                    duration=options.leader_elect_lease_duration,
                    renew_deadline=options.leader_elect_renew_deadline,
                    retry_period=options.leader_elect_retry_period,
                ),
            )
    except ValueError as error:
        raise Failure(str(error), 2) from error
    return tuple(name for name in ALL if name in asked), settings, election


def _listen(status: str) -> list[tuple[str, int]]:
    from seamark.dns.sockets.addresses import parse_listen

    try:
        return parse_listen(status) if status else []
    except ValueError as error:
        raise Failure(f"--status: {error}", 2) from error


async def _run(connection: Connection, listen: list[tuple[str, int]], **settings: Any) -> None:
    from seamark.access.remote import RemoteCluster
    from seamark.access.status import StatusServer
    from seamark.controllers.discovery.process import ControllerProcess

    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    async with RemoteCluster(connection, agent="seamark-controllers") as cluster:
        process = ControllerProcess(cluster, **settings)
        status = StatusServer(ready=lambda: _ready(process), metrics=lambda: _metrics(process))
        if listen:
            try:
                await status.start([host for host, _ in listen], listen[0][1])
            except OSError as error:
                where = ", ".join(f"{host}:{port}" for host, port in listen)
                raise Failure(f"cannot serve the status on {where}: {error.strerror or error}") from error
        try:
            print(f"cluster      {connection.server}")
            if listen:
                host, port = status.address
                print(f"status       http://{f'[{host}]' if ':' in host else host}:{port}")
            print("running", flush=True)
            await _until(ended, process)
        finally:
            await status.close()


async def _until(ended: asyncio.Event, process: ControllerProcess) -> None:
    """Run the process until told to end, then let it finish what it is at and give its lease back."""
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
