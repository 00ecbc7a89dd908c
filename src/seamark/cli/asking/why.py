"""``seamark why``, also ``kubectl why``: why a Service has the endpoints it has, or none.

One look at a cluster, a look at every change (``--watch``), the history of a Service (``--since``), or a look at
manifests (``-f``).  ``why dns NAME`` is in ``names``.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from seamark.cli.clusters import (
    ENVIRONMENT,
    WHICH_CLUSTER,
    add_cluster_options,
    add_namespace_options,
    connection_of,
    default_kubeconfig,
    how_to_start,
)
from seamark.cli.failure import Failure
from seamark.cli.light_imports import uncollected, uninterrupted
from seamark.cli.parsing import add_switch, duration, verb_parser
from seamark.cli.terminal import colourful, columns
from seamark.clock import SYSTEM_CLOCK

if TYPE_CHECKING:
    from seamark.access.cluster import Cluster
    from seamark.access.kubeconfig import Connection
    from seamark.why.explain_way import Place
    from seamark.why.look import Survey
    from seamark.why.render import Style
    from seamark.why.report import Report

    Work = Callable[[Cluster, Connection], Coroutine[Any, Any, int]]

EXAMPLES = """\
seamark why svc/web                  # the cause, the fix and the evidence; also: kubectl why svc/web
seamark why                          # every Service of this namespace that needs attention; -A: of all namespaces
seamark why pod/web-0                # which Services take it, which do not and why
seamark why dns web.shop             # the search path walked, with reasons
seamark why svc/web --from pod/api   # where a connection would go, and why not elsewhere; also node/NAME, outside
seamark why svc/web --since 1h       # when each address came and went, and what caused it
helm template . | seamark why -f -   # before anything is deployed
seamark why -A --serve :9464         # metrics for Prometheus, for alerts that name the cause
"""

_AGENT = "seamark-why"
_SETTLE = 0.3  # seconds: changes come in bursts
_SAFETY_NET = 30.0  # seconds after which --watch looks again, whatever changed

_KINDS = {
    **dict.fromkeys(("svc", "service", "services", "ep", "endpoints"), "service"),
    **dict.fromkeys(("po", "pod", "pods"), "pod"),
    "dns": "dns",
}


def add_scope_options(parser: argparse.ArgumentParser) -> None:
    """Which cluster, which namespaces."""
    add_namespace_options(parser)
    add_switch(parser, "-A", "--all-namespaces", help="every namespace")
    add_cluster_options(parser)


def parser() -> argparse.ArgumentParser:
    made = verb_parser(
        "why",
        f"Say why a Service has no endpoints, or not those it should have, and what to do about it.\n\n{WHICH_CLUSTER}",
        examples=EXAMPLES,
        environment=ENVIRONMENT,
        codes={0: "healthy", 1: "something is wrong", 2: "could not look, or the command line is wrong"},
    )
    made.add_argument(
        "target",
        metavar="TARGET",
        nargs="*",
        help="svc/NAME, pod/NAME or dns NAME; default all Services of the namespace",
    )
    add_scope_options(made)
    made.add_argument("-f", "--filename", metavar="FILE|DIR|-", action="append", help="manifests, not a cluster")
    made.add_argument("-o", "--output", choices=("text", "json"), default="text", help="how to print it")
    add_switch(made, "-w", "--watch", help="go on, and tell when something changes")
    made.add_argument("--cluster-domain", metavar="ZONE", default="cluster.local", help="the zone of cluster DNS")
    made.add_argument(
        "--from",
        metavar="CLIENT",
        dest="client",
        help="where connections go from pod/[NAMESPACE/]NAME, node/NAME, outside or an ADDRESS",
    )
    made.add_argument("--port", metavar="PORT", type=int, help="with --from: the port that the client connects to")
    made.add_argument("--since", metavar="DURATION", type=duration, help="history of a Service: 30m, 1h, 2d")
    made.add_argument("--serve", metavar="[HOST]:PORT", help="serve metrics for Prometheus: one per Service and code")
    return made


def main(arguments: list[str]) -> int:
    options = parser().parse_args(arguments)
    kind, name = _target(options)
    options.place = _place(options, kind, name)
    if options.serve and (name or options.filename or options.watch or options.since is not None):
        raise Failure("--serve is for all Services of a cluster (-A) or of a namespace (-n)", 2)
    if options.filename:
        return _explain_files(options, kind, name)
    if kind == "dns":
        from seamark.cli.asking.names import explain_name

        return explain_name(options, name)
    follows = bool(options.serve or options.watch or options.since is not None)
    return asked(options, lambda *where: _look(options, kind, name, *where), event_loop=follows)


def _target(options: argparse.Namespace) -> tuple[str, str]:
    """The kind and the name asked about; no name for all Services."""
    words: list[str] = options.target
    if not words:
        return "service", ""
    if options.all_namespaces:
        raise Failure("-A is for all Services; leave it out, or the name", 2)
    if len(words) == 1 and "/" in words[0]:
        words = words[0].split("/", 1)
    if len(words) == 1 and words[0] not in _KINDS:
        words = ["service", words[0]]
    if len(words) != 2 or not words[1]:
        raise Failure(f"what is {' '.join(options.target)!r}? Ask for svc/NAME, pod/NAME or dns NAME", 2)
    kind = _KINDS.get(words[0].lower())
    if kind is None:
        raise Failure(f"there is no answer for {words[0]!r}; ask for svc/NAME, pod/NAME or dns NAME", 2)
    return kind, words[1]


def _place(options: argparse.Namespace, kind: str, name: str) -> Place | None:
    """Where the client is, if --from says so."""
    if options.client is None:
        if options.port is not None:
            raise Failure("--port goes with --from", 2)
        return None

    from seamark.why.explain_way import parse_place

    if kind != "service" or not name or options.since is not None:
        raise Failure("--from is for connections to one Service, now: svc/NAME", 2)
    try:
        return parse_place(options.client)
    except ValueError as error:
        raise Failure(str(error), 2) from error


# --- looking ---------------------------------------------------------------------------------------


def asked(options: argparse.Namespace, work: Work, *, event_loop: bool = False) -> int:
    """Connect as kubectl would, and run ``work`` with the connection; what watches or calls others needs a loop."""
    with uncollected(), uninterrupted():
        from seamark.errors import ApiError
        from seamark.why import look  # noqa: F401  # loads nearly all that is needed
        from seamark.why.observe import CannotLook

    try:
        connection = connection_of(options)
        if event_loop or connection.proxy:
            return _in_event_loop(connection, work)

        with uncollected():
            return _without_event_loop(connection, work)
    except (Failure, CannotLook) as problem:
        asked_in_vain = isinstance(problem.__cause__, ApiError) and problem.__cause__.__cause__ is not None
        raise Failure(f"{problem}{how_to_start(options) if asked_in_vain else ''}", 2) from problem
    except ApiError as error:
        raise Failure(f"{error.message}{how_to_start(options) if error.__cause__ is not None else ''}", 2) from error


def _without_event_loop(connection: Connection, work: Work) -> int:
    from seamark.access.blocking import BlockingTransport, run
    from seamark.access.remote import HttpCluster

    return run(work(HttpCluster(BlockingTransport(connection, agent=_AGENT), connection.server), connection))


def _in_event_loop(connection: Connection, work: Work) -> int:
    import asyncio
    import gc

    from seamark.access.remote import RemoteCluster
    from seamark.cli.light_imports import import_http_client

    async def connected() -> int:
        async with RemoteCluster(connection, agent=_AGENT) as cluster:
            return await work(cluster, connection)

    import_http_client()
    gc.enable()  # what watches lives long
    return asyncio.run(connected())


async def _look(options: argparse.Namespace, kind: str, name: str, cluster: Cluster, connection: Connection) -> int:
    from seamark.why.look import look_at_all, look_at_pod, look_at_service, look_at_way

    if options.serve:
        from seamark.cli.asking.exporter import serve

        return await serve(options, cluster, connection)
    namespace = options.namespace or connection.namespace
    if options.since is not None:
        return await _print_history(options, kind, name, cluster, namespace)
    if options.place is not None:

        async def once() -> tuple[str, int]:
            return told(await look_at_way(cluster, (namespace, name), options.place, options.port), options)
    elif name:
        look = look_at_pod if kind == "pod" else look_at_service

        async def once() -> tuple[str, int]:
            return told(await look(cluster, (namespace, name)), options)
    else:
        scope = "" if options.all_namespaces else namespace

        async def once() -> tuple[str, int]:
            return _many(await look_at_all(cluster, scope), scope, options)

    if options.watch:
        await _print_changes(cluster, "" if options.all_namespaces else namespace, once)
    text, code = await once()
    print(text)
    return code


async def _print_changes(cluster: Cluster, namespace: str, look: Callable[[], Awaitable[tuple[str, int]]]) -> NoReturn:
    """Look again whenever something changes, and print each new answer under the time of day; until interrupted."""
    import asyncio

    from seamark.why.telling.following import following

    before = ""
    async with following(cluster, namespace) as changed:
        while True:
            changed.clear()
            text, _ = await look()
            if text != before:
                print(f"{'' if not before else chr(10)}--- {time.strftime('%H:%M:%S')}\n{text}", flush=True)
                before = text
            try:
                await asyncio.wait_for(changed.wait(), _SAFETY_NET)
            except TimeoutError:
                continue
            await asyncio.sleep(_SETTLE)


async def _print_history(options: argparse.Namespace, kind: str, name: str, cluster: Cluster, namespace: str) -> int:
    """When each address of a Service came and went, and what caused it."""
    from seamark.why.history import chronicle, render
    from seamark.why.observe import observe_service
    from seamark.why.recall import recall
    from seamark.why.report import as_json

    if kind != "service" or not name or options.watch:
        raise Failure("--since is for the history of one Service: svc/NAME", 2)
    world = await observe_service(cluster, (namespace, name), clock=SYSTEM_CLOCK)
    memory = await recall(cluster, (namespace, name))
    history = chronicle(world, (namespace, name), memory, since=options.since)
    print(as_json(history) if options.output == "json" else render(history, style_of(options)))
    return 0 if history.found else 1


def _explain_files(options: argparse.Namespace, kind: str, name: str) -> int:
    """Report on the Services of manifests, or on one object of them."""
    from seamark.why import render
    from seamark.why.checks.refused import unsaid
    from seamark.why.explain import explain, missing
    from seamark.why.explain_pod import explain_pod
    from seamark.why.offline import ManifestError, documents, world_of
    from seamark.why.report import as_json, document

    if kind == "dns" or options.watch or options.since is not None or options.client is not None:
        raise Failure("manifests have no DNS, nodes and history: -f goes with svc/NAME, pod/NAME or nothing", 2)
    namespace = options.namespace or "default"
    try:
        world = world_of(documents(options.filename), namespace=namespace)
    except ManifestError as error:
        raise Failure(str(error), 2) from error
    if name:
        reports = [(explain_pod if kind == "pod" else explain)(world, (namespace, name))]
    else:
        chosen = [key for key in world.services if not options.namespace or key[0] == namespace]
        reports = [explain(world, key) for key in (*sorted(chosen), *missing(world))]
    if options.output == "json":
        print(as_json({"reports": [document(each) for each in reports]}))
    elif reports or world.seen.mistakes:
        style = style_of(options)
        wrong = [render.report(each, style) for each in render.worst_first(reports) if not each.healthy]
        fine = [render.report(each, style) for each in reports if each.healthy]
        notes = [f"note   {each}" for each in unsaid(world, reports)]
        print("\n\n".join([*wrong, *(["\n".join(lines)] if (lines := [*fine, *notes]) else [])]))
    else:
        print("no Services in these manifests")
    return 0 if all(each.healthy for each in reports) and not world.seen.mistakes else 1


# --- telling ---------------------------------------------------------------------------------------


def told(report: Report, options: argparse.Namespace) -> tuple[str, int]:
    """A report as asked for, and the exit code."""
    from seamark.why import render
    from seamark.why.report import as_json, document

    code = 0 if report.healthy else 1
    if options.output == "json":
        return as_json(document(report, kubectl_options(options))), code
    return render.report(report, style_of(options)), code


def _many(survey: Survey, scope: str, options: argparse.Namespace) -> tuple[str, int]:
    from seamark.why import render
    from seamark.why.report import as_json, document

    code = 2 if survey.nowhere else 1 if survey.reports else 0
    if options.output == "json":
        summary: dict[str, Any] = {
            "services": survey.total,
            "healthy": survey.total - len(survey.reports),
            "reports": [document(each, kubectl_options(options)) for each in survey.reports],
            "notes": list(survey.notes),
        }
        return as_json(summary), code
    if survey.nowhere and not survey.reports:
        return "\n".join(style_of(options).paint(note, "31") for note in survey.notes), code
    where = f"in namespace {scope}" if scope else "in all namespaces"
    text = render.summary(survey.reports, survey.total, style_of(options), where=where)
    if survey.reports:
        text += "\n\n" + f"{options_line(options)} svc/NAME -n NAMESPACE says what to do."
    else:
        text += "\nseamark doctor says whether controllers, DNS and proxies are well."
    return "\n".join([text, *(f"note   {note}" for note in survey.notes)]), code


def options_line(options: argparse.Namespace) -> str:
    return shlex.join(["seamark", "why", *kubectl_options(options)])


def kubectl_options(options: argparse.Namespace) -> list[str]:
    """The options that make kubectl talk to the same cluster as this command."""
    more = [f"--context={options.context}"] if options.context else []
    path = options.kubeconfig or default_kubeconfig(os.environ, Path.home())
    return [*more, f"--kubeconfig={path}"] if path else more


def style_of(options: argparse.Namespace) -> Style:
    """Colours on a terminal only, unless NO_COLOR is set; in a pipe, each row of a table is a line."""
    from seamark.why.render import COLUMNS, UNLIMITED, Style

    room = columns(sys.stdout)
    return Style(
        columns=room or COLUMNS,
        table_columns=room or UNLIMITED,
        colour=colourful(sys.stdout),
        kubectl=kubectl_options(options),
        planned=bool(options.filename),
    )
