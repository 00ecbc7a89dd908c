"""A daemon whose Pods run."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from pods_that_run import running

from seamark.daemon import Daemon


@pytest.fixture
async def daemon(tmp_path: Path) -> AsyncIterator[Daemon]:
    async with running(tmp_path) as made:
        yield made
