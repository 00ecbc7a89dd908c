"""``seamark get``: what there is, as kubectl shows it."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from seamark.cli.cluster_options import (
    ENVIRONMENT,
    WHICH_CLUSTER,
    add_cluster_options,
    add_namespace_options,
    connected,
    refusal,
)
from seamark.cli.failure import Failure, Refusal
from seamark.cli.output_formats import OBJECTS, TEMPLATES, Output, OutputFormats
from seamark.cli.parsing import add_switch, verb_parser
from seamark.cli.terminal import Progress

if TYPE_CHECKING:
    from seamark.cli.server import Server
    from seamark.cli.server_kinds import ServerKind
    from seamark.cli.targets import Target
    from seamark.errors import ApiError, Object

EXAMPLES = """\
seamark get svc
seamark get svc,endpoints,endpointslices -o wide
seamark get pods -l app=web -A
seamark get deployment/web service/web
seamark get svc web -o yaml
seamark get pods -w                      # and every change from now on
seamark get pods --sort-by .status.podIP -o custom-columns=NAME:.metadata.name,IP:.status.podIP
seamark get svc -o jsonpath='{range .items[*]}{.metadata.name}{"\\t"}{.spec.clusterIP}{"\\n"}{end}'
seamark get -f web.yaml
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
    made.add_argument("what", metavar="KIND", nargs="*", help="plural, singular or short name, or a category: all")
    made.add_argument("-f", "--filename", metavar="FILE|DIR|-", action="append", help="what these describe; repeatable")
    add_switch(made, "-R", "--recursive", help="also what is in directories of a directory")
    add_cluster_options(made)
    add_namespace_options(made)
    add_switch(made, "-A", "--all-namespaces", help="of every namespace")
    made.add_argument("-l", "--selector", metavar="SELECTOR", default="", help="with such labels: app=web,tier!=db")
    made.add_argument("--field-selector", metavar="SELECTOR", default="", help="such as metadata.name=web")
    made.add_argument(
        "-o",
        "--output",
        metavar="FORMAT",
        type=OutputFormats(("wide", *OBJECTS, *TEMPLATES)),
        default=Output(),
        help="wide, json, yaml, name, jsonpath=TEMPLATE or custom-columns=HEADER:PATH,… (-file= reads it from a file)",
    )
    made.add_argument(
        "--sort-by", metavar="PATH", default="", help="in the order of a field: .metadata.creationTimestamp"
    )
    add_switch(made, "-w", "--watch", help="then every change, until Ctrl-C")
    add_switch(made, "--watch-only", help="only changes from now on")
    add_switch(made, "--output-watch-events", help="with a watch: also what happened to each object")
    add_switch(made, "--no-headers", help="rows only")
    add_switch(made, "--show-kind", help="the kind before each name")
    add_switch(made, "--show-labels", help="a last column with all labels")
    made.add_argument(
        "-L", "--label-columns", metavar="KEY,…", action="append", default=[], help="columns with these labels"
    )
    add_switch(made, "--show-managed-fields", help="who set which field (json and yaml)")
    add_switch(made, "--ignore-not-found", help="what is missing is no failure")
    made.add_argument("--chunk-size", metavar="N", type=int, help="objects per request (default 500); 0: all in one")
    return made


def main(arguments: list[str]) -> int:
    # Names may stand before and behind flags, which argparse can only do when asked to.
    options = parser().parse_intermixed_args(arguments)

    from seamark.cli.targets import check_words_or_files

    check_words_or_files(options)
    if not options.what and not options.filename:
        raise Refusal("Required resource not specified: what is to be shown? KIND, KIND NAME … or -f FILE", 2)
    watching = options.watch or options.watch_only
    if options.output_watch_events and not watching:
        raise Refusal("--output-watch-events option can only be used with --watch or --watch-only", 2)
    if watching and options.sort_by:
        raise Refusal("--watch requested, --sort-by cannot be used", 2)
    return asyncio.run(run(options))


async def run(options: argparse.Namespace) -> int:
    async with connected(options) as server:
        with Progress("asking the server …"):
            targets = await _targets(server, options)
        named = [target for target in targets if target.name]
        if named and not options.filename:
            if options.all_namespaces:
                raise Refusal("a resource cannot be retrieved by name across all namespaces", 2)
            if options.selector or options.field_selector:
                raise Refusal("name cannot be provided when a selector is specified", 2)
        if options.watch or options.watch_only:
            from seamark.cli.get_watch import watch

            return await watch(server, targets, options)
        if options.output.as_table:
            from seamark.cli.get_tables import print_tables

            return await print_tables(server, targets, options)

        from seamark.cli.get_objects import print_objects

        return await print_objects(server, targets, options)


async def _targets(server: Server, options: argparse.Namespace) -> list[Target]:
    """What was asked for, by words or by files."""
    kinds = await server.kinds()
    if not options.filename:
        from seamark.cli.targets import parse_targets

        return parse_targets(options.what, kinds, warn=server.warn)

    from seamark.cli.manifests import described

    return [target for target, _ in described(options, kinds, default=server.namespace)]


# --- asking ----------------------------------------------------------------------------------------


def namespace_for(server: Server, target: Target, options: argparse.Namespace) -> str:
    """The namespace to ask in; empty for all of them and for kinds without."""
    if not target.kind.resource.namespaced or options.all_namespaces:
        return ""
    return target.namespace or options.namespace or server.namespace


async def _documents(server: Server, target: Target, options: argparse.Namespace, *, accept: str) -> list[Object]:
    """An object, or the pages of a list."""
    from seamark.cli.server import TABLE
    from seamark.cli.targets import selection

    namespace = namespace_for(server, target, options)
    resource = target.kind.resource
    whole = {"includeObject": "Object"} if options.sort_by and accept == TABLE else {}
    if target.name:
        return [await server.get(resource, target.name, namespace=namespace, accept=accept, query=whole)]
    query = {**selection(options), **whole}
    asked = server.pages(resource, namespace=namespace, query=query, accept=accept, size=options.chunk_size)
    return [page async for page in asked]


async def each_document(
    server: Server, targets: Sequence[Target], options: argparse.Namespace, *, accept: str
) -> tuple[list[tuple[Target, Object]], list[Failure]]:
    """What was found and what was not: a missing object keeps nobody from seeing the others."""
    from seamark.errors import ApiError, NotFound

    found: list[tuple[Target, Object]] = []
    failures = []
    with Progress("asking the server …"):
        for target in targets:
            try:
                found += [(target, page) for page in await _documents(server, target, options, accept=accept)]
            except ApiError as error:
                if isinstance(error, NotFound) and options.ignore_not_found:
                    continue
                failures.append(refusal(error, "" if target.name else _looking_for(error, target.kind, options)))
    return found, failures


def _looking_for(error: ApiError, kind: ServerKind, options: argparse.Namespace) -> str:
    """What could not be listed, which kubectl adds to errors that are about the question."""
    if error.code not in (400, 404):
        return ""
    resource = kind.resource
    what = f'"{resource.group}/{resource.version}, Resource={resource.plural}"'
    if not options.selector and not options.field_selector:
        return f"Unable to list {what}: "
    return (
        f'Unable to find {what} that match label selector "{options.selector}", '
        f'field selector "{options.field_selector}": '
    )


def told(failures: Sequence[Failure]) -> int:
    """Print what was not found; the exit code."""
    for failure in failures:
        print(failure.line, file=sys.stderr)
    return 1 if failures else 0
