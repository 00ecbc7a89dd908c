"""``seamark apply``: make what is there be what the files say."""

from __future__ import annotations

import argparse
import asyncio
import sys
from typing import TYPE_CHECKING

from seamark.cli.cluster_options import (
    ENVIRONMENT,
    WHICH_CLUSTER,
    add_cluster_options,
    add_namespace_options,
    connected,
    refusal,
)
from seamark.cli.failure import Failure
from seamark.cli.output_formats import OBJECTS, Output, OutputFormats
from seamark.cli.parsing import add_switch, verb_parser

if TYPE_CHECKING:
    from seamark.cli.manifests import Manifest
    from seamark.cli.server import Server
    from seamark.cli.server_kinds import ServerKind
    from seamark.errors import Object
    from seamark.kinds.resource import Resource

EXAMPLES = """\
seamark apply -f web.yaml
seamark apply -f manifests/ -R -n shop
seamark apply -f https://example.org/web.yaml
helm template . | seamark apply -f -
"""
MANAGER = "seamark"
VALIDATION = {"strict": "Strict", "true": "Strict", "warn": "Warn", "ignore": "Ignore", "false": "Ignore"}


def parser() -> argparse.ArgumentParser:
    made = verb_parser(
        "apply",
        "Create or change objects to be as files say, by server-side apply (field manager `seamark`).\n"
        "Fields that somebody else set are left alone; where both want the same one, it is a conflict.\n\n"
        f"{WHICH_CLUSTER}",
        examples=EXAMPLES,
        environment=ENVIRONMENT,
    )
    made.add_argument(
        "-f",
        "--filename",
        metavar="FILE|DIR|-",
        action="append",
        required=True,
        help="YAML or JSON, also a URL; repeatable",
    )
    add_switch(made, "-R", "--recursive", help="also what is in directories of a directory")
    add_cluster_options(made)
    add_namespace_options(made)
    add_switch(made, "--force-conflicts", help="take fields over from whoever has them")
    made.add_argument("--field-manager", metavar="NAME", default=MANAGER, help=f"default {MANAGER}")
    made.add_argument("--subresource", metavar="NAME", default="", help="apply to it, such as status")
    made.add_argument("--dry-run", choices=("none", "server"), default="none", help="server: check, but keep nothing")
    made.add_argument(
        "--validate",
        choices=tuple(VALIDATION),
        default="strict",
        help="unknown fields are refused (strict, the default), warned of, or ignored",
    )
    made.add_argument(
        "-o", "--output", metavar="FORMAT", type=OutputFormats(OBJECTS), default=Output(), help="json, yaml or name"
    )
    add_switch(made, "--server-side", default=True, help=argparse.SUPPRESS)  # as kubectl's users ask for it
    return made


def main(arguments: list[str]) -> int:
    return asyncio.run(run(parser().parse_args(arguments)))


async def run(options: argparse.Namespace) -> int:
    from seamark.cli.manifests import read_all
    from seamark.errors import ApiError

    if not options.server_side:
        raise Failure("this applies on the server's side and cannot do otherwise: leave out --server-side=false", 2)
    manifests = read_all(options.filename, recursive=options.recursive)
    failed = False
    async with connected(options) as server:
        await server.kinds()
        for manifest in manifests:
            try:
                print(await _applied(server, manifest, options), flush=True)
            except ApiError as error:
                if error.__cause__ is not None:
                    raise  # the server is gone: the others need not be tried
                print(refusal(error, f'error when applying "{manifest.source}": ').line, file=sys.stderr)
                failed = True
            except Failure as failure:
                print(failure.line, file=sys.stderr)
                failed = True
    return 1 if failed else 0


async def _applied(server: Server, manifest: Manifest, options: argparse.Namespace) -> str:
    """Apply one object; the text that says what became of it."""
    from seamark.cli.manifests import kind_of, namespace_of

    kind = kind_of(manifest, await server.kinds())
    namespace = namespace_of(manifest, kind, asked=options.namespace, default=server.namespace)
    content = manifest.object
    if namespace:
        content = {**content, "metadata": {**content["metadata"], "namespace": namespace}}
    query = {"fieldManager": options.field_manager, "fieldValidation": VALIDATION[options.validate]}
    if options.force_conflicts:
        query["force"] = "true"
    if options.dry_run == "server":
        query["dryRun"] = "All"
    before = await _version(server, kind.resource, manifest.name, namespace)
    path = kind.resource.path(namespace=namespace, name=manifest.name, subresource=options.subresource)
    applied = await server.apply(path, content, query)
    if options.output.format:
        return _as_output(applied, kind, options.output)
    after = applied["metadata"].get("resourceVersion", "")
    if before is None:
        happened = "serverside-applied"
    elif not before:
        happened = "created"
    else:
        happened = "unchanged" if before == after else "configured"
    tried = " (server dry run)" if options.dry_run == "server" else ""
    return f"{kind.label}/{manifest.name} {happened}{tried}"


def _as_output(applied: Object, kind: ServerKind, output: Output) -> str:
    from seamark.cli.object_text import json_document, without_managed_fields, yaml_text

    if output.format == "name":
        return f"{kind.label}/{applied['metadata']['name']}"
    return (json_document if output.format == "json" else yaml_text)(without_managed_fields(applied))


async def _version(server: Server, resource: Resource, name: str, namespace: str) -> str | None:
    """The version of an object, empty if there is none; None if we may not look."""
    from seamark.errors import Forbidden, NotFound

    try:
        found = await server.get(resource, name, namespace=namespace)
    except NotFound:
        return ""
    except Forbidden:
        return None
    return str(found["metadata"].get("resourceVersion", ""))
