"""A real machine in namespaces of its own; where the kernel forbids them, tests are skipped by name."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from seamark.nodes.running.machine.machine import Machine, NoMachine


@pytest.fixture
async def machine() -> AsyncIterator[Machine]:
    try:
        made = await Machine.start()
    except NoMachine as error:
        pytest.skip(str(error))
    yield made
    await made.close()
