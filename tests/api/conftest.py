"""A server for the tests of the API's spine."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio
from served import Served, served


@pytest_asyncio.fixture
async def api() -> AsyncIterator[Served]:
    async with served() as server:
        yield server
