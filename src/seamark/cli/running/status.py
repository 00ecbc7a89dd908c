"""``seamark status``: whether a Seamark runs in a data directory, since when, where, and what it holds."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seamark.cli.data_dir import add_data_dir_option, data_dir_of, running_in
from seamark.cli.parsing import verb_parser
from seamark.cli.terminal import Progress, colourful, columns, folded, styled

if TYPE_CHECKING:
    from seamark.cli.objects.server import Server
    from seamark.kinds.resource import Resource
    from seamark.presence import Presence

EXAMPLES = """\
seamark status
seamark status -o json | jq .objects.pods
until seamark status; do sleep 1; done      # wait until it is up
"""
PATIENCE = 30.0  # seconds an API server may take to answer, on a busy machine too


def parser() -> argparse.ArgumentParser:
    made = verb_parser(
        "status",
        "Say whether a Seamark runs in a data directory, where its parts answer, and how many objects it holds.",
        examples=EXAMPLES,
        codes={
            0: "it runs and all of it works",
            1: "it does not run, is still starting, does not answer, or a part of it has failed",
        },
    )
    add_data_dir_option(made)
    made.add_argument("-o", "--output", choices=("text", "json"), default="text", help="how to print it")
    return made


def main(arguments: list[str]) -> int:
    options = parser().parse_args(arguments)
    directory = data_dir_of(options.data_dir)
    found = running_in(directory)
    objects: dict[str, int] | None = None
    failing: dict[str, str] = {}
    reason = "" if found is not None else "not running"
    if found is not None and not found.ready:
        reason = "starting"
    elif found is not None:
        from seamark.errors import ApiError

        with Progress("asking the API server …"):
            try:
                failing, objects = asyncio.run(_ask(found))
            except ApiError as error:
                reason = f"not answering: {error}"
        if failing:
            reason = f"running, but failing: {', '.join(failing)}"
    if options.output == "json":
        _print_json(directory, found, reason, objects, failing)
    else:
        _print_text(directory, found, reason, objects, failing)
    return 0 if not reason else 1


async def _ask(found: Presence) -> tuple[dict[str, str], dict[str, int] | None]:
    """What fails and why, and how many objects of each kind there are, unless the failure prevents counting.

    ``ApiError`` if the server does not answer.  Where processes serve together, one that is stuck may have got the
    connection; the others know that it is.
    """
    from seamark.access.kubeconfig import load
    from seamark.access.transport import Transport
    from seamark.cli.objects.server import Server
    from seamark.errors import ApiError, Timeout

    transport = Transport(load(found.kubeconfig))
    failing: dict[str, str] = {}
    try:
        async with asyncio.timeout(PATIENCE):
            server = Server(transport)
            while True:
                try:
                    failing = await server.failing()
                    break
                except Timeout:
                    if not found.workers:
                        raise
            return failing, await _count(server)
    except TimeoutError as error:
        if failing:
            return failing, None
        raise Timeout(f"no answer within {PATIENCE:g} seconds") from error
    except ApiError:
        if failing:
            return failing, None
        raise
    finally:
        await transport.close()


async def _count(server: Server) -> dict[str, int]:
    """The number of objects of each kind that has any."""
    kinds: dict[str, Resource] = {}
    for kind in (await server.kinds()).all:
        if "list" in kind.verbs:
            kinds.setdefault(kind.resource.plural, kind.resource)  # Events are in two groups: count them once
    counts = await asyncio.gather(*(server.count(resource) for resource in kinds.values()))
    return {plural: count for plural, count in zip(kinds, counts, strict=True) if count}


def _print_json(
    directory: Path, found: Presence | None, reason: str, objects: dict[str, int] | None, failing: dict[str, str]
) -> None:
    import msgspec

    document: dict[str, Any] = {"dataDir": str(directory), "running": found is not None, "healthy": not reason}
    if reason:
        document["reason"] = reason
    if found is not None:
        document |= {"pid": found.pid, "version": found.version, "started": found.started, "parts": list(found.parts)}
        document |= {"api": found.api, "kubeconfig": found.kubeconfig, "dns": list(found.dns), "store": found.store}
        document |= {"nodes": found.nodes, "nodePorts": list(found.node_ports), "notServed": list(found.not_served)}
        document |= {"log": found.log, "workers": list(found.workers)}
    if failing or objects is not None:
        document["failing"] = failing
    if objects is not None:
        document["objects"] = objects
    print(msgspec.json.format(msgspec.json.encode(document), indent=2).decode())


def _print_text(
    directory: Path, found: Presence | None, reason: str, objects: dict[str, int] | None, failing: dict[str, str]
) -> None:
    colour, room = colourful(sys.stdout), columns(sys.stdout)
    lines = [("data", str(directory))]
    if found is not None:
        lines.append(("process", f"pid {found.pid}, version {found.version or 'unknown'}{_since(found.started)}"))
        lines += [("workers", f"pid {' and '.join(map(str, found.workers))}")] if found.workers else []
        lines += [("API server", found.api), ("kubeconfig", found.kubeconfig), ("store", found.store)]
        lines += [("DNS", f"{each} (UDP and TCP)") for each in found.dns]
        lines += [("nodes", found.about_nodes)] if found.nodes else []
        lines += [("node ports", f"on {' and '.join(found.node_ports)}")] if found.node_ports else []
        lines += [("log", found.log)]
        lines += [("not served", each) for each in found.not_served]
    if objects is not None:
        held = [f"{count} {kind}" for kind, count in sorted(objects.items(), key=lambda pair: (-pair[1], pair[0]))]
        lines.append(("objects", ", ".join(held)))
    lines += [("failing", f"{name}: {why}") for name, why in failing.items()]
    for name, text in lines:
        if text:
            print(styled(f"{name:<13}", "bold", colour=colour) + folded(f"{'':13}{text}", room, hang=13)[13:])
    print(styled(reason or "running", "red" if reason else "green", colour=colour))


def _since(started: str) -> str:
    from seamark.kinds.values import times

    return f", up {times.age(time.time(), started)} since {started}" if started else ""
