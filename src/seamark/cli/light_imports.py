"""Imports libraries at less cost, for a process that is ours alone."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


def import_http_client() -> None:
    """Import aiohttp without the system's certificates.

    While it is imported it reads all of them twice, for contexts that our connections do not use: a tenth of a second
    of CPU time.  A process that others import us into must keep them, so this is for commands only.
    """
    name = "SSL_CERT_FILE"
    given = os.environ.get(name)
    os.environ[name] = os.devnull
    try:
        import aiohttp  # noqa: F401
    finally:
        del os.environ[name]
        if given is not None:
            os.environ[name] = given


def import_msgspec() -> None:
    """Import msgspec without typing_extensions.

    msgspec takes from there, if it is installed, what the standard library's ``typing`` has as well.  It would be an
    eighth of the time that a short command takes.
    """
    name = "typing_extensions"
    if name in sys.modules or "msgspec" in sys.modules:
        return
    sys.modules[name] = None  # type: ignore[assignment]  # the documented way to say that a module is not there
    try:
        import msgspec  # noqa: F401
    finally:
        del sys.modules[name]


@contextmanager
def uncollected() -> Iterator[None]:
    """Do not look for garbage inside the block: what is imported is none, and a short command ends soon."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
