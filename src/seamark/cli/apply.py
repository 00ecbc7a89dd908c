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
from seamark.cli.parsing import add_switch, verb_parser

if TYPE_CHECKING:
    from seamark.cli.manifests import Manifest
    from seamark.cli.server import Server
    from seamark.kinds.resource import Resource

EXAMPLES = """\
seamark apply -f web.yaml
seamark apply -f manifests/ -R -n shop
helm template . | seamark apply -f -
"""
MANAGER = "seamark"


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
        "-f", "--filename", metavar="FILE|DIR|-", action="append", required=True, help="YAML or JSON; repeatable"
    )
    add_switch(made, "-R", "--recursive", help="also what is in directories of a directory")
    add_cluster_options(made)
    add_namespace_options(made)
    add_switch(made, "--force-conflicts", help="take fields over from whoever has them")
    made.add_argument("--field-manager", metavar="NAME", default=MANAGER, help=f"default {MANAGER}")
    made.add_argument("--subresource", metavar="NAME", default="", help="apply to it, such as status")
    made.add_argument("--dry-run", choices=("none", "server"), default="none", help="server: check, but keep nothing")
    return made


def main(arguments: list[str]) -> int:
    return asyncio.run(run(parser().parse_args(arguments)))


async def run(options: argparse.Namespace) -> int:
    from seamark.cli.manifests import read_all
    from seamark.errors import ApiError

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
    """Apply one object; the line that says what became of it."""
    from seamark.cli.manifests import kind_of, namespace_of

    kind = kind_of(manifest, await server.kinds())
    namespace = namespace_of(manifest, kind, asked=options.namespace, default=server.namespace)
    content = manifest.object
    if namespace:
        content = {**content, "metadata": {**content["metadata"], "namespace": namespace}}
    query = {"fieldManager": options.field_manager, "fieldValidation": "Strict"}
    if options.force_conflicts:
        query["force"] = "true"
    if options.dry_run == "server":
        query["dryRun"] = "All"
    before = await _version(server, kind.resource, manifest.name, namespace)
    path = kind.resource.path(namespace=namespace, name=manifest.name, subresource=options.subresource)
    after = (await server.apply(path, content, query))["metadata"].get("resourceVersion", "")
    if before is None:
        happened = "serverside-applied"
    elif not before:
        happened = "created"
    else:
        happened = "unchanged" if before == after else "configured"
    tried = " (server dry run)" if options.dry_run == "server" else ""
    return f"{kind.label}/{manifest.name} {happened}{tried}"


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
