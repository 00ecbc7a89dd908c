"""``seamark doctor``: whether the machinery of service discovery itself is well."""

from __future__ import annotations

import argparse
import asyncio
import sys
from typing import TYPE_CHECKING, Any

from seamark.cli.asking.why import asked
from seamark.cli.clusters import ENVIRONMENT, WHICH_CLUSTER, add_cluster_options
from seamark.cli.data_dir import data_dir_of, running_in
from seamark.cli.parsing import verb_parser
from seamark.cli.terminal import colourful, columns, styled
from seamark.clock import SYSTEM_CLOCK, Clock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seamark.access.cluster import Cluster
    from seamark.access.kubeconfig import Connection
    from seamark.dns.resolve import Ask, Told
    from seamark.rules.objects.node import Node
    from seamark.why.doctor import Check
    from seamark.why.views import Service

EXAMPLES = """\
seamark doctor
seamark doctor --context production
seamark doctor --dns 10.96.0.10        # where the cluster's DNS can be asked from here
seamark doctor -o json
"""
ASKED = 5  # Services whose names are looked up
PROXY_PORT = 10256  # kube-proxy's health endpoint
PATIENCE = 2.0  # seconds for a proxy or a DNS server to answer
CACHED = 6.0  # seconds for which a DNS server may still give an old answer


def parser() -> argparse.ArgumentParser:
    made = verb_parser(
        "doctor",
        "Say whether service discovery itself is well: clocks, the controllers' leases and lag, what they wrote,\n"
        "nodes and their proxies, and whether DNS answers what the slices say.  It changes nothing.\n\n"
        f"{WHICH_CLUSTER}",
        examples=EXAMPLES,
        environment=ENVIRONMENT,
        codes={0: "all is well", 1: "something is wrong", 2: "could not look, or the command line is wrong"},
    )
    add_cluster_options(made)
    made.add_argument("--dns", metavar="HOST[:PORT]", help="the DNS server to ask (default: the Service kube-dns)")
    made.add_argument("--cluster-domain", metavar="ZONE", default="cluster.local", help="the zone of cluster DNS")
    made.add_argument("-o", "--output", choices=("text", "json"), default="text", help="how to print it")
    return made


def main(arguments: list[str]) -> int:
    options = parser().parse_args(arguments)
    return asked(options, lambda *where: _tell(options, *where), event_loop=True)


async def _tell(options: argparse.Namespace, cluster: Cluster, connection: Connection) -> int:
    from seamark.why.doctor import State

    found = await examine(cluster, options.dns or _own_dns(connection), options.cluster_domain.strip("."))
    wrong = any(each.state is State.WRONG for each in found)
    print(_json(found) if options.output == "json" else _text(found))
    return 1 if wrong else 0


def _own_dns(connection: Connection) -> str:
    """The address of DNS if the cluster is the Seamark of this user; "" for any other."""
    found = running_in(data_dir_of(None))
    return found.dns[0] if found is not None and found.dns and found.api == connection.server else ""


async def examine(cluster: Cluster, dns: str, zone: str, *, clock: Clock = SYSTEM_CLOCK) -> list[Check]:
    """Every check, in the order in which one thing depends on another."""
    from seamark.kinds.resource import ENDPOINT_SLICES, LEASES, NODES, SERVICES
    from seamark.rules.objects.node import Node
    from seamark.why import doctor
    from seamark.why.look import look_through
    from seamark.why.views import EndpointSlice, Service

    before = clock.time()
    server = await _server_time(cluster)
    leases = (await cluster.list(LEASES, namespace="kube-system")).items
    nodes = (await cluster.list(NODES, as_=Node)).items
    slices = (await cluster.list(ENDPOINT_SLICES, as_=EndpointSlice)).items
    services = (await cluster.list(SERVICES, as_=Service)).items
    problems, _ = await look_through(cluster, "", clock=clock)
    return [
        doctor.clock(server, before, clock.time()),
        *doctor.leaders(leases, clock.time()),
        doctor.bookkeeping(problems, len(slices)),
        doctor.lag(slices),
        doctor.nodes(nodes),
        doctor.proxies(await _proxies(nodes)),
        await _names(cluster, services, dns, zone, clock),
    ]


async def _server_time(cluster: Cluster) -> float | None:
    """The time of the API server, from an answer that it makes anew for every user who asks."""
    from seamark.errors import ApiError
    from seamark.kinds.resource import Resource
    from seamark.kinds.values import times

    resource = Resource("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", namespaced=False)
    try:
        review = await cluster.create(resource, {"apiVersion": resource.api_version, "kind": resource.kind})
    except ApiError:
        return None
    made = (review.get("metadata") or {}).get("creationTimestamp")
    return times.parse(made) if made else None


async def _proxies(nodes: Sequence[Node]) -> dict[str, int | None]:
    """What the health endpoints of the nodes' proxies answer; simulated nodes have none."""
    asked = {each.metadata.name: _internal(each) for each in nodes if not each.simulated}
    codes = await asyncio.gather(*(_health(address, PROXY_PORT) for address in asked.values()))
    return dict(zip(asked, codes, strict=True))


def _internal(node: Node) -> str:
    return next((each.address for each in node.status.addresses if each.type == "InternalIP"), "")


async def _health(host: str, port: int) -> int | None:
    """The code of ``GET /healthz``; None if there is no answer."""
    try:
        async with asyncio.timeout(PATIENCE):
            reader, writer = await asyncio.open_connection(host, port)
            try:
                writer.write(f"GET /healthz HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
                line = await reader.readline()
                return int(line.split()[1])
            finally:
                writer.close()
    except (TimeoutError, OSError, ValueError, IndexError):
        return None


async def _names(cluster: Cluster, services: Sequence[Service], dns: str, zone: str, clock: Clock) -> Check:
    """Ask the cluster's DNS for some Services, and compare with what the slices say."""
    from seamark.dns.config import REVERSE_ZONES, ForwardConfig, ZoneConfig
    from seamark.dns.forwarding.upstream import parse_upstream
    from seamark.dns.resolve import ask_server, asking
    from seamark.why import doctor

    known = next((each for each in services if each.key == ("kube-system", "kube-dns")), None)
    server = dns or (known.spec.cluster_ip if known is not None else "")
    if not server or server == "None":
        return doctor.names("", (), "there is no Service kube-dns to ask; name a server with --dns")
    address = parse_upstream(server)

    async def said(name: str, kind: str) -> Told:
        return await ask_server(address, name, kind, timeout=PATIENCE)

    asked = [f"{each.metadata.name}.{each.metadata.namespace}.svc.{zone}." for each in services if not each.external]
    async with asking(cluster, ZoneConfig(zones=(zone, *REVERSE_ZONES)), ForwardConfig(routes=())) as state:
        compared = []
        for name in sorted(asked)[:ASKED]:
            one = await _compared(name, said, state)
            if one is None:
                return doctor.names("", (), f"{server} does not answer from here; name another server with --dns")
            if one[1] != one[2]:
                await clock.sleep(CACHED)  # it may have been asked before the last change
                one = await _compared(name, said, state) or one
            compared.append(one)
    if not dns and compared and all("." not in told and ":" not in told for _, told, _ in compared):
        told = f"whatever answers at {server} from here knows none of the cluster's names; name its DNS with --dns"
        return doctor.names("", (), told)
    return doctor.names(server, compared)


async def _compared(name: str, said: Ask, state: Ask) -> tuple[str, str, str] | None:
    told, known = [[await ask(name, kind) for kind in ("A", "AAAA")] for ask in (said, state)]
    if any(each.why for each in told):
        return None
    return name, _brief(told), _brief(known)


def _brief(told: Sequence[Told]) -> str:
    """The data of all records without names and TTLs, or the code."""
    found = sorted(record.split()[-1] for each in told for record in each.records)
    return ", ".join(found) or told[0].rcode


def _text(found: Sequence[Check]) -> str:
    from seamark.why.doctor import State
    from seamark.why.render import UNLIMITED, table

    rows = [(each.about, each.state.value, f"{each.told}. {each.fix}".strip()) for each in found]
    wrong = sum(each.state is State.WRONG for each in found)
    head = f"{wrong} of {len(found)} checks found something wrong" if wrong else "service discovery is well"
    colour = colourful(sys.stdout)
    lines = table(("CHECK", "STATE", "WHAT"), rows, columns(sys.stdout) or UNLIMITED)
    return "\n".join([styled(head, "red" if wrong else "green", colour=colour), "", *lines])


def _json(found: Sequence[Check]) -> str:
    import msgspec

    from seamark.why.report import as_json

    rows: list[Any] = [msgspec.to_builtins(each) for each in found]
    return as_json({"checks": rows})
