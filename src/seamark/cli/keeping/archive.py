"""The file of a backup: a tar archive with the store, the certificates and tokens, and a checksum of each member.

backup.json    when and by which version it was made, the store's revision, SHA-256 by member
store.db       the store at one moment
pki/…          the authority, the server's certificate, the admin's token
"""

from __future__ import annotations

import errno
import hashlib
import io
import os
import tarfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import msgspec

from seamark import __version__
from seamark.cli.failure import Failure
from seamark.private_files import open_private

CONTENTS = "backup.json"
STORE = "store.db"
PKI = "pki"

MOST_CONTENTS = 1 << 20  # bytes of backup.json
PIECE = 1 << 20


class Contents(msgspec.Struct, frozen=True):
    """What an archive holds."""

    made: str
    version: str
    revision: int
    sha256: dict[str, str]


def pack(folder: Path, file: Path, *, revision: int) -> Contents:
    """Write the members in ``folder`` to a new private file, durable when this returns."""
    members = sorted(path for path in folder.rglob("*") if path.is_file())
    sums = {str(path.relative_to(folder)): _sum(path) for path in members}
    contents = Contents(time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), __version__, revision, sums)
    text = msgspec.json.format(msgspec.json.encode(contents)) + b"\n"
    with _new_file(file) as out, tarfile.open(fileobj=out, mode="w") as tar:
        info = tarfile.TarInfo(CONTENTS)
        info.size, info.mode, info.mtime = len(text), 0o600, int(time.time())
        tar.addfile(info, io.BytesIO(text))
        for path in members:
            tar.add(path, str(path.relative_to(folder)), filter=_private)
    return contents


def unpack(file: Path, folder: Path | None) -> Contents:
    """Write the members of a backup to ``folder``, or only read them; ``Failure`` unless it is whole and unchanged."""
    try:
        if file.exists() and not file.is_file():  # opening a pipe would wait for a writer
            raise Failure(f"cannot read {file}: it is not a file")
        with tarfile.open(file, mode="r:") as tar:
            # A sparse member can claim any size; `pack` writes none.
            members = {member.name: member for member in tar.getmembers() if member.isfile() and not member.issparse()}
            contents = _contents(tar, members[CONTENTS])
            for name, expected in contents.sha256.items():
                member = _member(tar, members[name])
                if (_copy(member, None) if folder is None else _place(folder, name, member)) != expected:
                    raise Failure(f"{file} is damaged: {name} is not what was written")
            if STORE not in contents.sha256:
                raise Failure(f"{file} is not a whole Seamark backup: it has no {STORE}")
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise  # that is about the folder
        raise Failure(f"cannot read {file}: {error.strerror or error}") from error
    except (tarfile.TarError, KeyError, ValueError) as error:  # of a name with a NUL, too
        raise Failure(f"{file} is not a whole Seamark backup: {error}") from error
    return contents


def _place(folder: Path, name: str, source: IO[bytes]) -> str:
    """Write a member to its place; returns its checksum."""
    parts = Path(name).parts
    # Only the names that `pack` writes: an archive from elsewhere must not reach other places.
    if name != STORE and not (len(parts) == 2 and parts[0] == PKI and parts[1] not in (".", "..")):
        raise Failure(f"the backup has a member that no backup has: {name}")
    path = folder / name
    path.parent.mkdir(mode=0o700, exist_ok=True)
    with _new_file(path) as out:
        return _copy(source, out)


@contextmanager
def _new_file(path: Path) -> Iterator[io.BufferedWriter]:
    """A new file that only its owner may read; durable after the block."""
    with os.fdopen(open_private(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as out:
        yield out
        out.flush()
        os.fsync(out.fileno())


def _contents(tar: tarfile.TarFile, member: tarfile.TarInfo) -> Contents:
    text = _member(tar, member).read(MOST_CONTENTS)
    return msgspec.json.decode(text, type=Contents)


def _member(tar: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    opened = tar.extractfile(member)
    assert opened is not None, "only files are asked for"
    return opened


def _private(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    info.mode = 0o600
    return info


def _sum(path: Path) -> str:
    with path.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _copy(source: IO[bytes], target: IO[bytes] | None) -> str:
    """Copy piece by piece, as a store can be larger than the memory; returns the checksum of it all."""
    digest = hashlib.sha256()
    while piece := source.read(PIECE):
        digest.update(piece)
        if target is not None:
            target.write(piece)
    return digest.hexdigest()
