"""``seamark restore``: make a data directory from a backup."""

from __future__ import annotations

import argparse
from pathlib import Path

from seamark.cli.data_dir import add_data_dir_option, data_dir_of, running_in
from seamark.cli.failure import Failure
from seamark.cli.keeping import archive
from seamark.cli.parsing import verb_parser
from seamark.cli.terminal import Progress
from seamark.presence import LOCK, RUNNING, DirectoryError, hold
from seamark.private_files import sync_directory
from seamark.store.protocol import StoreError
from seamark.temporary import TemporaryFolder, remove_leftovers

PREFIX = ".seamark-restore-"
NOTHING = (LOCK, RUNNING, "lost+found")  # a directory that holds only these holds no state

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
    add_data_dir_option(made, "the directory to make")
    return made


def main(arguments: list[str]) -> int:
    options = parser().parse_args(arguments)
    directory, file = data_dir_of(options.data_dir), Path(options.file)
    if running_in(directory) is not None:
        raise Failure(
            f"Seamark is running in {directory}; restore into another --data-dir, or stop it and move it away"
        )
    try:
        contents = _restore(file, directory)
    except (StoreError, DirectoryError) as error:
        raise Failure(str(error)) from error
    except OSError as error:
        raise Failure(f"cannot make {directory}: {error.strerror}") from error
    print(f"{directory}: the state of {contents.made}, revision {contents.revision}")
    return 0


def _restore(file: Path, directory: Path) -> archive.Contents:
    from seamark.store.sqlite.acknowledged import record_of

    if not directory.exists():
        directory.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryFolder(PREFIX, within=directory.parent) as folder:
            contents, made = _unpack(file, folder.path)
            made.rename(directory)
            sync_directory(directory.parent)
        return contents
    # It cannot be replaced if it is where a file system is mounted, or a link.
    _require_empty(directory)
    with hold(directory):
        _require_empty(directory)
        with TemporaryFolder(PREFIX, within=directory) as folder:
            contents, made = _unpack(file, folder.path)
            # The store last, its record first: a start in between does not take the missing store for a new one.
            for path in (record_of(made / archive.STORE), made / archive.PKI, made / archive.STORE):
                if path.exists():
                    path.rename(directory / path.name)
        sync_directory(directory)
    return contents


def _require_empty(directory: Path) -> None:
    if directory.is_dir():
        remove_leftovers(directory, PREFIX)
    if not directory.is_dir() or any(path.name not in NOTHING for path in directory.iterdir()):
        raise Failure(f"{directory} is not empty; restore into another --data-dir, or move it away")


def _unpack(file: Path, folder: Path) -> tuple[archive.Contents, Path]:
    """What a data directory begins with, made from a backup."""
    from seamark.store.sqlite import upkeep

    made = folder / "data"
    made.mkdir(mode=0o700)
    with Progress("checking the backup …"):
        contents = archive.unpack(file, made)
        if wrong := next(upkeep.faults(made / archive.STORE), ""):
            raise Failure(f"the store in the backup is damaged: {wrong}")
        upkeep.renew(made / archive.STORE)
        for each in (made, *(path for path in made.iterdir() if path.is_dir())):
            sync_directory(each)
    return contents, made
