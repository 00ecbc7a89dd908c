"""``seamark fsck``: check the store of a data directory."""

from __future__ import annotations

import argparse

from seamark.cli.data_dir import add_data_dir_option, data_dir_of
from seamark.cli.failure import Failure
from seamark.cli.keeping.stores import add_store_option, store_file
from seamark.cli.parsing import verb_parser
from seamark.cli.terminal import Progress
from seamark.store.protocol import StoreError

EXAMPLES = """\
seamark fsck
seamark fsck --data-dir ./data
"""


def parser() -> argparse.ArgumentParser:
    made = verb_parser(
        "fsck",
        "Check the store, while Seamark runs or not, and change nothing: the file's pages and indexes, the history of\n"
        "every key, and that every object is whole and under its own name.",
        examples=EXAMPLES,
        codes={0: "the store is sound", 1: "something is wrong with it; each fault is one line"},
    )
    add_data_dir_option(made)
    add_store_option(made)
    return made


def main(arguments: list[str]) -> int:
    from seamark.store.sqlite import upkeep

    options = parser().parse_args(arguments)
    file = store_file(data_dir_of(options.data_dir), options.store)
    try:
        with Progress(f"checking {file} …"):
            found = list(upkeep.faults(file))
    except StoreError as error:
        raise Failure(str(error)) from error
    for fault in found:
        print(fault)
    if not found:
        print(f"{file}: sound")
    return 1 if found else 0
