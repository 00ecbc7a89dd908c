"""Files that only their owner may read, made that way from the start.

Files with data or secrets are created with mode 0600, whatever the umask, so that there is no moment at which others
can read them.  Older ones with wider modes are narrowed.  A symbolic link or another user's file in the place of ours
is refused: writing would change, and reading would trust, a file that is not ours.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import stat
from contextlib import suppress
from pathlib import Path

logger = logging.getLogger(__name__)

MODE = 0o600
OTHERS = 0o077  # the rights of the group and of all other users
OTHERS_WRITE = 0o022
UNFINISHED = ".seamark-"  # in the names of files that are being written, before they get their names


def make_private_directory(path: Path, *, named: bool = False) -> None:
    """Create a directory for its owner only; if it is there, and is ours, others may at least not write to it.

    One that another user made is refused, because he can replace what is in it.  It may be root's, or that of the owner
    of the directory around it.  Root's is taken if all may write to it, as the volumes of Pods are: what others put
    there is refused by its owner, so the worst they can do is to remove files.  One that our user has ``named`` is
    refused only where every user could have made it.
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except FileExistsError as error:
        raise OSError(errno.ENOTDIR, "it is a file") from error
    if path.is_symlink() and path.lstat().st_uid not in (0, os.geteuid()):
        raise OSError(errno.EPERM, f"{path.name} is a symbolic link that belongs to another user")
    found, around = path.stat(), path.absolute().parent.stat()
    if found.st_uid not in (0, os.geteuid(), around.st_uid) and (not named or around.st_mode & stat.S_IWOTH):
        raise OSError(errno.EPERM, f"{path.name} belongs to another user")
    if found.st_mode & OTHERS_WRITE and found.st_uid == os.geteuid():
        logger.warning("%s could be written to by other users; now it cannot", path)
        path.chmod(stat.S_IMODE(found.st_mode) & ~OTHERS_WRITE)


def open_private(path: Path, flags: int) -> int:
    """The descriptor of a file that is ours; with ``O_CREAT`` it is created if it is missing.

    Raises OSError, whose ``strerror`` says what is wrong, for a symbolic link and for another user's file.
    """
    try:
        descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, MODE)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK):  # EMLINK: on BSD
            raise OSError(error.errno, f"{path.name} is a symbolic link, which is not followed") from error
        raise
    try:
        _check(path, os.fstat(descriptor), descriptor)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def check_private(path: Path) -> None:
    """Raise OSError if the file, which may be missing, is another user's; narrow its mode if that is too wide.

    A symbolic link is followed if it is ours or root's: Kubernetes mounts Secrets as such links.
    """
    try:
        found = path.lstat()
        if stat.S_ISLNK(found.st_mode):
            if found.st_uid not in (0, os.geteuid()):
                raise OSError(errno.EPERM, f"{path.name} is a symbolic link that belongs to another user")
        else:
            _check(path, found, path)
    except FileNotFoundError:
        return


def _check(path: Path, found: os.stat_result, what: int | Path) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EPERM, f"{path.name} is not a file")
    if found.st_uid not in (0, os.geteuid(), path.parent.stat().st_uid):
        raise OSError(errno.EPERM, f"{path.name} belongs to another user")
    if found.st_mode & OTHERS and found.st_uid == os.geteuid():
        try:
            os.chmod(what, MODE)
        except OSError as error:
            if error.errno != errno.EROFS:  # there the mode must stay, and a reader may read
                raise
        else:
            logger.warning("%s had mode %04o; now only its owner may read it", path, stat.S_IMODE(found.st_mode))


def write_private(path: Path, data: bytes) -> None:
    """Replace a file in one step, so that it is never seen half written; only its owner may read it.

    What processes left that were killed in the middle of this goes too: it may hold a key.
    """
    remove_unfinished(path.parent)
    handle, temporary = _locked_beside(path)
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
            Path(temporary).replace(path)  # while it is locked, so that it is not taken for left over
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def is_unfinished(name: str) -> bool:
    """Whether a file of that name is not in its place yet, or is left over."""
    return name.startswith(".") and UNFINISHED in name


def _locked_beside(path: Path) -> tuple[int, str]:
    """A new file beside another, whose lock says that it is in use, and its name."""
    import tempfile  # here, because most commands end before they need it

    while True:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}{UNFINISHED}")
        with suppress(OSError):  # a file system without locks: there nothing is taken for left over
            fcntl.flock(handle, fcntl.LOCK_EX)
        if os.fstat(handle).st_nlink:
            return handle, temporary
        os.close(handle)  # it was taken for left over before it was locked


def remove_unfinished(directory: Path) -> None:
    """Remove the files that were to replace others, and are locked by no process."""
    with os.scandir(directory) as found:
        left = [each.path for each in found if is_unfinished(each.name)]
    for each in left:
        with suppress(OSError):  # it is in use, or another process has just removed it
            descriptor = open_private(Path(each), os.O_RDWR)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(each)
            finally:
                os.close(descriptor)


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable: a new file, or one that was renamed."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def open_log(path: str, flags: int) -> int:
    """Open a log file, as an ``opener`` for :func:`open`: a new one is private, an old one keeps the mode it has.

    It may be a device, a pipe that a process reads, or a symbolic link, unless another user made that.
    """
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        pass  # it is created below
    else:
        if stat.S_ISLNK(found.st_mode) and found.st_uid not in (0, os.geteuid()):
            raise OSError(errno.EPERM, "it is a symbolic link that belongs to another user")
    try:
        descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK, MODE)  # a pipe would wait for a reader
    except OSError as error:
        if error.errno == errno.ENXIO:
            raise OSError(error.errno, "it is a pipe that no process reads, or a socket") from error
        raise
    os.set_blocking(descriptor, True)
    return descriptor
