"""``seamark delete``: by name, by labels, or what files describe; and wait until it is gone."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import msgspec

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
from seamark.cli.server_kinds import ServerKind
from seamark.cli.terminal import Progress

if TYPE_CHECKING:
    from seamark.cli.server import Server

EXAMPLES = """\
seamark delete svc web
seamark delete -f web.yaml
seamark delete pods -l app=web
seamark delete pod/web-0 --grace-period 0 --wait=false
"""


class Doomed(msgspec.Struct, frozen=True):
    """An object to be deleted; ``uid`` is known once it is on its way."""

    kind: ServerKind
    name: str
    namespace: str
    uid: str = ""


def parser() -> argparse.ArgumentParser:
    made = verb_parser(
        "delete",
        f"Delete objects, as `kubectl delete` does, and wait until they are gone.\n\n{WHICH_CLUSTER}",
        examples=EXAMPLES,
        environment=ENVIRONMENT,
        usage="seamark delete KIND NAME … [options]\n       seamark delete KIND/NAME … [options]\n"
        "       seamark delete KIND -l SELECTOR | --all [options]\n       seamark delete -f FILE [options]",
    )
    made.add_argument("what", metavar="KIND", nargs="*", help="plural, singular or short name")
    made.add_argument("-f", "--filename", metavar="FILE|DIR|-", action="append", help="what these describe; repeatable")
    add_switch(made, "-R", "--recursive", help="also what is in directories of a directory")
    add_cluster_options(made)
    add_namespace_options(made)
    made.add_argument("-l", "--selector", metavar="SELECTOR", default="", help="all of the kind with such labels")
    add_switch(made, "--all", help="all of the kind in the namespace")
    made.add_argument("--grace-period", metavar="SECONDS", type=int, help="to end in; 0 does not wait for the end")
    add_switch(made, "--now", help="the same as --grace-period 1")
    made.add_argument(
        "--cascade",
        choices=("background", "foreground", "orphan"),
        default="background",
        help="what becomes of objects that depend on it (default background)",
    )
    add_switch(made, "--ignore-not-found", help="what is missing is no failure")
    add_switch(made, "--wait", default=True, help="until they are gone (default true)")
    made.add_argument("--timeout", metavar="SECONDS", type=float, help="give up waiting (default: never)")
    return made


def main(arguments: list[str]) -> int:
    options = parser().parse_intermixed_args(arguments)
    if bool(options.what) == bool(options.filename):
        raise Failure("what is to be deleted? Either KIND NAME …, or -f FILE", 2)
    return asyncio.run(run(options))


async def run(options: argparse.Namespace) -> int:
    from seamark.errors import ApiError, NotFound

    begun: list[Doomed] = []
    failed = False
    async with connected(options) as server:
        doomed = _in_files(server, options) if options.filename else _named(server, options)
        async for each in doomed:
            try:
                begun.append(await _deleted(server, each, options))
            except ApiError as error:
                if error.__cause__ is not None:
                    raise
                if isinstance(error, NotFound) and options.ignore_not_found:
                    continue
                print(refusal(error).line, file=sys.stderr)
                failed = True
        if options.wait and options.grace_period != 0:
            await _all_gone(server, begun, options.timeout)
    if not begun and not failed and not options.ignore_not_found:
        print("No resources found", file=sys.stderr)
    return 1 if failed else 0


async def _in_files(server: Server, options: argparse.Namespace) -> AsyncIterator[Doomed]:
    from seamark.cli.manifests import kind_of, namespace_of, read_all

    kinds = await server.kinds()
    for manifest in read_all(options.filename, recursive=options.recursive):
        kind = kind_of(manifest, kinds)
        namespace = namespace_of(manifest, kind, asked=options.namespace, default=server.namespace)
        yield Doomed(kind, manifest.name, namespace)


async def _named(server: Server, options: argparse.Namespace) -> AsyncIterator[Doomed]:
    from seamark.cli.targets import parse_targets

    for target in parse_targets(options.what, await server.kinds()):
        namespace = (options.namespace or server.namespace) if target.kind.resource.namespaced else ""
        if target.name:
            yield Doomed(target.kind, target.name, namespace)
            continue
        if not options.selector and not options.all:
            raise Failure("resource(s) were provided, but no name was specified: give names, -l or --all", 2)
        query = {"labelSelector": options.selector} if options.selector else {}
        async for page in server.pages(target.kind.resource, namespace=namespace, query=query):
            for item in page.get("items") or ():
                yield Doomed(target.kind, item["metadata"]["name"], namespace)


async def _deleted(server: Server, doomed: Doomed, options: argparse.Namespace) -> Doomed:
    """Ask for the deletion and say so."""
    grace = 1 if options.now else options.grace_period
    asked: dict[str, Any] = {"propagationPolicy": options.cascade.capitalize()}
    if grace is not None:
        asked["gracePeriodSeconds"] = grace
    answer = await server.delete(doomed.kind.resource, doomed.name, namespace=doomed.namespace, options=asked)
    where = f" from {doomed.namespace} namespace" if doomed.namespace else ""
    print(f'{doomed.kind.label} "{doomed.name}" {"force " if grace == 0 else ""}deleted{where}', flush=True)
    # The answer is the object that is on its way, or a Status about the one that is gone.
    about = answer.get("details") if answer.get("kind") == "Status" else answer.get("metadata")
    return msgspec.structs.replace(doomed, uid=(about or {}).get("uid", ""))


async def _all_gone(server: Server, doomed: list[Doomed], seconds: float | None) -> None:
    with Progress("waiting until they are gone …"):
        try:
            async with asyncio.timeout(seconds):
                for each in doomed:
                    await _gone(server, each)
        except TimeoutError as error:
            raise Failure(f"timed out waiting for {each.kind.label}/{each.name} to be gone") from error


async def _gone(server: Server, doomed: Doomed) -> None:
    """Wait until nothing of that name, or another object of that name, is there."""
    from seamark.errors import Expired, Forbidden, Gone, MethodNotAllowed

    resource, query = doomed.kind.resource, {"fieldSelector": f"metadata.name={doomed.name}"}
    while True:
        try:
            pages = [page async for page in server.pages(resource, namespace=doomed.namespace, query=query)]
            left = [item for page in pages for item in page.get("items") or ()]
            if not any(item["metadata"]["uid"] == doomed.uid for item in left):
                return
            version = pages[-1]["metadata"]["resourceVersion"]
            async for event in server.watch(resource, namespace=doomed.namespace, query=query, since=version):
                if event["type"] == "DELETED":
                    return
        except (Expired, Gone):
            continue
        except (Forbidden, MethodNotAllowed):
            return  # who may delete but not look has to believe it
