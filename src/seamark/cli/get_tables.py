"""``seamark get`` as tables: the server's own columns, kind by kind."""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from seamark.cli.get import each_document, told
from seamark.cli.server import TABLE
from seamark.cli.table_text import Looks, Table, TableText, plain_table, table_of
from seamark.cli.terminal import colourful
from seamark.kinds.values import times

if TYPE_CHECKING:
    from seamark.cli.server import Server
    from seamark.cli.server_kinds import ServerKind
    from seamark.cli.targets import Target
    from seamark.errors import Object


def as_table(document: Object) -> Table:
    """What the server answered, as a table even if it made none."""
    if document.get("kind") == "Table":
        return table_of(document)
    objects = document.get("items", [document])
    return plain_table(objects, lambda stamp: times.age(time.time(), stamp))


def looks_of(kind: ServerKind, options: argparse.Namespace, *, with_kind: bool) -> Looks:
    keys = [key for given in options.label_columns for key in given.split(",")]
    return Looks(
        wide=options.output.format == "wide",
        namespace=options.all_namespaces and kind.resource.namespaced,
        kind=kind.label if with_kind or options.show_kind else "",
        labels=options.show_labels,
        label_columns=tuple(keys),
        headers=not options.no_headers,
    )


async def print_tables(server: Server, targets: Sequence[Target], options: argparse.Namespace) -> int:
    """Print a table for each run of objects of one kind."""
    found, failures = await each_document(server, targets, options, accept=TABLE)
    with_kind = len({target.kind for target, _ in found}) > 1
    printed = False
    for kind, table in _runs(found):
        if options.sort_by:
            from seamark.cli.sorting import in_order

            table = Table(table.columns, in_order(table.rows, options.sort_by, lambda row: row.object))
        looks = looks_of(kind, options, with_kind=with_kind)
        lines = TableText(looks, colour=colourful(sys.stdout)).lines(table)
        if lines:
            print("\n".join(["", *lines] if printed and not options.no_headers else lines))
            printed = True
    if not printed and not failures and not options.ignore_not_found:
        print(_nothing(server, targets, options), file=sys.stderr)
    return told(failures)


def _runs(found: Sequence[tuple[Target, Object]]) -> list[tuple[ServerKind, Table]]:
    """What belongs into one table: the pages of a list, objects that were named one after the other.

    All of it is known before the first line is printed, or columns would be as wide as each page needs them.
    """
    runs: list[tuple[ServerKind, Table]] = []
    for kind, documents in itertools.groupby(found, key=lambda pair: pair[0].kind):
        tables = [as_table(document) for _, document in documents]
        columns = next((table.columns for table in tables if table.columns), ())
        runs.append((kind, Table(columns, [row for table in tables for row in table.rows])))
    return runs


def _nothing(server: Server, targets: Sequence[Target], options: argparse.Namespace) -> str:
    if options.all_namespaces or not all(target.kind.resource.namespaced for target in targets):
        return "No resources found"
    return f"No resources found in {options.namespace or server.namespace} namespace."
