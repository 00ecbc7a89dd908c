"""Imports libraries at less cost and undisturbed, for a process that is ours alone."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace


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
    """Import msgspec without what it imports and commands do not use: a tenth of the time that a short one takes.

    That is typing_extensions, of which the standard library's ``typing`` has all it takes, its own modules for JSON
    schemas, and ``platform``, which ``uuid`` asks for the name of the system.
    """
    if "msgspec" in sys.modules:
        return
    instead = {
        "typing_extensions": None,  # the documented way to say that a module is not there
        "msgspec.inspect": SimpleNamespace(),
        "msgspec._json_schema": SimpleNamespace(schema=None, schema_components=None),
    }
    if hasattr(os, "uname"):
        instead["platform"] = SimpleNamespace(system=lambda: os.uname().sysname)
    instead = {name: module for name, module in instead.items() if name not in sys.modules}
    sys.modules.update(instead)  # type: ignore[arg-type]  # they are as much of a module as is used
    try:
        import msgspec  # noqa: F401
    finally:
        for name in instead:
            del sys.modules[name]


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold Ctrl-C back until the block, which imports, is left.

    A traceback of half an import helps no one, and msgspec crashes the process if the making of a class is interrupted.
    """
    import signal

    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


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
