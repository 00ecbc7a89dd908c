"""Where Pods can run: tests of them are skipped by name where the kernel forbids namespaces."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator

import pytest

from seamark.nodes.running.machine.machine import HelperDied, Machine, NoMachine


@contextlib.contextmanager
def unless_forbidden() -> Iterator[None]:
    """Skips the test if a machine is refused; a helper process that dies is a failure."""
    try:
        yield
    except HelperDied:
        raise
    except NoMachine as error:
        pytest.skip(str(error))


def require_machine() -> None:
    """Skips the test where Pods cannot run as processes."""

    async def look() -> None:
        await (await Machine.start()).close()

    with unless_forbidden():
        asyncio.run(look())
