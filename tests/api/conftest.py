"""A server for the tests of the API's spine, and an authority whose certificates it trusts when it calls others."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from called_servers import Trusted
from served import Served, served


@pytest_asyncio.fixture
async def api() -> AsyncIterator[Served]:
    async with served() as server:
        yield server


@pytest.fixture(scope="session")
def trusted(tmp_path_factory: pytest.TempPathFactory) -> Trusted:
    return Trusted(tmp_path_factory.mktemp("authority"))
