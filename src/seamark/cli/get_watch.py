"""``seamark get -w``: what there is, then every change, for as long as somebody looks."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from seamark import errors
from seamark.cli.failure import Failure
from seamark.cli.get import as_table, looks_of, namespace_for, object_printer, objects_in, selection
from seamark.cli.server import TABLE
from seamark.cli.table_text import Table, TableText
from seamark.cli.terminal import colourful

if TYPE_CHECKING:
    from seamark.cli.server import Server
    from seamark.cli.server_kinds import ServerKind
    from seamark.cli.targets import Target
    from seamark.errors import Object

Show = Callable[["Object"], None]


async def watch(server: Server, targets: Sequence[Target], options: argparse.Namespace) -> int:
    """Print and follow one kind, or one object of it; ends when the reader does."""
    if len(targets) != 1:
        raise Failure("you may only specify a single resource type, or a single object, with --watch", 2)
    target = targets[0]
    whole = options.output in ("json", "yaml", "name")
    following = _Following(
        target, _objects_shown(target.kind, options) if whole else _table_shown(target.kind, options)
    )
    if target.name:
        # A watch of what is not there would wait in silence.
        await server.get(target.kind.resource, target.name, namespace=namespace_for(server, target.kind, options))
    query = {**selection(options), **({"fieldSelector": f"metadata.name={target.name}"} if target.name else {})}
    resource, namespace = target.kind.resource, namespace_for(server, target.kind, options)
    accept = "application/json" if whole else TABLE
    while True:
        version = ""
        async for page in server.pages(resource, namespace=namespace, query=query, accept=accept):
            version = page["metadata"]["resourceVersion"]
            following.page(page)
        try:
            while True:
                events = server.watch(resource, namespace=namespace, query=query, since=version, accept=accept)
                async for event in events:
                    version = _version(event["object"]) or version
                    if event["type"] != "BOOKMARK":
                        following.event(event["object"])
        except (errors.Expired, errors.Gone):
            continue  # too much has happened meanwhile: look at all of it again


class _Following:
    """Shows what has not been shown yet: a list that is read again is full of what everybody has seen."""

    def __init__(self, target: Target, show: Show) -> None:
        self._kind = target.kind
        self._show = show
        self._shown: dict[str, str] = {}

    def page(self, page: Object) -> None:
        part = "rows" if page.get("kind") == "Table" else "items"
        entries = [entry for entry in page.get(part) or () if self._is_new(_metadata(entry))]
        self._show({**page, part: entries})

    def event(self, document: Object) -> None:
        for entry in document.get("rows") or (document,):
            self._is_new(_metadata(entry))
        self._show(document)

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


def _table_shown(kind: ServerKind, options: argparse.Namespace) -> Show:
    text = TableText(looks_of(kind, options, with_kind=False), colour=colourful(sys.stdout))

    def show(document: Object) -> None:
        table: Table = as_table(document)
        for line in text.lines(table):
            print(line, flush=True)

    return show


def _objects_shown(kind: ServerKind, options: argparse.Namespace) -> Show:
    text = object_printer(options)
    shown = 0

    def show(document: Object) -> None:
        nonlocal shown
        for value in objects_in(document, kind):
            if options.output == "yaml" and shown:
                print("---")
            print(text(kind, value), flush=True)
            shown += 1

    return show
