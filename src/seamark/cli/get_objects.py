"""``seamark get`` as objects, or as what a template makes of them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from seamark.cli.failure import Refusal
from seamark.cli.get import each_document, told
from seamark.cli.go_text import json_text, printed
from seamark.cli.jsonpath import JsonPathError, evaluate, parse
from seamark.cli.object_text import json_document, listed, without_managed_fields, yaml_text

if TYPE_CHECKING:
    from seamark.cli.output_formats import Output
    from seamark.cli.server import Server
    from seamark.cli.server_kinds import ServerKind
    from seamark.cli.targets import Target
    from seamark.errors import Object


def objects_in(document: Object, kind: ServerKind) -> list[Object]:
    """The objects of an answer; those of a list are told what they are, which the list only says once."""
    if "items" not in document:
        return [document]
    resource = kind.resource
    return [{"kind": resource.kind, "apiVersion": resource.api_version, **item} for item in document["items"] or ()]


async def print_objects(server: Server, targets: Sequence[Target], options: argparse.Namespace) -> int:
    write = document_writer(options.output)  # what is wrong with a template is told before anything is asked
    found, failures = await each_document(server, targets, options, accept="application/json")
    objects = [(target.kind, each) for target, document in found for each in objects_in(document, target.kind)]
    if options.sort_by:
        from seamark.cli.sorting import in_order

        objects = in_order(objects, options.sort_by, lambda pair: pair[1])
    if not objects and (failures or any(target.name for target in targets)):
        return told(failures)
    if options.output.format == "name":
        for kind, value in objects:
            print(f"{kind.label}/{value['metadata']['name']}")
        return told(failures)
    items = [shown(value, options) for _, value in objects]
    if options.output.format == "custom-columns":
        from seamark.cli.custom_columns import CustomColumns
        from seamark.cli.table_text import Looks, TableText

        looks = Looks(headers=not options.no_headers, empty=True)
        for line in TableText(looks).lines(CustomColumns(options.output.argument).table(items)):
            print(line)
        return told(failures)
    write(items[0] if len(targets) == 1 and targets[0].name else listed(items))
    return told(failures)


def shown(value: Object, options: argparse.Namespace) -> Object:
    return value if options.show_managed_fields else without_managed_fields(value)


def document_writer(output: Output) -> Callable[[Object], None]:
    """Prints an object, or a list as one."""
    if output.format in ("jsonpath", "jsonpath-as-json"):
        return _template_writer(output)
    text = json_document if output.format == "json" else yaml_text

    def write(value: Object) -> None:
        print(text(value), flush=True)

    return write


def _template_writer(output: Output) -> Callable[[Object], None]:
    try:
        template = parse(output.argument)
    except JsonPathError as error:
        raise Refusal(f"error parsing jsonpath {output.argument}, {error}", 2) from error

    def text(found: list[Any]) -> str:
        if output.format == "jsonpath-as-json":
            return json_text(found, indent=4) + "\n"
        return " ".join(json_text(each) if isinstance(each, dict | list | None) else printed(each) for each in found)

    def write(value: Object) -> None:
        try:
            sys.stdout.write("".join(map(text, evaluate(template, value))))
        except JsonPathError as error:
            reason = f"Error executing template: {error}"
            raise Refusal(f"error executing jsonpath {json_text(output.argument)}: {reason}") from error
        sys.stdout.flush()

    return write
