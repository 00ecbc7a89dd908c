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
from seamark.cli.failure import Failure, Refusal
from seamark.cli.output_formats import Output, OutputFormats
from seamark.cli.parsing import add_switch, duration, verb_parser
from seamark.cli.server_kinds import ServerKind
from seamark.cli.targets import check_words_or_files, parse_targets, selection
from seamark.cli.terminal import Progress

if TYPE_CHECKING:
    from seamark.cli.server import Server

EXAMPLES = """\
seamark delete svc web
seamark delete -f web.yaml
seamark delete pods -l app=web
seamark delete pod/web-0 --force
seamark delete svc --all --dry-run server
"""


class Doomed(msgspec.Struct, frozen=True):
    """An object to be deleted, and the file that named it; ``uid`` is known once it is on its way."""

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
    add_switch(made, "-R", "--recursive", help="also what is in directories of a directory")
    add_cluster_options(made)
    add_namespace_options(made)
    made.add_argument("-l", "--selector", metavar="SELECTOR", default="", help="all of the kind with such labels")
    made.add_argument("--field-selector", metavar="SELECTOR", default="", help="such as metadata.name=web")
    add_switch(made, "--all", help="all of the kind in the namespace")
    add_switch(made, "-A", "--all-namespaces", help="with --all or a selector: of every namespace")
    made.add_argument("--grace-period", metavar="SECONDS", type=int, help="to end in; 0 only with --force")
    add_switch(made, "--now", help="the same as --grace-period 1")
    add_switch(made, "--force", help="at once, whether or not it has ended: the same as --grace-period 0")
    made.add_argument(
        "--cascade",
        choices=("background", "foreground", "orphan"),
        default="background",
        help="what becomes of objects that depend on it (default background)",
    )
    made.add_argument(
        "--dry-run", choices=("none", "client", "server"), default="none", help="only say it (server: ask there, too)"
    )
    made.add_argument(
        "-o", "--output", metavar="FORMAT", type=OutputFormats(("name",)), default=Output(), help="name: names only"
    )
    add_switch(made, "--ignore-not-found", help="what is missing is no failure")
    add_switch(made, "--wait", default=None, help="until they are gone (default true, but with --force false)")
    made.add_argument("--timeout", metavar="DURATION", type=duration, help="give up waiting (default: never)")
    return made


def main(arguments: list[str]) -> int:
    options = parser().parse_intermixed_args(arguments)
    _check(options)
    if options.grace_period == 0 and not options.force:
        options.grace_period = 1  # as kubectl does: who means it says --force
    if options.now:
        options.grace_period = 1
    if options.force:
        options.grace_period = 0
        print(
            "Warning: Immediate deletion does not wait for confirmation that the running resource has been "
            "terminated. The resource may continue to run on the cluster indefinitely.",
            file=sys.stderr,
        )
    if options.wait is None:
        options.wait = not options.force
    return asyncio.run(run(options))


def _check(options: argparse.Namespace) -> None:
    """What makes no sense together, before anything is gone."""
    selects = bool(options.selector or options.field_selector)
    check_words_or_files(options)
    if not options.what and not options.filename:
        if selects or options.all:
            raise Refusal("at least one resource must be specified to use a selector", 2)
        raise Refusal("You must provide one or more resources by argument or filename: KIND NAME …, or -f FILE", 2)
    if options.all and selects:
        raise Refusal("setting 'all' parameter but found a non empty selector", 2)
    if options.now and options.grace_period is not None:
        raise Refusal("--now and --grace-period cannot be specified together", 2)
    if options.force and options.grace_period:
        raise Refusal("--force and --grace-period greater than 0 cannot be specified together", 2)


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
                doing = f'error when deleting "{each.source}": ' if each.source else ""
                print(refusal(error, doing).line, file=sys.stderr)
                failed = True
        if options.wait and options.dry_run == "none":
            await _all_gone(server, begun, options.timeout or None)
    if not begun and not failed and not options.ignore_not_found:
        print("No resources found")
    return 1 if failed else 0


async def _in_files(server: Server, options: argparse.Namespace) -> AsyncIterator[Doomed]:
    from seamark.cli.manifests import described

    for target, source in described(options, await server.kinds(), default=server.namespace):
        yield Doomed(target.kind, target.name, target.namespace, source)


async def _named(server: Server, options: argparse.Namespace) -> AsyncIterator[Doomed]:
    query = selection(options)
    targets = parse_targets(options.what, await server.kinds(), warn=server.warn)
    if any(target.name for target in targets):
        if query or options.all:
            raise Refusal("name cannot be provided when a selector is specified", 2)
        if options.all_namespaces:
            raise Refusal("a resource cannot be retrieved by name across all namespaces", 2)
    elif not query and not options.all:
        raise Refusal("resource(s) were provided, but no name was specified: give names, -l or --all", 2)
    for target in targets:
        namespaced = target.kind.resource.namespaced and not options.all_namespaces
        namespace = (options.namespace or server.namespace) if namespaced else ""
        if target.name:
            yield Doomed(target.kind, target.name, namespace)
            continue
        async for page in server.pages(target.kind.resource, namespace=namespace, query=query):
            for item in page.get("items") or ():
                yield Doomed(target.kind, item["metadata"]["name"], item["metadata"].get("namespace", ""))


async def _deleted(server: Server, doomed: Doomed, options: argparse.Namespace) -> Doomed:
    """Ask for the deletion and say so."""
    resource, where = doomed.kind.resource, doomed.namespace
    asked: dict[str, Any] = {"propagationPolicy": options.cascade.capitalize()}
    if options.grace_period is not None and options.grace_period >= 0:
        asked["gracePeriodSeconds"] = options.grace_period
    if options.dry_run == "server":
        asked["dryRun"] = ["All"]
    if options.dry_run == "client":
        answer = await server.get(resource, doomed.name, namespace=where)
    else:
        answer = await server.delete(resource, doomed.name, namespace=where, options=asked)
    print(_line(doomed, options), flush=True)
    # The answer is the object that is on its way, or a Status about the one that is gone.
    about = answer.get("details") if answer.get("kind") == "Status" else answer.get("metadata")
    return msgspec.structs.replace(doomed, uid=(about or {}).get("uid", ""))


def _line(doomed: Doomed, options: argparse.Namespace) -> str:
    if options.output.format == "name":
        return f"{doomed.kind.label}/{doomed.name}"
    how = "force deleted" if options.force else "deleted"
    where = f" from {doomed.namespace} namespace" if doomed.namespace else ""
    tried = {"none": "", "client": " (dry run)", "server": " (server dry run)"}[options.dry_run]
    return f'{doomed.kind.label} "{doomed.name}" {how}{tried}{where}'


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
