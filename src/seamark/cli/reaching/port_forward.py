"""``seamark port-forward``: ports of a Service, a Pod or a workload on this machine."""

from __future__ import annotations

import argparse
import asyncio
import errno
from typing import TYPE_CHECKING

from seamark.cli.clusters import ENVIRONMENT, WHICH_CLUSTER, add_cluster_options, add_namespace_options, connection_of
from seamark.cli.failure import Failure
from seamark.cli.parsing import verb_parser
from seamark.cli.reaching import session
from seamark.kinds.values.hosts import bracketed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seamark.access.kubeconfig import Connection
    from seamark.cli.reaching.session import Session
    from seamark.forwarding.listener import Listener
    from seamark.forwarding.ports import PortPair
    from seamark.forwarding.targets import Target
    from seamark.kinds.resource import Resource

EXAMPLES = """\
seamark port-forward svc/web 8080:80           # http://localhost:8080 is port 80 of the Service web
seamark port-forward svc/web 8080:http :9090   # ports by name; any free local port for 9090
seamark port-forward deployment/web 8080       # the same port here and there
seamark port-forward pod/web-0 5432 --address 0.0.0.0 -n shop
"""
ABOUT = """\
Bring ports of a Service, a Pod or a workload to this machine, through the API of any cluster.

Connections to a Service go to one of its ready endpoints, and to another one when that goes away.  Endpoints
that are not Pods, as a Service without a selector has them, are connected to directly from this machine.
Only TCP can be forwarded."""


def parser() -> argparse.ArgumentParser:
    made = verb_parser("port-forward", f"{ABOUT}\n\n{WHICH_CLUSTER}", examples=EXAMPLES, environment=ENVIRONMENT)
    made.add_argument("target", metavar="TARGET", help="svc/NAME, pod/NAME, deployment/NAME, …; a plain NAME is a Pod")
    made.add_argument("ports", metavar="[LOCAL:]REMOTE", nargs="+", help="8080:80, 8080, :80 (any free local port)")
    made.add_argument(
        "--address", metavar="ADDRESS,…", default="localhost", help="where to listen: localhost or addresses"
    )
    add_namespace_options(made)
    add_cluster_options(made)
    return made


def main(arguments: list[str]) -> int:
    from seamark.forwarding.ports import parse_ports

    options = parser().parse_args(arguments)
    try:
        pairs = parse_ports(options.ports)
    except ValueError as error:
        raise Failure(str(error), 2) from error
    connection = connection_of(options)
    session.run(lambda ended: _forward(options, pairs, connection, ended), options)
    return 0


async def _forward(
    options: argparse.Namespace, pairs: Sequence[PortPair], connection: Connection, ended: asyncio.Event
) -> None:
    from seamark.cli.running.serving import loopback
    from seamark.forwarding.backends import Sticky
    from seamark.forwarding.listener import Listener
    from seamark.forwarding.targets import Impossible, follow

    namespace = options.namespace or connection.namespace
    async with session.following(connection) as here:
        resource, name = await _meant(here, options.target)
        try:
            target = await follow(here.cluster, here.informers, resource, name, namespace)
            numbers = [target.local_port(pair) for pair in pairs]
        except Impossible as problem:
            raise Failure(str(problem)) from problem
        await _check(here, target, pairs)
        listeners: list[Listener] = []
        try:
            for pair, number in zip(pairs, numbers, strict=True):
                remote = pair.remote
                listener = Listener(
                    target.name,
                    lambda remote=remote: target.backends(remote),  # type: ignore[misc]
                    here.dialer,
                    policy=Sticky(),
                    tell=session.tell,
                )
                listeners.append(listener)
                leads_to = next((backend.port for backend in target.backends(remote)), remote)
                for host, port in await _listen(listener, options.address.split(","), number):
                    if not loopback(host):
                        session.tell(f"port {port} of {host}: other machines can connect to it, without a password")
                    print(f"Forwarding from {bracketed(host)}:{port} -> {leads_to}", flush=True)
            await ended.wait()
        finally:
            for listener in listeners:
                await listener.close()


async def _meant(here: Session, word: str) -> tuple[Resource, str]:
    """The kind and the name of the target; a plain name is a Pod's, as for kubectl."""
    from seamark.cli.objects.server import Server

    kinds = await Server(here.cluster.transport).kinds()
    (target,) = kinds.targets([word if "/" in word else f"pod/{word}"])
    return target.kind.resource, target.name


async def _check(here: Session, target: Target, pairs: Sequence[PortPair]) -> None:
    """Say at once what the first connection would find out."""
    from seamark.forwarding.dialing import Unreachable

    backends = [backend for pair in pairs for backend in target.backends(pair.remote)]
    if not backends:
        kind, _, name = target.name.partition(" ")
        ask = f"; `seamark why svc/{name}` says why" if kind == "Service" else ""
        session.tell(f"{target.name} has no ready endpoints yet: connections are closed until it has{ask}")
        return
    try:
        await here.dialer.prepare(backends[0])
    except Unreachable as problem:
        if problem.never:
            raise Failure(str(problem)) from problem
        session.tell(str(problem))


async def _listen(listener: Listener, addresses: Sequence[str], port: int) -> list[tuple[str, int]]:
    """Listen on all addresses, on the same port; of the two of localhost one is enough, as for kubectl."""
    places: list[tuple[str, int]] = []
    problem: OSError | None = None
    for address in addresses:
        for host in ("127.0.0.1", "::1") if address == "localhost" else (address,):
            try:
                places.append(await listener.listen(host, port or (places[0][1] if places else 0)))
            except OSError as error:
                problem = error
                if address != "localhost":
                    break
                if error.errno == errno.EADDRINUSE:
                    session.tell(f"port {port} of {host} is used by another program, which is what clients there reach")
    if problem is not None and (not places or addresses != ["localhost"]):
        reason = problem.strerror or problem
        raise Failure(f"cannot listen on port {port} of {','.join(addresses)}: {reason}") from problem
    return places
