"""A real machine in namespaces of its own; where the kernel forbids them, tests are skipped by name."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from machines import unless_forbidden

from seamark.nodes.running.machine.machine import Machine


@pytest.fixture
async def machine() -> AsyncIterator[Machine]:
    with unless_forbidden():
        made = await Machine.start()
    yield made
    await made.close()
