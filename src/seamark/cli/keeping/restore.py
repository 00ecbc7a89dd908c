"""``seamark restore``: make a data directory from a backup."""

from __future__ import annotations

import argparse
from pathlib import Path

from seamark.cli.data_dir import add_data_dir_option, data_dir_of, running_in
from seamark.cli.failure import Failure
from seamark.cli.keeping import archive
from seamark.cli.parsing import verb_parser
from seamark.cli.terminal import Progress
from seamark.store.protocol import StoreError
from seamark.temporary import TemporaryFolder

EXAMPLES = """\
seamark restore monday.tar --data-dir ./data && seamark up --data-dir ./data
"""


def parser() -> argparse.ArgumentParser:
    made = verb_parser(
        "restore",
        "Make a new data directory from a backup.  The backup is checked first; the directory appears whole or not\n"
        "at all.  Versions of objects continue far above all earlier ones, so that clients list everything again.",
        examples=EXAMPLES,
    )
    made.add_argument("file", metavar="FILE", help="a file that `seamark backup` wrote")
    add_data_dir_option(made)
    return made


def main(arguments: list[str]) -> int:
    options = parser().parse_args(arguments)
    directory, file = data_dir_of(options.data_dir), Path(options.file)
    if running_in(directory) is not None:
        raise Failure(
            f"Seamark is running in {directory}; restore into another --data-dir, or stop it and move it away"
        )
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise Failure(f"{directory} is not empty; restore into another --data-dir, or move it away")
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryFolder(".seamark-restore-", within=directory.parent) as folder:
            made = folder.path / "data"
            made.mkdir(mode=0o700)
            with Progress("checking the backup …"):
                contents = archive.unpack(file, made)
                _renew(made / archive.STORE)
            made.rename(directory)  # replaces an empty directory
    except StoreError as error:
        raise Failure(str(error)) from error
    except OSError as error:
        raise Failure(f"cannot make {directory}: {error.strerror}") from error
    print(f"{directory}: the state of {contents.made}, revision {contents.revision}")
    return 0


def _renew(store: Path) -> None:
    from seamark.store.sqlite import upkeep

    if wrong := next(upkeep.faults(store), ""):
        raise Failure(f"the store in the backup is damaged: {wrong}")
    upkeep.renew(store)
