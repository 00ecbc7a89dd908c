"""A webhook that converts, for the tests of conversion."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio
from called_servers import Trusted
from converting import Converter


@pytest_asyncio.fixture
async def converter(trusted: Trusted) -> AsyncIterator[Converter]:
    async with Converter(trusted) as server:
        yield server
