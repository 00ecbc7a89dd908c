"""Plans a container's file system: its image, what every container has, and its volumes, as steps.

This machine's own file system as an image is put together from bind mounts, because an ordinary user cannot create
directories in it: where a mount point is missing, the directories above it are rebuilt from their entries.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable, Sequence

import msgspec

from seamark.nodes.running.machine.roots import Bind, Folder, Layer, Link, Memory, Processes, ReadOnly, Step

_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_DEVICE_LINKS = {
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
    "ptmx": "pts/ptmx",
}
_OWN = ("/proc", "/sys", "/dev", "/tmp", "/run")  # what every container has for itself
_DEEPEST = 40  # symbolic links that are followed in one path


class Volume(msgspec.Struct, frozen=True):
    """A file or directory of the machine, and where the container has it."""

    source: str
    at: str
    read_only: bool = False
    below: str = ""  # the part of it that is meant


def read_only(steps: Sequence[Step], volumes: Iterable[Volume]) -> tuple[Step, ...]:
    """The same file system, of which only volumes and devices can be written to."""
    kept = {each.source for each in volumes}
    fixed = [
        msgspec.structs.replace(each, read_only=True)
        if isinstance(each, Bind) and each.source not in kept and not each.at.startswith("/dev/")
        else each
        for each in steps
    ]
    return (*fixed, ReadOnly())


def of_directory(root: str, upper: str, work: str, volumes: Iterable[Volume]) -> tuple[Step, ...]:
    """A directory as root file system: a layer over it takes what the container writes."""
    steps: list[Step] = [Layer(root, upper, work), *_own(), Memory("/run")]
    for volume in _outermost_first(volumes):
        at = _resolved(volume.at, root)
        steps.append(Bind(volume.source, at, volume.read_only, volume.below))
    return tuple(steps)


def of_host(temporary: str, volumes: Iterable[Volume]) -> tuple[Step, ...]:
    """This machine's own file system, with ``temporary`` as the container's ``/tmp``."""
    wanted = [Volume(temporary, "/tmp"), *_outermost_first(volumes)]
    placed = [msgspec.structs.replace(each, at=_resolved(each.at, "/")) for each in wanted]
    steps = [*_rebuilt("/", {each.at for each in placed}), *_own(), Memory("/run")]
    steps += [Bind(each.source, each.at, each.read_only, each.below) for each in placed]
    return tuple(steps)


def _outermost_first(volumes: Iterable[Volume]) -> list[Volume]:
    """A volume inside of another one must be mounted after it."""
    return sorted(volumes, key=lambda each: posixpath.normpath(each.at).count("/"))


def _own() -> list[Step]:
    steps: list[Step] = [Processes(), Bind("/sys", "/sys", read_only=True), Memory("/dev")]
    steps += [Bind(f"/dev/{name}", f"/dev/{name}") for name in _DEVICES if os.path.exists(f"/dev/{name}")]
    steps += [Bind("/dev/pts", "/dev/pts"), Memory("/dev/shm", 0o1777)]
    steps += [Link(f"/dev/{name}", to) for name, to in _DEVICE_LINKS.items()]
    return steps


def _rebuilt(folder: str, points: Iterable[str]) -> list[Step]:
    """The entries of a directory, bound one by one where a mount point below it has to be created."""
    steps: list[Step] = []
    points = [each for each in points if _below(each, folder)]
    for entry in sorted(os.scandir(folder), key=lambda each: each.name):
        if entry.path in _OWN or entry.path in points:
            continue
        if entry.is_symlink():
            steps.append(Link(entry.path, os.readlink(entry.path)))
        elif entry.is_dir(follow_symlinks=False) and _to_rebuild(entry.path, points):
            steps += [Folder(entry.path), *_rebuilt(entry.path, points)]
        elif os.access(entry.path, os.R_OK) or entry.is_dir(follow_symlinks=False):
            steps.append(Bind(entry.path, entry.path))
    return steps


def _to_rebuild(folder: str, points: Sequence[str]) -> bool:
    """Whether a mount point below this directory does not exist, so that it must be created."""
    return any(_below(each, folder) and not os.path.lexists(each) for each in points)


def _below(path: str, folder: str) -> bool:
    return path.startswith(folder.rstrip("/") + "/")


def _resolved(path: str, root: str) -> str:
    """The path with symbolic links of the image followed, as seen from inside: a mount must not go through them."""
    parts = [part for part in path.split("/") if part and part != "."]
    done: list[str] = []
    followed = 0
    while parts:
        part = parts.pop(0)
        if part == "..":
            del done[-1:]
            continue
        here = os.path.join(root, *done, part)
        if os.path.islink(here) and followed < _DEEPEST:
            followed += 1
            target = os.readlink(here)
            if target.startswith("/"):
                done = []
            parts = [each for each in target.split("/") if each and each != "."] + parts
            continue
        done.append(part)
    return "/" + "/".join(done)
