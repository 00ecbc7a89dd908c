"""Backups from elsewhere: what is no backup is refused in one line, and nothing is written beside the folder."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path

import pytest

from seamark.cli.failure import Failure
from seamark.cli.keeping.archive import unpack

SPARSE = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "store.db"}


def made(file: Path, name: str, data: bytes, headers: dict[str, str]) -> None:
    """An archive whose only member, but for the contents, is this one."""
    sums = {name: hashlib.sha256(data).hexdigest()}
    contents = json.dumps({"made": "x", "version": "1", "revision": 1, "sha256": sums}).encode()
    with tarfile.open(file, "w", format=tarfile.PAX_FORMAT) as tar:
        for member, text, more in (("backup.json", contents, {}), ("member", data, {"path": name, **headers})):
            info = tarfile.TarInfo(member)
            info.size, info.pax_headers = len(text), more
            tar.addfile(info, io.BytesIO(text))


@pytest.mark.parametrize(
    ("name", "data", "headers"),
    [
        ("pki/..", b"a", {}),
        ("../store.db", b"a", {}),
        ("/store.db", b"a", {}),
        ("pki/a\0b", b"a", {}),
        ("store.db", b"1\n0\n1\n".ljust(512, b"\0"), {**SPARSE, "GNU.sparse.realsize": str(10**15)}),
    ],
    ids=["parent", "outside", "absolute", "nul", "sparse"],
)
def test_hostile_members_are_refused(tmp_path: Path, name: str, data: bytes, headers: dict[str, str]) -> None:
    made(tmp_path / "backup.tar", name, data, headers)
    folder = tmp_path / "data"
    folder.mkdir()
    with pytest.raises(Failure):
        unpack(tmp_path / "backup.tar", folder)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["backup.tar", "data"]
