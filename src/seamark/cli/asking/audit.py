"""``seamark audit``: Endpoints and EndpointSlices that should not be there, across a cluster."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from seamark.cli.asking.why import add_scope_options, asked, style_of
from seamark.cli.clusters import ENVIRONMENT, WHICH_CLUSTER, tell_writes
from seamark.cli.failure import Failure
from seamark.cli.parsing import add_switch, verb_parser
from seamark.clock import SYSTEM_CLOCK

if TYPE_CHECKING:
    from seamark.access.cluster import Cluster
    from seamark.access.kubeconfig import Connection
    from seamark.why.audit import Problem

EXAMPLES = """\
seamark audit                 # this namespace: what is wrong, and what --fix would do
seamark audit -A --fix        # every namespace; asks before it deletes
seamark audit -A --fix --yes  # in a script, which cannot answer
seamark audit -A -o json
"""


def parser() -> argparse.ArgumentParser:
    made = verb_parser(
        "audit",
        f"Find orphaned, duplicated, stale and foreign Endpoints and EndpointSlices.\n\n{WHICH_CLUSTER}",
        examples=EXAMPLES,
        environment=ENVIRONMENT,
        codes={
            0: "nothing is wrong, or all of it was put right",
            1: "something is wrong, or was left as it is",
            2: "could not look, or the command line is wrong",
        },
    )
    add_scope_options(made)
    add_switch(made, "--fix", help="delete what can safely be deleted, after asking")
    add_switch(made, "-y", "--yes", help="with --fix: do not ask; needed where there is no terminal")
    made.add_argument("-o", "--output", choices=("text", "json"), default="text", help="how to print it")
    made.set_defaults(filename=None)
    return made


def main(arguments: list[str]) -> int:
    options = parser().parse_args(arguments)
    if options.fix and not options.yes and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Failure("--fix deletes, and there is no terminal to ask on: add --yes, or leave --fix out to look", 2)
    return asked(options, lambda *where: _audit(options, *where))


async def _audit(options: argparse.Namespace, cluster: Cluster, connection: Connection) -> int:
    from seamark.why.look import look_through, missing_namespace
    from seamark.why.observe import CannotLook

    namespace = "" if options.all_namespaces else options.namespace or connection.namespace
    problems, notes = await look_through(cluster, namespace, clock=SYSTEM_CLOCK)
    if not problems and (nowhere := await missing_namespace(cluster, namespace)):
        raise CannotLook(nowhere)
    removable = [each for each in problems if each.removable]
    chosen = bool(options.fix and removable) and _confirmed(options, removable, problems)
    done: dict[tuple[str, str, str], str] = {}
    if chosen:
        tell_writes(connection, options)
        for each in removable:
            done[each.resource.kind, *each.key] = await _delete(cluster, each)
    print(_text(options, problems, done, notes))
    return 0 if all(done.get((each.resource.kind, *each.key)) == "deleted" for each in problems) else 1


def _confirmed(options: argparse.Namespace, removable: Sequence[Problem], problems: Sequence[Problem]) -> bool:
    if options.yes:
        return True
    if options.output == "text":
        print(_text(options, problems, {}, ()), end="\n\n", flush=True)
    print(f"Delete {len(removable)} of these {len(problems)}? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


async def _delete(cluster: Cluster, problem: Problem) -> str:
    """Delete the object unless it has changed since it was looked at; what became of it."""
    from seamark import errors

    meta = problem.metadata
    try:
        await cluster.delete(
            problem.resource, meta.name, namespace=meta.namespace, uid=meta.uid, version=meta.resource_version
        )
    except errors.NotFound:
        return "deleted"
    except errors.Conflict:
        return "left alone: it has changed meanwhile"
    except errors.ApiError as error:
        return f"not deleted: {error.message}"
    return "deleted"


def _text(
    options: argparse.Namespace,
    problems: Sequence[Problem],
    done: dict[tuple[str, str, str], str],
    notes: Sequence[str],
) -> str:
    from seamark.why.render import table
    from seamark.why.report import as_json

    def remedy(each: Problem) -> str:
        would = "would delete it (--fix)" if each.removable else each.remedy
        return done.get((each.resource.kind, *each.key), would)

    if options.output == "json":
        rows = [
            {
                "defect": each.defect.value,
                "kind": each.resource.kind,
                "namespace": each.metadata.namespace,
                "name": each.metadata.name,
                "why": each.why,
                "removable": each.removable,
                "remedy": remedy(each),
            }
            for each in problems
        ]
        return as_json({"problems": rows, "notes": list(notes)})
    if not problems:
        return "\n".join(["every Endpoints and EndpointSlice is as it should be", *notes])
    style = style_of(options)
    cells = [
        (each.defect.value, each.resource.kind, "/".join(each.key), f"{each.why}; {remedy(each)}") for each in problems
    ]
    return "\n".join([*table(("DEFECT", "KIND", "OBJECT", "WHY AND WHAT TO DO"), cells, style.table_columns), *notes])
