"""``seamark get``: what there is, as kubectl shows it."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from seamark.cli.cluster_options import (
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
    from seamark.cli.server import Server
    from seamark.cli.server_kinds import ServerKind
    from seamark.cli.table_text import Looks, Table
    from seamark.cli.targets import Target
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
    made.add_argument("--field-selector", metavar="SELECTOR", default="", help="such as metadata.name=web")
    made.add_argument("-o", "--output", choices=("wide", "json", "yaml", "name"), default="", help="instead of a table")
    add_switch(made, "-w", "--watch", help="then every change, until Ctrl-C")
    add_switch(made, "--no-headers", help="rows only")
    add_switch(made, "--show-labels", help="a last column with all labels")
    made.add_argument(
        "-L", "--label-columns", metavar="KEY", action="append", default=[], help="a column with this label; repeatable"
    )
    add_switch(made, "--show-managed-fields", help="who set which field (json and yaml)")
    add_switch(made, "--ignore-not-found", help="what is missing is no failure")
    return made


def main(arguments: list[str]) -> int:
    # Names may stand before and behind flags, which argparse can only do when asked to.
    options = parser().parse_intermixed_args(arguments)
    return asyncio.run(run(options))


async def run(options: argparse.Namespace) -> int:
    from seamark.cli.targets import parse_targets

    async with connected(options) as server:
        with Progress("asking the server …"):
            targets = parse_targets(options.what, await server.kinds())
        named = [target for target in targets if target.name]
        if named and options.all_namespaces:
            raise Failure("a resource cannot be retrieved by name across all namespaces", 2)
        if named and (options.selector or options.field_selector):
            raise Failure("name cannot be provided when a selector is specified", 2)
        if options.watch:
            from seamark.cli.get_watch import watch

            return await watch(server, targets, options)
        if options.output in ("json", "yaml", "name"):
            return await _print_objects(server, targets, options)
        return await _print_tables(server, targets, options)


# --- asking ----------------------------------------------------------------------------------------


def namespace_for(server: Server, kind: ServerKind, options: argparse.Namespace) -> str:
    """The namespace to ask in; empty for all of them and for kinds without."""
    if not kind.resource.namespaced or options.all_namespaces:
        return ""
    return options.namespace or server.namespace


def selection(options: argparse.Namespace) -> dict[str, str]:
    chosen = {"labelSelector": options.selector, "fieldSelector": options.field_selector}
    return {key: value for key, value in chosen.items() if value}


def as_table(document: Object) -> Table:
    """What the server answered, as a table even if it made none."""
    from seamark.cli.table_text import plain_table, table_of
    from seamark.kinds import times

    if document.get("kind") == "Table":
        return table_of(document)
    objects = document.get("items", [document])
    return plain_table(objects, lambda stamp: times.age(time.time(), stamp))


async def _documents(server: Server, target: Target, options: argparse.Namespace, *, accept: str) -> list[Object]:
    """An object, or the pages of a list."""
    namespace = namespace_for(server, target.kind, options)
    resource = target.kind.resource
    if target.name:
        return [await server.get(resource, target.name, namespace=namespace, accept=accept)]
    asked = server.pages(resource, namespace=namespace, query=selection(options), accept=accept)
    return [page async for page in asked]


async def _each(
    server: Server, targets: Sequence[Target], options: argparse.Namespace, *, accept: str
) -> tuple[list[tuple[Target, Object]], list[Failure]]:
    """What was found and what was not: a missing object keeps nobody from seeing the others."""
    from seamark.errors import ApiError, NotFound

    found: list[tuple[Target, Object]] = []
    failures = []
    for target in targets:
        try:
            found += [(target, page) for page in await _documents(server, target, options, accept=accept)]
        except NotFound as error:
            if not options.ignore_not_found:
                failures.append(refusal(error))
        except ApiError as error:
            failures.append(refusal(error))
    return found, failures


def _told(failures: Sequence[Failure]) -> int:
    for failure in failures:
        print(failure.line, file=sys.stderr)
    return 1 if failures else 0


# --- tables ----------------------------------------------------------------------------------------


def looks_of(kind: ServerKind, options: argparse.Namespace, *, with_kind: bool) -> Looks:
    from seamark.cli.table_text import Looks

    return Looks(
        wide=options.output == "wide",
        namespace=options.all_namespaces and kind.resource.namespaced,
        kind=kind.label if with_kind else "",
        labels=options.show_labels,
        label_columns=tuple(options.label_columns),
        headers=not options.no_headers,
    )


async def _print_tables(server: Server, targets: Sequence[Target], options: argparse.Namespace) -> int:
    from seamark.cli.server import TABLE
    from seamark.cli.table_text import TableText

    with Progress("asking the server …"):
        found, failures = await _each(server, targets, options, accept=TABLE)
    with_kind = len({target.kind for target, _ in found}) > 1
    printed = False
    last: ServerKind | None = None
    text: TableText | None = None
    block: list[str] = []
    for target, document in found:
        if text is None or target.kind != last:
            printed = _print_block(block, apart=printed and not options.no_headers) or printed
            looks = looks_of(target.kind, options, with_kind=with_kind)
            text, last, block = TableText(looks, colour=colourful(sys.stdout)), target.kind, []
        table = as_table(document)
        block += text.lines(table)
    printed = _print_block(block, apart=printed and not options.no_headers) or printed
    if not printed and not failures and not options.ignore_not_found:
        print(_nothing(server, targets, options), file=sys.stderr)
    return _told(failures)


def _print_block(lines: Sequence[str], *, apart: bool) -> bool:
    if lines:
        print("\n".join(["", *lines] if apart else lines))
    return bool(lines)


def _nothing(server: Server, targets: Sequence[Target], options: argparse.Namespace) -> str:
    if options.all_namespaces or not all(target.kind.resource.namespaced for target in targets):
        return "No resources found"
    return f"No resources found in {options.namespace or server.namespace} namespace."


# --- whole objects ---------------------------------------------------------------------------------


def object_printer(options: argparse.Namespace) -> Any:
    """From a kind and an object to the text of it."""
    from seamark.cli.object_text import json_text, without_managed_fields, yaml_text

    def text(kind: ServerKind, value: Object) -> str:
        if options.output == "name":
            return f"{kind.label}/{value['metadata']['name']}"
        whole = value if options.show_managed_fields else without_managed_fields(value)
        return json_text(whole) if options.output == "json" else yaml_text(whole)

    return text


def objects_in(document: Object, kind: ServerKind) -> list[Object]:
    """The objects of an answer; those of a list are told what they are, which the list only says once."""
    if "items" not in document:
        return [document]
    resource = kind.resource
    return [{"kind": resource.kind, "apiVersion": resource.api_version, **item} for item in document["items"] or ()]


async def _print_objects(server: Server, targets: Sequence[Target], options: argparse.Namespace) -> int:
    from seamark.cli.object_text import listed, without_managed_fields

    with Progress("asking the server …"):
        found, failures = await _each(server, targets, options, accept="application/json")
    objects = [(target.kind, each) for target, document in found for each in objects_in(document, target.kind)]
    text = object_printer(options)
    if options.output == "name" or (len(targets) == 1 and targets[0].name):
        for kind, value in objects:
            print(text(kind, value))
    elif objects or not failures:
        keep = options.show_managed_fields
        items = [value if keep else without_managed_fields(value) for _, value in objects]
        print(text(targets[0].kind, listed(items)))
    return _told(failures)
