"""``seamark get -w``: what there is, then every change, for as long as somebody looks."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from seamark import errors
from seamark.cli.failure import Refusal
from seamark.cli.get import namespace_for
from seamark.cli.get_objects import document_writer, objects_in, shown
from seamark.cli.get_tables import as_table, looks_of
from seamark.cli.server import TABLE
from seamark.cli.table_text import APART, Looks, Table, TableText
from seamark.cli.targets import selection
from seamark.cli.terminal import colourful

if TYPE_CHECKING:
    from seamark.cli.server import Server
    from seamark.cli.server_kinds import ServerKind
    from seamark.cli.targets import Target
    from seamark.errors import Object

EVENT_WIDTH = len("MODIFIED") + APART

# Shows a page or the object of an event; what happened is the event's type, ADDED for what was there before.
Show = Callable[["Object", str], None]


async def watch(server: Server, targets: Sequence[Target], options: argparse.Namespace) -> int:
    """Print and follow one kind, or one object of it; ends when the reader does."""
    if len(targets) != 1:
        raise Refusal("you may only specify a single resource type", 2)
    target = targets[0]
    following = _Following(_shown_as(target.kind, options))
    namespace = namespace_for(server, target, options)
    if target.name:
        # A watch of what is not there would wait in silence.
        await server.get(target.kind.resource, target.name, namespace=namespace)
    query = {**selection(options), **({"fieldSelector": f"metadata.name={target.name}"} if target.name else {})}
    resource = target.kind.resource
    accept = TABLE if options.output.as_table else "application/json"
    silent = options.watch_only
    while True:
        version = ""
        pages = server.pages(resource, namespace=namespace, query=query, accept=accept, size=options.chunk_size)
        async for page in pages:
            version = page["metadata"]["resourceVersion"]
            following.page(page, silent=silent)
        silent = False
        try:
            while True:
                events = server.watch(resource, namespace=namespace, query=query, since=version, accept=accept)
                async for event in events:
                    version = _version(event["object"]) or version
                    if event["type"] != "BOOKMARK":
                        following.event(event["object"], event["type"])
        except (errors.Expired, errors.Gone):
            continue  # too much has happened meanwhile: look at all of it again


class _Following:
    """Shows what has not been shown yet: a list that is read again is full of what everybody has seen."""

    def __init__(self, show: Show) -> None:
        self._show = show
        self._shown: dict[str, str] = {}

    def page(self, page: Object, *, silent: bool) -> None:
        """What there is; ``silent`` if only what comes after it is to be seen."""
        part = "rows" if page.get("kind") == "Table" else "items"
        entries = [entry for entry in page.get(part) or () if self._is_new(_metadata(entry))]
        self._show({**page, part: [] if silent else entries}, "ADDED")

    def event(self, document: Object, happened: str) -> None:
        for entry in document.get("rows") or (document,):
            self._is_new(_metadata(entry))
        self._show(document, happened)

    def _is_new(self, metadata: Mapping[str, Any]) -> bool:
        uid, version = str(metadata.get("uid", "")), str(metadata.get("resourceVersion", ""))
        new = self._shown.get(uid) != version
        self._shown[uid] = version
        return new


def _metadata(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """Of a row or of an object."""
    owner = entry.get("object") or {} if "cells" in entry else entry
    metadata: Mapping[str, Any] = owner.get("metadata") or {}
    return metadata


def _version(document: Mapping[str, Any]) -> str:
    """The version an event brings us to; a table has it in its row."""
    rows = document.get("rows")
    metadata = _metadata(rows[0]) if rows else document.get("metadata") or {}
    return str(metadata.get("resourceVersion") or "")


def _shown_as(kind: ServerKind, options: argparse.Namespace) -> Show:
    if options.output.as_table:
        text = TableText(looks_of(kind, options, with_kind=False), colour=colourful(sys.stdout))
        return _rows_shown(text, as_table, options)
    if options.output.format == "custom-columns":
        from seamark.cli.custom_columns import CustomColumns

        columns = CustomColumns(options.output.argument)
        text = TableText(Looks(headers=not options.no_headers))
        return _rows_shown(text, lambda document: columns.table(objects_in(document, kind)), options)
    return _objects_shown(kind, options)


def _rows_shown(text: TableText, table_of: Callable[[Object], Table], options: argparse.Namespace) -> Show:
    def show(document: Object, happened: str) -> None:
        table = table_of(document)
        lines = text.lines(table)
        if options.output_watch_events:
            heading = ["EVENT"] * (len(lines) - len(table.rows))
            events = [*heading, *([happened] * len(table.rows))]
            lines = [f"{event:<{EVENT_WIDTH}}{line}" for event, line in zip(events, lines, strict=True)]
        for line in lines:
            print(line, flush=True)

    return show


def _objects_shown(kind: ServerKind, options: argparse.Namespace) -> Show:
    write = document_writer(options.output)
    count = 0

    def show(document: Object, happened: str) -> None:
        nonlocal count
        for value in objects_in(document, kind):
            if options.output.format == "name":
                print(f"{kind.label}/{value['metadata']['name']}", flush=True)
                continue
            if options.output.format == "yaml" and count:
                print("---")
            value = shown(value, options)
            write({"type": happened, "object": value} if options.output_watch_events else value)
            count += 1

    return show
