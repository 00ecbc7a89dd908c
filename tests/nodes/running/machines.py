"""Where Pods can run: tests of them are skipped by name where the kernel forbids namespaces."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Iterator

import pytest

from seamark.nodes.running.machine.machine import HelperDied, Machine, NoMachine

# For programs in Pods: not that of the virtual environment, which may be below /tmp, and a Pod has a /tmp of its own.
PYTHON = os.path.realpath(sys.executable)


@contextlib.contextmanager
def unless_forbidden() -> Iterator[None]:
    """Skips the test if a machine is refused; a helper process that dies is a failure."""
    try:
        yield
    except HelperDied:
        raise
    except NoMachine as error:
        pytest.skip(str(error))


_allowed = False


async def allowed_machine() -> None:
    """Skips the test where Pods cannot run as processes.  That they can is found out once."""
    global _allowed
    if not _allowed:
        with unless_forbidden():
            await (await Machine.start()).close()
        _allowed = True


def require_machine() -> None:
    """The same outside of an event loop."""
    asyncio.run(allowed_machine())
