"""``seamark forward``: every Service of a namespace on this machine, by its own name and ports."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Coroutine, Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from seamark.cli.clusters import ENVIRONMENT, WHICH_CLUSTER, add_cluster_options, add_namespace_options, connection_of
from seamark.cli.failure import Failure
from seamark.cli.parsing import add_switch, verb_parser
from seamark.cli.reaching import session
from seamark.cli.terminal import colourful, styled

if TYPE_CHECKING:
    from seamark.access.kubeconfig import Connection
    from seamark.dns.server import Pair
    from seamark.dns.sockets.addresses import Address
    from seamark.forwarding.services import Key, LocalService
    from seamark.rules.objects.service import Service

EXAMPLES = """\
seamark forward -n shop                         # every Service of the namespace shop
seamark forward -A -l tier=backend              # those of all namespaces with such a label
seamark forward -n shop --dns 127.0.0.1:5300    # the names on another port of this machine
seamark forward -n shop -o json                 # one JSON object per change
"""
ABOUT = """\
Bring every Service of a namespace to this machine, without root: each on a loopback address of its own, with
its own ports, and its own names in a local DNS server.  Services that come and go are followed; an endpoint of
a headless Service has an address and a name of its own.

Pods are reached through the API of the cluster; endpoints that are not Pods directly from this machine."""
DNS = "127.0.0.1:1053"


def parser() -> argparse.ArgumentParser:
    made = verb_parser("forward", f"{ABOUT}\n\n{WHICH_CLUSTER}", examples=EXAMPLES, environment=ENVIRONMENT)
    add_namespace_options(made)
    add_switch(made, "-A", "--all-namespaces", help="every namespace")
    made.add_argument("-l", "--selector", metavar="SELECTOR", default="", help="only Services with such labels")
    made.add_argument("--dns", metavar="HOST:PORT", default=DNS, help=f"where to answer DNS, or none (default {DNS})")
    made.add_argument("--cluster-domain", metavar="ZONE", default="cluster.local", help="the zone of cluster DNS")
    made.add_argument("-o", "--output", choices=("text", "json"), default="text", help="how to print it")
    add_cluster_options(made)
    return made


def main(arguments: list[str]) -> int:
    options = parser().parse_args(arguments)
    connection = connection_of(options)
    session.run(lambda ended: _forward(options, connection, ended), options)
    return 0


async def _forward(options: argparse.Namespace, connection: Connection, ended: asyncio.Event) -> None:
    from seamark.forwarding.names import LocalNames, local_dns
    from seamark.forwarding.services import ForwardedServices
    from seamark.kinds.resource import ENDPOINT_SLICES, SERVICES
    from seamark.proxy.userspace.engine import more_files

    more_files()  # a cluster may have more Services than a user has open files by default
    namespace = "" if options.all_namespaces else options.namespace or connection.namespace
    async with session.following(connection) as here, AsyncExitStack() as stack:
        # The informers would retry what is forbidden; these lists fail instead.
        found = await here.cluster.list(SERVICES, namespace=namespace, labels=options.selector)
        await here.cluster.list(ENDPOINT_SLICES, namespace=namespace)
        if not found.items:
            from seamark.why.look import missing_namespace

            if nowhere := await missing_namespace(here.cluster, namespace):
                session.tell(f"{nowhere} yet")
        domain, at, names = options.cluster_domain.strip("."), None, None
        if options.dns != "none":
            server = local_dns(domain)
            await stack.enter_async_context(server.running(_sockets(options.dns)))
            at, names = server.addresses[0], LocalNames(server, plain=bool(namespace))
        show = _Json(at) if options.output == "json" else _Text(at, namespace, domain)

        def changed(services: Sequence[Service], local: Sequence[LocalService]) -> None:
            if names is not None:
                names.update(services, local)
            show.all(sorted(local, key=lambda each: each.key))
            sys.stdout.flush()

        forwarded = ForwardedServices(
            here.informers,
            here.dialer,
            namespace=namespace,
            labels=options.selector,
            tell=session.tell,
            changed=changed,
        )
        await _until(ended, forwarded.run())


async def _until(ended: asyncio.Event, work: Coroutine[Any, Any, None]) -> None:
    working, ending = asyncio.ensure_future(work), asyncio.ensure_future(ended.wait())
    try:
        await asyncio.wait({working, ending}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            working.result()
    finally:
        for task in (working, ending):
            task.cancel()
        await asyncio.gather(working, ending, return_exceptions=True)


def _sockets(listen: str) -> list[Pair]:
    """The sockets of the DNS server; on any free port if the usual one is taken."""
    from seamark.dns.server import ListenError, bind

    try:
        return bind([listen])
    except ValueError as error:
        raise Failure(f"--dns: {error}", 2) from error
    except ListenError as error:
        if listen != DNS:
            raise Failure(str(error)) from error
        session.tell(f"{error}: answering DNS on another port")
        return bind(["127.0.0.1:0"])


class _Json:
    """Prints everything as one line of JSON after each change."""

    def __init__(self, dns: Address | None) -> None:
        self._dns = dns

    def all(self, local: Sequence[LocalService]) -> None:
        import msgspec

        dns = f"{self._dns[0]}:{self._dns[1]}" if self._dns is not None else None
        print(msgspec.json.encode({"dns": dns, "services": local}).decode())


class _Text:
    """Prints a table at first, and a line for each change afterwards."""

    def __init__(self, dns: Address | None, namespace: str, domain: str) -> None:
        self._dns = dns
        self._namespace = namespace
        self._domain = domain
        self._shown: dict[Key, LocalService] | None = None

    def all(self, local: Sequence[LocalService]) -> None:
        now = {each.key: each for each in local}
        if self._shown is None:
            self._table(local)
            if self._dns is not None:
                print("\n" + self._how_to(local, *self._dns))
            print("ready")
        else:
            for each in local:
                if self._shown.get(each.key) != each:
                    self._line("+", each, "green")
            for key, each in self._shown.items():
                if key not in now:
                    self._line("-", each, "red")
        self._shown = now

    def _line(self, mark: str, local: LocalService, colour: str) -> None:
        text = f"{mark} {'  '.join(self._row(local))}"
        print(styled(text.rstrip(), colour, colour=colourful(sys.stdout)))

    def _row(self, local: LocalService) -> tuple[str, str, str]:
        name = f"{local.name}.{local.namespace}" if not self._namespace else local.name
        return f"{local.endpoint}.{name}" if local.endpoint else name, local.address, _ports(local)

    def _table(self, local: Sequence[LocalService]) -> None:
        rows = [("NAME", "ADDRESS", "PORTS"), *map(self._row, local)]
        room = [max(len(row[column]) for row in rows) + 3 for column in (0, 1)]
        colour = colourful(sys.stdout)
        for number, (name, address, ports) in enumerate(rows):
            line = f"{name:<{room[0]}}{address:<{room[1]}}{ports}".rstrip()
            print(styled(line, "bold", colour=colour) if number == 0 else line)
        if not local:
            print(f"(no Services in {self._namespace or 'any namespace'} yet)")

    def _how_to(self, local: Sequence[LocalService], host: str, port: int) -> str:
        example = f"{local[0].name}.{local[0].namespace}.svc" if local else f"web.{self._namespace or 'default'}.svc"
        return f"""\
DNS answers on {host}:{port}: dig @{host} -p {port} {example}
For all programs of this machine (as root):
  systemd-resolved  DNS={host}:{port} and Domains=~{self._domain} ~svc, in [Resolve] of /etc/systemd/resolved.conf
  macOS             /etc/resolver/{self._domain} with the lines nameserver {host} and port {port}"""


def _ports(local: LocalService) -> str:
    shown = [f"{port.port}" if port.local == port.port else f"{port.port} at {port.local}" for port in local.ports]
    return ", ".join([*shown, *(f"{each} not forwarded" for each in local.left_out)])
