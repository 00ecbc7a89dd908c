"""The steps that make a container's file system.  The daemon plans them, the new process carries them out.

Paths named ``at`` are inside of the new root, and all others are the machine's.
"""

from __future__ import annotations

import msgspec


class Folder(msgspec.Struct, frozen=True, tag="folder"):
    """A directory, if there is none yet; also those above it."""

    at: str
    mode: int = 0o755


class Link(msgspec.Struct, frozen=True, tag="link"):
    """A symbolic link."""

    at: str
    to: str


class Memory(msgspec.Struct, frozen=True, tag="memory"):
    """An empty file system in memory."""

    at: str
    mode: int = 0o755
    size: int = 0  # in bytes; 0 for what the kernel allows


class Bind(msgspec.Struct, frozen=True, tag="bind"):
    """A file or directory of the machine, with what is mounted below it."""

    source: str
    at: str
    read_only: bool = False
    below: str = ""  # the part of the source that is meant, which is made a directory if it is not there


class Layer(msgspec.Struct, frozen=True, tag="layer"):
    """A directory tree that can be written to while the original stays as it is."""

    lower: str
    upper: str
    work: str
    at: str = "/"


class Processes(msgspec.Struct, frozen=True, tag="processes"):
    """``/proc`` of the new process's own PID namespace, or the machine's where the kernel does not allow that."""

    at: str = "/proc"


class ReadOnly(msgspec.Struct, frozen=True, tag="read-only"):
    """The root itself can no longer be written to; what is mounted on it can."""

    at: str = "/"


Step = Folder | Link | Memory | Bind | Layer | Processes | ReadOnly
