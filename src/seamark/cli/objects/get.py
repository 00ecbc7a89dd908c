"""``seamark get``: objects as tables, YAML, JSON or names."""

from __future__ import annotations

import argparse
import asyncio
import itertools
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from seamark.cli.clusters import (
    ENVIRONMENT,
    WHICH_CLUSTER,
    add_cluster_options,
    add_namespace_options,
    connected,
    refusal,
)
from seamark.cli.failure import Failure
from seamark.cli.parsing import add_switch, verb_parser
from seamark.cli.terminal import Progress, colourful

if TYPE_CHECKING:
    from seamark.cli.objects.kinds import ServerKind, Target
    from seamark.cli.objects.server import Server
    from seamark.cli.objects.text import TableText
    from seamark.errors import Object

EXAMPLES = """\
seamark get svc
seamark get svc,endpoints,endpointslices -o wide
seamark get pods -l app=web -A
seamark get deployment/web service/web
seamark get svc web -o yaml
seamark get pods -w                      # and every change from now on
seamark get all
"""


def parser() -> argparse.ArgumentParser:
    made = verb_parser(
        "get",
        f"Print objects of one or many kinds, as `kubectl get` does.\n\n{WHICH_CLUSTER}",
        examples=EXAMPLES,
        environment=ENVIRONMENT,
        usage="seamark get KIND[,KIND …] [NAME …] [options]\n       seamark get KIND/NAME … [options]",
    )
    made.add_argument("what", metavar="KIND", nargs="+", help="plural, singular or short name, or a category: all")
    add_cluster_options(made)
    add_namespace_options(made)
    add_switch(made, "-A", "--all-namespaces", help="of every namespace")
    made.add_argument("-l", "--selector", metavar="SELECTOR", default="", help="with such labels: app=web,tier!=db")
    made.add_argument("-o", "--output", choices=("wide", "json", "yaml", "name"), help="default: a table")
    add_switch(made, "-w", "--watch", help="then every change, until Ctrl-C")
    return made


def main(arguments: list[str]) -> int:
    # Names may stand before and behind flags, as with kubectl.
    return asyncio.run(run(parser().parse_intermixed_args(arguments)))


async def run(options: argparse.Namespace) -> int:
    async with connected(options) as server:
        with Progress("asking the server …"):
            targets = (await server.kinds()).targets(options.what)
        if any(target.name for target in targets) and (options.all_namespaces or options.selector):
            raise Failure("objects are chosen by name or by -A and -l, not by both", 2)
        if options.watch:
            from seamark.cli.objects.watch import watch

            return await watch(server, targets, options)
        found, failures = await _found(server, targets, options)
        if as_table(options):
            printed = _print_tables(found, options)
            if not printed and not failures:
                print(_nothing(server, targets, options), file=sys.stderr)
        elif found or not failures:
            _print_objects(targets, found, options.output)
    for failure in failures:
        print(failure.line, file=sys.stderr)
    return 1 if failures else 0


def as_table(options: argparse.Namespace) -> bool:
    return options.output in (None, "wide")


def namespace_for(server: Server, target: Target, options: argparse.Namespace) -> str:
    """The namespace to ask in; empty for all namespaces and for kinds without."""
    if not target.kind.resource.namespaced or options.all_namespaces:
        return ""
    return options.namespace or server.namespace


def selection(options: argparse.Namespace) -> dict[str, str]:
    """The query of ``-l``."""
    return {"labelSelector": options.selector} if options.selector else {}


async def _found(
    server: Server, targets: Sequence[Target], options: argparse.Namespace
) -> tuple[list[tuple[ServerKind, Object]], list[Failure]]:
    """An object for each name and pages for each kind; one that is missing does not hide the others."""
    from seamark.cli.objects.server import OBJECTS, TABLE
    from seamark.errors import ApiError

    accept = TABLE if as_table(options) else OBJECTS
    found: list[tuple[ServerKind, Object]] = []
    failures = []
    with Progress("asking the server …"):
        for target in targets:
            resource, namespace = target.kind.resource, namespace_for(server, target, options)
            try:
                if target.name:
                    answer = await server.get(resource, target.name, namespace=namespace, accept=accept)
                    found.append((target.kind, answer))
                    continue
                pages = server.pages(resource, namespace=namespace, query=selection(options), accept=accept)
                found += [(target.kind, page) async for page in pages]
            except ApiError as error:
                failures.append(refusal(error))
    return found, failures


# --- tables ----------------------------------------------------------------------------------------


def table_text(kind: ServerKind, options: argparse.Namespace, *, with_kind: bool = False) -> TableText:
    from seamark.cli.objects.text import TableText

    return TableText(
        wide=options.output == "wide",
        namespace=options.all_namespaces and kind.resource.namespaced,
        kind=kind.label if with_kind else "",
        colour=colourful(sys.stdout),
    )


def _print_tables(found: Sequence[tuple[ServerKind, Object]], options: argparse.Namespace) -> bool:
    """Print one table for each run of objects of one kind, as wide as its widest rows; whether there was anything."""
    with_kind = len({kind for kind, _ in found}) > 1
    printed = False
    for kind, run in itertools.groupby(found, key=lambda pair: pair[0]):
        pages = [page for _, page in run]
        table = {**pages[0], "rows": [row for page in pages for row in page.get("rows") or ()]}
        lines = table_text(kind, options, with_kind=with_kind).lines(table)
        if lines:
            print("\n".join(["", *lines] if printed else lines))
            printed = True
    return printed


def _nothing(server: Server, targets: Sequence[Target], options: argparse.Namespace) -> str:
    if options.all_namespaces or not all(target.kind.resource.namespaced for target in targets):
        return "No resources found"
    return f"No resources found in {options.namespace or server.namespace} namespace."


# --- objects ---------------------------------------------------------------------------------------


def objects_in(document: Object, kind: ServerKind) -> list[Object]:
    """The objects of an answer.  The items of a list get the kind and version, which only the list itself has."""
    if "items" not in document:
        return [document]
    resource = kind.resource
    return [{"kind": resource.kind, "apiVersion": resource.api_version, **item} for item in document["items"] or ()]


def _print_objects(targets: Sequence[Target], found: Sequence[tuple[ServerKind, Object]], format: str) -> None:
    from seamark.cli.objects.text import object_text

    objects = [(kind, each) for kind, document in found for each in objects_in(document, kind)]
    if format == "name":
        for kind, value in objects:
            print(f"{kind.label}/{value['metadata']['name']}")
    elif len(targets) == 1 and targets[0].name:
        for _, value in objects:
            print(object_text(value, format))
    else:
        items = [value for _, value in objects]
        listed = {"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": items}
        print(object_text(listed, format))
