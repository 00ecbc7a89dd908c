"""Unpacks images that are on disk as an OCI layout or an archive, once, into a directory.

::

    oci-layout directory        index.json ─▶ manifest ─▶ config and layers, by digest below blobs/
    oci-archive (tar)           the same in a tar file
    docker save (tar)           manifest.json ─▶ config and layers, by path

Nothing in a layer may leave the directory: names that climb out of it, and names below a symbolic link, are refused or
put in the link's place.  Devices are left out, and so are owners unless every user exists on this machine.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import shutil
import stat
import tarfile
from collections.abc import Container, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import IO, Any, Protocol, cast
from uuid import uuid4

import msgspec

from seamark.nodes.running.preparing.images import ImageConfig, NoImage

LARGEST = 16 << 30  # bytes of all files of an image
_WHITEOUT, _OPAQUE = ".wh.", ".wh..wh..opq"
_CHUNK = 1 << 20
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


class Unpacked(msgspec.Struct, frozen=True):
    """An image as a directory."""

    root: str
    config: ImageConfig
    digest: str


def unpack(place: str, folder: Path, *, owners: bool = False, largest: int = LARGEST) -> Unpacked:
    """The image at the place, unpacked below the folder unless it is there already; raises ``NoImage``."""
    try:
        with _opened(Path(place)) as content:
            config, layers = _parts(content)
            digest = hashlib.sha256(config).hexdigest()
            done = folder / digest
            if not (done / "config").exists():
                _build(content, config, layers, done, owners=owners, largest=largest)
            os.utime(done / "config")  # it is in use
            return Unpacked(str(done / "root"), _config(config), f"sha256:{digest}")
    except NoImage:
        raise
    except (OSError, EOFError, KeyError, ValueError, tarfile.TarError, msgspec.MsgspecError) as error:
        raise NoImage("ErrImagePull", f"{place} cannot be unpacked: {error}") from error


def drop_unused(folder: Path, used: Container[str], *, before: float) -> list[str]:
    """Remove the images that were last asked for before this moment, except those in use; returns their names."""
    dropped = []
    for done in folder.glob("[0-9a-f]*"):
        with suppress(OSError):
            if str(done / "root") not in used and (done / "config").stat().st_mtime < before:
                (done / "config").unlink()  # from now on it counts as not unpacked
                shutil.rmtree(done)
                dropped.append(f"sha256:{done.name}")
    return dropped


def _config(content: bytes) -> ImageConfig:
    return msgspec.convert(msgspec.json.decode(content).get("config") or {}, ImageConfig)


def _build(content: _Content, config: bytes, layers: list[str], done: Path, *, owners: bool, largest: int) -> None:
    making = done.with_name(f".{uuid4().hex}")
    try:
        (making / "root").mkdir(parents=True, mode=0o755)
        left = largest
        for layer in layers:
            with content.open(layer) as packed, _plain(packed) as opened:
                left = _apply(opened, making / "root", owners=owners, left=left)
        (making / "config").write_bytes(config)
        with suppress(OSError):  # another one was faster
            making.rename(done)
    finally:
        shutil.rmtree(making, ignore_errors=True)


# --- what an image is made of ----------------------------------------------------------------------


class _Content(Protocol):
    def open(self, name: str) -> IO[bytes]:
        """A part of the image by its path; raises ``KeyError`` or ``OSError``."""


class _Folder:
    def __init__(self, path: Path) -> None:
        self._path = path

    def open(self, name: str) -> IO[bytes]:
        return open(self._path / name, "rb")


class _Archive:
    def __init__(self, file: tarfile.TarFile) -> None:
        self._file = file

    def open(self, name: str) -> IO[bytes]:
        try:
            found = self._file.extractfile(name)
        except KeyError:  # made by `tar -c .`
            found = self._file.extractfile(f"./{name}")
        if found is None:
            raise KeyError(f"{name} is not a file")
        return found


@contextmanager
def _opened(place: Path) -> Iterator[_Content]:
    if place.is_dir():
        yield _Folder(place)
        return
    with tarfile.open(place, "r:*") as file:
        yield _Archive(file)


def _parts(content: _Content) -> tuple[bytes, list[str]]:
    """The configuration of the image, and the paths of its layers."""
    try:
        index = _json(content, "index.json")
    except (KeyError, OSError):
        (first, *_) = _json(content, "manifest.json")
        return _read(content, first["Config"]), list(first["Layers"])
    manifest = _json(content, _blob(_choice(index["manifests"])))
    while "manifests" in manifest:
        manifest = _json(content, _blob(_choice(manifest["manifests"])))
    return _read(content, _blob(manifest["config"])), [_blob(each) for each in manifest["layers"]]


def _choice(manifests: list[Any]) -> Any:
    """The one for this machine, or the first."""
    wanted = _ARCHITECTURES.get(os.uname().machine, os.uname().machine)
    fitting = [each for each in manifests if (each.get("platform") or {}).get("architecture") == wanted]
    if not manifests:
        raise ValueError("it holds no image")
    return (fitting or manifests)[0]


def _blob(descriptor: Any) -> str:
    kind, _, digest = str(descriptor["digest"]).partition(":")
    if not kind.isalnum() or not digest.isalnum():
        raise ValueError(f"{descriptor['digest']} is no digest")
    return f"blobs/{kind}/{digest}"


def _json(content: _Content, name: str) -> Any:
    return msgspec.json.decode(_read(content, name))


def _read(content: _Content, name: str) -> bytes:
    with content.open(name) as file:
        return file.read(64 << 20)


@contextmanager
def _plain(packed: IO[bytes]) -> Iterator[IO[bytes]]:
    """The layer without its compression."""
    begin = packed.read(4)
    packed.seek(0)
    if begin[:2] == b"\x1f\x8b":
        with gzip.open(packed) as opened:
            yield cast("IO[bytes]", opened)
    elif begin == b"\x28\xb5\x2f\xfd":
        try:
            zstd = import_module("compression.zstd")
        except ModuleNotFoundError as error:
            words = "a layer is compressed by zstd, which needs Python 3.14; save the image with gzip layers"
            raise ValueError(words) from error
        with zstd.open(packed) as opened:
            yield opened
    else:
        yield packed


# --- layers ----------------------------------------------------------------------------------------


def _apply(layer: IO[bytes], root: Path, *, owners: bool, left: int) -> int:
    """Put a layer over what is there; returns how many bytes may still be written."""
    modes: list[tuple[Path, int]] = []
    own: set[Path] = set()  # what this layer itself brought
    with tarfile.open(fileobj=layer, mode="r|") as entries:
        for entry in entries:
            parts = [part for part in entry.name.split("/") if part not in ("", ".")]
            if not parts:
                continue
            if ".." in parts:
                raise ValueError(f"{entry.name} leads out of the image")
            above = _inside(root, parts[:-1])
            if parts[-1] == _OPAQUE:
                for each in set(above.iterdir()) - own:
                    _remove(each)
                continue
            if parts[-1].startswith(_WHITEOUT):
                _remove(above / parts[-1].removeprefix(_WHITEOUT))
                continue
            path = above / parts[-1]
            own.add(path)
            left -= entry.size
            if left < 0:
                raise ValueError("it is larger than images may be")
            _put(entries, entry, path, root)
            if owners and os.path.lexists(path):
                os.chown(path, entry.uid, entry.gid, follow_symlinks=False)
            if (entry.isdir() or entry.isfile()) and not path.is_symlink():
                modes.append((path, entry.mode & 0o7777))
    for path, mode in reversed(modes):  # a read-only directory is filled first
        if path.exists() and not path.is_symlink():
            # The owner, who is root in the container, must be able to read what it runs.
            path.chmod(mode | (stat.S_IRWXU if path.is_dir() else stat.S_IRUSR))
    return left


def _inside(root: Path, parts: list[str]) -> Path:
    """The directory of an entry.  Links to directories of the image are followed as the image means them."""
    here, followed = root, 0
    todo = list(parts)
    while todo:
        part = todo.pop(0)
        if part == "..":
            here = here.parent if here != root else root
            continue
        step = here / part
        if step.is_symlink():
            followed += 1
            if followed > 40:
                raise ValueError(f"{'/'.join(parts)} has too many symbolic links")
            target = os.readlink(step)
            here = root if target.startswith("/") else here
            todo = [each for each in target.split("/") if each not in ("", ".")] + todo
            continue
        if not step.is_dir():
            _remove(step)
            step.mkdir(mode=0o755)
        here = step
    return here


def _put(entries: tarfile.TarFile, entry: tarfile.TarInfo, path: Path, root: Path) -> None:
    if entry.isdir():
        if path.is_symlink() or not path.is_dir():
            _remove(path)
            path.mkdir(mode=0o700)
        return
    _remove(path)
    if entry.issym():
        path.symlink_to(entry.linkname)
    elif entry.islnk():
        parts = [part for part in entry.linkname.split("/") if part not in ("", ".")]
        if ".." in parts or not parts:
            raise ValueError(f"{entry.name} leads out of the image")
        os.link(_inside(root, parts[:-1]) / parts[-1], path, follow_symlinks=False)
    elif entry.isfile():
        source = entries.extractfile(entry)
        assert source is not None
        with source, open(path, "xb") as target:
            shutil.copyfileobj(source, target, _CHUNK)
    elif entry.isfifo():
        os.mkfifo(path)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
