"""``seamark backup``: write everything needed to continue a cluster elsewhere to one file."""

from __future__ import annotations

import argparse
import os
import shutil
from pathlib import Path

from seamark.cli.data_dir import add_data_dir_option, data_dir_of
from seamark.cli.failure import Failure
from seamark.cli.keeping import archive
from seamark.cli.keeping.stores import add_store_option, store_file
from seamark.cli.parsing import verb_parser
from seamark.cli.terminal import Progress
from seamark.store.protocol import StoreError
from seamark.temporary import TemporaryFolder

EXAMPLES = """\
seamark backup monday.tar
seamark backup --data-dir ./data "backup-$(date +%F).tar"
"""


def parser() -> argparse.ArgumentParser:
    made = verb_parser(
        "backup",
        "Write the state of one moment, the certificates and the admin's token to a new file, while Seamark runs\n"
        "or not.  The copy is checked before the file appears.  Keep it as secret as a kubeconfig.",
        examples=EXAMPLES,
    )
    made.add_argument("file", metavar="FILE", help="the file to write; it must not exist")
    add_data_dir_option(made)
    add_store_option(made)
    return made


def main(arguments: list[str]) -> int:
    options = parser().parse_args(arguments)
    directory, file = data_dir_of(options.data_dir), Path(options.file)
    if file.exists():
        raise Failure(f"{file} exists already; a backup is never written over another file")
    store = store_file(directory, options.store)
    try:
        # Beside the target, so that moving it into place is one step.
        with TemporaryFolder(".seamark-backup-", within=file.absolute().parent) as folder:
            with Progress("copying the store …"):
                contents = _write(store, directory, folder.path)
            os.link(folder.path / "backup", file)  # fails if another process has made that file meanwhile
    except StoreError as error:
        raise Failure(str(error)) from error
    except OSError as error:
        raise Failure(f"cannot write {file}: {error.strerror}") from error
    print(f"{file}: {len(contents.sha256)} files, revision {contents.revision}, checked")
    return 0


def _write(store: Path, directory: Path, folder: Path) -> archive.Contents:
    from seamark.store.sqlite import upkeep
    from seamark.store.sqlite.acknowledged import lost

    if (loss := lost(store)) is not None:
        raise Failure(f"no backup was written: {loss}; see `seamark fsck`")
    members = folder / "members"
    members.mkdir(mode=0o700)
    revision = upkeep.copy(store, members / archive.STORE)
    if wrong := next(upkeep.faults(members / archive.STORE), ""):
        raise Failure(f"the store is damaged, so no backup was written: {wrong}; see `seamark fsck`")
    if (directory / archive.PKI).is_dir():
        (members / archive.PKI).mkdir(mode=0o700)
        for path in (directory / archive.PKI).iterdir():
            if path.is_file():
                shutil.copyfile(path, members / archive.PKI / path.name)
    archive.pack(members, folder / "backup", revision=revision)
    (folder / "again").mkdir(mode=0o700)
    return archive.unpack(folder / "backup", folder / "again")
