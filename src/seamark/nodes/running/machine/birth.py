"""What a new process does between its creation and its program: namespaces, file system, user, terminal.

It runs in a child of the helper.  Whatever fails is told over a pipe that closes by itself when the program starts.
"""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import signal
import stat
import termios
from contextlib import suppress
from typing import NoReturn

from seamark.linux import calls
from seamark.nodes.running.machine.messages import Start
from seamark.nodes.running.machine.roots import Bind, Folder, Layer, Link, Memory, Processes, ReadOnly, Step

_OLD_ROOT = ".old-root"
_KEPT = calls.READ_ONLY | calls.NO_SUID | calls.NO_DEVICES | calls.NO_EXEC | 0x0400 | 0x0800 | 0x200000
CANNOT_START = 128
_MOST_CAPABILITIES = 63
_OWN_NUMBERS = (6, 14)  # in kernels before this one there is one limit for the whole machine, which must not change


def become(request: Start, files: list[int], namespaces: dict[int, int], inside: int | None, telling: int) -> NoReturn:
    """Turn this child into the program.

    ``namespaces`` are open files by kind of namespace; ``inside`` is the open process to join; ``telling`` the pipe.
    """
    try:
        os.setsid()
        os.nice(request.nice)
        if request.cgroup:
            with open(os.path.join(request.cgroup, "cgroup.procs"), "w") as procs:
                procs.write("0")
        if inside is not None:
            calls.enter(inside, calls.NEW_MOUNTS | calls.NEW_NETWORK | calls.NEW_HOSTNAME | calls.NEW_IPC)
        else:
            for kind, opened in namespaces.items():
                calls.enter(opened, kind)
            if request.processes and not request.beside:
                _limit_processes(request.processes)
            calls.unshare(calls.NEW_MOUNTS)
            if request.beside:
                os.write(telling, b"%d@" % os.stat("/proc/thread-self/ns/mnt").st_ino)
            if request.root:
                _build(request.root, request.scratch)
        _standard_files(files, terminal=request.terminal)
        if request.open_files:
            resource.setrlimit(resource.RLIMIT_NOFILE, (request.open_files, request.open_files))
        if request.user_processes:
            most = _allowed(resource.RLIMIT_NPROC, request.user_processes)
            resource.setrlimit(resource.RLIMIT_NPROC, (most, most))
        if request.capabilities is not None:
            _keep_only(request.capabilities)
        _change_user(request)
        if not request.gains_privileges:
            calls.no_new_privileges()
        for ignored in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(ignored, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        os.umask(0o022)
        os.chdir(request.folder)
        os.execvpe(request.arguments[0], request.arguments, request.environment)
    except BaseException as error:
        number = error.errno if isinstance(error, OSError) and error.errno else errno.EIO
        os.write(telling, f"{number} {_explained(error)}".encode()[:4000])
    finally:
        os._exit(CANNOT_START)


def hold(processes: int) -> NoReturn:
    """Do nothing but take note of the children that this process inherits, as the first of its PID namespace."""
    if processes:
        _limit_processes(processes)
    os.closerange(0, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # so that the kernel removes them by itself
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    with suppress(OSError), open("/proc/thread-self/comm", "w") as name:
        name.write("pause")
    while True:
        signal.pause()


def _limit_processes(most: int) -> None:
    """Limit the numbers of processes, and by that how many there are, in the PID namespace of this process."""
    if calls.kernel() >= _OWN_NUMBERS:
        with suppress(OSError), open("/proc/sys/kernel/pid_max", "w") as file:
            file.write(str(most))


def _explained(error: BaseException) -> str:
    if isinstance(error, OSError) and error.filename:
        return f"{os.fsdecode(error.filename)}: {error.strerror}"
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _standard_files(files: list[int], *, terminal: bool) -> None:
    if terminal:
        fcntl.ioctl(files[0], termios.TIOCSCTTY, 0)
        files = files[:1] * 3
    # Copied away from 0, 1 and 2 first, so that none is overwritten before it is used.
    high = [fcntl.fcntl(each, fcntl.F_DUPFD_CLOEXEC, 3) for each in files]
    for target, opened in enumerate(high):
        os.dup2(opened, target)


def _allowed(limit: int, wanted: int) -> int:
    """A limit can be lowered, and never be raised."""
    hard = resource.getrlimit(limit)[1]
    return wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)


def _keep_only(capabilities: tuple[int, ...]) -> None:
    number = 0
    while True:
        try:
            if number not in capabilities:
                calls.drop_capability(number)
        except OSError:  # the kernel knows no more
            return
        number += 1
        if number > _MOST_CAPABILITIES:
            return


def _change_user(request: Start) -> None:
    if request.groups:
        os.setgroups(request.groups)
    if request.group:
        os.setresgid(request.group, request.group, request.group)
    if request.user:
        os.setresuid(request.user, request.user, request.user)


# --- the file system -------------------------------------------------------------------------------


def _build(steps: tuple[Step, ...], scratch: str) -> None:
    """Put the new root together at ``scratch``, and make it the root."""
    calls.mount("none", "/", flags=calls.RECURSIVE | calls.PRIVATE)
    if not isinstance(steps[0], Layer):
        calls.mount("root", scratch, "tmpfs", calls.NO_SUID | calls.NO_DEVICES, "mode=755")
    for step in steps:
        if not isinstance(step, ReadOnly):  # last of all, when the old root is gone
            _carry_out(step, scratch)
    old = os.path.join(scratch, _OLD_ROOT)
    os.makedirs(old, exist_ok=True)
    calls.pivot_root(scratch, old)
    os.chdir("/")
    calls.unmount("/" + _OLD_ROOT)
    os.rmdir("/" + _OLD_ROOT)
    for step in steps:
        if isinstance(step, ReadOnly):
            _carry_out(step, "")


def _carry_out(step: Step, root: str) -> None:
    at = root + step.at
    match step:
        case Folder(mode=mode):
            os.makedirs(at, mode, exist_ok=True)
        case Link(to=to):
            os.symlink(to, at)
        case Memory(mode=mode, size=size):
            os.makedirs(at, exist_ok=True)
            options = f"mode={mode:o}" + (f",size={size}" if size else "")
            calls.mount("memory", at, "tmpfs", calls.NO_SUID | calls.NO_DEVICES, options)
        case Layer(lower=lower, upper=upper, work=work):
            options = f"lowerdir={lower},upperdir={upper},workdir={work}"
            calls.mount("layer", at, "overlay", 0, options)
        case ReadOnly():
            kept = os.statvfs(at).f_flag & _KEPT
            calls.mount("none", at, flags=calls.REMOUNT | calls.BIND | calls.READ_ONLY | kept)
        case Bind(source=source, read_only=read_only, below=below):
            _bind(inside(source, below) if below else source, at, read_only=read_only)
        case Processes():
            os.makedirs(at, exist_ok=True)
            try:
                calls.mount("proc", at, "proc", calls.NO_SUID | calls.NO_DEVICES | calls.NO_EXEC)
            except PermissionError:  # parts of the machine's own /proc are hidden, as inside of some containers
                calls.mount("/proc", at, flags=calls.BIND | calls.RECURSIVE)


def inside(folder: str, below: str) -> str:
    """A path in a directory, made a directory like it if nothing is there; links must not lead out of it."""
    top = os.path.realpath(folder)
    found = os.path.realpath(os.path.join(top, below))
    if os.path.commonpath((top, found)) != top:
        raise OSError(errno.EXDEV, f"subPath {below} leads out of its volume")
    if not os.path.lexists(found):
        os.makedirs(found)
        like = os.stat(top)
        os.chmod(found, stat.S_IMODE(like.st_mode))
        with suppress(OSError):
            os.chown(found, -1, like.st_gid)
    return found


def _bind(source: str, at: str, *, read_only: bool) -> None:
    if stat.S_ISDIR(os.stat(source).st_mode):
        os.makedirs(at, exist_ok=True)
    elif not os.path.lexists(at):
        os.makedirs(os.path.dirname(at), exist_ok=True)
        os.close(os.open(at, os.O_CREAT | os.O_WRONLY, 0o644))
    calls.mount(source, at, flags=calls.BIND | calls.RECURSIVE)
    if read_only:
        # The kernel keeps the restrictions of the original: they have to be named again.
        kept = os.statvfs(at).f_flag & _KEPT
        calls.mount("none", at, flags=calls.REMOUNT | calls.BIND | calls.READ_ONLY | kept)
