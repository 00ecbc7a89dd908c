"""``seamark export``: what people wrote, as manifests that any cluster can apply."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from seamark.cli.clusters import (
    ENVIRONMENT,
    WHICH_CLUSTER,
    add_cluster_options,
    add_namespace_options,
    connected,
)
from seamark.cli.keeping.manifests import MADE_BY_THE_CLUSTER, manifest_of
from seamark.cli.parsing import add_switch, verb_parser
from seamark.cli.terminal import Progress

if TYPE_CHECKING:
    from seamark.cli.objects.kinds import ServerKind
    from seamark.cli.objects.server import Server
    from seamark.errors import Object

EXAMPLES = """\
seamark export > shop.yaml               # of the current namespace
seamark export -A > everything.yaml
seamark export svc,deployments -l app=web
seamark apply -f shop.yaml               # or kubectl apply: the same elsewhere
"""

# Kinds that others need come first.  All other kinds follow, by name.
ORDER = (
    "namespaces",
    "priorityclasses",
    "storageclasses",
    "serviceaccounts",
    "secrets",
    "configmaps",
    "services",
    "endpoints",
    "endpointslices",
)


def parser() -> argparse.ArgumentParser:
    made = verb_parser(
        "export",
        "Print objects as manifests: without what the cluster itself made or set (status, uids, endpoints, the Pods\n"
        f"of Deployments, cluster IPs), so that `apply` makes the same elsewhere.\n\n{WHICH_CLUSTER}",
        examples=EXAMPLES,
        environment=ENVIRONMENT,
    )
    made.add_argument("what", metavar="KIND", nargs="*", help="only these kinds: svc,deployments (default: all)")
    add_cluster_options(made)
    add_namespace_options(made)
    add_switch(made, "-A", "--all-namespaces", help="of every namespace, and what belongs to none")
    made.add_argument("-l", "--selector", metavar="SELECTOR", default="", help="with such labels: app=web,tier!=db")
    return made


def main(arguments: list[str]) -> int:
    return asyncio.run(run(parser().parse_args(arguments)))


async def run(options: argparse.Namespace) -> int:
    from seamark.cli.objects.text import object_text
    from seamark.errors import Forbidden
    from seamark.kinds.resource import NAMESPACES

    # Who asks for everything did not choose the kinds that are deprecated.
    async with connected(options, warns=bool(options.what)) as server:
        with Progress("asking the server …"):
            known = await server.kinds()
            asked = [target.kind for target in known.targets(options.what)] if options.what else known.all
        printed = 0
        for kind in in_order(asked, all_namespaces=options.all_namespaces):
            for manifest in await _manifests(server, kind, options):
                print("---")
                print(object_text(manifest, "yaml"))
                printed += 1
        if not printed and not options.all_namespaces:
            with suppress(Forbidden):  # of a namespace that is mistyped all lists are empty
                await server.get(NAMESPACES, options.namespace or server.namespace, namespace="")
    return 0


async def _manifests(server: Server, kind: ServerKind, options: argparse.Namespace) -> list[Object]:
    from seamark.cli.objects.get import namespace_for, objects_in, selection
    from seamark.cli.objects.kinds import Target

    namespace = namespace_for(server, Target(kind), options)
    made: list[Object] = []
    with Progress(f"reading {kind.resource.plural} …"):
        async for page in server.pages(kind.resource, namespace=namespace, query=selection(options)):
            found = (manifest_of(kind.resource.plural, obj) for obj in objects_in(page, kind))
            made += [manifest for manifest in found if manifest is not None]
    return made


def in_order(kinds: Iterable[ServerKind], *, all_namespaces: bool) -> list[ServerKind]:
    """The kinds to export, those that others need first; kinds without namespaces only with all namespaces."""
    wanted = [
        kind
        for kind in kinds
        if {"list", "create"} <= set(kind.verbs)
        and kind.resource.plural not in MADE_BY_THE_CLUSTER
        and (all_namespaces or kind.resource.namespaced)
    ]
    place = {plural: number for number, plural in enumerate(ORDER)}
    return sorted(wanted, key=lambda kind: (place.get(kind.resource.plural, len(ORDER)), kind.resource.plural))
