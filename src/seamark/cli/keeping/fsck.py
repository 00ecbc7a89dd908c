"""``seamark fsck``: check the store of a data directory."""

from __future__ import annotations

import argparse
from pathlib import Path

from seamark.cli.data_dir import add_data_dir_option, data_dir_of
from seamark.cli.failure import Failure
from seamark.cli.keeping.stores import add_store_option, store_file
from seamark.cli.parsing import add_switch, verb_parser
from seamark.cli.terminal import Progress
from seamark.store.protocol import StoreError

EXAMPLES = """\
seamark fsck
seamark fsck --data-dir ./data
seamark fsck --accept-loss                   # acknowledged writes are missing, and there is no backup
"""


def parser() -> argparse.ArgumentParser:
    made = verb_parser(
        "fsck",
        "Check the store, while Seamark runs or not, and change nothing: that no acknowledged write is missing, the\n"
        "file's pages and indexes, the history of every key, and that every object is whole and under its own name.",
        examples=EXAMPLES,
        codes={0: "the store is sound", 1: "something is wrong with it; each fault is one line"},
    )
    add_switch(
        made,
        "--accept-loss",
        help="go on without the acknowledged writes that are missing; versions of objects continue far above them",
    )
    add_data_dir_option(made)
    add_store_option(made)
    return made


def main(arguments: list[str]) -> int:
    from seamark.store.sqlite import upkeep

    options = parser().parse_args(arguments)
    file = store_file(data_dir_of(options.data_dir), options.store)
    found: list[str] = []
    try:
        if options.accept_loss:
            _accept(file)
        with Progress(f"checking {file} …"):
            found.extend(upkeep.faults(file))
    except StoreError as error:
        if not found:
            raise Failure(str(error)) from error
        found.append(str(error))  # after the faults that were found until then
    for fault in found:
        print(fault)
    if not found:
        print(f"{file}: sound")
    return 1 if found else 0


def _accept(file: Path) -> None:
    from seamark.store.sqlite import upkeep

    accepted = upkeep.accept_loss(file)
    if accepted is None:
        print(f"{file}: no acknowledged write is missing")
    else:
        print(f"{accepted}: accepted")
