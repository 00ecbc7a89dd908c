"""``seamark apply``: create or change objects to be as files say, by server-side apply."""

from __future__ import annotations

import argparse
import asyncio
import sys
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

if TYPE_CHECKING:
    from seamark.cli.objects.manifests import Manifest
    from seamark.cli.objects.server import Server
    from seamark.kinds.resource import Resource

EXAMPLES = """\
seamark apply -f web.yaml
seamark apply -f manifests/ -n shop
helm template . | seamark apply -f -
"""
MANAGER = "seamark"


def parser() -> argparse.ArgumentParser:
    made = verb_parser(
        "apply",
        f"Create or change objects to be as files say, by server-side apply (field manager `{MANAGER}`).\n"
        "Fields that other managers set are left alone; a field that the files set otherwise is a conflict.\n\n"
        f"{WHICH_CLUSTER}",
        examples=EXAMPLES,
        environment=ENVIRONMENT,
    )
    made.add_argument(
        "-f", "--filename", metavar="FILE|DIR|-", action="append", required=True, help="YAML or JSON; repeatable"
    )
    add_cluster_options(made)
    add_namespace_options(made)
    add_switch(made, "--force-conflicts", help="take over fields of other managers")
    made.add_argument("--subresource", metavar="NAME", default="", help="apply to it, such as status")
    made.add_argument("--dry-run", choices=("none", "server"), default="none", help="server: check, but keep nothing")
    return made


def main(arguments: list[str]) -> int:
    return asyncio.run(run(parser().parse_args(arguments)))


async def run(options: argparse.Namespace) -> int:
    from seamark.cli.objects.manifests import read_all
    from seamark.errors import ApiError

    manifests = read_all(options.filename)
    failed = False
    async with connected(options, writes=options.dry_run == "none") as server:
        await server.kinds()
        for manifest in manifests:
            try:
                print(await _applied(server, manifest, options), flush=True)
            except ApiError as error:
                if error.__cause__ is not None:
                    raise  # the server cannot be reached: it is no use to go on
                print(refusal(error, f'error when applying "{manifest.source}": ').line, file=sys.stderr)
                failed = True
            except Failure as failure:
                print(failure.line, file=sys.stderr)
                failed = True
    return 1 if failed else 0


async def _applied(server: Server, manifest: Manifest, options: argparse.Namespace) -> str:
    """Apply one object; a line about what was done."""
    kind = manifest.kind_among(await server.kinds())
    namespace = manifest.namespace_for(kind, asked=options.namespace, default=server.namespace)
    content = manifest.object
    if namespace:
        content = {**content, "metadata": {**content["metadata"], "namespace": namespace}}
    query = {"fieldManager": MANAGER, "fieldValidation": "Strict"}
    if options.force_conflicts:
        query["force"] = "true"
    if options.dry_run == "server":
        query["dryRun"] = "All"
    before = await _version(server, kind.resource, manifest.name, namespace)
    path = kind.resource.path(namespace=namespace, name=manifest.name, subresource=options.subresource)
    applied = await server.apply(path, content, query)
    after = applied["metadata"].get("resourceVersion", "")
    if before is None:
        done = "serverside-applied"
    elif not before:
        done = "created"
    else:
        done = "unchanged" if before == after else "configured"
    tried = " (server dry run)" if options.dry_run == "server" else ""
    return f"{kind.label}/{manifest.name} {done}{tried}"


async def _version(server: Server, resource: Resource, name: str, namespace: str) -> str | None:
    """The version of an object, empty if there is none; None if the user may not read it."""
    from seamark.errors import Forbidden, NotFound

    try:
        found = await server.get(resource, name, namespace=namespace)
    except NotFound:
        return ""
    except Forbidden:
        return None
    return str(found["metadata"].get("resourceVersion", ""))
