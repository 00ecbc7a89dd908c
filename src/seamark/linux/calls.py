"""System calls that Python's standard library lacks: namespaces, mounts, and a few others.

Each raises ``OSError`` as the calls in ``os`` do, and names itself in the error.
"""

from __future__ import annotations

import ctypes
import os
import platform
from functools import cache
from itertools import takewhile
from typing import Any

NEW_MOUNTS = 0x00020000
NEW_HOSTNAME = 0x04000000
NEW_IPC = 0x08000000
NEW_USER = 0x10000000
NEW_PID = 0x20000000
NEW_NETWORK = 0x40000000

READ_ONLY, NO_SUID, NO_DEVICES, NO_EXEC = 1, 2, 4, 8
REMOUNT, BIND, RECURSIVE, PRIVATE, SLAVE = 0x20, 0x1000, 0x4000, 0x40000, 0x80000
DETACH = 2

_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41, "riscv64": 41, "ppc64le": 203, "s390x": 217}
_DIE_WITH_PARENT, _DROP_CAPABILITY, _NO_NEW_PRIVILEGES = 1, 24, 38

_libc = ctypes.CDLL(None, use_errno=True)


def _call(name: str, *arguments: Any) -> None:
    if getattr(_libc, name)(*arguments) < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


@cache
def kernel() -> tuple[int, int]:
    """The version of the kernel."""
    major, _, rest = platform.release().partition(".")
    minor = "".join(takewhile(str.isdecimal, rest))
    return int(major), int(minor or 0)


def unshare(kinds: int) -> None:
    """Leave the namespaces of these kinds for new ones; with ``NEW_PID`` the next child does so."""
    _call("unshare", kinds)


def enter(opened: int, kinds: int) -> None:
    """Enter the namespace of this open file, or those of these kinds of this open process."""
    _call("setns", opened, kinds)


def mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    try:
        _call("mount", os.fsencode(source), os.fsencode(target), kind.encode() or None, flags, options.encode() or None)
    except OSError as error:
        error.filename = target
        raise


def unmount(target: str) -> None:
    _call("umount2", os.fsencode(target), DETACH)


def pivot_root(new: str, put_old: str) -> None:
    number = _PIVOT_ROOT.get(platform.machine())
    if number is None:
        raise OSError(38, f"pivot_root: not known for {platform.machine()}")
    _call("syscall", number, os.fsencode(new), os.fsencode(put_old))


def die_with_parent(signal: int) -> None:
    """Have the kernel send this signal to us when our parent ends."""
    _call("prctl", _DIE_WITH_PARENT, signal, 0, 0, 0)


def drop_capability(number: int) -> None:
    """From now on no program that is executed has this capability; raises ``OSError`` for one that does not exist."""
    _call("prctl", _DROP_CAPABILITY, number, 0, 0, 0)


def no_new_privileges() -> None:
    """From now on no program that is executed gains rights by being set-uid."""
    _call("prctl", _NO_NEW_PRIVILEGES, 1, 0, 0, 0)
