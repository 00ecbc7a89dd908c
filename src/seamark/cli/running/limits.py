"""What the system allows this process: where that is too little, a start ends with a line that says so.

Otherwise it would fail somewhere within, and what is said there does not help: SQLite tells of a file that it cannot
open, and a library that memory ran out for fails in a way of its own.
"""

from __future__ import annotations

import resource

from seamark.cli.failure import Failure

FEWEST_FILES = 64  # thirty are open when everything is up; the rest is for clients
SMALLEST_SPACE = 512 << 20  # bytes; a start with 300 MB worked only sometimes


def check() -> None:
    """``Failure`` if this process may not have what every start needs."""
    files, space = _allowed(resource.RLIMIT_NOFILE), _allowed(resource.RLIMIT_AS)
    if files is not None and files < FEWEST_FILES:
        raise Failure(
            f"only {files} files may be open at once, and Seamark needs {FEWEST_FILES} or more: see `ulimit -n`"
        )
    if space is not None and space < SMALLEST_SPACE:
        raise Failure(
            f"only {space >> 20} MiB of address space are allowed, and Seamark needs {SMALLEST_SPACE >> 20} or more: "
            "see `ulimit -v`"
        )


def _allowed(what: int) -> int | None:
    """None if there is no limit."""
    soft, _ = resource.getrlimit(what)
    return None if soft == resource.RLIM_INFINITY else soft
