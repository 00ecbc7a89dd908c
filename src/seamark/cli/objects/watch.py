"""``seamark get -w``: print the objects, then every change, until interrupted."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from seamark import errors
from seamark.cli.failure import Failure
from seamark.cli.objects.get import as_table, namespace_for, objects_in, selection, table_text
from seamark.cli.objects.server import OBJECTS, TABLE
from seamark.cli.objects.text import metadata_of, object_text

if TYPE_CHECKING:
    from seamark.cli.objects.kinds import ServerKind, Target
    from seamark.cli.objects.server import Server
    from seamark.errors import Object


async def watch(server: Server, targets: Sequence[Target], options: argparse.Namespace) -> int:
    """Print and follow one kind, or one object of it."""
    if len(targets) != 1:
        raise Failure("only one kind, or one object, can be watched at a time", 2)
    target = targets[0]
    resource, namespace = target.kind.resource, namespace_for(server, target, options)
    query = selection(options)
    if target.name:
        # A watch of an object that is not there would wait forever.
        await server.get(resource, target.name, namespace=namespace)
        query["fieldSelector"] = f"metadata.name={target.name}"
    accept = TABLE if as_table(options) else OBJECTS
    changes = _Changes(_writer(target.kind, options))
    while True:
        version = ""
        async for page in server.pages(resource, namespace=namespace, query=query, accept=accept):
            version = page["metadata"]["resourceVersion"]
            changes.page(page)
        try:
            while True:
                events = server.watch(resource, namespace=namespace, query=query, since=version, accept=accept)
                async for event in events:
                    version = _version(event["object"]) or version
                    if event["type"] != "BOOKMARK":
                        changes.event(event["object"])
        except (errors.Expired, errors.Gone):
            continue  # the server has forgotten that version: list again


class _Changes:
    """Writes what has not been written yet; after a second listing most objects have."""

    def __init__(self, write: Callable[[Object], None]) -> None:
        self._write = write
        self._written: dict[str, str] = {}  # uid → version

    def page(self, page: Object) -> None:
        part = "rows" if page.get("kind") == "Table" else "items"
        self._write({**page, part: [entry for entry in page.get(part) or () if self._is_new(entry)]})

    def event(self, document: Object) -> None:
        for entry in document.get("rows") or (document,):
            self._is_new(entry)
        self._write(document)

    def _is_new(self, entry: Mapping[str, Any]) -> bool:
        metadata = _metadata(entry)
        uid, version = str(metadata.get("uid", "")), str(metadata.get("resourceVersion", ""))
        new = self._written.get(uid) != version
        self._written[uid] = version
        return new


def _metadata(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """The metadata of an object, or of the object that a row is about."""
    return metadata_of(entry.get("object") or {} if "cells" in entry else entry)


def _version(document: Mapping[str, Any]) -> str:
    """The version that an event brings us to; a table has it in its row."""
    rows = document.get("rows")
    return str(_metadata(rows[0] if rows else document).get("resourceVersion") or "")


def _writer(kind: ServerKind, options: argparse.Namespace) -> Callable[[Object], None]:
    """Prints a table or objects as they come."""
    if as_table(options):
        text = table_text(kind, options)

        def write_rows(document: Object) -> None:
            for line in text.lines(document):
                print(line, flush=True)

        return write_rows

    def write_objects(document: Object) -> None:
        for value in objects_in(document, kind):
            if options.output == "name":
                print(f"{kind.label}/{value['metadata']['name']}", flush=True)
            else:
                separator = "---\n" if options.output == "yaml" else ""
                print(separator + object_text(value, options.output), flush=True)

    return write_objects
