"""``seamark delete``: by name, by labels, or what files describe; waits until it is gone."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import msgspec

from seamark.cli.clusters import (
    ENVIRONMENT,
    WHICH_CLUSTER,
    add_cluster_options,
    add_namespace_options,
    connected,
    refusal,
)
from seamark.cli.failure import Failure
from seamark.cli.objects.get import namespace_for, selection
from seamark.cli.objects.kinds import ServerKind
from seamark.cli.parsing import add_switch, duration, verb_parser
from seamark.cli.terminal import Progress

if TYPE_CHECKING:
    from seamark.cli.objects.server import Server

EXAMPLES = """\
seamark delete svc web
seamark delete -f web.yaml
seamark delete pods -l app=web
seamark delete pod/web-0 --force
seamark delete svc --all --dry-run server
"""


class Doomed(msgspec.Struct, frozen=True):
    """An object to delete, and the file that named it; ``uid`` is known once the server has answered."""

    kind: ServerKind
    name: str
    namespace: str
    source: str = ""
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
    add_cluster_options(made)
    add_namespace_options(made)
    made.add_argument("-l", "--selector", metavar="SELECTOR", default="", help="all of the kind with such labels")
    add_switch(made, "--all", help="all of the kind in the namespace")
    add_switch(made, "-A", "--all-namespaces", help="with --all or -l: of every namespace")
    add_switch(made, "--force", help="at once, without time to end and without waiting")
    made.add_argument("--dry-run", choices=("none", "server"), default="none", help="server: check, but keep all")
    add_switch(made, "--ignore-not-found", help="what is missing is no failure")
    add_switch(
        made,
        "--wait",
        default=None,
        help="until they are gone (default true, but false with --force; --wait=false does not)",
    )
    made.add_argument("--timeout", metavar="DURATION", type=duration, help="give up waiting (default: never)")
    return made


def main(arguments: list[str]) -> int:
    options = parser().parse_intermixed_args(arguments)
    if bool(options.what) == bool(options.filename):
        raise Failure("what is to be deleted? KIND NAME …, KIND/NAME …, KIND -l SELECTOR, KIND --all or -f FILE", 2)
    if options.all and options.selector:
        raise Failure("--all and -l contradict each other", 2)
    if options.force:
        print(
            "Warning: Immediate deletion does not wait for confirmation that the running resource has been "
            "terminated. The resource may continue to run on the cluster indefinitely.",
            file=sys.stderr,
        )
    if options.wait is None:
        options.wait = not options.force
    return asyncio.run(run(options))


async def run(options: argparse.Namespace) -> int:
    from seamark.errors import ApiError, NotFound

    begun: list[Doomed] = []
    failed = False
    async with connected(options, writes=options.dry_run == "none") as server:
        doomed = _in_files(server, options) if options.filename else _named(server, options)
        async for each in doomed:
            try:
                begun.append(await _deleted(server, each, options))
            except ApiError as error:
                if error.__cause__ is not None:
                    raise  # the server cannot be reached: it is no use to go on
                if isinstance(error, NotFound) and options.ignore_not_found:
                    continue
                doing = f'error when deleting "{each.source}": ' if each.source else ""
                print(refusal(error, doing).line, file=sys.stderr)
                failed = True
        if options.wait and options.dry_run == "none":
            await _all_gone(server, begun, options.timeout or None)
    if not begun and not failed and not options.ignore_not_found:
        print("No resources found")
    return 1 if failed else 0


async def _in_files(server: Server, options: argparse.Namespace) -> AsyncIterator[Doomed]:
    from seamark.cli.objects.manifests import read_all

    for manifest in read_all(options.filename):
        kind = manifest.kind_among(await server.kinds())
        namespace = manifest.namespace_for(kind, asked=options.namespace, default=server.namespace)
        yield Doomed(kind, manifest.name, namespace, manifest.source)


async def _named(server: Server, options: argparse.Namespace) -> AsyncIterator[Doomed]:
    targets = (await server.kinds()).targets(options.what)
    chosen = bool(options.selector or options.all)
    if any(target.name for target in targets):
        if chosen or options.all_namespaces:
            raise Failure("objects are chosen by name or by --all, -A and -l, not by both", 2)
    elif not chosen:
        raise Failure("which ones? Give names, -l SELECTOR or --all", 2)
    for target in targets:
        namespace = namespace_for(server, target, options)
        if target.name:
            yield Doomed(target.kind, target.name, namespace)
            continue
        async for page in server.pages(target.kind.resource, namespace=namespace, query=selection(options)):
            for item in page.get("items") or ():
                yield Doomed(target.kind, item["metadata"]["name"], item["metadata"].get("namespace", ""))


async def _deleted(server: Server, doomed: Doomed, options: argparse.Namespace) -> Doomed:
    """Request the deletion and print a line about it."""
    asked: dict[str, Any] = {"propagationPolicy": "Background"}
    if options.force:
        asked["gracePeriodSeconds"] = 0
    if options.dry_run == "server":
        asked["dryRun"] = ["All"]
    answer = await server.delete(doomed.kind.resource, doomed.name, namespace=doomed.namespace, options=asked)
    how = "force deleted" if options.force else "deleted"
    tried = " (server dry run)" if options.dry_run == "server" else ""
    where = f" from {doomed.namespace} namespace" if doomed.namespace else ""
    print(f'{doomed.kind.label} "{doomed.name}" {how}{tried}{where}', flush=True)
    # The answer is the object that still has to end, or a Status about the one that is gone.
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
    """Wait until there is no object of that name, or another one than was deleted."""
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
            return  # the user may delete but not look, so there is nothing to wait for
