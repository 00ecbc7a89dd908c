"""Locks a data directory for one Seamark process at a time, and lets others find out which process that is.

There are two files.  A lock on ``lock`` keeps a second process out; the kernel releases it however the first one dies.
``running.json`` describes what runs, and carries a POSIX lock, because for that kind of lock the kernel tells the
holder's process id.  So the id comes from the kernel, not from a file that a dead process may have left behind.
``running.json`` is replaced as a whole, so that a reader never sees a part of it: the next one carries its lock before
it takes the name.
"""

from __future__ import annotations

import fcntl
import logging
import os
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from seamark.private_files import make_private_directory, open_private

log = logging.getLogger(__name__)

LOCK = "lock"
RUNNING = "running.json"
NEXT = "running.json.next"

# The layout of ``struct flock``, which Python does not provide: how to build the query, and where the pid is.
if sys.platform == "darwin":
    _FLOCK = struct.Struct("qqihh")

    def _question() -> bytes:
        return _FLOCK.pack(0, 0, 0, fcntl.F_WRLCK, os.SEEK_SET)

    def _answer(raw: bytes) -> tuple[int, int]:
        _, _, pid, kind, _ = _FLOCK.unpack(raw)
        return kind, pid

else:
    _FLOCK = struct.Struct("hhqqi4x")

    def _question() -> bytes:
        return _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)

    def _answer(raw: bytes) -> tuple[int, int]:
        kind, _, _, _, pid = _FLOCK.unpack(raw)
        return kind, pid


def default_data_dir() -> str:
    """The data directory if none is named: below the XDG state directory of this user."""
    base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return str(Path(base) / "seamark")


class DirectoryError(Exception):
    """The data directory cannot be used; the text says which, why, and what to do, in one line."""


class Presence(msgspec.Struct, frozen=True):
    """What runs in a data directory.  Addresses may be missing until it is ``ready``."""

    pid: int
    version: str = ""
    started: str = ""
    ready: bool = False
    parts: tuple[str, ...] = ()
    api: str = ""
    kubeconfig: str = ""
    dns: tuple[str, ...] = ()
    cluster_domain: str = ""
    store: str = ""
    nodes: int = 0
    pods: str = "simulated"  # or processes
    node_ports: tuple[str, ...] = ()  # the addresses on which they answer
    not_served: tuple[str, ...] = ()  # Services' places that cannot be had, and why
    log: str = ""
    workers: tuple[int, ...] = ()  # the process ids of those that serve the API beside this one

    @property
    def about_nodes(self) -> str:
        """How many nodes there are, and what their Pods are."""
        how = {"simulated": " simulated", "processes": ", whose Pods run as processes"}
        return f"{self.nodes}{how.get(self.pods, ', of whose Pods some run as processes')}"


class Hold:
    """A data directory held by this process."""

    def __init__(self, directory: Path, running: int) -> None:
        self._directory = directory
        self._running = running

    def tell(self, presence: Presence) -> None:
        """Write down what runs here, for :func:`find`; raises :class:`DirectoryError`, for example on a full disk."""
        try:
            self._write(msgspec.json.encode(presence) + b"\n")
        except OSError as error:
            raise _unusable(self._directory, error) from error
        except UnicodeEncodeError as error:
            raise DirectoryError(f"cannot use {error.object!r}: the name is not UTF-8") from error

    def tell_again(self, presence: Presence) -> None:
        """The same, when that has changed.  A full disk ends nothing: what was told stays until the next change."""
        try:
            self.tell(presence)
        except DirectoryError as error:
            log.warning("what runs here could not be written down anew: %s", error)

    def _write(self, content: bytes) -> None:
        running = open_private(self._directory / NEXT, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        try:
            _lock(running)
            os.pwrite(running, content, 0)
            os.rename(self._directory / NEXT, self._directory / RUNNING)
        except OSError:
            os.close(running)
            raise
        os.close(self._running)
        self._running = running

    def end(self) -> None:
        """Nothing runs here any more: empty the file, and release its lock."""
        with suppress(OSError):  # a disk that has failed: what counts is the lock
            os.ftruncate(self._running, 0)
        os.close(self._running)


@contextmanager
def hold(directory: Path) -> Iterator[Hold]:
    """Lock the directory for the block; creates it if it is missing."""
    try:
        make_private_directory(directory, named=True)
        lock = open_private(directory / LOCK, os.O_RDWR | os.O_CREAT)
    except OSError as error:
        raise _unusable(directory, error) from error
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise DirectoryError(_taken(directory)) from None
        try:
            held = Hold(directory, open_private(directory / RUNNING, os.O_RDWR | os.O_CREAT))
        except OSError as error:
            raise _unusable(directory, error) from error
        try:
            held.tell(Presence(os.getpid()))
            yield held
        finally:
            held.end()
    finally:
        os.close(lock)


def _lock(running: int) -> None:
    fcntl.lockf(running, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _unusable(directory: Path, error: OSError) -> DirectoryError:
    return DirectoryError(f"cannot use the data directory {directory}: {error.strerror}; see --data-dir")


def _taken(directory: Path) -> str:
    holder = find(directory)
    who = f"pid {holder.pid}" if holder is not None and holder.pid > 0 else "another process"
    return f"the data directory {directory} is in use by {who}; stop it or give --data-dir"


def find(directory: Path) -> Presence | None:
    """What runs in a directory, None if nothing does.

    Do not call it in the process that holds the directory: closing the file here would release that process's own
    lock.  ``pid`` is 0 if the holder is not visible, for example because it runs in another container.
    """
    while True:
        try:
            running = open_private(directory / RUNNING, os.O_RDONLY)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise DirectoryError(f"cannot look into the data directory {directory}: {error.strerror}") from error
        try:
            kind, pid = _answer(fcntl.fcntl(running, fcntl.F_GETLK, _question()))
            if kind != fcntl.F_UNLCK:
                text = os.pread(running, os.fstat(running).st_size, 0)
                break
            if os.path.samestat(os.fstat(running), (directory / RUNNING).stat()):
                return None
            # Otherwise the holder has replaced the file since it was opened; the new one has the lock.
        except FileNotFoundError:
            return None  # the directory was removed
        finally:
            os.close(running)
    try:
        said = msgspec.json.decode(text, type=Presence)
    except msgspec.DecodeError:
        said = Presence(pid)  # the holder has not written the file yet
    return msgspec.structs.replace(said, pid=max(pid, 0))
