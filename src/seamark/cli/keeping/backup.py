"""``seamark backup``: write everything needed to continue a cluster elsewhere to one file."""

from __future__ import annotations

import argparse
import errno
import os
import shutil
from pathlib import Path

from seamark.cli.data_dir import add_data_dir_option, data_dir_of
from seamark.cli.failure import Failure
from seamark.cli.keeping import archive
from seamark.cli.keeping.stores import add_store_option, store_file
from seamark.cli.parsing import verb_parser
from seamark.cli.terminal import Progress
from seamark.private_files import is_unfinished, sync_directory
from seamark.store.protocol import StoreError
from seamark.temporary import TemporaryFolder

WITHOUT_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)  # file systems that know no hard links

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
            _give_name(folder.path / "backup", file)
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
            if path.is_file() and not is_unfinished(path.name):
                _copy(path, members / archive.PKI / path.name)
    archive.pack(members, folder / "backup", revision=revision)
    return archive.unpack(folder / "backup", None)


def _copy(path: Path, target: Path) -> None:
    if not path.name.isprintable():  # what is not UTF-8, say, which the list of contents cannot hold
        raise Failure(f"no backup was written: {path.parent} holds {path.name!r}, which is no name for a certificate")
    try:
        source = path.open("rb")
    except OSError as error:
        raise Failure(f"no backup was written: cannot read {path}: {error.strerror}") from error
    with source, target.open("wb") as copy:
        shutil.copyfileobj(source, copy)


def _give_name(made: Path, file: Path) -> None:
    """Give the finished file its name, unless another process has made a file of that name meanwhile."""
    try:
        os.link(made, file)
    except OSError as error:
        if error.errno not in WITHOUT_LINKS:
            raise
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        os.replace(made, file)
    sync_directory(file.absolute().parent)
