"""``seamark resolve``: look a name up as a Pod would, and why it is or is not found."""

from __future__ import annotations

import argparse
import asyncio
import sys
from typing import TYPE_CHECKING

from seamark.cli.clusters import WHICH_CLUSTER, connection_of, unanswered
from seamark.cli.failure import Failure
from seamark.cli.parsing import verb_parser
from seamark.cli.settings import ENVIRONMENT, add_settings, config_of
from seamark.cli.terminal import colourful, columns, folded

if TYPE_CHECKING:
    from seamark.config import Config
    from seamark.dns.resolve import Ask, Told, Walk

EXAMPLES = """\
seamark resolve web --from shop          # as a Pod in the namespace shop
seamark resolve web.shop -t SRV
seamark resolve web --server 10.96.0.10  # and what that server says about it
"""


def parser() -> argparse.ArgumentParser:
    made = verb_parser(
        "resolve",
        f"Walk a Pod's search path and say at each name what DNS answers, and why.\n\n{WHICH_CLUSTER}",
        examples=EXAMPLES,
        environment=ENVIRONMENT,
        codes={1: "the name is not found, or it failed"},
    )
    made.add_argument("name", metavar="NAME", help="with a final dot: just this name, no search path")
    made.add_argument("-t", "--type", metavar="TYPE", action="append", help="record type (default A and AAAA)")
    made.add_argument(
        "--from", dest="namespace", metavar="NAMESPACE", help="the Pod's namespace (default: the context's)"
    )
    made.add_argument("--server", metavar="HOST[:PORT]", help="ask this DNS server; reasons come from the state")
    made.add_argument("-o", "--output", choices=("text", "json"), default="text", help="how to print it")
    add_settings(made, "resolve")
    return made


def main(arguments: list[str]) -> int:
    options = parser().parse_args(arguments)
    config = config_of(options, "resolve")

    from seamark.dns.resolve import type_number
    from seamark.errors import ApiError

    types = [kind.upper() for kind in options.type or ("A", "AAAA")]
    try:
        for kind in types:
            type_number(kind)
        walked = asyncio.run(_walk(options, config, types))
    except ApiError as error:
        raise unanswered(error, config.cluster) from error
    except ValueError as error:
        raise Failure(str(error), 2) from error
    if options.output == "json":
        print(_json(walked))
    else:
        print(_text(walked, colour=colourful(sys.stdout), room=columns(sys.stdout)))
    return 0 if walked.found else 1


async def _walk(options: argparse.Namespace, config: Config, types: list[str]) -> Walk:
    from seamark.access.remote import RemoteCluster
    from seamark.dns.resolve import asking, search_path, walk

    connection = connection_of(config.cluster)
    zone = config.dns.zone
    search = search_path(options.namespace or connection.namespace, ".".join(zone.primary))
    async with (
        RemoteCluster(connection, agent="seamark-resolve") as cluster,
        asking(cluster, zone, config.dns.forward) as ask,
    ):
        return await walk(options.name, types, search, _through(options.server, ask) if options.server else ask)


def _through(server: str, state: Ask) -> Ask:
    """Ask that server, and take the reasons from the cluster's state; where the two differ, say so.

    A server that is silent fails the command at once: it would be waited for at every name of the search path.
    """
    from seamark.dns.forwarding.upstream import parse_upstream
    from seamark.dns.resolve import SILENT, Told, ask_server

    address = parse_upstream(server)

    async def ask(name: str, kind: str) -> Told:
        said, known = await ask_server(address, name, kind), await state(name, kind)
        if said.rcode == SILENT:
            raise Failure(said.why)
        if said.why:
            return said
        same = said.rcode == known.rcode and _data(said) == _data(known)
        why = known.why if same else f"but by the cluster's state it should be {_brief(known)}: {known.why}"
        return Told(said.rcode, said.records, why)

    return ask


def _data(told: Told) -> set[str]:
    """The records without their TTLs."""
    return {" ".join(record.split()[2:]) for record in told.records}


def _brief(told: Told) -> str:
    return ", ".join(sorted(_data(told))) or ("NODATA" if told.outcome == "nodata" else told.rcode)


def _text(walked: Walk, *, colour: bool, room: int | None) -> str:
    lines = []
    for tried in walked.tries:
        for kind, told in tried.told.items():
            result = {"answer": "found", "nodata": "NODATA"}.get(told.outcome, told.rcode)
            mark = {"answer": "32", "nodata": "33"}.get(told.outcome, "31")
            shown = f"\x1b[{mark}m{result:<9}\x1b[0m" if colour else f"{result:<9}"
            asked = f"{tried.name} {kind}".ljust(48)
            if room is None or len(asked) + len(f" {result:<9} {told.why}") <= room:
                lines.append(f"{asked} {shown} {told.why}".rstrip())
            else:
                lines += [f"{asked.rstrip()} {shown}".rstrip(), folded(f"    {told.why}", room, hang=4)]
            lines += [f"    {record}" for record in told.records]
    if not walked.found:
        lines.append(f"{walked.asked}: not found")
    return "\n".join(lines)


def _json(walked: Walk) -> str:
    import msgspec

    return msgspec.json.format(msgspec.json.encode(walked), indent=2).decode()
