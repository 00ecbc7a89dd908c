"""``seamark why dns NAME``: look a name up as a Pod would, and explain the Service behind it."""

from __future__ import annotations

import argparse
import asyncio
from typing import TYPE_CHECKING

from seamark.cli.asking.why import asked, told
from seamark.cli.failure import Failure
from seamark.clock import SYSTEM_CLOCK, Clock
from seamark.kinds.values import addresses

if TYPE_CHECKING:
    from seamark.access.cluster import Cluster
    from seamark.access.kubeconfig import Connection
    from seamark.dns.resolve import Walk
    from seamark.why.explain_name import Step
    from seamark.why.report import Report
    from seamark.why.world import World

MACHINES = ("/etc/resolv.conf",)  # the resolvers of this machine
_PATIENCE = 30.0  # seconds to read the Services of a whole cluster


def explain_name(options: argparse.Namespace, name: str) -> int:
    if options.watch or options.since is not None:
        raise Failure("--watch and --since are for Services", 2)
    return asked(options, lambda *where: _explain(options, name, *where), event_loop=True)


async def _explain(options: argparse.Namespace, name: str, cluster: Cluster, connection: Connection) -> int:
    namespace = options.namespace or connection.namespace
    if (address := addresses.parse(name)) is not None:
        name = address.address.reverse_pointer
    report = await report_on(cluster, name, namespace, options.cluster_domain.strip("."))
    text, code = told(report, options)
    print(text)
    return code


async def report_on(
    cluster: Cluster,
    name: str,
    namespace: str,
    zone: str,
    *,
    clock: Clock = SYSTEM_CLOCK,
    resolvers: tuple[str, ...] = MACHINES,
) -> Report:
    """What a Pod of that namespace finds under a name, and why.  ``resolvers`` know names outside of the cluster."""
    from seamark.why import explain_name as pure
    from seamark.why.look import look_behind
    from seamark.why.observe import observe_services

    services = await observe_services(cluster)
    walked = await _walk(cluster, name, namespace, zone, resolvers)
    known = {service.key for service in services}
    behind: Report | None = None
    world: World | None = None
    meant = next((key for key in pure.services_meant(name, namespace, zone) if key in known), None)
    if meant is not None:
        world, behind = await look_behind(cluster, meant, clock=clock)
    return pure.explain_name(
        name, _steps(walked), namespace=namespace, zone=zone, services=services, behind=behind, world=world
    )


async def _walk(cluster: Cluster, name: str, namespace: str, zone: str, resolvers: tuple[str, ...]) -> Walk:
    from seamark.dns.config import REVERSE_ZONES, ForwardConfig, Route, ZoneConfig
    from seamark.dns.resolve import asking, search_path, walk
    from seamark.why.observe import CannotLook

    config = ZoneConfig(zones=(zone, *REVERSE_ZONES), pods="verified")
    try:
        async with (
            asyncio.timeout(_PATIENCE),
            asking(cluster, config, ForwardConfig(routes=(Route(to=resolvers),))) as ask,
        ):
            types = (
                ("SRV",) if name.startswith("_") else ("PTR",) if name.rstrip(".").endswith(".arpa") else ("A", "AAAA")
            )
            return await walk(name, types, search_path(namespace, zone), ask)
    except TimeoutError as error:
        raise CannotLook(f"the cluster's names could not be read within {_PATIENCE:.0f} s") from error
    except ValueError as error:
        raise Failure(str(error), 2) from error


def _steps(walked: Walk) -> list[Step]:
    from seamark.why.explain_name import Step

    shown = {"answer": "found", "nodata": "NODATA"}
    return [
        Step(tried.name, kind, shown.get(told.outcome, told.rcode), told.why, told.records)
        for tried in walked.tries
        for kind, told in tried.told.items()
    ]
